//! What `config.json` says about a model: its shape, before any weight is read.

use std::path::Path;

use serde_json::Value;

use super::family::{Bias, Family};
use super::{Dtype, HeadKind, architecture};
use crate::fault::{Fault, Result};

/// The shape of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The family it belongs to.
    pub family: &'static Family,
    /// Rows of the embedding and of the head.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the MLP.
    pub intermediate: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head, even.
    pub head_dim: usize,
    /// Longest sequence, prompt and response together. A sliding attention window limits it to the
    /// window, within which sliding and full attention are the same.
    pub positions: usize,
    /// Added to the mean square inside RMSNorm.
    pub norm_eps: f64,
    /// Rotary position embedding.
    pub rope: Rope,
    /// Whether the head is the embedding.
    pub tied: bool,
    /// Whether the query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Whether the attention's output projection has a bias.
    pub o_bias: bool,
    /// Whether the projections of the MLP have biases.
    pub mlp_bias: bool,
    /// The type the checkpoint says its weights are in.
    pub stored: Option<Dtype>,
    /// What stands on the body.
    pub head: HeadKind,
    /// Standard deviation of weights that are drawn anew.
    pub init_range: f64,
}

/// Rotary position embedding: the base and how frequencies are scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base of the geometric sequence of wavelengths.
    pub theta: f64,
    /// Scaling beyond the positions of pre-training.
    pub scaling: RopeScaling,
}

/// How rotary frequencies are scaled.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Every frequency divided by the factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3: long wavelengths divided by the factor, short ones kept, a blend between.
    Llama3 {
        /// The divisor of long wavelengths.
        factor: f64,
        /// Wavelengths above `original / low` are divided.
        low: f64,
        /// Wavelengths below `original / high` are kept.
        high: f64,
        /// Positions of pre-training.
        original: f64,
    },
}

impl Config {
    /// Reads `config.json` of a checkpoint directory; weights are not needed.
    ///
    /// Errors: no such directory or file, not JSON, an architecture or a setting that is not
    /// supported, a missing number.
    pub fn load(dir: &Path) -> Result<Config> {
        if !dir.is_dir() {
            return Err(Fault::new(format!(
                "no checkpoint directory `{}`",
                dir.display()
            )));
        }
        let path = dir.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let fault = Fault::new(format!("cannot read `{}`: {e}", path.display()));
            fault.help("a checkpoint is a Hugging Face directory with config.json, tokenizer.json and *.safetensors")
        })?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|e| Fault::new(format!("`{}` is not JSON: {e}", path.display())))?;
        Config::from_json(&json).map_err(|fault| prefix(fault, &format!("`{}`: ", path.display())))
    }

    /// The shape described by the contents of a `config.json`.
    pub fn from_json(json: &Value) -> Result<Config> {
        let (family, head) = architecture::of_config(json)?;
        let fields = Fields(json);
        let activation = json.get("hidden_act").and_then(Value::as_str);
        if let Some(other) = activation.filter(|a| *a != "silu" && *a != "swish") {
            return Err(Fault::new(format!(
                "activation `{other}` is not supported; `silu` is"
            )));
        }
        let hidden = fields.count("hidden_size")?;
        let heads = fields.count("num_attention_heads")?;
        let kv_heads = fields.count_or("num_key_value_heads", heads)?;
        let head_dim = fields.count_or("head_dim", hidden / heads)?;
        if heads % kv_heads != 0 {
            return Err(Fault::new(format!(
                "{heads} attention heads are not a multiple of {kv_heads} key-value heads"
            )));
        }
        if head_dim == 0 || head_dim % 2 != 0 {
            return Err(Fault::new(format!(
                "rotary positions need an even head width; it is {head_dim}"
            )));
        }
        let positions = fields.count_or("max_position_embeddings", 2048)?;
        let window = match fields.flag(family.window) {
            true => json.get("sliding_window").and_then(Value::as_u64),
            false => None,
        };
        Ok(Config {
            family,
            vocab: fields.count("vocab_size")?,
            hidden,
            intermediate: fields.count("intermediate_size")?,
            layers: fields.count("num_hidden_layers")?,
            heads,
            kv_heads,
            head_dim,
            positions: window.map_or(positions, |w| positions.min(w as usize)),
            norm_eps: fields.number("rms_norm_eps").unwrap_or(1e-6),
            rope: rope(json, positions)?,
            tied: json.get("tie_word_embeddings") == Some(&Value::Bool(true)),
            qkv_bias: fields.flag(family.qkv_bias),
            o_bias: fields.flag(family.o_bias),
            mlp_bias: fields.flag(family.mlp_bias),
            stored: stored(json),
            head,
            init_range: fields.number("initializer_range").unwrap_or(0.02),
        })
    }

    /// Columns of the fused query, key and value projection.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }
}

fn prefix(mut fault: Fault, text: &str) -> Fault {
    fault.diagnostic.message.insert_str(0, text);
    fault
}

fn stored(json: &Value) -> Option<Dtype> {
    let name = json.get("dtype").or_else(|| json.get("torch_dtype"))?;
    match name.as_str()? {
        "float32" => Some(Dtype::F32),
        "bfloat16" => Some(Dtype::Bf16),
        _ => None,
    }
}

/// Reads `rope_parameters` (transformers 5) or `rope_theta` with `rope_scaling`.
fn rope(json: &Value, positions: usize) -> Result<Rope> {
    let nested = ["rope_parameters", "rope_scaling"]
        .iter()
        .find_map(|key| json.get(key).filter(|v| v.is_object()));
    let inner = Fields(nested.unwrap_or(&Value::Null));
    let theta = inner
        .number("rope_theta")
        .or_else(|| Fields(json).number("rope_theta"))
        .unwrap_or(10_000.0);
    let kind = ["rope_type", "type"]
        .iter()
        .find_map(|key| inner.0.get(key).and_then(Value::as_str))
        .unwrap_or("default");
    let need = |key: &str| {
        inner
            .number(key)
            .ok_or_else(|| Fault::new(format!("rotary scaling `{kind}` needs a number `{key}`")))
    };
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear {
            factor: need("factor")?,
        },
        "llama3" => RopeScaling::Llama3 {
            factor: need("factor")?,
            low: need("low_freq_factor")?,
            high: need("high_freq_factor")?,
            original: inner
                .number("original_max_position_embeddings")
                .unwrap_or(positions as f64),
        },
        other => {
            let fault = Fault::new(format!("rotary scaling `{other}` is not supported"));
            return Err(fault.help("supported: default, linear, llama3"));
        }
    };
    Ok(Rope { theta, scaling })
}

struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(Value::as_f64)
    }

    fn flag(&self, bias: Bias) -> bool {
        match bias {
            Bias::Never => false,
            Bias::Always => true,
            Bias::Config(key) => self.0.get(key) == Some(&Value::Bool(true)),
        }
    }

    fn count(&self, key: &str) -> Result<usize> {
        match self.0.get(key) {
            None | Some(Value::Null) => Err(Fault::new(format!("no `{key}`"))),
            Some(value) => match value.as_u64() {
                Some(n) if (1..1 << 31).contains(&n) => Ok(n as usize),
                _ => Err(Fault::new(format!(
                    "`{key}` should be a positive number; it is {value}"
                ))),
            },
        }
    }

    fn count_or(&self, key: &str, default: usize) -> Result<usize> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => self.count(key),
        }
    }
}
