//! A mixture of experts: each token goes through the few MLPs that a router gives the highest
//! probability (Shazeer et al., 2017; Fedus et al., 2021).
//!
//! Token copies are sorted by expert, so that an expert's tokens are neighbours and each of its
//! matrices is one product.

use tch::{Kind, Tensor};

use super::activation::Gate;
use super::config::Routing;
use super::ops::{linear, linear_backward};
use super::weights::Experts;

/// Where the tokens of one layer went; a copy is a token at one of its experts.
#[derive(Debug)]
pub(super) struct Routed {
    /// The router's distribution, f32 `[tokens, experts]`.
    probabilities: Tensor,
    /// Experts of each token, `[tokens, chosen]`.
    chosen: Tensor,
    /// Their probabilities, f32 `[tokens, chosen]`.
    values: Tensor,
    /// What an expert's output is multiplied by, f32 `[tokens, chosen]`.
    shares: Tensor,
    /// Copies by expert: places in `chosen`, flat.
    order: Tensor,
    /// The token of each sorted copy.
    token: Tensor,
    /// Copies of each expert.
    counts: Vec<i64>,
    /// Widened lines of the sorted copies.
    wide: Tensor,
}

/// Routing, and what stands between an expert's matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixture<'c> {
    pub(super) routing: &'c Routing,
    pub(super) gate: Gate,
    /// Added to the gradient of every line of probabilities: [`balance_slope`] times its weight.
    pub(super) slope: Option<&'c Tensor>,
}

impl Mixture<'_> {
    /// The experts' output for `x` `[tokens, hidden]`.
    pub(super) fn forward(&self, x: &Tensor, weights: &Experts<Tensor>) -> (Tensor, Routed) {
        let logits = linear(x, &weights.router, None);
        let probabilities = logits.softmax(-1, Kind::Float);
        let (values, chosen) = probabilities.topk(self.routing.chosen as i64, -1, true, true);
        let shares = match self.routing.normalised {
            true => &values / values.sum_dim_intlist([-1i64].as_slice(), true, Kind::Float),
            false => values.shallow_clone(),
        };
        let flat = chosen.view(-1);
        let order = flat.argsort_stable(true, 0, false);
        let token = order.floor_divide_scalar(self.routing.chosen as i64);
        let counts = counts(&flat, self.routing.experts);
        let gathered = x.index_select(0, &token);
        let wide = per_expert(&gathered, &counts, &weights.wide, |rows, matrix| {
            linear(rows, matrix, None)
        });
        let inner = self.gate.forward(&wide);
        let out = per_expert(&inner, &counts, &weights.down, |rows, matrix| {
            linear(rows, matrix, None)
        });
        let share = shares.view(-1).index_select(0, &order).unsqueeze(1);
        let mut sum = Tensor::zeros(x.size(), (x.kind(), x.device()));
        let _ = sum.index_add_(0, &token, &(out * share).to_kind(x.kind()));
        let routed = Routed {
            probabilities,
            chosen,
            values,
            shares,
            order,
            token,
            counts,
            wide,
        };
        (sum, routed)
    }

    /// Adds to `grads` (f32) and returns the gradient of `x`, given that of the output.
    ///
    /// With v the chosen probabilities, s their sum and w = v/s: dv = (dw − Σ dw·w) / s.
    pub(super) fn backward(
        &self,
        x: &Tensor,
        routed: &Routed,
        weights: &Experts<Tensor>,
        grads: &mut Experts<Tensor>,
        grad: &Tensor,
    ) -> Tensor {
        let gathered = x.index_select(0, &routed.token);
        let d_out = grad.index_select(0, &routed.token);
        let share = routed
            .shares
            .view(-1)
            .index_select(0, &routed.order)
            .unsqueeze(1);
        let pulled = per_expert(&d_out, &routed.counts, &weights.down, |rows, matrix| {
            rows.mm(matrix)
        });
        let d_inner = (&pulled * &share).to_kind(x.kind());
        let (d_wide, inner) = self.gate.backward(&routed.wide, d_inner);
        let d_out = (d_out * &share).to_kind(x.kind());
        add_products(&inner, &d_out, &routed.counts, &mut grads.down);
        add_products(&gathered, &d_wide, &routed.counts, &mut grads.wide);
        let d_copies = per_expert(&d_wide, &routed.counts, &weights.wide, |rows, matrix| {
            rows.mm(matrix)
        });
        let mut d_x = Tensor::zeros(x.size(), (x.kind(), x.device()));
        let _ = d_x.index_add_(0, &routed.token, &d_copies);

        let d_share = (pulled.to_kind(Kind::Float) * inner.to_kind(Kind::Float)).sum_dim_intlist(
            [1i64].as_slice(),
            false,
            Kind::Float,
        );
        let mut d_shares = Tensor::zeros([d_share.size()[0]], (Kind::Float, x.device()));
        let _ = d_shares.index_copy_(0, &routed.order, &d_share);
        let d_shares = d_shares.view_as(&routed.shares);
        let d_values = match self.routing.normalised {
            false => d_shares,
            true => {
                let sum = |t: &Tensor| t.sum_dim_intlist([-1i64].as_slice(), true, Kind::Float);
                let along = sum(&(&d_shares * &routed.shares));
                (d_shares - along) / sum(&routed.values)
            }
        };
        let mut d_probabilities = routed.probabilities.zeros_like();
        let _ = d_probabilities.scatter_add_(1, &routed.chosen, &d_values);
        if let Some(slope) = self.slope {
            d_probabilities += slope;
        }
        let d_logits = Tensor::internal_softmax_backward_data(
            &d_probabilities,
            &routed.probabilities,
            -1,
            Kind::Float,
        )
        .to_kind(x.kind());
        linear_backward(x, &d_logits, &mut grads.router, None);
        d_x + d_logits.mm(&weights.router)
    }
}

