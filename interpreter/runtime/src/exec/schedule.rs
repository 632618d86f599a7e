//! Which rows of the data an iteration reads, and how many iterations there are.

use rlhf_lang::graph::{AxisSize, Graph, NodeKind, RowOrder, Schedule, Scope};

use super::context::Context;
use crate::data::{self, Order};
use crate::fault::Result;

/// The data set and the batch of the step: (data index, rows an iteration).
pub fn step_load(graph: &Graph) -> Option<(usize, usize)> {
    graph
        .order(Scope::Step)
        .into_iter()
        .find_map(|id| match &graph.dag.node(id).kind {
            NodeKind::Load { data, axis, .. } => match graph.axis(*axis).size {
                AxisSize::Fixed(batch) => Some((data.0 as usize, batch)),
                _ => None,
            },
            _ => None,
        })
}

/// Iterations of a whole run over `rows` rows in batches of `batch`; an epoch's incomplete last batch
/// is left out.
pub fn iterations(schedule: Schedule, rows: usize, batch: usize) -> usize {
    match schedule {
        Schedule::Iterations(n) => n,
        Schedule::Epochs(epochs) => epochs * data::batches(rows, batch),
    }
}

impl Context<'_> {
    /// The rows of the step's data set in an iteration, from 1.
    pub fn step_rows(&self, iteration: usize) -> Result<Vec<usize>> {
        let Some((table, batch)) = step_load(&self.job.graph) else {
            return Ok(vec![]);
        };
        let rows = self.tables[table].rows();
        let batches = data::batches(rows, batch).max(1);
        let (epoch, index) = ((iteration - 1) / batches, (iteration - 1) % batches);
        let place = self.job.graph.data[table].path_span;
        let order = match self.job.graph.order {
            RowOrder::Shuffled => Order::Seeded(self.job.seed),
            RowOrder::Data => Order::Data,
        };
        data::batch_rows(order, epoch as u64, rows, batch, index).map_err(|f| f.at(place))
    }

    /// The rows of an evaluation: all of its data set, or the first `n` of `[B: n]`.
    pub fn eval_rows(&self, eval: usize) -> Vec<usize> {
        let graph = &self.job.graph;
        let load = graph
            .order(Scope::Eval(eval as u32))
            .into_iter()
            .find_map(|id| match &graph.dag.node(id).kind {
                NodeKind::Load { data, axis, .. } => {
                    Some((data.0 as usize, graph.axis(*axis).size))
                }
                _ => None,
            });
        let Some((table, size)) = load else {
            return vec![];
        };
        let rows = self.tables[table].rows();
        match size {
            AxisSize::Fixed(n) => (0..n.min(rows)).collect(),
            _ => (0..rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_count_full_batches_only() {
        assert_eq!(iterations(Schedule::Epochs(2), 10, 4), 4);
        assert_eq!(iterations(Schedule::Iterations(7), 10, 4), 7);
    }
}
