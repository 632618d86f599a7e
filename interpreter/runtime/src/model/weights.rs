//! Where each parameter lies in a model's one buffer, and views of it under the decoder's own names.
//!
//! The same description serves parameters, gradients and optimizer state: a flat buffer of
//! `parameter_count` numbers. Queries, keys and values are neighbours, so are gate and up, and so are the
//! experts of a layer, so that one matrix product computes them together.

use tch::Tensor;

use super::HeadKind;
use super::architecture::SCALAR_HEAD;
use super::config::{Config, Routing};
use super::names::{ExpertNames, Form, MlpNames, QkvNames};
use super::norm::NormKind;

/// A parameter's place: `T` is a [`Slot`] in a layout and a view of a buffer in a model.
#[derive(Debug)]
pub struct Weights<T> {
    /// Token embedding, `[vocab, hidden]`.
    pub embed: T,
    /// Learned positions, `[positions, hidden]`.
    pub positions: Option<T>,
    /// The decoder layers.
    pub layers: Vec<Layer<T>>,
    /// Last norm.
    pub norm: NormWeights<T>,
    /// Head, `[vocab, hidden]`, the embedding itself where tied; `[1, hidden]` of a scalar model.
    pub head: T,
}

/// The parameters of a norm.
#[derive(Debug)]
pub struct NormWeights<T> {
    /// `[width]`.
    pub weight: T,
    /// `[width]`, where the norm has one.
    pub bias: Option<T>,
}

/// The parameters of one decoder layer. Projections are `[out, in]`, biases `[out]`.
#[derive(Debug)]
pub struct Layer<T> {
    /// Norm before attention.
    pub input_norm: NormWeights<T>,
    /// Queries, keys and values as one matrix, `[(heads + 2 · kv_heads) · head_dim, hidden]`.
    pub qkv: T,
    /// Their biases as one vector.
    pub qkv_bias: Option<T>,
    /// Norms of each head's query and key, `[head_dim]`.
    pub qk_norm: Option<[NormWeights<T>; 2]>,
    /// Output projection of attention, `[hidden, heads · head_dim]`.
    pub o: T,
    /// Bias of the output projection.
    pub o_bias: Option<T>,
    /// Norm of attention's output.
    pub attention_norm: Option<NormWeights<T>>,
    /// Norm before the MLP.
    pub post_norm: NormWeights<T>,
    /// The MLP.
    pub mlp: Mlp<T>,
    /// Norm of the MLP's output.
    pub mlp_norm: Option<NormWeights<T>>,
}

/// One MLP or a mixture of them.
#[derive(Debug)]
pub enum Mlp<T> {
    /// One.
    Dense(Dense<T>),
    /// A mixture.
    Experts(Experts<T>),
}

/// An MLP.
#[derive(Debug)]
pub struct Dense<T> {
    /// Gate and up as one matrix, `[2 · intermediate, hidden]`; without a gate
    /// `[intermediate, hidden]`.
    pub wide: T,
    /// Its bias.
    pub wide_bias: Option<T>,
    /// Down projection, `[hidden, intermediate]`.
    pub down: T,
    /// Its bias.
    pub down_bias: Option<T>,
}

/// A mixture of gated MLPs without biases, each matrix stacked expert after expert.
#[derive(Debug)]
pub struct Experts<T> {
    /// Router, `[experts, hidden]`.
    pub router: T,
    /// Gate and up of each expert, `[experts · 2 · width, hidden]`.
    pub wide: T,
    /// Down projections, `[experts · hidden, width]`.
    pub down: T,
}

/// A tensor's place in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Elements before it.
    pub offset: i64,
    /// Its shape.
    pub shape: Vec<i64>,
}

impl Slot {
    /// Elements it holds.
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of a flat buffer that lies here, sharing its storage.
    pub fn view(&self, flat: &Tensor) -> Tensor {
        flat.narrow(0, self.offset, self.len())
            .view(self.shape.as_slice())
    }
}

/// One stored tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its Hugging Face name.
    pub name: String,
    /// Its place.
    pub slot: Slot,
    /// How the file holds it.
    pub form: Form,
}

impl Parameter {
    /// The tensor as the file holds it, from a flat buffer.
    pub fn stored(&self, flat: &Tensor) -> Tensor {
        self.form.stored(&self.slot.view(flat))
    }
}

/// The places of all parameters of a model.
#[derive(Debug)]
pub struct Layout {
    /// Places by the decoder's names.
    pub weights: Weights<Slot>,
    /// Stored tensors in buffer order, each element of the buffer in exactly one.
    pub parameters: Vec<Parameter>,
}

