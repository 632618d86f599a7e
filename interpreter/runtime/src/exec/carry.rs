//! What one iteration hands to the next: states, and frozen models that follow trained ones.

use std::collections::HashMap;

use rlhf_lang::graph::{Const, ExprRef, Graph, ModelId, Node, NodeKind, StateId};
use tch::Tensor;

use super::context::Context;
use super::pass::Pass;
use crate::expr;
use crate::fault::{Fault, Result};
use crate::value::{Data, Value};

/// The states before the first iteration.
pub fn first_states(graph: &Graph) -> HashMap<StateId, Value> {
    let value = |init: &Const| match init {
        Const::Bool(b) => Value::bool(vec![], &Tensor::from(*b)),
        Const::Int(i) => Value::scalar(*i as f64),
        Const::Float(x) => Value::scalar(*x),
        // A state is a number or a truth value.
        Const::Text(_) => Value::scalar(f64::NAN),
    };
    let states = graph.states.iter().enumerate();
    states
        .map(|(i, state)| (StateId(i as u32), value(&state.init)))
        .collect()
}

/// Whether `next` moves the model's weights.
pub fn is_blended(graph: &Graph, index: usize) -> bool {
    graph.dag.order().any(|id| match &graph.dag.node(id).kind {
        NodeKind::Blend { model, .. } => model.0 as usize == index,
        _ => false,
    })
}

impl Context<'_> {
    /// Computes what a state will be. Until the iteration ends everything reads what it was.
    pub fn next_state(
        &mut self,
        node: &Node,
        state: StateId,
        value: ExprRef,
        pass: &mut Pass,
    ) -> Result<()> {
        let graph = &self.job.graph;
        let value = tch::no_grad(|| expr::eval(graph, value, &pass.env))?;
        if let Data::Num(_) = value.data {
            let number = value.as_f64()?;
            if !number.is_finite() {
                let message = format!(
                    "`{}` became {number} at iteration {}",
                    node.name, pass.iteration
                );
                return Err(Fault::code("R401", message)
                    .help("every later iteration would read it; `if` or `clamp` keeps it finite"));
            }
        }
        pass.next.insert(state, value);
        Ok(())
    }

    /// Moves a frozen model towards another as it is now.
    pub fn blend(
        &mut self,
        model: ModelId,
        toward: ModelId,
        rate: ExprRef,
        pass: &Pass,
    ) -> Result<()> {
        let graph = &self.job.graph;
        let span = graph.expr(rate).span;
        let rate = tch::no_grad(|| expr::eval(graph, rate, &pass.env))?.as_f64()?;
        if !(0.0..=1.0).contains(&rate) {
            let message = format!(
                "the rate towards `{}` is {rate} at iteration {}",
                graph.model(toward).name,
                pass.iteration
            );
            return Err(Fault::new(message)
                .at(span)
                .help("0 keeps the model, 1 takes the other's weights"));
        }
        let (index, source) = (model.0 as usize, toward.0 as usize);
        let Some(average) = self.averages[index].as_mut() else {
            return Err(Fault::new(format!(
                "`{}` follows nothing",
                graph.model(model).name
            )));
        };
        if rate > 0.0 {
            let exact = self.optimizers[source].as_ref().and_then(|o| o.master());
            let weights = exact.unwrap_or(self.models[source].flat());
            tch::no_grad(|| average.step(&self.models[index], weights, rate));
        }
        Ok(())
    }
}
