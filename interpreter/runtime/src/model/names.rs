//! What families call their tensors, and how they lie in the file.

use tch::Tensor;

/// How a stored matrix or bias relates to the decoder's `[out, in]` or `[out]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The same.
    Plain,
    /// Stored `[in, out]`.
    Transposed,
    /// Queries, keys and values stored head by head, for as many heads.
    Interleaved(i64),
}

impl Form {
    /// The shape in the file of what has this shape in the decoder.
    pub fn shape(self, shape: &[i64]) -> Vec<i64> {
        match (self, shape) {
            (Form::Transposed, &[rows, columns]) => vec![columns, rows],
            _ => shape.to_vec(),
        }
    }

    /// From the file's order to the decoder's.
    pub fn read(self, stored: &Tensor) -> Tensor {
        match self {
            Form::Transposed if stored.dim() == 2 => stored.tr(),
            Form::Interleaved(heads) => regrouped(stored, [heads, 3]),
            _ => stored.shallow_clone(),
        }
    }

    /// The inverse of [`Form::read`].
    pub fn stored(self, tensor: &Tensor) -> Tensor {
        match self {
            Form::Transposed if tensor.dim() == 2 => tensor.tr().contiguous(),
            Form::Interleaved(heads) => regrouped(tensor, [3, heads]),
            _ => tensor.shallow_clone(),
        }
    }
}

/// Rows grouped by the first count, then by the second, grouped the other way round.
fn regrouped(tensor: &Tensor, [outer, inner]: [i64; 2]) -> Tensor {
    tensor
        .reshape([outer, inner, -1])
        .transpose(0, 1)
        .reshape(tensor.size())
}

