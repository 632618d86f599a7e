//! Where each parameter lies in a model's one buffer, and views of it under the decoder's own names.
//!
//! The same description serves parameters, gradients and optimizer state: a flat buffer of
//! `parameter_count` numbers. Queries, keys and values are neighbours, and so are gate and up, so that
//! one matrix product computes them together.

use tch::Tensor;

use super::HeadKind;
use super::architecture::SCALAR_HEAD;
use super::config::Config;

/// A parameter's place: `T` is a [`Slot`] in a layout and a view of a buffer in a model.
#[derive(Debug)]
pub struct Weights<T> {
    /// Token embedding, `[vocab, hidden]`.
    pub embed: T,
    /// The decoder layers.
    pub layers: Vec<Layer<T>>,
    /// Last norm, `[hidden]`.
    pub norm: T,
    /// Head, `[vocab, hidden]`, the embedding itself where tied; `[1, hidden]` of a scalar model.
    pub head: T,
}

/// The parameters of one decoder layer. Projections are `[out, in]`, biases `[out]`, norms `[hidden]`.
#[derive(Debug)]
pub struct Layer<T> {
    /// Norm before attention.
    pub input_norm: T,
    /// Query projection, `[heads · head_dim, hidden]`.
    pub q: T,
    /// Key projection, `[kv_heads · head_dim, hidden]`.
    pub k: T,
    /// Value projection, `[kv_heads · head_dim, hidden]`.
    pub v: T,
    /// `q`, `k` and `v` as one matrix.
    pub qkv: T,
    /// Bias of the queries.
    pub q_bias: Option<T>,
    /// Bias of the keys.
    pub k_bias: Option<T>,
    /// Bias of the values.
    pub v_bias: Option<T>,
    /// The three biases as one vector.
    pub qkv_bias: Option<T>,
    /// Output projection of attention, `[hidden, heads · head_dim]`.
    pub o: T,
    /// Bias of the output projection.
    pub o_bias: Option<T>,
    /// Norm before the MLP.
    pub post_norm: T,
    /// Gate projection, `[intermediate, hidden]`.
    pub gate: T,
    /// Up projection, `[intermediate, hidden]`.
    pub up: T,
    /// `gate` and `up` as one matrix.
    pub gate_up: T,
    /// Bias of the gate.
    pub gate_bias: Option<T>,
    /// Bias of the up projection.
    pub up_bias: Option<T>,
    /// The two biases as one vector.
    pub gate_up_bias: Option<T>,
    /// Down projection, `[hidden, intermediate]`.
    pub down: T,
    /// Bias of the down projection.
    pub down_bias: Option<T>,
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
        let layers = (0..config.layers)
            .map(|i| layer(&mut at, config, i))
            .collect();
        let norm = at.vector(format!("{}.weight", names.norm), hidden);
        let head = match config.head {
            HeadKind::Scalar => at.matrix(SCALAR_HEAD, 1, hidden),
            HeadKind::Language if config.tied => embed.clone(),
            HeadKind::Language => at.matrix(names.head, vocab, hidden),
        };
        Layout {
            weights: Weights {
                embed,
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
    let wide = config.intermediate as i64;
    let queries = (config.heads * config.head_dim) as i64;
    let keys = (config.kv_heads * config.head_dim) as i64;
    let name = |part: &str| format!("{}{index}.{part}", names.layer);
    let input_norm = at.vector(format!("{}.weight", name(names.input_norm)), hidden);
    let q = at.matrix(&name(names.q), queries, hidden);
    let k = at.matrix(&name(names.k), keys, hidden);
    let v = at.matrix(&name(names.v), keys, hidden);
    let q_bias = at.bias(config.qkv_bias, &name(names.q), queries);
    let k_bias = at.bias(config.qkv_bias, &name(names.k), keys);
    let v_bias = at.bias(config.qkv_bias, &name(names.v), keys);
    let o = at.matrix(&name(names.o), hidden, queries);
    let o_bias = at.bias(config.o_bias, &name(names.o), hidden);
    let post_norm = at.vector(format!("{}.weight", name(names.post_norm)), hidden);
    let gate = at.matrix(&name(names.gate), wide, hidden);
    let up = at.matrix(&name(names.up), wide, hidden);
    let gate_bias = at.bias(config.mlp_bias, &name(names.gate), wide);
    let up_bias = at.bias(config.mlp_bias, &name(names.up), wide);
    let down = at.matrix(&name(names.down), hidden, wide);
    let down_bias = at.bias(config.mlp_bias, &name(names.down), hidden);
    Layer {
        qkv: rows(&q, queries + 2 * keys),
        qkv_bias: q_bias.as_ref().map(|b| rows(b, queries + 2 * keys)),
        gate_up: rows(&gate, 2 * wide),
        gate_up_bias: gate_bias.as_ref().map(|b| rows(b, 2 * wide)),
        input_norm,
        q,
        k,
        v,
        q_bias,
        k_bias,
        v_bias,
        o,
        o_bias,
        post_norm,
        gate,
        up,
        gate_bias,
        up_bias,
        down,
        down_bias,
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
        self.push(format!("{name}.weight"), vec![rows, columns])
    }

    fn vector(&mut self, name: String, length: i64) -> Slot {
        self.push(name, vec![length])
    }

    fn bias(&mut self, present: bool, name: &str, length: i64) -> Option<Slot> {
        present.then(|| self.push(format!("{name}.bias"), vec![length]))
    }

    fn push(&mut self, name: String, shape: Vec<i64>) -> Slot {
        let slot = Slot {
            offset: self.offset,
            shape,
        };
        self.offset += slot.len();
        self.parameters.push(Parameter {
            name,
            slot: slot.clone(),
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
            layers: self.layers.iter().map(|l| l.map(&view)).collect(),
            norm: view(&self.norm),
            head: view(&self.head),
        }
    }
}

impl<T> Layer<T> {
    fn map<U>(&self, f: &impl Fn(&T) -> U) -> Layer<U> {
        Layer {
            input_norm: f(&self.input_norm),
            q: f(&self.q),
            k: f(&self.k),
            v: f(&self.v),
            qkv: f(&self.qkv),
            q_bias: self.q_bias.as_ref().map(f),
            k_bias: self.k_bias.as_ref().map(f),
            v_bias: self.v_bias.as_ref().map(f),
            qkv_bias: self.qkv_bias.as_ref().map(f),
            o: f(&self.o),
            o_bias: self.o_bias.as_ref().map(f),
            post_norm: f(&self.post_norm),
            gate: f(&self.gate),
            up: f(&self.up),
            gate_up: f(&self.gate_up),
            gate_bias: self.gate_bias.as_ref().map(f),
            up_bias: self.up_bias.as_ref().map(f),
            gate_up_bias: self.gate_up_bias.as_ref().map(f),
            down: f(&self.down),
            down_bias: self.down_bias.as_ref().map(f),
        }
    }
}