impl Layout {
    /// The layout of a model of this shape.
    pub fn new(config: &Config) -> Layout {
        let names = config.family.names;
        let hidden = config.hidden as i64;
        let vocab = config.vocab as i64;
        let mut at = Cursor::default();
        let embed = at.matrix(names.embed, vocab, hidden);
        let positions = names
            .positions
            .map(|name| at.matrix(name, config.positions as i64, hidden));
        let layers = (0..config.layers)
            .map(|i| layer(&mut at, config, i))
            .collect();
        let norm = at.norm(config, names.norm, hidden);
        let head = match config.head {
            HeadKind::Scalar => at.matrix(SCALAR_HEAD, 1, hidden),
            HeadKind::Language if config.tied => embed.clone(),
            HeadKind::Language => at.matrix(names.head, vocab, hidden),
        };
        Layout {
            weights: Weights {
                embed,
                positions,
                layers,
                norm,
                head,
            },
            parameters: at.parameters,
        }
    }

    /// Elements of the buffer.
    pub fn len(&self) -> i64 {
        self.parameters.iter().map(|p| p.slot.len()).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }
}

/// Parameters of a model of this shape.
pub fn parameter_count(config: &Config) -> u64 {
    Layout::new(config).len() as u64
}

fn layer(at: &mut Cursor, config: &Config, index: usize) -> Layer<Slot> {
    let names = config.family.names;
    let hidden = config.hidden as i64;
    let name = |part: &str| format!("{}{index}.{part}", names.layer);
    let input_norm = at.norm(config, &name(names.input_norm), hidden);
    let (qkv, qkv_bias) = projections(at, config, &name);
    let qk_norm = names
        .qk_norm
        .map(|parts| parts.map(|part| at.norm(config, &name(part), config.head_dim as i64)));
    let queries = (config.heads * config.head_dim) as i64;
    let o = at.formed(&name(names.o), hidden, queries, names.matrices);
    let o_bias = at.bias(config.o_bias, &name(names.o), hidden);
    let attention_norm = names
        .attention_norm
        .map(|part| at.norm(config, &name(part), hidden));
    let post_norm = at.norm(config, &name(names.post_norm), hidden);
    let mlp = match (config.experts(index), &names.experts) {
        (Some(routing), Some(parts)) => Mlp::Experts(experts(at, hidden, routing, parts, &name)),
        _ => Mlp::Dense(dense(at, config, &name)),
    };
    let mlp_norm = names
        .mlp_norm
        .map(|part| at.norm(config, &name(part), hidden));
    Layer {
        input_norm,
        qkv,
        qkv_bias,
        qk_norm,
        o,
        o_bias,
        attention_norm,
        post_norm,
        mlp,
        mlp_norm,
    }
}

/// The query, key and value projections as one, and their biases as one.
fn projections(
    at: &mut Cursor,
    config: &Config,
    name: &impl Fn(&str) -> String,
) -> (Slot, Option<Slot>) {
    let names = config.family.names;
    let hidden = config.hidden as i64;
    let queries = (config.heads * config.head_dim) as i64;
    let keys = (config.kv_heads * config.head_dim) as i64;
    let all = queries + 2 * keys;
    match names.qkv {
        QkvNames::Separate(parts) => {
            let [q, k, v] = parts.map(name);
            let weight = at.matrix(&q, queries, hidden);
            at.matrix(&k, keys, hidden);
            at.matrix(&v, keys, hidden);
            let bias = at.bias(config.qkv_bias, &q, queries);
            at.bias(config.qkv_bias, &k, keys);
            at.bias(config.qkv_bias, &v, keys);
            (rows(&weight, all), bias.map(|b| rows(&b, all)))
        }
        QkvNames::Fused(part) => (
            at.formed(&name(part), all, hidden, names.matrices),
            at.bias(config.qkv_bias, &name(part), all),
        ),
        QkvNames::Interleaved(part) => {
            let form = Form::Interleaved(config.heads as i64);
            let weight = at.formed(&name(part), all, hidden, form);
            let bias = config.qkv_bias.then(|| {
                let name = format!("{}.bias", name(part));
                at.push(name, vec![all], form)
            });
            (weight, bias)
        }
    }
}

fn dense(at: &mut Cursor, config: &Config, name: &impl Fn(&str) -> String) -> Dense<Slot> {
    let names = config.family.names;
    let (hidden, width) = (config.hidden as i64, config.intermediate as i64);
    let form = names.matrices;
    let (wide, wide_bias, last) = match names.mlp {
        MlpNames::Gated([gate, up, down]) => {
            let wide = at.formed(&name(gate), width, hidden, form);
            at.formed(&name(up), width, hidden, form);
            let bias = at.bias(config.mlp_bias, &name(gate), width);
            at.bias(config.mlp_bias, &name(up), width);
            (
                rows(&wide, 2 * width),
                bias.map(|b| rows(&b, 2 * width)),
                down,
            )
        }
        MlpNames::FusedGated([both, down]) => (
            at.formed(&name(both), 2 * width, hidden, form),
            at.bias(config.mlp_bias, &name(both), 2 * width),
            down,
        ),
        MlpNames::Plain([up, down]) => (
            at.formed(&name(up), width, hidden, form),
            at.bias(config.mlp_bias, &name(up), width),
            down,
        ),
    };
    Dense {
        wide,
        wide_bias,
        down: at.formed(&name(last), hidden, width, form),
        down_bias: at.bias(config.mlp_bias, &name(last), hidden),
    }
}

