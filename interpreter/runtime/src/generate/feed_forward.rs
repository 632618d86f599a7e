//! The second half of a layer, on panels of rows: an MLP, or the experts that each row is sent to.

use rlhf_kernels::gate::Activation;
use rlhf_kernels::linear::{accumulate, activated, gated, project};
use rlhf_kernels::panel::Panels;
use tch::Tensor;

use super::weights::Affine;
use crate::fault::Result;
use crate::model::activation::Gate;
use crate::model::config::{Config, Routing};
use crate::model::weights::Mlp;

/// An MLP's weights, and its activations of one step.
pub(super) enum FeedForward<'m> {
    Dense(Dense<'m>),
    Experts(Box<Experts<'m>>),
}

pub(super) struct Dense<'m> {
    gate: Gate,
    activation: Activation,
    wide: Affine<'m>,
    down: Affine<'m>,
    inner: Panels,
}

pub(super) struct Experts<'m> {
    routing: Routing,
    activation: Activation,
    router: Affine<'m>,
    wide: Affine<'m>,
    down: Affine<'m>,
    logits: Panels,
    inner: Panels,
    out: Panels,
}

impl<'m> FeedForward<'m> {
    pub(super) fn new(
        config: &Config,
        activation: Activation,
        weights: &'m Mlp<Tensor>,
    ) -> Result<Self> {
        Ok(match (weights, &config.routing) {
            (Mlp::Experts(experts), Some(routing)) => FeedForward::Experts(Box::new(Experts {
                routing: routing.clone(),
                activation,
                router: Affine::new(&experts.router, &None)?,
                wide: Affine::new(&experts.wide, &None)?,
                down: Affine::new(&experts.down, &None)?,
                logits: Panels::new(routing.experts),
                inner: Panels::new(routing.width),
                out: Panels::new(config.hidden),
            })),
            (Mlp::Dense(dense), _) => FeedForward::Dense(Dense {
                gate: config.gate,
                activation,
                wide: Affine::new(&dense.wide, &dense.wide_bias)?,
                down: Affine::new(&dense.down, &dense.down_bias)?,
                inner: Panels::new(config.intermediate),
            }),
            // A layer has experts only where the model has a routing.
            (Mlp::Experts(_), None) => unreachable!("experts without a routing"),
        })
    }

    /// Adds the output for `x` to `sum`.
    pub(super) fn add(&mut self, x: &Panels, sum: &mut Panels) {
        match self {
            FeedForward::Dense(dense) => dense.add(x, sum),
            FeedForward::Experts(experts) => experts.add(x, sum),
        }
    }
}

impl Dense<'_> {
    fn add(&mut self, x: &Panels, sum: &mut Panels) {
        match self.gate {
            Gate::Gated(_) => {
                let width = self.wide.rows() / 2;
                let (gate, up) = (self.wide.part(0, width), self.wide.part(width, width));
                gated(x, self.activation, &gate, &up, &mut self.inner);
            }
            Gate::Plain(_) => activated(x, self.activation, &self.wide.linear(), &mut self.inner),
        }
        accumulate(&self.inner, &self.down.linear(), sum);
    }
}

impl Experts<'_> {
    /// Rows are sorted by expert, and a row's experts add in the order of their numbers whatever the rows
    /// beside it are.
    fn add(&mut self, x: &Panels, sum: &mut Panels) {
        project(x, &[self.router.linear()], &mut self.logits);
        let mut sent = vec![Vec::new(); self.routing.experts];
        for r in 0..x.rows() {
            let logits: Vec<f32> = self.logits.row(r).collect();
            for (expert, share) in chosen(&self.routing, &logits) {
                sent[expert].push((r, share));
            }
        }
        let (width, hidden) = (self.routing.width, sum.features());
        for (e, rows) in sent.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let numbers: Vec<usize> = rows.iter().map(|(r, _)| *r).collect();
            let gathered = x.gather(&numbers);
            let gate = self.wide.part(2 * e * width, width);
            let up = self.wide.part((2 * e + 1) * width, width);
            gated(&gathered, self.activation, &gate, &up, &mut self.inner);
            let down = self.down.part(e * hidden, hidden);
            project(&self.inner, &[down], &mut self.out);
            for (i, &(r, share)) in rows.iter().enumerate() {
                sum.add_row(r, &self.out, i, share);
            }
        }
    }
}

/// The experts of a row with their shares.
fn chosen(routing: &Routing, logits: &[f32]) -> Vec<(usize, f32)> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits.iter().map(|l| (l - top).exp()).collect();
    let all: f32 = weights.iter().sum();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    order.truncate(routing.chosen);
    let among: f32 = match routing.normalised {
        true => order.iter().map(|&e| weights[e]).sum(),
        false => all,
    };
    order.iter().map(|&e| (e, weights[e] / among)).collect()
}
