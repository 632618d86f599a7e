//! The program as a static dataflow graph: what lowering produces and what every later stage reads.
//!
//! Nodes are model function calls, rewards, maps and training; edges carry data or a model version.
//! The graph holds no syntax: params are folded to their values, functions are inlined, axes are
//! numbered. It serialises, so one compilation can be handed to every rank.

mod dag;
mod expr;
mod place;
pub mod show;

use serde::{Deserialize, Serialize};

pub use dag::{Dag, NodeId};
pub use expr::{Binary, Elem, Expr, ExprRef, Op, Reduce, TextOp, Type, Unary};
pub use place::{Cluster, Place, Placed, Setting};

use crate::source::Span;

/// Index into [`Graph::axes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AxisId(pub u32);
/// Index into [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValueId(pub u32);
/// Index into [`Graph::models`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelId(pub u32);
/// Index into [`Graph::data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataId(pub u32);
/// Index into [`Graph::rewards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RewardId(pub u32);
/// Index into [`Graph::rollouts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RolloutId(pub u32);

/// Index into [`Graph::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateId(pub u32);

/// A checked program with its params resolved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// The program's name: its file's stem.
    pub name: String,
    /// Its `//!` text.
    pub doc: String,
    /// Params in order, with the values of this run.
    pub params: Vec<Param>,
    /// All axes.
    pub axes: Vec<Axis>,
    /// Data sets.
    pub data: Vec<Data>,
    /// Models.
    pub models: Vec<Model>,
    /// External rewards.
    pub rewards: Vec<Reward>,
    /// Numbers carried from one iteration to the next.
    pub states: Vec<State>,
    /// Rollouts: what `generate` and `answer` make, and selections of them.
    pub rollouts: Vec<Rollout>,
    /// Everything with a name, and the anonymous results of nodes.
    pub values: Vec<Value>,
    /// The expression arena; operands precede their users.
    pub exprs: Vec<Expr>,
    /// How often the step runs.
    pub schedule: Schedule,
    /// Nodes and edges of the step and of every eval.
    pub dag: Dag,
    /// What the step logs outside `train`.
    pub metrics: Vec<Metric>,
    /// The evaluations.
    pub evals: Vec<Eval>,
    /// The plan that the program's text holds.
    pub place: Option<Place>,
    /// Bodies of imported functions are inlined, but the fact is worth showing: `std.kl.k3`.
    pub imports: Vec<String>,
}

/// A resolved param.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The name.
    pub name: String,
    /// The type as written: `int`, `float`, `"a" | "b"`, …
    pub ty: String,
    /// The range as written, if any.
    pub range: Option<String>,
    /// The doc line.
    pub doc: String,
    /// The default as written.
    pub default: Option<String>,
    /// The value of this run.
    pub value: Const,
    /// Given by the user rather than by the default.
    pub overridden: bool,
    /// The declaration.
    pub span: Span,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Const {
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// Text, a path, a checkpoint or one of an enum.
    Text(String),
}

impl Const {
    /// Its element type.
    pub fn elem(&self) -> Elem {
        match self {
            Const::Bool(_) => Elem::Bool,
            Const::Int(_) => Elem::Int,
            Const::Float(_) => Elem::Float,
            Const::Text(_) => Elem::Text,
        }
    }
}

/// A named axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The name; empty for the implicit row axis of `eval … over d`.
    pub name: String,
    /// How long it is.
    pub size: AxisSize,
    /// The axes it is ragged over, outermost first; empty for the others.
    pub parents: Vec<AxisId>,
    /// The axis that this one is a selection of: `D` of `B` after `rows D = B where …`, the tokens of
    /// a picked response of the tokens of all.
    pub of: Option<AxisId>,
    /// Where it is introduced.
    pub span: Span,
}

/// How long an axis is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum AxisSize {
    /// This long.
    Fixed(usize),
    /// As long as its data set.
    Rows(DataId),
    /// Each row its own length, at most this.
    Ragged(usize),
    /// The rows that `rows … where …` keeps, at most this many.
    Subset(Option<usize>),
}

