//! Drawing a token from a row of logits.
//!
//! The order of filters is Hugging Face's: banned tokens, temperature, top-k, top-p. The draw is the inverse of the
//! cumulative distribution in vocabulary order, accumulated in f64, at one uniform number.

use crate::math::exp;
use crate::simd::dispatch;
use rayon::prelude::*;

/// How a token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Divides the logits; 0 takes the first of the largest logits.
    pub temperature: f64,
    /// Keeps only the `k` likeliest tokens; of equal ones, the first.
    pub top_k: Option<usize>,
    /// Keeps only the fewest likeliest tokens whose probability sums to at least `p`.
    pub top_p: Option<f64>,
}

/// A chosen token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Its id.
    pub token: u32,
    /// Its log-probability under the softmax of all logits over the temperature, whatever was banned or filtered;
    /// at temperature 1 when the temperature is 0.
    pub logp: f32,
}

/// Why no token can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This token's logit is NaN or +∞, so there is no distribution.
    NotFinite {
        /// Its id.
        token: u32,
    },
    /// Every token is banned or has logit −∞.
    NothingLeft,
}

/// Tokens in one block of partial sums.
const BLOCK: usize = 256;

/// Buffers of a thread that samples, so that a draw allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// `exp((logit − largest) / temperature)`, 0 where banned or filtered.
    weights: Vec<f32>,
    /// Sums of `weights` by block.
    sums: Vec<f64>,
    order: Vec<u32>,
}

/// Chooses a token from `logits`, `[vocabulary]`; −∞ is a probability of 0. `u` is uniform in [0, 1).
pub fn sample(
    logits: &[f32],
    rule: &Rule,
    banned: &[u32],
    u: f64,
    scratch: &mut Scratch,
) -> Result<Draw, Fault> {
    let top = largest(logits);
    if !top.is_finite() {
        return Err(diagnose(logits));
    }
    let greedy = rule.temperature <= 0.0;
    let temperature = if greedy { 1.0 } else { rule.temperature };
    scratch.fill(logits, top, (1.0 / temperature) as f32);
    let total: f64 = scratch.sums.iter().sum();
    let token = if greedy {
        first_largest(logits, banned)?
    } else {
        scratch.exclude(banned);
        scratch.keep(rule.top_k, rule.top_p);
        scratch.invert(u)?
    };
    let logp = f64::from(logits[token as usize] - top) / temperature - total.ln();
    Ok(Draw {
        token,
        logp: logp as f32,
    })
}

/// One draw of [`sample_rows`].
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Row of the logits.
    pub row: usize,
    /// Tokens that may not be drawn.
    pub banned: &'a [u32],
    /// Uniform in [0, 1).
    pub u: f64,
}

/// Draws from rows of `logits`, `[rows, vocabulary]`, in parallel.
pub fn sample_rows(
    logits: &[f32],
    vocabulary: usize,
    rule: &Rule,
    requests: &[Request],
) -> Vec<Result<Draw, Fault>> {
    let draws = requests
        .par_iter()
        .map_init(Scratch::default, |scratch, r| {
            let row = &logits[r.row * vocabulary..(r.row + 1) * vocabulary];
            sample(row, rule, r.banned, r.u, scratch)
        });
    draws.collect()
}

/// The largest logit, or NaN if any is NaN.
fn largest(logits: &[f32]) -> f32 {
    let (top, nan) = extremes(logits);
    if nan { f32::NAN } else { top }
}

dispatch! {
    /// The largest number, and whether any is NaN.
    fn extremes(logits: &[f32]) -> (f32, bool) = extremes_body
}

#[inline(always)]
fn extremes_body<const FMA: bool>(logits: &[f32]) -> (f32, bool) {
    let mut tops = [f32::NEG_INFINITY; 32];
    let mut nans = [0u32; 32];
    let mut chunks = logits.chunks_exact(32);
    for chunk in &mut chunks {
        for ((top, nan), &x) in tops.iter_mut().zip(&mut nans).zip(chunk) {
            *top = if x > *top { x } else { *top };
            *nan |= u32::from(x.is_nan());
        }
    }
    let rest = chunks.remainder();
    let top = tops
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let nan = nans.iter().any(|&n| n != 0) || rest.iter().any(|x| x.is_nan());
    (top, nan)
}

/// What is wrong with a row whose largest logit is not finite.
fn diagnose(logits: &[f32]) -> Fault {
    let bad = |x: &f32| x.is_nan() || *x == f32::INFINITY;
    match logits.iter().position(bad) {
        Some(token) => Fault::NotFinite {
            token: token as u32,
        },
        None => Fault::NothingLeft,
    }
}

fn first_largest(logits: &[f32], banned: &[u32]) -> Result<u32, Fault> {
    let mut best = None;
    let mut top = f32::NEG_INFINITY;
    for (token, &x) in logits.iter().enumerate() {
        if x > top && !banned.contains(&(token as u32)) {
            (best, top) = (Some(token as u32), x);
        }
    }
    best.ok_or(Fault::NothingLeft)
}

