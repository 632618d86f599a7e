//! Hugging Face families as data: which architectures load, and what they call their tensors.

/// Whether a projection has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// Never.
    Never,
    /// Always.
    Always,
    /// As this boolean of `config.json` says; absent means no.
    Config(&'static str),
}

/// A family of checkpoints: one entry of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The name in `architectures` of `config.json`.
    pub architecture: &'static str,
    /// Biases of the query, key and value projections.
    pub qkv_bias: Bias,
    /// Bias of the attention's output projection.
    pub o_bias: Bias,
    /// Biases of the three projections of the MLP.
    pub mlp_bias: Bias,
    /// Whether `sliding_window` is in force: `Always` wherever it is a number.
    pub window: Bias,
    /// What the tensors are called.
    pub names: &'static Names,
}

/// Tensor names. Those of a layer follow `layer` and the layer's number.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// Token embedding, `[vocabulary, hidden]`.
    pub embed: &'static str,
    /// Last norm, `[hidden]`.
    pub norm: &'static str,
    /// Language model head, `[vocabulary, hidden]`; absent where it is tied to the embedding.
    pub head: &'static str,
    /// What comes before a layer's number.
    pub layer: &'static str,
    /// Norm before attention.
    pub input_norm: &'static str,
    /// Query projection.
    pub q: &'static str,
    /// Key projection.
    pub k: &'static str,
    /// Value projection.
    pub v: &'static str,
    /// Output projection of attention.
    pub o: &'static str,
    /// Norm before the MLP.
    pub post_norm: &'static str,
    /// Gate of the MLP, which goes through the activation.
    pub gate: &'static str,
    /// The MLP's projection that the gate multiplies.
    pub up: &'static str,
    /// The MLP's output projection.
    pub down: &'static str,
    /// Stored by some checkpoints and not a parameter.
    pub ignored: &'static [&'static str],
}

static LLAMA_NAMES: Names = Names {
    embed: "model.embed_tokens",
    norm: "model.norm",
    head: "lm_head",
    layer: "model.layers.",
    input_norm: "input_layernorm",
    q: "self_attn.q_proj",
    k: "self_attn.k_proj",
    v: "self_attn.v_proj",
    o: "self_attn.o_proj",
    post_norm: "post_attention_layernorm",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
    ignored: &["rotary_emb.inv_freq"],
};

/// Every family that loads.
pub static FAMILIES: &[Family] = &[
    Family {
        architecture: "LlamaForCausalLM",
        qkv_bias: Bias::Config("attention_bias"),
        o_bias: Bias::Config("attention_bias"),
        mlp_bias: Bias::Config("mlp_bias"),
        window: Bias::Never,
        names: &LLAMA_NAMES,
    },
    Family {
        architecture: "MistralForCausalLM",
        qkv_bias: Bias::Never,
        o_bias: Bias::Never,
        mlp_bias: Bias::Never,
        window: Bias::Always,
        names: &LLAMA_NAMES,
    },
    Family {
        architecture: "Qwen2ForCausalLM",
        qkv_bias: Bias::Always,
        o_bias: Bias::Never,
        mlp_bias: Bias::Never,
        window: Bias::Config("use_sliding_window"),
        names: &LLAMA_NAMES,
    },
];

/// The family of an architecture, if it is one that loads.
pub fn family(architecture: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.architecture == architecture)
}
