//! What every name of a program stands for: the side table that an editor reads.
//!
//! Filled while the program is lowered, also when it has errors. A function is read where it is called,
//! so the names in its body have the types of its first call.

use crate::graph::{
    Axis, AxisId, Data, DataId, Model, ModelId, Reward, RewardId, Rollout, RolloutId, Type,
};
use crate::source::Span;

/// Occurrences of names and the types of expressions.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Every occurrence of a name that means something, definitions included.
    pub names: Vec<Occurrence>,
    /// Every expression that has a value, in the order in which they were read; operands first.
    pub values: Vec<(Span, Type)>,
    /// The axes that types refer to.
    pub axes: Vec<Axis>,
    /// The models.
    pub models: Vec<Model>,
    /// The data sets.
    pub data: Vec<Data>,
    /// The rewards.
    pub rewards: Vec<Reward>,
    /// The rollouts.
    pub rollouts: Vec<Rollout>,
}

/// A name where it stands.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// Where.
    pub span: Span,
    /// Where it is defined; `span` itself at the definition, `None` for what is built in.
    pub def: Option<Span>,
    /// What it stands for.
    pub what: What,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A value: a binding, a column, a param, a member, an argument.
    Value(Type),
    /// One axis.
    Axis(AxisId),
    /// Several axes, as an argument of a function.
    Axes(Vec<AxisId>),
    /// A model.
    Model(ModelId),
    /// What `generate` or `answer` made.
    Rollout(RolloutId),
    /// A prompt that goes through the chat template.
    Prompt,
    /// A data set.
    Data(DataId),
    /// An external reward.
    Reward(RewardId),
    /// A function of a file; its definition is its name there.
    Function,
    /// An operator or verb of the language.
    Builtin,
    /// Something with an error of its own.
    Unknown,
}

impl Facts {
    /// A type as the language writes it: `float[B, G, T]`.
    pub fn show_type(&self, ty: &Type) -> String {
        crate::graph::show_type(&self.axes, ty)
    }
}
