//! The calls of a program: what each node does.

use serde::{Deserialize, Serialize};

use super::{AxisId, DataId, ExprRef, Metric, ModelId, RewardId, RolloutId, StateId, ValueId};
use crate::source::Span;

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
    /// Whether each token is one that the assistant says, in a response that is a conversation.
    Assistant,
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
