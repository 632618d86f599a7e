//! What `config.json` says about a model: its shape, before any weight is read.

use std::path::Path;

use serde_json::Value;

use super::activation::{Activation, Gate};
use super::family::{
    Bias, EmbedScale, Encoding, ExpertFields, Family, Otherwise, QueryScale, Residual, Windows,
};
use super::names::MlpNames;
use super::norm::Norm;
use super::rope::{self, Rope};
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
    /// Width of a head.
    pub head_dim: usize,
    /// Longest sequence, prompt and response together.
    pub positions: usize,
    /// Every norm.
    pub norm: Norm,
    /// How positions enter.
    pub encoding: Positions,
    /// What the two branches of a layer read.
    pub branches: Branches,
    /// Of each layer, how many tokens back attention reaches, the token itself counted; none where it
    /// reaches all.
    pub windows: Vec<Option<usize>>,
    /// What attention's products are multiplied by.
    pub query_scale: f64,
    /// The bound c of attention's products x, which become c · tanh(x / c).
    pub attention_cap: Option<f64>,
    /// The same of logits.
    pub logit_cap: Option<f64>,
    /// What embeddings are multiplied by.
    pub embed_scale: Option<f64>,
    /// What stands between the matrices of an MLP.
    pub gate: Gate,
    /// The mixture of experts, where the model has one.
    pub routing: Option<Routing>,
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

/// How positions enter a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Positions {
    /// Queries and keys are turned.
    Rotary(Rope),
    /// A table with a vector a position.
    Learned,
}

/// What the two branches of a layer read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// The MLP reads what attention has added to.
    Sequential,
    /// Both read the layer's input.
    Parallel,
}

/// A mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// Experts of a layer.
    pub experts: usize,
    /// Experts that a token goes through.
    pub chosen: usize,
    /// Width of an expert.
    pub width: usize,
    /// Whether the chosen probabilities are divided by their sum.
    pub normalised: bool,
    /// Whether each layer has experts.
    pub layers: Vec<bool>,
    /// Weight of the load-balancing loss in training: `router_aux_loss_coef` where
    /// `output_router_logits` is true, else 0.
    pub balance: f64,
}

