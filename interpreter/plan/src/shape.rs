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
    /// Width of the MLP that a token goes through: of all its experts together where it has several.
    pub intermediate: u64,
    /// Parameters of all MLPs, experts and routers.
    pub mlps: u64,
    /// Parameters of one layer's norms, and of the biases of its attention.
    pub vectors: u64,
    /// Parameters of the last norm.
    pub last_norm: u64,
    /// Parameters of a table of learned positions.
    pub places: u64,
    /// Vocabulary.
    pub vocab: u64,
    /// Longest sequence.
    pub positions: u64,
    /// The output head is the embedding.
    pub tied: bool,
}

/// What families call their sizes, and what they have beside the common parts.
struct Kind {
    hidden: &'static str,
    heads: &'static str,
    layers: &'static str,
    positions: &'static str,
    /// Matrices of an MLP.
    matrices: u64,
    /// Vectors of a norm.
    norm: u64,
    /// Norms of a layer.
    norms: u64,
    /// Width of a head where nothing says it.
    head_dim: Option<u64>,
    tied: bool,
    places: bool,
}

/// What a bias is where `config.json` has no word of it.
#[derive(Clone, Copy)]
enum Biases {
    None,
    /// Of queries, keys and values.
    Qkv,
    /// Of every projection.
    All,
}

impl Kind {
    fn of(class: &str) -> (Kind, Biases) {
        let llama = Kind {
            hidden: "hidden_size",
            heads: "num_attention_heads",
            layers: "num_hidden_layers",
            positions: "max_position_embeddings",
            matrices: 3,
            norm: 1,
            norms: 2,
            head_dim: None,
            tied: false,
            places: false,
        };
        let gpt2 = Kind {
            hidden: "n_embd",
            heads: "n_head",
            layers: "n_layer",
            positions: "n_positions",
            matrices: 2,
            norm: 2,
            tied: true,
            places: true,
            ..llama
        };
        match class {
            c if c.starts_with("GPT2") => (gpt2, Biases::All),
            c if c.starts_with("GPTNeoX") => {
                let neox = Kind {
                    matrices: 2,
                    norm: 2,
                    ..llama
                };
                (neox, Biases::All)
            }
            c if c.starts_with("Gemma") => {
                let gemma = Kind {
                    head_dim: Some(256),
                    norms: if c.starts_with("Gemma2") { 4 } else { 2 },
                    tied: true,
                    ..llama
                };
                (gemma, Biases::None)
            }
            c if c.starts_with("Qwen3For") => {
                let qwen3 = Kind {
                    head_dim: Some(128),
                    ..llama
                };
                (qwen3, Biases::None)
            }
            c if c.starts_with("Qwen2For") => (llama, Biases::Qkv),
            _ => (llama, Biases::None),
        }
    }
}

impl ModelShape {
    /// Reads the sizes; the error names the entry that is missing.
    pub fn from_config(config: &Value) -> Result<Self, String> {
        let classes = config.get("architectures").and_then(Value::as_array);
        let class = classes.and_then(|c| c.first()).and_then(Value::as_str);
        let class = class.unwrap_or_default();
        let (kind, biases) = Kind::of(class);
        let optional = |key: &str| config.get(key).and_then(Value::as_u64);
        let need = |key: &str| {
            optional(key)
                .filter(|n| *n > 0)
                .ok_or_else(|| format!("`{key}` is missing or not a positive number"))
        };
        let is = |key: &str| config.get(key).and_then(Value::as_bool);
        let times = u64::saturating_mul;
        let (hidden, heads) = (need(kind.hidden)?, need(kind.heads)?);
        let layers = need(kind.layers)?;
        let kv_heads = optional("num_key_value_heads").unwrap_or(heads);
        let head_dim = optional("head_dim").unwrap_or(kind.head_dim.unwrap_or(hidden / heads));
        let width = match kind.places {
            true => optional("n_inner").unwrap_or(times(4, hidden)),
            false => need("intermediate_size")?,
        };
        let qkv = times(heads.saturating_add(times(2, kv_heads)), head_dim);
        let attention = match (is("attention_bias"), biases) {
            (_, Biases::Qkv) => qkv,
            (Some(true), _) | (None, Biases::All) => qkv.saturating_add(hidden),
            _ => 0,
        };
        let heads_norms = match class.starts_with("Qwen3") {
            true => times(2, head_dim),
            false => 0,
        };
        let norms = times(times(kind.norms, kind.norm), hidden);
        let dense = times(times(kind.matrices, hidden), width);
        let dense = dense.saturating_add(match biases {
            Biases::All => width.saturating_add(hidden),
            _ => 0,
        });
        let count = optional("num_local_experts").or_else(|| optional("num_experts"));
        let sparse = count.map(|count| {
            let width = optional("moe_intermediate_size").unwrap_or(width);
            let step = optional("decoder_sparse_step").unwrap_or(1).max(1);
            let only = config.get("mlp_only_layers").and_then(Value::as_array);
            let sparse = (layers / step).saturating_sub(only.map_or(0, |l| l.len() as u64));
            let experts = times(times(times(3, hidden), width), count);
            (sparse, experts.saturating_add(times(hidden, count)), width)
        });
        let (mlps, intermediate) = match sparse {
            None => (times(layers, dense), width),
            Some((sparse, experts, width)) => (
                times(sparse, experts).saturating_add(times(layers - sparse, dense)),
                times(width, optional("num_experts_per_tok").unwrap_or(2)),
            ),
        };
        let positions = optional(kind.positions).unwrap_or(2048);
        Ok(ModelShape {
            layers,
            hidden,
            heads,
            kv_heads,
            head_dim,
            intermediate,
            mlps,
            vectors: norms.saturating_add(heads_norms).saturating_add(attention),
            last_norm: times(kind.norm, hidden),
            places: if kind.places {
                times(positions, hidden)
            } else {
                0
            },
            vocab: need("vocab_size")?,
            positions,
            tied: is("tie_word_embeddings").unwrap_or(kind.tied),
        })
    }