/// A data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The name.
    pub name: String,
    /// `jsonl`, `json`, …
    pub format: String,
    /// The path as written, relative to the program's folder or to the working directory; the id of
    /// an `hf` data set.
    pub path: String,
    /// The split of an `hf` data set.
    pub split: Option<String>,
    /// Columns.
    pub columns: Vec<Column>,
    /// The declaration.
    pub span: Span,
    /// The path literal.
    pub path_span: Span,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name in the program.
    pub name: String,
    /// The name in the file.
    pub source: String,
    /// Its type.
    pub elem: Elem,
    /// The declaration.
    pub span: Span,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: ModelKind,
    /// Storage and compute type of the parameters; `None` lets the machine decide.
    pub dtype: Option<Dtype>,
    /// How it is trained, for a model that is.
    pub optim: Option<Optim>,
    /// Trained through low-rank adapters rather than in full.
    pub lora: Option<Lora>,
    /// Where its weights come from.
    pub init: Init,
    /// The declaration.
    pub span: Span,
}

/// What a model is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ModelKind {
    /// A causal language model from a checkpoint.
    Causal {
        /// A directory or a hub id.
        checkpoint: String,
        /// The text that names it.
        span: Span,
    },
    /// A model that gives a number instead of a distribution: a critic or a reward model.
    Scalar {
        /// A directory or a hub id.
        checkpoint: String,
        /// What one number belongs to.
        per: Per,
        /// The text that names the checkpoint.
        span: Span,
    },
    /// The initial weights of another model.
    Frozen(ModelId),
}

/// What one number of a scalar model belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// A token: the value of the state before it.
    Token,
    /// A response: its score.
    Response,
}

impl Per {
    /// The word of the language.
    pub fn name(self) -> &'static str {
        match self {
            Per::Token => "token",
            Per::Response => "response",
        }
    }
}

/// Where a model's weights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// The checkpoint's.
    Checkpoint,
    /// Drawn anew; only the checkpoint's configuration is read.
    Random,
}

/// Low-rank adaptation (Hu et al., 2022, arXiv:2106.09685): W + alpha/rank · B·A with A and B trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lora {
    /// Rows of A.
    pub rank: usize,
    /// The numerator of the scale.
    pub alpha: f64,
    /// Names of the adapted projections; empty adapts every linear layer of the body.
    pub targets: Vec<String>,
}

/// A number carried between iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The name.
    pub name: String,
    /// `float`, `int` or `bool`.
    pub elem: Elem,
    /// Its value in the first iteration.
    pub init: Const,
    /// The declaration.
    pub span: Span,
}

/// Parameter types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the usual names
pub enum Dtype {
    F32,
    Bf16,
}

/// AdamW (Loshchilov and Hutter, 2019).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optim {
    /// Learning rate: an expression of `iteration` and `iterations`.
    pub lr: ExprRef,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest global gradient norm; `None` does not clip.
    pub clip_norm: Option<f64>,
}

/// An external reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// The name.
    pub name: String,
    /// Argument names and element types.
    pub params: Vec<(String, Elem)>,
    /// `float`, `int` or `bool`.
    pub result: Elem,
    /// How it is called.
    pub source: RewardSource,
    /// Seconds one call may take; `None` waits for ever.
    pub timeout: Option<f64>,
    /// The result of a call that fails; `None` stops the run.
    pub otherwise: Option<f64>,
    /// Worker processes; `None` lets the machine decide.
    pub workers: Option<usize>,
    /// The declaration.
    pub span: Span,
}

/// How a reward is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RewardSource {
    /// `python("file.py:fn")`
    Python {
        /// The file, relative to the program's folder or to the working directory.
        file: String,
        /// The function in it.
        function: String,
        /// The literal.
        span: Span,
    },
    /// `http("url")`: one POST a batch, JSON in and out.
    Http {
        /// Where.
        url: String,
        /// The literal.
        span: Span,
    },
    /// `command("words")`: one JSON object a line in, one number a line out.
    Command {
        /// The command line.
        command: String,
        /// The literal.
        span: Span,
    },
}

/// Prompts with responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// The name it is bound to.
    pub name: String,
    /// The axis of prompts.
    pub rows: AxisId,
    /// A second axis of prompts, when every response of another rollout has its own prompt.
    pub over: Option<AxisId>,
    /// The axis of responses to one prompt, if any.
    pub group: Option<AxisId>,
    /// The ragged axis of response tokens.
    pub tokens: AxisId,
}

