//! What comes from outside besides data: models, how they are trained, and external rewards.

use serde::{Deserialize, Serialize};

use super::{Elem, ExprRef, ModelId};
use crate::source::Span;

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

impl ModelKind {
    /// What the program calls its checkpoint; a frozen model has its origin's.
    pub fn checkpoint(&self) -> Option<&str> {
        match self {
            ModelKind::Causal { checkpoint, .. } | ModelKind::Scalar { checkpoint, .. } => {
                Some(checkpoint)
            }
            ModelKind::Frozen(_) => None,
        }
    }
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
