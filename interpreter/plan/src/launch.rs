//! What the command line tells a rank, and what a rank tells back.
//!
//! A rank is started with the path of a [`Job`] as JSON. It writes one [`Event`] a line on standard
//! output and leaves standard error to libraries. The line `stop` on its standard input, or the end of
//! that input, ends the run after the current call with the checkpoint saved.

use indexmap::IndexMap;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Dtype, Graph};
use serde::{Deserialize, Serialize};

use crate::program::Program;

/// Everything a rank needs to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The checked program.
    pub graph: Graph,
    /// This rank's instructions.
    pub program: Program,
    /// The directory of each model's checkpoint, by model; a frozen model has its origin's.
    pub checkpoints: Vec<String>,
    /// The directory of the PEFT adapter on each model's checkpoint, where there is one; a frozen model
    /// has its origin's weights.
    #[serde(default)]
    pub adapters: Vec<Option<String>>,
    /// The program's folder: paths in it are relative to this, then to the working directory.
    pub base: String,
    /// The run directory; it exists.
    pub out: String,
    /// Seeds sampling and shuffling.
    pub seed: u64,
    /// Stops after so many iterations, whatever the program says. The schedules do not change.
    pub iterations: Option<usize>,
    /// Threads of libtorch and of the kernels.
    pub threads: usize,
    /// Parameter type of models that do not say.
    pub dtype: Dtype,
    /// The Python that runs rewards.
    pub python: String,
}

/// A request to evaluate a pure expression.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalJob {
    /// Holds the expression and its inputs, which are the values of the first ids.
    pub graph: Graph,
    /// The expression.
    pub root: rlhf_lang::graph::ExprRef,
    /// Nested lists, one an input.
    pub inputs: Vec<serde_json::Value>,
    /// The inputs with respect to which gradients are wanted.
    pub grad: Vec<rlhf_lang::graph::ValueId>,
}

/// What a rank reports, one JSON object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Something slow begins, such as loading a model.
    Note {
        /// One line.
        text: String,
    },
    /// Loading is over.
    Ready {
        /// Iterations that will run.
        iterations: usize,
        /// The iteration the run starts after; 0 for a new run.
        done: usize,
    },
    /// A call advances.
    Progress {
        /// Iteration, from 1.
        iteration: usize,
        /// The call's name.
        call: String,
        /// Units done, such as tokens.
        done: usize,
        /// Units in all.
        total: usize,
    },
    /// An iteration ended.
    Iteration(Report),
    /// An evaluation ended.
    Eval(Report),
    /// A checkpoint is complete.
    Saved {
        /// The iteration it holds.
        iteration: usize,
        /// Its directory.
        path: String,
    },
    /// Something the user should see: a warning, or the error that ended the run.
    Diagnostic(Diagnostic),
    /// The result of an [`EvalJob`].
    Value {
        /// The value as nested lists.
        value: serde_json::Value,
        /// The gradient, shaped like its input; of several inputs, an object by name.
        #[serde(skip_serializing_if = "Option::is_none")]
        grad: Option<serde_json::Value>,
    },
    /// The run is over, in good order.
    Done {
        /// Iterations completed.
        iteration: usize,
        /// Stopped by the user rather than by its schedule.
        stopped: bool,
        /// Largest resident memory, in bytes.
        peak_memory: u64,
    },
}

/// The numbers of one iteration or evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Iteration, from 1; an evaluation before training has 0.
    pub iteration: usize,
    /// Logged values in the order of the program, then `policy.loss`, `policy.grad_norm`,
    /// `policy.lr` of each trained model. `null` is a value that is none or not finite.
    pub metrics: IndexMap<String, Option<f64>>,
    /// Seconds by call.
    pub seconds: IndexMap<String, f64>,
    /// Seconds in all.
    pub total_seconds: f64,
    /// Tokens that were sampled.
    pub sampled_tokens: usize,
}