/// The load-balancing loss of Fedus et al. (2021, eq. 4–6) as transformers takes it over all layers:
/// experts · Σ_e f_e · P_e with f_e the copies an expert gets and P_e the probability it is given, both
/// for each token and layer. Its least value is the number of experts chosen for a token.
pub(super) fn balance(layers: &[&Routed]) -> f64 {
    let Some(slope) = balance_slope(layers) else {
        return 0.0;
    };
    let sums = layers.iter().map(|routed| {
        let given = &routed.probabilities * &slope;
        given.sum(Kind::Double).double_value(&[])
    });
    sums.sum()
}

/// The gradient of [`balance`] with respect to any line of probabilities, f32 `[experts]`. The copies
/// are counted, which has no gradient.
pub(super) fn balance_slope(layers: &[&Routed]) -> Option<Tensor> {
    let first = layers.first()?;
    let experts = first.counts.len();
    let lines = layers.len() as f64 * first.probabilities.size()[0] as f64;
    let slope = (0..experts).map(|e| {
        let copies: i64 = layers.iter().map(|routed| routed.counts[e]).sum();
        (experts as f64 * copies as f64 / (lines * lines)) as f32
    });
    Some(Tensor::from_slice(&slope.collect::<Vec<f32>>()))
}

fn counts(chosen: &Tensor, experts: usize) -> Vec<i64> {
    let counted = chosen.bincount(None::<Tensor>, experts as i64);
    (0..experts as i64)
        .map(|e| counted.int64_value(&[e]))
        .collect()
}

/// The part of a stacked matrix `[experts · rows, columns]` that is expert `e`'s.
fn expert(stacked: &Tensor, experts: usize, e: usize) -> Tensor {
    let rows = stacked.size()[0] / experts as i64;
    stacked.narrow(0, e as i64 * rows, rows)
}

/// `(expert, first copy, copies)` of the experts that have any.
fn used(counts: &[i64]) -> impl Iterator<Item = (usize, i64, i64)> {
    let mut first = 0;
    counts.iter().enumerate().filter_map(move |(e, &count)| {
        let from = first;
        first += count;
        (count > 0).then_some((e, from, count))
    })
}

/// Each expert's `product` of its copies and its matrix, one after another.
fn per_expert(
    copies: &Tensor,
    counts: &[i64],
    stacked: &Tensor,
    product: impl Fn(&Tensor, &Tensor) -> Tensor,
) -> Tensor {
    let parts: Vec<Tensor> = used(counts)
        .map(|(e, from, count)| {
            let matrix = expert(stacked, counts.len(), e);
            product(&copies.narrow(0, from, count), &matrix)
        })
        .collect();
    Tensor::cat(&parts, 0)
}

fn add_products(x: &Tensor, grad: &Tensor, counts: &[i64], d_stacked: &mut Tensor) {
    for (e, from, count) in used(counts) {
        let part = |t: &Tensor| t.narrow(0, from, count);
        let mut d_matrix = expert(d_stacked, counts.len(), e);
        linear_backward(&part(x), &part(grad), &mut d_matrix, None);
    }
}
