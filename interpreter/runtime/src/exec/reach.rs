//! The rows that a training pass has to read: what the loss and the metrics drop is not computed.

use rlhf_lang::graph::{AxisId, ExprRef, Forward, ForwardOutput, Graph, Train};
use tch::{Kind, Tensor};

use super::outputs;
use super::pass::Drawn;
use crate::batch::Rows;
use crate::expr::{Demand, Env, demand};
use crate::fault::Result;

/// The part of a rollout that a pass reads, and where its numbers lie among those of all.
pub struct Reached {
    /// Prompts with responses.
    pub rows: Rows,
    /// Places among all, unless everything is read.
    part: Option<Places>,
}

struct Places {
    tokens: Tensor,
    responses: Tensor,
    /// How many there are of both.
    all_tokens: i64,
    all_responses: i64,
}

impl Reached {
    /// A pass's numbers among those of all responses: 0 where nothing reads them.
    pub fn among_all(&self, output: ForwardOutput, numbers: &Tensor) -> Result<Tensor> {
        let Some(places) = &self.part else {
            return Ok(numbers.shallow_clone());
        };
        let (at, count) = match outputs::per_token(output) {
            true => (&places.tokens, places.all_tokens),
            false => (&places.responses, places.all_responses),
        };
        let zeros = Tensor::f_zeros([count], (Kind::Double, numbers.device()))?;
        Ok(zeros.f_index_copy(0, at, &numbers.f_to_kind(Kind::Double)?)?)
    }

    /// The pass's part of numbers of all responses.
    pub fn of(&self, output: ForwardOutput, numbers: &Tensor) -> Result<Tensor> {
        let Some(places) = &self.part else {
            return Ok(numbers.shallow_clone());
        };
        let at = match outputs::per_token(output) {
            true => &places.tokens,
            false => &places.responses,
        };
        Ok(numbers.f_index_select(0, at)?)
    }
}

/// What each live pass of a minibatch reads.
pub fn reached(graph: &Graph, train: &Train, env: &Env, drawn: &[Drawn]) -> Result<Vec<Reached>> {
    let metrics = train.metrics.iter().map(|m| m.expr);
    let roots: Vec<ExprRef> = std::iter::once(train.loss).chain(metrics).collect();
    let read = parts_of(graph, train, env)
        .map(|rows| demand(graph, &roots, rows, &env.shapes).map(|d| (rows, d)))
        .transpose()?;
    let of = |(forward, drawn): (&Forward, &Drawn)| match &read {
        Some((rows, read)) => {
            let axis = graph.rollout(forward.rollout).rows;
            let positions = env.shapes.positions(axis, *rows)?;
            let is_read = |row: &usize| is_read(forward, read, positions[*row]);
            let own: Vec<usize> = (0..positions.len()).filter(is_read).collect();
            part(&drawn.rows, &own, positions.len())
        }
        None => Ok(Reached {
            rows: drawn.rows.clone(),
            part: None,
        }),
    };
    train.forwards.iter().zip(drawn).map(of).collect()
}

/// Whether the loss reads no row of any live pass: all that it is over were left out.
pub fn reads_nothing(graph: &Graph, train: &Train, env: &Env) -> Result<bool> {
    let Some(rows) = parts_of(graph, train, env) else {
        return Ok(false);
    };
    let read = demand(graph, &[train.loss], rows, &env.shapes)?;
    let mut outputs = train.forwards.iter().flat_map(|f| &f.outputs);
    Ok(!outputs.any(|(_, value)| read.get(value).is_some_and(|rows| rows.contains(&true))))
}

/// The step's rows, where the program names parts of them.
fn parts_of(graph: &Graph, train: &Train, env: &Env) -> Option<AxisId> {
    let first = train.forwards.first()?;
    let rows = graph.origin(graph.rollout(first.rollout).rows);
    let is_part = |index: usize| {
        let axis = AxisId(index as u32);
        graph.origin(axis) == rows && env.shapes.part(axis).is_some()
    };
    (0..graph.axes.len()).any(is_part).then_some(rows)
}

fn is_read(forward: &Forward, read: &Demand, row: usize) -> bool {
    let outputs = forward.outputs.iter();
    let mut rows = outputs.filter_map(|(_, value)| read.get(value));
    rows.any(|rows| rows.get(row) == Some(&true))
}

/// The prompts of some of the rows, out of `count`.
fn part(rows: &Rows, own: &[usize], count: usize) -> Result<Reached> {
    if own.len() == count {
        return Ok(Reached {
            rows: rows.clone(),
            part: None,
        });
    }
    let each = rows.prompts.len() / count.max(1);
    let prompts: Vec<usize> = own.iter().flat_map(|r| r * each..(r + 1) * each).collect();
    let responses: Vec<i64> = rows.responses_of(&prompts).map(|r| r as i64).collect();
    let offsets = rows.offsets();
    let tokens: Vec<i64> = responses
        .iter()
        .flat_map(|r| offsets[*r as usize] as i64..offsets[*r as usize + 1] as i64)
        .collect();
    Ok(Reached {
        rows: rows.select(&prompts),
        part: Some(Places {
            tokens: Tensor::f_from_slice(&tokens)?,
            responses: Tensor::f_from_slice(&responses)?,
            all_tokens: rows.tokens() as i64,
            all_responses: rows.responses.len() as i64,
        }),
    })
}