impl Config {
    /// Reads `config.json` in a checkpoint directory.
    pub fn load(dir: &Path) -> Result<Config> {
        let path = dir.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let message = match dir.is_dir() {
                true => format!("cannot read `{}`: {e}", path.display()),
                false => format!("no checkpoint directory `{}`", dir.display()),
            };
            Fault::new(message)
        })?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|e| Fault::new(format!("`{}` is not JSON: {e}", path.display())))?;
        Config::from_json(&json).map_err(|fault| prefix(fault, &format!("`{}`: ", path.display())))
    }

    /// The shape described by the contents of a `config.json`.
    pub fn from_json(json: &Value) -> Result<Config> {
        let (family, head) = architecture::of_config(json)?;
        let fields = Fields(json);
        fields.refuse(family.off)?;
        let names = &family.fields;
        let activation = activation(family, &fields)?;
        let hidden = fields.count(names.hidden)?;
        let heads = fields.count(names.heads)?;
        let kv_heads = fields.count_or("num_key_value_heads", heads)?;
        let head_dim = fields.count_or("head_dim", family.head_dim.unwrap_or(hidden / heads))?;
        if heads % kv_heads != 0 {
            return Err(Fault::new(format!(
                "{heads} attention heads are not a multiple of {kv_heads} key-value heads"
            )));
        }
        let layers = fields.count(names.layers)?;
        let mut positions = fields.count_or(names.positions, 2048)?;
        let encoding = match family.encoding {
            Encoding::Learned => Positions::Learned,
            _ => {
                let rope = rope::read(&fields, family, head_dim, positions)?;
                positions = rope.limit.map_or(positions, |limit| positions.min(limit));
                Positions::Rotary(rope)
            }
        };
        let intermediate = match family.encoding {
            Encoding::Learned => fields.count_or(names.intermediate, 4 * hidden)?,
            _ => fields.count(names.intermediate)?,
        };
        Ok(Config {
            family,
            vocab: fields.count("vocab_size")?,
            hidden,
            intermediate,
            layers,
            heads,
            kv_heads,
            head_dim,
            positions,
            norm: Norm {
                kind: family.norm,
                eps: fields.number(names.eps).unwrap_or(match family.norm {
                    super::norm::NormKind::Rms => 1e-6,
                    super::norm::NormKind::Layer => 1e-5,
                }),
                offset: family.norm_offset,
            },
            encoding,
            branches: match family.residual {
                Residual::Config if fields.is("use_parallel_residual", Otherwise::Yes) => {
                    Branches::Parallel
                }
                _ => Branches::Sequential,
            },
            windows: windows(family, &fields, layers)?,
            query_scale: query_scale(family, &fields, head_dim)?,
            attention_cap: fields.cap(family.attention_cap)?,
            logit_cap: fields.cap(family.logit_cap)?,
            embed_scale: (family.embed_scale == EmbedScale::RootHidden)
                .then(|| (hidden as f64).sqrt()),
            gate: match family.names.mlp {
                MlpNames::Plain(_) => Gate::Plain(activation),
                _ => Gate::Gated(activation),
            },
            routing: match &family.experts {
                Some(experts) => Some(routing(experts, &fields, layers)?),
                None => None,
            },
            tied: fields.is("tie_word_embeddings", family.tied),
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

    /// The mixture of experts of layer `index`, where it has one.
    pub fn experts(&self, index: usize) -> Option<&Routing> {
        self.routing.as_ref().filter(|r| r.layers[index])
    }

    /// What embeddings in this type are multiplied by, rounded to the type as transformers does.
    pub fn embed_scale_in(&self, dtype: tch::Kind) -> Option<f64> {
        let scale = tch::Tensor::from(self.embed_scale?).to_kind(dtype);
        Some(scale.double_value(&[]))
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

fn activation(family: &Family, fields: &Fields) -> Result<Activation> {
    let named = |key: &&'static str| Some((*key, fields.0.get(key)?.as_str()?));
    let Some((key, name)) = family.fields.activation.iter().find_map(named) else {
        return Ok(family.activation);
    };
    match name {
        "silu" | "swish" => Ok(Activation::Silu),
        "gelu" => Ok(family.gelu),
        "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        other => {
            let fault = Fault::new(format!("`{key}`: activation `{other}` is not supported"));
            Err(fault.help("supported: silu, gelu, gelu_new, gelu_pytorch_tanh"))
        }
    }
}

fn query_scale(family: &Family, fields: &Fields, head_dim: usize) -> Result<f64> {
    let width = 1.0 / (head_dim as f64).sqrt();
    match family.query_scale {
        QueryScale::Width => Ok(width),
        QueryScale::Optional if fields.is("scale_attn_weights", Otherwise::Yes) => Ok(width),
        QueryScale::Optional => Ok(1.0),
        QueryScale::Config => {
            let key = "query_pre_attn_scalar";
            let scalar = fields.number(key).unwrap_or(256.0);
            match scalar > 0.0 {
                true => Ok(1.0 / scalar.sqrt()),
                false => Err(Fault::new(format!(
                    "`{key}` should be a positive number; it is {scalar}"
                ))),
            }
        }
    }
}

fn windows(family: &Family, fields: &Fields, layers: usize) -> Result<Vec<Option<usize>>> {
    let used = fields.is("use_sliding_window", Otherwise::No);
    let there = match family.windows {
        Windows::Never => false,
        Windows::All | Windows::Alternating => true,
        Windows::AllIfUsed | Windows::FromLayer => used,
    };
    let width = match fields.0.get("sliding_window") {
        _ if !there => None,
        None if family.windows == Windows::Alternating => Some(4096),
        None | Some(Value::Null) => None,
        Some(_) => Some(fields.count("sliding_window")?),
    };
    let Some(width) = width else {
        return Ok(vec![None; layers]);
    };
    let listed = match family.windows {
        Windows::FromLayer | Windows::Alternating => fields.0.get("layer_types"),
        _ => None,
    };
    let slides: Vec<bool> = match listed.and_then(Value::as_array) {
        Some(types) => layer_types(types, layers)?,
        None => {
            let first = match family.windows {
                Windows::FromLayer => fields.number("max_window_layers").unwrap_or(28.0) as usize,
                _ => 0,
            };
            let every = match family.windows {
                Windows::Alternating => 2,
                _ => 1,
            };
            (0..layers).map(|i| i >= first && i % every == 0).collect()
        }
    };
    Ok(slides.into_iter().map(|s| s.then_some(width)).collect())
}

/// Whether each layer's attention slides, from `layer_types`.
fn layer_types(types: &[Value], layers: usize) -> Result<Vec<bool>> {
    if types.len() != layers {
        return Err(Fault::new(format!(
            "`layer_types` lists {} layers; the model has {layers}",
            types.len()
        )));
    }
    types
        .iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(false),
            Some("sliding_attention") => Ok(true),
            _ => {
                let fault = Fault::new(format!("`layer_types`: {kind} is not supported"));
                Err(fault.help("supported: full_attention, sliding_attention"))
            }
        })
        .collect()
}

fn routing(names: &ExpertFields, fields: &Fields, layers: usize) -> Result<Routing> {
    let there = |key: &&&str| fields.0.get(**key).is_some_and(|v| !v.is_null());
    let key = names
        .experts
        .iter()
        .find(there)
        .unwrap_or(&names.experts[0]);
    let experts = fields.count(key)?;
    let chosen = fields.count_or("num_experts_per_tok", 2)?;
    if chosen > experts {
        return Err(Fault::new(format!(
            "`num_experts_per_tok` is {chosen}; a layer has {experts} experts"
        )));
    }
    let step = fields.count_or("decoder_sparse_step", 1)?;
    let dense: Vec<u64> = match fields.0.get("mlp_only_layers").and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_u64).collect(),
        None => Vec::new(),
    };
    let balance = match fields.is("output_router_logits", Otherwise::No) {
        true => fields.number("router_aux_loss_coef").unwrap_or(0.001),
        false => 0.0,
    };
    Ok(Routing {
        experts,
        chosen,
        width: fields.count(names.width)?,
        normalised: fields.flag(names.normalised),
        layers: (0..layers)
            .map(|i| (i + 1) % step == 0 && !dense.contains(&(i as u64)))
            .collect(),
        balance,
    })
}

