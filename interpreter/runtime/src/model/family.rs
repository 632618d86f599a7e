//! Hugging Face families as data: which architectures load, what their options are called, what they
//! are when nothing is said, and what their tensors are called.

use super::activation::Activation;
use super::names::{
    GEMMA2_NAMES, GPT_NEOX_NAMES, GPT2_NAMES, LLAMA_NAMES, MIXTRAL_NAMES, Names, PHI3_NAMES,
    QWEN3_MOE_NAMES, QWEN3_NAMES,
};
use super::norm::NormKind;

/// Whether a projection has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// Never.
    Never,
    /// Always.
    Always,
    /// As this boolean of `config.json` says; the second is what holds where it says nothing.
    Config(&'static str, Otherwise),
}

/// What a boolean option is where `config.json` does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// As if it were `true`.
    Yes,
    /// As if it were `false`.
    No,
}

/// Which layers attend within `sliding_window` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// None; `sliding_window` means nothing.
    Never,
    /// All, where `sliding_window` is a number.
    All,
    /// All, where `use_sliding_window` is true.
    AllIfUsed,
    /// Those from `max_window_layers` on, where `use_sliding_window` is true; or as `layer_types` says.
    FromLayer,
    /// Every second, beginning with the first; or as `layer_types` says.
    Alternating,
}

/// How a token's position enters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    /// Queries and keys are turned whole.
    Rotary,
    /// Of each query and key a fraction is turned: `partial_rotary_factor`, or the field of the older
    /// configurations named here, or this fraction.
    PartRotary(&'static str, f64),
    /// A learned vector a position is added to the embedding.
    Learned,
}

/// What the two branches of a layer read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The MLP reads what attention has added to.
    Sequential,
    /// As `use_parallel_residual` says, by default both read the layer's input.
    Config,
}

/// What the embedding is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedScale {
    /// Nothing.
    One,
    /// The root of the residual stream's width.
    RootHidden,
}

/// The product before the softmax of attention is multiplied by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryScale {
    /// One over the root of the head's width.
    Width,
    /// One over the root of `query_pre_attn_scalar`.
    Config,
    /// One over the root of the head's width, or 1 where `scale_attn_weights` is false.
    Optional,
}

/// Names of sizes in `config.json`.
#[derive(Debug, PartialEq, Eq)]
pub struct Fields {
    /// Width of the residual stream.
    pub hidden: &'static str,
    /// Width of the MLP.
    pub intermediate: &'static str,
    /// Layers.
    pub layers: &'static str,
    /// Query heads.
    pub heads: &'static str,
    /// Longest sequence.
    pub positions: &'static str,
    /// ε of the norms.
    pub eps: &'static str,
    /// The activation: the first of these that is there.
    pub activation: &'static [&'static str],
}

/// Routing of a mixture of experts: names in `config.json` and what holds where it says nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpertFields {
    /// Number of experts, by any of these names.
    pub experts: &'static [&'static str],
    /// Width of an expert.
    pub width: &'static str,
    /// Whether the chosen probabilities are made to sum to 1.
    pub normalised: Bias,
}

/// A family of checkpoints: one entry of the table.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// The name in `architectures` of `config.json`.
    pub architecture: &'static str,
    /// What its sizes are called.
    pub fields: Fields,
    /// Biases of the query, key and value projections.
    pub qkv_bias: Bias,
    /// Bias of the attention's output projection.
    pub o_bias: Bias,
    /// Biases of the projections of the MLP.
    pub mlp_bias: Bias,
    /// Layers with a sliding window.
    pub windows: Windows,
    /// Which norm.
    pub norm: NormKind,
    /// Added to the weights of norms.
    pub norm_offset: f64,
    /// How positions enter.
    pub encoding: Encoding,
    /// Base of rotary wavelengths where `config.json` has none.
    pub theta: f64,
    /// What the branches of a layer read.
    pub residual: Residual,
    /// What the embedding is multiplied by.
    pub embed_scale: EmbedScale,
    /// What attention's products are multiplied by.
    pub query_scale: QueryScale,
    /// Field of the bound c of attention's products x, c · tanh(x / c).
    pub attention_cap: Option<&'static str>,
    /// Field of the same bound of logits.
    pub logit_cap: Option<&'static str>,
    /// The activation where `config.json` names none.
    pub activation: Activation,
    /// What the word `gelu` means.
    pub gelu: Activation,
    /// Width of a head where `config.json` has none; else the residual stream's over the heads.
    pub head_dim: Option<usize>,
    /// Whether the head is the embedding where `config.json` does not say.
    pub tied: Otherwise,
    /// A mixture of experts in place of the MLP.
    pub experts: Option<ExpertFields>,
    /// Options that change the mathematics in a way that is not written: absent, null, false or 0.
    pub off: &'static [&'static str],
    /// What the tensors are called.
    pub names: &'static Names,
}

const LLAMA: Family = Family {
    architecture: "LlamaForCausalLM",
    fields: Fields {
        hidden: "hidden_size",
        intermediate: "intermediate_size",
        layers: "num_hidden_layers",
        heads: "num_attention_heads",
        positions: "max_position_embeddings",
        eps: "rms_norm_eps",
        activation: &["hidden_act"],
    },
    qkv_bias: Bias::Config("attention_bias", Otherwise::No),
    o_bias: Bias::Config("attention_bias", Otherwise::No),
    mlp_bias: Bias::Config("mlp_bias", Otherwise::No),
    windows: Windows::Never,
    norm: NormKind::Rms,
    norm_offset: 0.0,
    encoding: Encoding::Rotary,
    theta: 10_000.0,
    residual: Residual::Sequential,
    embed_scale: EmbedScale::One,
    query_scale: QueryScale::Width,
    attention_cap: None,
    logit_cap: None,
    activation: Activation::Silu,
    gelu: Activation::Gelu,
    head_dim: None,
    tied: Otherwise::No,
    experts: None,
    off: &["quantization_config"],
    names: &LLAMA_NAMES,
};