/// Something a node produces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The name in the program: `adv`, `roll.text`, `question`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it is bound.
    pub span: Span,
}

/// When a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// In every iteration.
    Step,
    /// In the evaluation of this index.
    Eval(u32),
}

/// A node: one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The name in plans, traces, metrics and errors: `roll`, `ref`, `train policy`.
    pub name: String,
    /// When it runs.
    pub scope: Scope,
    /// What it does.
    pub kind: NodeKind,
    /// The statement.
    pub span: Span,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodeKind {
    /// Takes the next rows of a data set.
    Load {
        /// Which one.
        data: DataId,
        /// The row axis.
        axis: AxisId,
        /// Column index in the data set and the value it becomes; only the columns in use.
        columns: Vec<(usize, ValueId)>,
    },
    /// Samples responses.
    Generate {
        /// The model, at the version of its incoming edge.
        model: ModelId,
        /// Text or chat, over the row axis.
        prompt: ExprRef,
        /// Through the chat template, with its generation prompt.
        chat: bool,
        /// How tokens are drawn.
        sampling: Sampling,
        /// Weights up to so many versions old may sample.
        stale: usize,
        /// What is made.
        rollout: RolloutId,
        /// The members in use.
        members: Vec<(Member, ValueId)>,
    },
    /// Tokenises texts of the data as responses, EOS appended.
    Answer {
        /// The tokenizer is this model's.
        model: ModelId,
        /// Text or chat, over the row axis.
        prompt: ExprRef,
        /// Through the chat template.
        chat: bool,
        /// The responses' text.
        text: ExprRef,
        /// What is made.
        rollout: RolloutId,
        /// The members in use.
        members: Vec<(Member, ValueId)>,
    },
    /// Keeps some responses of each group.
    Select {
        /// Of which rollout.
        from: RolloutId,
        /// Which ones.
        by: Selection,
        /// What is made.
        rollout: RolloutId,
        /// The members in use.
        members: Vec<(Member, ValueId)>,
    },
    /// Runs a model over a rollout: one pass, however many outputs.
    Forward(Forward),
    /// Calls an external reward.
    Reward {
        /// Which one.
        reward: RewardId,
        /// Its arguments, all broadcast to the result's axes.
        args: Vec<ExprRef>,
        /// The result.
        value: ValueId,
    },
    /// Computes a pure expression.
    Map {
        /// The expression.
        expr: ExprRef,
        /// The result.
        value: ValueId,
    },
    /// Updates a model.
    Train(Train),
    /// Gives a state its value for the next iteration.
    Next {
        /// Which state.
        state: StateId,
        /// A scalar.
        expr: ExprRef,
    },
    /// Moves a frozen model's weights towards another's: w + rate · (v - w). The other is read as the
    /// iteration leaves it.
    Blend {
        /// The model that moves.
        model: ModelId,
        /// Where to.
        toward: ModelId,
        /// A scalar from 0 to 1.
        rate: ExprRef,
    },
}

/// Which responses of a group are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Selection {
    /// The one at `index`; the axis is removed.
    Pick {
        /// The axis of responses.
        axis: AxisId,
        /// An index a row.
        index: ExprRef,
    },
    /// The `k` with the largest `by`, largest first, earlier first among equals.
    Top {
        /// The axis of responses.
        axis: AxisId,
        /// A number a response.
        by: ExprRef,
        /// The axis of those that are kept.
        into: AxisId,
    },
}

/// A forward pass of a model over a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// The model.
    pub model: ModelId,
    /// What it reads.
    pub rollout: RolloutId,
    /// What it gives.
    pub outputs: Vec<(ForwardOutput, ValueId)>,
    /// Temperature of `logp` and `entropy`.
    pub temperature: f64,
    /// The call.
    pub span: Span,
}

/// One result of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ForwardOutput {
    /// Log-probability of each response token.
    Logp,
    /// Entropy of the next-token distribution at each response token.
    Entropy,
    /// Value of the state before each response token.
    Value,
    /// Value of the state after the last response token.
    End,
    /// The score of each response.
    Score,
}