/// The entries of a JSON object.
pub(super) struct Fields<'a>(pub(super) &'a Value);

impl Fields<'_> {
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(Value::as_f64)
    }

    fn flag(&self, bias: Bias) -> bool {
        match bias {
            Bias::Never => false,
            Bias::Always => true,
            Bias::Config(key, otherwise) => self.is(key, otherwise),
        }
    }

    fn is(&self, key: &str, otherwise: Otherwise) -> bool {
        let said = self.0.get(key).and_then(Value::as_bool);
        said.unwrap_or(otherwise == Otherwise::Yes)
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

    /// A bound that is absent, null or positive.
    fn cap(&self, key: Option<&str>) -> Result<Option<f64>> {
        let Some((key, value)) = key.and_then(|key| Some((key, self.0.get(key)?))) else {
            return Ok(None);
        };
        match value.as_f64() {
            _ if value.is_null() => Ok(None),
            Some(cap) if cap > 0.0 => Ok(Some(cap)),
            _ => Err(Fault::new(format!(
                "`{key}` should be a positive number; it is {value}"
            ))),
        }
    }

    fn refuse(&self, off: &[&str]) -> Result<()> {
        let on = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(n) => n.as_f64() != Some(0.0),
            _ => true,
        };
        for key in off {
            if let Some(value) = self.0.get(key).filter(|v| on(v)) {
                let shown = match value {
                    Value::Array(_) | Value::Object(_) => "there".to_string(),
                    simple => simple.to_string(),
                };
                let fault = Fault::new(format!("`{key}` is {shown}, which is not supported"));
                return Err(fault.help("supported: the checkpoint without this option"));
            }
        }
        Ok(())
    }
}