fn experts(
    at: &mut Cursor,
    hidden: i64,
    routing: &Routing,
    names: &ExpertNames,
    name: &impl Fn(&str) -> String,
) -> Experts<Slot> {
    let (count, width) = (routing.experts as i64, routing.width as i64);
    let [gate, up, down] = names.projections;
    let part = |e: i64, part: &str| name(&format!("{}{e}.{part}", names.expert));
    let router = at.matrix(&name(names.router), count, hidden);
    let stacked = |offset, rows, columns| Slot {
        offset,
        shape: vec![rows, columns],
    };
    let wide = stacked(at.offset, count * 2 * width, hidden);
    for e in 0..count {
        at.matrix(&part(e, gate), width, hidden);
        at.matrix(&part(e, up), width, hidden);
    }
    let downs = stacked(at.offset, count * hidden, width);
    for e in 0..count {
        at.matrix(&part(e, down), hidden, width);
    }
    Experts {
        router,
        wide,
        down: downs,
    }
}

/// The slot that starts where `first` does and takes in its neighbours up to `rows` rows.
fn rows(first: &Slot, rows: i64) -> Slot {
    let mut shape = first.shape.clone();
    shape[0] = rows;
    Slot {
        offset: first.offset,
        shape,
    }
}

#[derive(Default)]
struct Cursor {
    offset: i64,
    parameters: Vec<Parameter>,
}

impl Cursor {
    fn matrix(&mut self, name: &str, rows: i64, columns: i64) -> Slot {
        self.formed(name, rows, columns, Form::Plain)
    }

    fn formed(&mut self, name: &str, rows: i64, columns: i64, form: Form) -> Slot {
        self.push(format!("{name}.weight"), vec![rows, columns], form)
    }

    fn norm(&mut self, config: &Config, name: &str, width: i64) -> NormWeights<Slot> {
        let weight = self.push(format!("{name}.weight"), vec![width], Form::Plain);
        let bias = self.bias(config.norm.kind == NormKind::Layer, name, width);
        NormWeights { weight, bias }
    }

    fn bias(&mut self, present: bool, name: &str, length: i64) -> Option<Slot> {
        present.then(|| self.push(format!("{name}.bias"), vec![length], Form::Plain))
    }

    fn push(&mut self, name: String, shape: Vec<i64>, form: Form) -> Slot {
        let slot = Slot {
            offset: self.offset,
            shape,
        };
        self.offset += slot.len();
        self.parameters.push(Parameter {
            name,
            slot: slot.clone(),
            form,
        });
        slot
    }
}

impl Weights<Slot> {
    /// Views of a flat buffer, sharing its storage.
    pub fn views(&self, flat: &Tensor) -> Weights<Tensor> {
        let view = |slot: &Slot| slot.view(flat);
        Weights {
            embed: view(&self.embed),
            positions: self.positions.as_ref().map(view),
            layers: self.layers.iter().map(|l| l.map(&view)).collect(),
            norm: self.norm.map(&view),
            head: view(&self.head),
        }
    }
}

impl<T> NormWeights<T> {
    fn map<U>(&self, f: &impl Fn(&T) -> U) -> NormWeights<U> {
        NormWeights {
            weight: f(&self.weight),
            bias: self.bias.as_ref().map(f),
        }
    }
}

impl<T> Layer<T> {
    fn map<U>(&self, f: &impl Fn(&T) -> U) -> Layer<U> {
        Layer {
            input_norm: self.input_norm.map(f),
            qkv: f(&self.qkv),
            qkv_bias: self.qkv_bias.as_ref().map(f),
            qk_norm: self.qk_norm.as_ref().map(|[q, k]| [q.map(f), k.map(f)]),
            o: f(&self.o),
            o_bias: self.o_bias.as_ref().map(f),
            attention_norm: self.attention_norm.as_ref().map(|n| n.map(f)),
            post_norm: self.post_norm.map(f),
            mlp: match &self.mlp {
                Mlp::Dense(dense) => Mlp::Dense(Dense {
                    wide: f(&dense.wide),
                    wide_bias: dense.wide_bias.as_ref().map(f),
                    down: f(&dense.down),
                    down_bias: dense.down_bias.as_ref().map(f),
                }),
                Mlp::Experts(experts) => Mlp::Experts(Experts {
                    router: f(&experts.router),
                    wide: f(&experts.wide),
                    down: f(&experts.down),
                }),
            },
            mlp_norm: self.mlp_norm.as_ref().map(|n| n.map(f)),
        }
    }
}
