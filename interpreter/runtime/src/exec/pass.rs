//! What one iteration or one evaluation has computed so far.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use rlhf_lang::graph::{AxisId, Forward, Graph, Metric, RolloutId, StateId, Train, ValueId};
use rlhf_plan::launch::Report;
use rlhf_text::rows::Table;
use tch::Tensor;

use crate::batch::Rows;
use crate::data;
use crate::expr::{self, Env};
use crate::fault::{Fault, Result};
use crate::value::Value;

/// The values of one iteration or one evaluation.
pub struct Pass {
    /// Iteration, from 1; 0 before the first.
    pub iteration: usize,
    /// Rows of the data set.
    pub rows: Vec<usize>,
    /// The axis of these rows, once they are loaded.
    pub axis: Option<AxisId>,
    /// What has been computed.
    pub env: Env,
    /// What the next iteration begins with, by state.
    pub next: HashMap<StateId, Value>,
    /// Responses by rollout.
    pub rollouts: HashMap<RolloutId, Drawn>,
    /// What was logged.
    pub metrics: IndexMap<String, Option<f64>>,
    /// What training reports beside the program's metrics; shown after them.
    pub late_metrics: IndexMap<String, Option<f64>>,
    /// Seconds by call.
    pub seconds: IndexMap<String, f64>,
    /// Tokens that were sampled.
    pub sampled_tokens: usize,
}

/// A rollout's tokens.
#[derive(Debug)]
pub struct Drawn {
    /// Which one.
    pub rollout: RolloutId,
    /// Prompts and responses.
    pub rows: Rows,
    /// Log-probability of each token as sampled, f32 `[tokens]`; zeros for texts of the data.
    pub logp: Tensor,
    /// Ended by EOS or a stop string, one a response.
    pub finished: Vec<bool>,
    /// Decoded responses.
    pub texts: Vec<Arc<str>>,
}

impl Pass {
    /// Gives the values of a data set's columns at this pass's rows.
    pub fn load(
        &mut self,
        table: &Table,
        axis: AxisId,
        columns: &[(usize, ValueId)],
    ) -> Result<()> {
        self.axis = Some(axis);
        self.env.shapes.set(axis, self.rows.len());
        let taken: Vec<usize> = columns.iter().map(|(column, _)| *column).collect();
        let values = data::values(table, &taken, axis, &self.rows)?;
        let named = columns.iter().map(|(_, value)| *value);
        self.env.values.extend(named.zip(values));
        Ok(())
    }

    /// Logs a scalar.
    pub fn report_metric(&mut self, graph: &Graph, metric: &Metric) -> Result<()> {
        let value = expr::eval(graph, metric.expr, &self.env).and_then(|v| v.as_f64());
        let value = value.map_err(|f| f.at(metric.span))?;
        self.metrics
            .insert(metric.name.clone(), value.is_finite().then_some(value));
        Ok(())
    }

    /// The numbers of the whole pass.
    pub fn finish(mut self, total_seconds: f64) -> Report {
        self.metrics.extend(self.late_metrics);
        Report {
            iteration: self.iteration,
            metrics: self.metrics,
            seconds: self.seconds,
            total_seconds,
            sampled_tokens: self.sampled_tokens,
        }
    }

    /// The row of the data set that each prompt of a rollout comes from.
    pub fn prompt_rows(&self, graph: &Graph, rollout: RolloutId) -> Result<Vec<usize>> {
        let declared = graph.rollout(rollout);
        let shapes = &self.env.shapes;
        let origin = graph.origin(declared.rows);
        let beside = declared.over.map_or(Ok(1), |a| shapes.length(a))?;
        let rows = shapes.positions(declared.rows, origin)?.into_iter();
        Ok(rows
            .flat_map(|r| std::iter::repeat_n(self.rows[r], beside))
            .collect())
    }

    /// The part of everything that a minibatch needs: values, and rollouts in the order of the
    /// training's forward passes. `rows` are positions in this pass; of a part of the rows the minibatch
    /// has those that are among them.
    pub fn minibatch(
        &self,
        graph: &Graph,
        train: &Train,
        rows: &[usize],
    ) -> Result<(Env, Vec<Drawn>)> {
        let Some(axis) = self.axis else {
            return Ok((self.env.clone(), vec![]));
        };
        let shapes = &self.env.shapes;
        let left = shapes.within(axis, rows);
        let drawn = |forward: &Forward| {
            let whole = self
                .rollouts
                .get(&forward.rollout)
                .ok_or_else(|| missing(graph, forward.rollout))?;
            let axis = graph.rollout(forward.rollout).rows;
            // A row may have several prompts, which stay together.
            let each = whole.rows.prompts.len() / shapes.length(axis)?.max(1);
            let own = left.get(&axis).map_or(rows, Vec::as_slice);
            let prompts: Vec<usize> = own.iter().flat_map(|r| r * each..(r + 1) * each).collect();
            whole.select(&prompts)
        };
        let parts = train
            .forwards
            .iter()
            .map(drawn)
            .collect::<Result<Vec<_>>>()?;
        Ok((self.env.restrict(axis, rows)?, parts))
    }
}

impl Drawn {
    /// The given prompts with all their responses, in that order.
    pub fn select(&self, prompts: &[usize]) -> Result<Drawn> {
        let responses: Vec<usize> = self.rows.responses_of(prompts).collect();
        self.with_rows(self.rollout, self.rows.select(prompts), &responses)
    }

    /// Some responses of this rollout as another rollout, in groups of `group`.
    pub fn pick(&self, rollout: RolloutId, responses: &[usize], group: usize) -> Result<Drawn> {
        let rows = self.rows.select_responses(responses, group);
        self.with_rows(rollout, rows, responses)
    }

    fn with_rows(&self, rollout: RolloutId, rows: Rows, responses: &[usize]) -> Result<Drawn> {
        let offsets = self.rows.offsets();
        let tokens: Vec<i64> = responses
            .iter()
            .flat_map(|r| offsets[*r] as i64..offsets[*r + 1] as i64)
            .collect();
        Ok(Drawn {
            rollout,
            rows,
            logp: self
                .logp
                .f_index_select(0, &Tensor::f_from_slice(&tokens)?)?,
            finished: responses.iter().map(|r| self.finished[*r]).collect(),
            texts: responses.iter().map(|r| self.texts[*r].clone()).collect(),
        })
    }
}

/// The failure of reading a rollout that is not there.
pub fn missing(graph: &Graph, rollout: RolloutId) -> Fault {
    // The instruction order puts a rollout before its readers; a plan that does not is at fault.
    Fault::new(format!(
        "`{}` is read before it is sampled",
        graph.rollout(rollout).name
    ))
}