const MISTRAL: Family = Family {
    architecture: "MistralForCausalLM",
    qkv_bias: Bias::Never,
    o_bias: Bias::Never,
    mlp_bias: Bias::Never,
    windows: Windows::All,
    off: &["quantization_config", "attention_bias", "layer_types"],
    ..LLAMA
};

const QWEN2: Family = Family {
    architecture: "Qwen2ForCausalLM",
    qkv_bias: Bias::Always,
    o_bias: Bias::Never,
    mlp_bias: Bias::Never,
    windows: Windows::FromLayer,
    ..LLAMA
};

const QWEN3: Family = Family {
    architecture: "Qwen3ForCausalLM",
    mlp_bias: Bias::Never,
    windows: Windows::FromLayer,
    head_dim: Some(128),
    names: &QWEN3_NAMES,
    ..LLAMA
};

const GEMMA: Family = Family {
    architecture: "GemmaForCausalLM",
    fields: Fields {
        // Early configurations name the exact function in `hidden_act` and mean the approximation.
        activation: &["hidden_activation", "hidden_act"],
        ..LLAMA.fields
    },
    mlp_bias: Bias::Never,
    norm_offset: 1.0,
    embed_scale: EmbedScale::RootHidden,
    activation: Activation::GeluTanh,
    gelu: Activation::GeluTanh,
    head_dim: Some(256),
    tied: Otherwise::Yes,
    off: &["quantization_config", "use_bidirectional_attention"],
    ..LLAMA
};

const GEMMA2: Family = Family {
    architecture: "Gemma2ForCausalLM",
    windows: Windows::Alternating,
    query_scale: QueryScale::Config,
    attention_cap: Some("attn_logit_softcapping"),
    logit_cap: Some("final_logit_softcapping"),
    gelu: Activation::Gelu,
    names: &GEMMA2_NAMES,
    ..GEMMA
};

const PHI3: Family = Family {
    architecture: "Phi3ForCausalLM",
    qkv_bias: Bias::Never,
    o_bias: Bias::Never,
    mlp_bias: Bias::Never,
    windows: Windows::All,
    encoding: Encoding::PartRotary("partial_rotary_factor", 1.0),
    off: &["quantization_config", "attention_bias"],
    names: &PHI3_NAMES,
    ..LLAMA
};

const GPT2: Family = Family {
    architecture: "GPT2LMHeadModel",
    fields: Fields {
        hidden: "n_embd",
        intermediate: "n_inner",
        layers: "n_layer",
        heads: "n_head",
        positions: "n_positions",
        eps: "layer_norm_epsilon",
        activation: &["activation_function"],
    },
    qkv_bias: Bias::Always,
    o_bias: Bias::Always,
    mlp_bias: Bias::Always,
    norm: NormKind::Layer,
    encoding: Encoding::Learned,
    query_scale: QueryScale::Optional,
    activation: Activation::GeluTanh,
    tied: Otherwise::Yes,
    off: &[
        "quantization_config",
        "scale_attn_by_inverse_layer_idx",
        "add_cross_attention",
    ],
    names: &GPT2_NAMES,
    ..LLAMA
};

const GPT_NEOX: Family = Family {
    architecture: "GPTNeoXForCausalLM",
    fields: Fields {
        eps: "layer_norm_eps",
        ..LLAMA.fields
    },
    qkv_bias: Bias::Config("attention_bias", Otherwise::Yes),
    o_bias: Bias::Config("attention_bias", Otherwise::Yes),
    mlp_bias: Bias::Always,
    norm: NormKind::Layer,
    encoding: Encoding::PartRotary("rotary_pct", 0.25),
    residual: Residual::Config,
    activation: Activation::Gelu,
    names: &GPT_NEOX_NAMES,
    ..LLAMA
};

const MIXTRAL: Family = Family {
    architecture: "MixtralForCausalLM",
    theta: 1_000_000.0,
    experts: Some(ExpertFields {
        experts: &["num_local_experts", "num_experts"],
        width: "intermediate_size",
        normalised: Bias::Always,
    }),
    off: &[
        "quantization_config",
        "attention_bias",
        "router_jitter_noise",
    ],
    names: &MIXTRAL_NAMES,
    ..MISTRAL
};

const QWEN3_MOE: Family = Family {
    architecture: "Qwen3MoeForCausalLM",
    windows: Windows::AllIfUsed,
    head_dim: None,
    experts: Some(ExpertFields {
        experts: &["num_experts", "num_local_experts"],
        width: "moe_intermediate_size",
        normalised: Bias::Config("norm_topk_prob", Otherwise::No),
    }),
    names: &QWEN3_MOE_NAMES,
    ..QWEN3
};

/// Every family that loads.
pub static FAMILIES: &[Family] = &[
    LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA, GEMMA2, PHI3, GPT2, GPT_NEOX, MIXTRAL, QWEN3_MOE,
];

/// The family of an architecture, if it is one that loads.
pub fn family(architecture: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.architecture == architecture)
}