/// Names of the query, key and value projections.
#[derive(Debug, PartialEq, Eq)]
pub enum QkvNames {
    /// A tensor each.
    Separate([&'static str; 3]),
    /// One tensor: queries, then keys, then values.
    Fused(&'static str),
    /// One tensor with each head's query, key and value as neighbours.
    Interleaved(&'static str),
}

/// Names of an MLP's projections.
#[derive(Debug, PartialEq, Eq)]
pub enum MlpNames {
    /// Gate, up and down.
    Gated([&'static str; 3]),
    /// Gate and up as one, and down.
    FusedGated([&'static str; 2]),
    /// Up and down, without a gate.
    Plain([&'static str; 2]),
}

/// Names of a mixture of experts.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpertNames {
    /// The router, `[experts, hidden]`.
    pub router: &'static str,
    /// What comes before an expert's number.
    pub expert: &'static str,
    /// Gate, up and down of an expert.
    pub projections: [&'static str; 3],
}

/// Tensor names. Those of a layer follow `layer` and the layer's number.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// What every name of the body begins with; some checkpoints leave it out.
    pub body: &'static str,
    /// Token embedding, `[vocabulary, hidden]`.
    pub embed: &'static str,
    /// Learned positions, `[positions, hidden]`.
    pub positions: Option<&'static str>,
    /// Last norm, `[hidden]`.
    pub norm: &'static str,
    /// Language model head, `[vocabulary, hidden]`; absent where it is tied to the embedding.
    pub head: &'static str,
    /// What comes before a layer's number.
    pub layer: &'static str,
    /// Norm before attention.
    pub input_norm: &'static str,
    /// Query, key and value projections.
    pub qkv: QkvNames,
    /// Norms of each head's query and key, `[head_dim]`.
    pub qk_norm: Option<[&'static str; 2]>,
    /// Output projection of attention.
    pub o: &'static str,
    /// Norm of attention's output.
    pub attention_norm: Option<&'static str>,
    /// Norm before the MLP.
    pub post_norm: &'static str,
    /// The MLP.
    pub mlp: MlpNames,
    /// The mixture of experts that some layers have in its place.
    pub experts: Option<ExpertNames>,
    /// Norm of the MLP's output.
    pub mlp_norm: Option<&'static str>,
    /// How matrices of a layer are stored.
    pub matrices: Form,
    /// Stored by some checkpoints and not a parameter.
    pub ignored: &'static [&'static str],
}

const LLAMA: Names = Names {
    body: "model.",
    embed: "model.embed_tokens",
    positions: None,
    norm: "model.norm",
    head: "lm_head",
    layer: "model.layers.",
    input_norm: "input_layernorm",
    qkv: QkvNames::Separate(["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]),
    qk_norm: None,
    o: "self_attn.o_proj",
    attention_norm: None,
    post_norm: "post_attention_layernorm",
    mlp: MlpNames::Gated(["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]),
    experts: None,
    mlp_norm: None,
    matrices: Form::Plain,
    ignored: &["rotary_emb.inv_freq"],
};

const QWEN3: Names = Names {
    qk_norm: Some(["self_attn.q_norm", "self_attn.k_norm"]),
    ..LLAMA
};

pub(super) static LLAMA_NAMES: Names = LLAMA;

pub(super) static QWEN3_NAMES: Names = QWEN3;

pub(super) static GEMMA2_NAMES: Names = Names {
    attention_norm: Some("post_attention_layernorm"),
    post_norm: "pre_feedforward_layernorm",
    mlp_norm: Some("post_feedforward_layernorm"),
    ..LLAMA
};

pub(super) static PHI3_NAMES: Names = Names {
    qkv: QkvNames::Fused("self_attn.qkv_proj"),
    mlp: MlpNames::FusedGated(["mlp.gate_up_proj", "mlp.down_proj"]),
    ..LLAMA
};

pub(super) static GPT2_NAMES: Names = Names {
    body: "transformer.",
    embed: "transformer.wte",
    positions: Some("transformer.wpe"),
    norm: "transformer.ln_f",
    layer: "transformer.h.",
    input_norm: "ln_1",
    qkv: QkvNames::Fused("attn.c_attn"),
    o: "attn.c_proj",
    post_norm: "ln_2",
    mlp: MlpNames::Plain(["mlp.c_fc", "mlp.c_proj"]),
    matrices: Form::Transposed,
    ignored: &[".attn.bias", ".attn.masked_bias"],
    ..LLAMA
};

pub(super) static GPT_NEOX_NAMES: Names = Names {
    body: "gpt_neox.",
    embed: "gpt_neox.embed_in",
    norm: "gpt_neox.final_layer_norm",
    head: "embed_out",
    layer: "gpt_neox.layers.",
    qkv: QkvNames::Interleaved("attention.query_key_value"),
    o: "attention.dense",
    mlp: MlpNames::Plain(["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"]),
    ignored: &[
        ".attention.bias",
        ".attention.masked_bias",
        "rotary_emb.inv_freq",
    ],
    ..LLAMA
};

pub(super) static MIXTRAL_NAMES: Names = Names {
    experts: Some(ExpertNames {
        router: "block_sparse_moe.gate",
        expert: "block_sparse_moe.experts.",
        projections: ["w1", "w3", "w2"],
    }),
    ..LLAMA
};

pub(super) static QWEN3_MOE_NAMES: Names = Names {
    experts: Some(ExpertNames {
        router: "mlp.gate",
        expert: "mlp.experts.",
        projections: ["gate_proj", "up_proj", "down_proj"],
    }),
    ..QWEN3
};

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    #[test]
    fn every_form_comes_back_as_it_was() {
        let matrix = Tensor::arange(12 * 5, (Kind::Float, tch::Device::Cpu)).view([12, 5]);
        for form in [Form::Plain, Form::Transposed, Form::Interleaved(2)] {
            let stored = form.stored(&matrix);
            assert_eq!(stored.size(), form.shape(&[12, 5]));
            assert!(form.read(&stored).equal(&matrix), "{form:?}");
        }
    }

    #[test]
    fn interleaved_heads_become_queries_then_keys_then_values() -> Result<(), tch::TchError> {
        // Two heads of width 1: q0 k0 v0 q1 k1 v1.
        let stored = Tensor::from_slice(&[0i64, 10, 20, 1, 11, 21]);
        let read = Vec::<i64>::try_from(Form::Interleaved(2).read(&stored))?;
        assert_eq!(read, [0, 1, 10, 11, 20, 21]);
        Ok(())
    }
}