dispatch! {
    /// `weights = exp((logits − top) · scale)`; `sums` are theirs by block.
    fn exponentials(logits: &[f32], top: f32, scale: f32, weights: &mut [f32], sums: &mut [f64]) = exponentials_body
}

#[inline(always)]
fn exponentials_body<const FMA: bool>(
    logits: &[f32],
    top: f32,
    scale: f32,
    weights: &mut [f32],
    sums: &mut [f64],
) {
    let blocks = logits.chunks(BLOCK).zip(weights.chunks_mut(BLOCK));
    for ((logits, weights), sum) in blocks.zip(sums) {
        for (w, x) in weights.iter_mut().zip(logits) {
            *w = exp::<FMA>((x - top) * scale);
        }
        *sum = block_sum(weights);
    }
}

#[inline(always)]
fn block_sum(weights: &[f32]) -> f64 {
    let mut parts = [0f64; 8];
    let mut chunks = weights.chunks_exact(8);
    for chunk in &mut chunks {
        for (part, &w) in parts.iter_mut().zip(chunk) {
            *part += f64::from(w);
        }
    }
    let rest: f64 = chunks.remainder().iter().map(|&w| f64::from(w)).sum();
    parts.iter().sum::<f64>() + rest
}

impl Scratch {
    fn fill(&mut self, logits: &[f32], top: f32, scale: f32) {
        self.weights.resize(logits.len(), 0.0);
        self.sums.resize(logits.len().div_ceil(BLOCK), 0.0);
        exponentials(logits, top, scale, &mut self.weights, &mut self.sums);
    }

    fn exclude(&mut self, banned: &[u32]) {
        for &token in banned {
            if let Some(weight) = self.weights.get_mut(token as usize) {
                *weight = 0.0;
                self.sum_again(token as usize / BLOCK);
            }
        }
    }

    fn sum_again(&mut self, block: usize) {
        let end = self.weights.len().min((block + 1) * BLOCK);
        self.sums[block] = block_sum(&self.weights[block * BLOCK..end]);
    }

    /// Zeroes the weights that top-k and top-p leave out.
    fn keep(&mut self, top_k: Option<usize>, top_p: Option<f64>) {
        let top_k = top_k.filter(|&k| k < self.weights.len());
        let top_p = top_p.filter(|&p| p < 1.0);
        if top_k.is_none() && top_p.is_none() {
            return;
        }
        let total: f64 = self.sums.iter().sum();
        // Tokens below this weight have less than 1 − p together: they are outside the kept set. With top-k the
        // total shrinks by an unknown amount, so all are candidates.
        let least = match (top_k, top_p) {
            (None, Some(p)) => (1.0 - p) * total / self.weights.len() as f64,
            _ => 0.0,
        };
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let candidates = self.weights.iter().enumerate();
        order.extend(
            candidates
                .filter(|&(_, &w)| w > 0.0 && f64::from(w) >= least)
                .map(|(token, _)| token as u32),
        );
        let weight = |token: &u32| self.weights[*token as usize];
        let heavier = |a: &u32, b: &u32| weight(b).total_cmp(&weight(a)).then(a.cmp(b));
        if let Some(k) = top_k.filter(|&k| k < order.len()) {
            if k > 0 {
                order.select_nth_unstable_by(k - 1, heavier);
            }
            order.truncate(k.max(1));
        }
        if let Some(p) = top_p {
            order.sort_unstable_by(heavier);
            let mass = match top_k {
                Some(_) => order.iter().map(|t| f64::from(weight(t))).sum(),
                None => total,
            };
            let mut sum = 0.0;
            let reached = order.iter().position(|t| {
                sum += f64::from(weight(t));
                sum >= p * mass
            });
            order.truncate(reached.map_or(order.len(), |i| i + 1));
        }
        let kept: Vec<f32> = order.iter().map(weight).collect();
        self.weights.fill(0.0);
        self.sums.fill(0.0);
        for (&token, w) in order.iter().zip(kept) {
            self.weights[token as usize] = w;
        }
        for &token in &order {
            self.sum_again(token as usize / BLOCK);
        }
        self.order = order;
    }

    /// The first token at which the cumulative weight passes `u` of the total.
    fn invert(&self, u: f64) -> Result<u32, Fault> {
        let total: f64 = self.sums.iter().sum();
        let target = u * total;
        let mut sum = 0.0;
        for (block, &next) in self.sums.iter().enumerate() {
            if next > 0.0 && sum + next > target {
                let first = block * BLOCK;
                let end = self.weights.len().min(first + BLOCK);
                let mut last = None;
                for (token, &w) in (first..end).zip(&self.weights[first..end]) {
                    if w > 0.0 {
                        sum += f64::from(w);
                        last = Some(token as u32);
                        if sum > target {
                            break;
                        }
                    }
                }
                // Rounding may leave the running sum just below the block's: then it is the block's last token.
                return last.ok_or(Fault::NothingLeft);
            }
            sum += next;
        }
        let last = self.weights.iter().rposition(|&w| w > 0.0);
        last.map(|token| token as u32).ok_or(Fault::NothingLeft)
    }
}

#[cfg(test)]
mod tests;
