//! The static instruction list of one rank.
//!
//! Every rank derives its own list from the same graph, so there is no scheduler at run time and the
//! order of instructions is known before anything starts.

use rlhf_lang::graph::{Graph, NodeId, Scope};
use serde::{Deserialize, Serialize};

/// What one rank does: the step in every iteration, an evaluation when it is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// One iteration.
    pub step: Vec<Instruction>,
    /// One list an evaluation, in the graph's order.
    pub evals: Vec<Vec<Instruction>>,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Instruction {
    /// Runs a node whose inputs are all present.
    Call(NodeId),
}

impl Program {
    /// The program of the only rank: every call, in an order that respects data and versions.
    pub fn single(graph: &Graph) -> Self {
        let list = |scope| {
            graph
                .order(scope)
                .into_iter()
                .map(Instruction::Call)
                .collect()
        };
        Program {
            step: list(Scope::Step),
            evals: (0..graph.evals.len())
                .map(|i| list(Scope::Eval(i as u32)))
                .collect(),
        }
    }
}
