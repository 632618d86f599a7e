//! Which responses of an iteration are kept in `samples.jsonl`, and which number is their reward.

use rlhf_lang::graph::{ExprRef, Graph, NodeKind, Op, RolloutId, Scope, ValueId};

use super::context::Context;
use super::pass::Pass;
use super::record::{SAMPLES, Sample};
use crate::fault::Result;
use crate::value::Data;

impl Context<'_> {
    /// Appends the first responses of every rollout the step sampled.
    pub fn write_samples(&mut self, iteration: usize, pass: &Pass) -> Result<()> {
        let job = self.job;
        for id in job.graph.order(Scope::Step) {
            let node = job.graph.dag.node(id);
            let NodeKind::Generate {
                prompt, rollout, ..
            } = &node.kind
            else {
                continue;
            };
            let Some(drawn) = pass.rollouts.get(rollout) else {
                continue;
            };
            let prompts = self.prompt_texts(*prompt, *rollout, pass)?;
            let rows = pass.prompt_rows(&job.graph, *rollout)?;
            let a_row = drawn.texts.len()
                / pass
                    .env
                    .shapes
                    .length(job.graph.rollout(*rollout).rows)?
                    .max(1);
            let rewards = rewards(&job.graph, *rollout, pass)?;
            for (r, text) in drawn.texts.iter().enumerate().take(SAMPLES) {
                self.record.sample(&Sample {
                    iteration,
                    call: &node.name,
                    row: rows[r / drawn.rows.group],
                    sample: r % a_row.max(1),
                    prompt: prompts[r / drawn.rows.group].clone(),
                    response: text,
                    finished: drawn.finished[r],
                    reward: rewards
                        .as_ref()
                        .and_then(|all| all.get(r))
                        .copied()
                        .filter(|x| x.is_finite()),
                })?;
            }
        }
        Ok(())
    }

    fn prompt_texts(
        &self,
        prompt: ExprRef,
        rollout: RolloutId,
        pass: &Pass,
    ) -> Result<Vec<serde_json::Value>> {
        let value = self.per_prompt(prompt, rollout, pass)?;
        Ok(match &value.data {
            Data::Chat(chats) => chats
                .iter()
                .map(|chat| {
                    let message = |m: &rlhf_text::Message| serde_json::json!({ "role": m.role, "content": m.content });
                    chat.iter().map(message).collect()
                })
                .collect(),
            _ => value.texts()?.iter().map(|t| serde_json::json!(t.as_deref())).collect(),
        })
    }
}

/// The reward of each response: what the metric named `reward` averages, else the first external
/// reward, else the first number bound to every response.
fn rewards(graph: &Graph, rollout: RolloutId, pass: &Pass) -> Result<Option<Vec<f64>>> {
    let declared = graph.rollout(rollout);
    let axes: Vec<_> = std::iter::once(declared.rows)
        .chain(declared.over)
        .chain(declared.group)
        .collect();
    let fits = |value: &ValueId| {
        graph.value(*value).ty.axes == axes
            && pass
                .env
                .values
                .get(value)
                .is_some_and(|v| matches!(v.data, Data::Num(_) | Data::Bool(_)))
    };
    let logged = graph
        .metrics
        .iter()
        .find(|m| m.name == "reward")
        .and_then(|m| match graph.expr(m.expr) {
            e if matches!(e.op, Op::Reduce { .. }) => match graph.expr(e.args[0]).op {
                Op::Value(value) => Some(value),
                _ => None,
            },
            _ => None,
        });
    let bound = || {
        let nodes = graph.order(Scope::Step);
        let kinds = || nodes.iter().map(|id| &graph.dag.node(*id).kind);
        let external = kinds().find_map(|k| match k {
            NodeKind::Reward { value, .. } => Some(*value).filter(fits),
            _ => None,
        });
        external.or_else(|| {
            kinds().find_map(|k| match k {
                NodeKind::Map { value, .. } => Some(*value).filter(fits),
                _ => None,
            })
        })
    };
    let Some(value) = logged.filter(fits).or_else(bound) else {
        return Ok(None);
    };
    pass.env.values.get(&value).map(|v| v.numbers()).transpose()
}
