//! The program as a static dataflow graph: what lowering produces and what every later stage reads.
//!
//! Nodes are model function calls, rewards, maps and training; edges carry data or a model version.
//! The graph holds no syntax: params are folded to their values, functions are inlined, axes are
//! numbered. It serialises, so one compilation can be handed to every rank.

mod dag;
mod expr;
mod model;
mod node;
mod place;
pub mod show;

use serde::{Deserialize, Serialize};

pub use dag::{Dag, NodeId};
pub use expr::{Binary, Elem, Expr, ExprRef, Op, Reduce, TextOp, Type, Unary};
pub use model::{Dtype, Init, Lora, Model, ModelKind, Optim, Per, Reward, RewardSource};
pub use node::{Forward, ForwardOutput, Member, Node, NodeKind, Sampling, Scope, Selection, Train};
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
    /// Which rows come first.
    pub order: RowOrder,
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
    /// The part of an `hf` data set that has several with the same split.
    pub config: Option<String>,
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

/// The order in which the step reads its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowOrder {
    /// Another order in every pass over the data, drawn from the seed.
    #[default]
    Shuffled,
    /// As the data has them, in every pass.
    Data,
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
