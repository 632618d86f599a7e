//! What each kind of call does.

use std::collections::HashMap;
use std::time::Instant;

use indexmap::IndexMap;
use rlhf_lang::graph::{AxisId, AxisSize, Forward, Node, NodeId, NodeKind};

use super::context::Context;
use super::outputs;
use super::pass::{Pass, missing};
use crate::expr::{self, Env};
use crate::fault::{Fault, Result};
use crate::reward;

impl Context<'_> {
    /// A pass with nothing computed yet.
    pub fn begin(&self, iteration: usize, rows: Vec<usize>) -> Pass {
        let mut env = Env {
            iteration: iteration.max(1) as f64,
            iterations: self.scheduled as f64,
            states: self.states.clone(),
            ..Env::default()
        };
        for (index, axis) in self.job.graph.axes.iter().enumerate() {
            if let AxisSize::Fixed(n) = axis.size {
                env.shapes.set(AxisId(index as u32), n);
            }
        }
        Pass {
            iteration,
            rows,
            axis: None,
            env,
            next: HashMap::new(),
            rollouts: HashMap::new(),
            metrics: IndexMap::new(),
            late_metrics: IndexMap::new(),
            seconds: IndexMap::new(),
            sampled_tokens: 0,
        }
    }

    /// Runs one node. Failures point at its statement.
    pub fn call(&mut self, id: NodeId, pass: &mut Pass) -> Result<()> {
        let job = self.job;
        let node = job.graph.dag.node(id);
        let start = Instant::now();
        guarded(|| {
            self.dispatch(node, pass)?;
            tch::no_grad(|| pass.env.settle(&job.graph))
        })
        .map_err(|f| f.at(node.span))?;
        if !matches!(node.kind, NodeKind::Load { .. } | NodeKind::Map { .. }) {
            pass.seconds
                .insert(node.name.clone(), start.elapsed().as_secs_f64());
        }
        Ok(())
    }

    fn dispatch(&mut self, node: &Node, pass: &mut Pass) -> Result<()> {
        let graph = &self.job.graph;
        match &node.kind {
            NodeKind::Load {
                data,
                axis,
                columns,
            } => pass.load(&self.tables[data.0 as usize], *axis, columns),
            NodeKind::Map { expr, value } => {
                let computed = tch::no_grad(|| expr::eval_kept(graph, *expr, &mut pass.env))?;
                pass.env.values.insert(*value, computed);
                Ok(())
            }
            NodeKind::Generate {
                model,
                prompt,
                chat,
                sampling,
                rollout,
                members,
                // The only rank always samples from the newest weights.
                stale: _,
            } => {
                let prompts = self.encode_prompts(*model, *prompt, *chat, *rollout, pass)?;
                self.check_room(node, &prompts, pass)?;
                let drawn = self.generate(node, *model, prompts, sampling, *rollout, pass)?;
                self.bind_rollout(drawn, members, pass)
            }
            NodeKind::Answer {
                model,
                prompt,
                chat,
                text,
                rollout,
                members,
            } => {
                let prompts = self.encode_prompts(*model, *prompt, *chat, *rollout, pass)?;
                self.check_room(node, &prompts, pass)?;
                self.answer((*model, *prompt), prompts, *text, *rollout, members, pass)
            }
            NodeKind::Forward(forward) => self.forward(forward, pass),
            NodeKind::Reward {
                reward,
                args,
                value,
            } => {
                let axes = graph.value(*value).ty.axes.clone();
                let args = args
                    .iter()
                    .map(|a| expr::eval(graph, *a, &pass.env))
                    .collect::<Result<Vec<_>>>()?;
                let pool = &self.rewards[reward.0 as usize];
                let (scores, warning) =
                    reward::score(pool, &args, &axes, &pass.env.shapes, &pass.rows)?;
                if let Some(diagnostic) = warning {
                    self.warn(
                        Fault {
                            diagnostic: Box::new(diagnostic),
                        }
                        .at(node.span),
                    );
                }
                pass.env.values.insert(*value, scores);
                Ok(())
            }
            NodeKind::Train(train) => self.train(node, train, pass),
            NodeKind::Select {
                from,
                by,
                rollout,
                members,
            } => {
                let drawn = self.select(*from, by, *rollout, pass)?;
                self.bind_rollout(drawn, members, pass)
            }
            NodeKind::Next { state, expr } => self.next_state(node, *state, *expr, pass),
            NodeKind::Blend {
                model,
                toward,
                rate,
            } => self.blend(*model, *toward, *rate, pass),
        }
    }

    fn forward(&mut self, forward: &Forward, pass: &mut Pass) -> Result<()> {
        let graph = &self.job.graph;
        let drawn = pass
            .rollouts
            .get(&forward.rollout)
            .ok_or_else(|| missing(graph, forward.rollout))?;
        self.check_readable(forward, drawn)?;
        let model = &self.models[forward.model.0 as usize];
        let numbers = outputs::score(model, &drawn.rows, forward);
        for (output, id) in &forward.outputs {
            if let Some(numbers) = numbers.get(*output) {
                let value = outputs::value(graph, *id, numbers, &pass.env.shapes)?;
                pass.env.values.insert(*id, value);
            }
        }
        Ok(())
    }
}

/// Runs a call so that a panic inside libtorch's bindings, as when memory runs out, is a failure of that
/// call: what was trained before can still be saved.
fn guarded(call: impl FnOnce() -> Result<()>) -> Result<()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no words");
        // tch says `called … on an Err value: Torch("first line\\n C++ stack")`.
        let text = text.split_once("Torch(\"").map_or(text, |(_, inner)| inner);
        let text = text.split("\\n").next().unwrap_or(text);
        Err(Fault::new(format!("libtorch: {text}"))
            .help("`rank.log` in the run directory has the whole report"))
    })
}