impl ForwardOutput {
    /// The verb or member that asks for it.
    pub fn name(self) -> &'static str {
        match self {
            ForwardOutput::Logp => "logp",
            ForwardOutput::Entropy => "entropy",
            ForwardOutput::Value => "value",
            ForwardOutput::End => "end",
            ForwardOutput::Score => "score",
        }
    }
}

/// A rollout's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Member {
    /// The decoded responses.
    Text,
    /// Log-probability of each token as sampled, at its temperature.
    Logp,
    /// Ended by EOS or a stop string rather than by the limit.
    Finished,
}

/// How tokens are drawn. Everything is constant by the time the graph exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f64,
    /// Smallest set of most likely tokens with at least this mass.
    pub top_p: Option<f64>,
    /// So many most likely tokens.
    pub top_k: Option<usize>,
    /// EOS is not drawn before this many tokens.
    pub min_tokens: usize,
    /// Ends a response when its text contains one of these.
    pub stop: Vec<String>,
}

/// The only thing that makes a new version of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// The model.
    pub model: ModelId,
    /// Rows of the step's axis an update uses; `None`: all of them.
    pub minibatch: Option<usize>,
    /// Passes over the rollout.
    pub epochs: usize,
    /// Rows are put in a new order for each pass.
    pub shuffle: bool,
    /// Live passes; their outputs are leaves of `loss` and `metrics`.
    pub forwards: Vec<Forward>,
    /// A scalar.
    pub loss: ExprRef,
    /// What is logged, averaged over the updates.
    pub metrics: Vec<Metric>,
}

/// A logged number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// A scalar.
    pub expr: ExprRef,
    /// Where.
    pub span: Span,
}

/// How often the step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    /// This many iterations.
    Iterations(usize),
    /// This many passes over the data.
    Epochs(usize),
}

/// An evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eval {
    /// Iterations between two of them; one also runs before the first iteration and after the last.
    pub every: usize,
    /// What is logged.
    pub metrics: Vec<Metric>,
    /// The item.
    pub span: Span,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// A value flows.
    Data(ValueId),
    /// A rollout flows.
    Rollout(RolloutId),
    /// The target reads the model before the source changes it, or after the source made it.
    Version(ModelId),
}

impl Graph {
    /// The nodes of a scope in an order in which every input precedes its use.
    pub fn order(&self, scope: Scope) -> Vec<NodeId> {
        self.dag
            .order()
            .filter(|id| self.dag.node(*id).scope == scope)
            .collect()
    }

    /// An expression.
    pub fn expr(&self, e: ExprRef) -> &Expr {
        &self.exprs[e.0 as usize]
    }

    /// An axis.
    pub fn axis(&self, a: AxisId) -> &Axis {
        &self.axes[a.0 as usize]
    }

    /// A value.
    pub fn value(&self, v: ValueId) -> &Value {
        &self.values[v.0 as usize]
    }

    /// A model.
    pub fn model(&self, m: ModelId) -> &Model {
        &self.models[m.0 as usize]
    }

    /// The kind of a model, of its origin for a frozen one.
    pub fn head(&self, m: ModelId) -> &ModelKind {
        match &self.model(m).kind {
            ModelKind::Frozen(of) => match self.models.get(of.0 as usize) {
                Some(origin) => &origin.kind,
                None => &self.model(m).kind,
            },
            kind => kind,
        }
    }

    /// The axis at the start of a chain of selections.
    pub fn origin(&self, a: AxisId) -> AxisId {
        let mut a = a;
        while let Some(of) = self.axis(a).of {
            a = of;
        }
        a
    }

    /// A rollout.
    pub fn rollout(&self, r: RolloutId) -> &Rollout {
        &self.rollouts[r.0 as usize]
    }

    /// A type as the language writes it: `float[B, G, T]`.
    pub fn show_type(&self, ty: &Type) -> String {
        show_type(&self.axes, ty)
    }
}

/// A type with the names of its axes.
pub(crate) fn show_type(axes: &[Axis], ty: &Type) -> String {
    let elem = ty.elem.name();
    if ty.axes.is_empty() {
        return elem.to_string();
    }
    let names: Vec<&str> = ty
        .axes
        .iter()
        .map(|a| match axes[a.0 as usize].name.as_str() {
            "" => "rows",
            name => name,
        })
        .collect();
    format!("{elem}[{}]", names.join(", "))
}
