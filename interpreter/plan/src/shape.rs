//! The sizes of a decoder, read from a checkpoint's `config.json`: all that planning needs to know.

use serde_json::Value;

/// Sizes of a causal decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Decoder layers.
    pub layers: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of one head.
    pub head_dim: u64,
    /// Width of the gated MLP.
    pub intermediate: u64,
    /// Vocabulary.
    pub vocab: u64,
    /// Longest sequence.
    pub positions: u64,
    /// The output head is the embedding.
    pub tied: bool,
}

impl ModelShape {
    /// Reads the sizes; the error names the entry that is missing.
    pub fn from_config(config: &Value) -> Result<Self, String> {
        let optional = |key: &str| config.get(key).and_then(Value::as_u64);
        let need = |key: &str| {
            optional(key)
                .filter(|n| *n > 0)
                .ok_or_else(|| format!("`{key}` is missing or not a positive number"))
        };
        let (hidden, heads) = (need("hidden_size")?, need("num_attention_heads")?);
        Ok(ModelShape {
            layers: need("num_hidden_layers")?,
            hidden,
            heads,
            kv_heads: optional("num_key_value_heads").unwrap_or(heads),
            head_dim: optional("head_dim").unwrap_or(hidden / heads),
            intermediate: need("intermediate_size")?,
            vocab: need("vocab_size")?,
            positions: optional("max_position_embeddings").unwrap_or(2048),
            tied: config
                .get("tie_word_embeddings")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    }

    /// Parameters, biases left out. Sizes that no model has saturate.
    pub fn parameters(&self) -> u64 {
        let times = u64::saturating_mul;
        let heads = times(2, self.heads).saturating_add(times(2, self.kv_heads));
        let attention = times(times(self.hidden, self.head_dim), heads);
        let mlp = times(3, times(self.hidden, self.intermediate));
        let norms = times(2, self.hidden);
        let layer = attention.saturating_add(mlp).saturating_add(norms);
        let tables = if self.tied { 1 } else { 2 };
        times(self.layers, layer)
            .saturating_add(self.hidden)
            .saturating_add(times(times(tables, self.vocab), self.hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smollm2_has_the_parameters_its_name_says() {
        let config = serde_json::json!({
            "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3,
            "num_hidden_layers": 30, "intermediate_size": 1536, "vocab_size": 49152,
            "max_position_embeddings": 8192, "tie_word_embeddings": true
        });
        // The count transformers gives for this configuration.
        assert_eq!(
            ModelShape::from_config(&config).map(|s| s.parameters()),
            Ok(134_515_008)
        );
    }

    #[test]
    fn a_missing_size_is_named() {
        let error = ModelShape::from_config(&serde_json::json!({ "hidden_size": 8 }));
        assert_eq!(
            error,
            Err("`num_attention_heads` is missing or not a positive number".into())
        );
    }
}