    /// Parameters. Sizes that no model has saturate.
    pub fn parameters(&self) -> u64 {
        let times = u64::saturating_mul;
        let heads = times(2, self.heads).saturating_add(times(2, self.kv_heads));
        let attention = times(times(self.hidden, self.head_dim), heads);
        let tables = if self.tied { 1 } else { 2 };
        times(self.layers, attention.saturating_add(self.vectors))
            .saturating_add(self.mlps)
            .saturating_add(self.last_norm)
            .saturating_add(self.places)
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
    fn every_family_has_the_parameters_that_transformers_counts() {
        let llama = |class: &str, sizes: [u64; 6], more: serde_json::Value| {
            let [vocab, hidden, intermediate, layers, heads, kv_heads] = sizes;
            let mut config = serde_json::json!({
                "architectures": [class], "vocab_size": vocab, "hidden_size": hidden,
                "intermediate_size": intermediate, "num_hidden_layers": layers,
                "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                config[key] = value.clone();
            }
            config
        };
        let tied = serde_json::json!({ "tie_word_embeddings": true });
        let none = serde_json::json!({});
        let gpt2 = serde_json::json!({
            "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_embd": 768,
            "n_layer": 12, "n_head": 12, "n_positions": 1024
        });
        let mixtral = serde_json::json!({ "num_local_experts": 8, "num_experts_per_tok": 2 });
        let qwen3_moe = serde_json::json!({
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
            "head_dim": 128
        });
        let cases = [
            (gpt2, 124_439_808),
            (
                llama(
                    "GPTNeoXForCausalLM",
                    [50304, 768, 3072, 12, 12, 12],
                    none.clone(),
                ),
                162_322_944,
            ),
            (
                llama(
                    "Qwen3ForCausalLM",
                    [151936, 1024, 3072, 28, 16, 8],
                    tied.clone(),
                ),
                596_049_920,
            ),
            (
                llama("Qwen2ForCausalLM", [151936, 896, 4864, 24, 14, 2], tied),
                494_032_768,
            ),
            (
                llama(
                    "GemmaForCausalLM",
                    [256000, 2048, 16384, 18, 8, 1],
                    none.clone(),
                ),
                2_506_172_416,
            ),
            (
                llama(
                    "Gemma2ForCausalLM",
                    [256000, 2304, 9216, 26, 8, 4],
                    none.clone(),
                ),
                2_614_341_888,
            ),
            (
                llama("Phi3ForCausalLM", [32064, 3072, 8192, 32, 32, 32], none),
                3_821_079_552,
            ),
            (
                llama(
                    "MixtralForCausalLM",
                    [32000, 4096, 14336, 32, 32, 8],
                    mixtral,
                ),
                46_702_792_704,
            ),
            (
                llama(
                    "Qwen3MoeForCausalLM",
                    [151936, 2048, 6144, 48, 32, 4],
                    qwen3_moe,
                ),
                30_532_122_624,
            ),
        ];
        for (config, count) in cases {
            let shape = ModelShape::from_config(&config).map(|s| s.parameters());
            assert_eq!(shape, Ok(count), "{config}");
        }
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
