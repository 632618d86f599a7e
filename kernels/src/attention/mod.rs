//! Causal attention of new positions over cached keys and values.
//!
//! A position may attend to two spans: the prompt's, which all samples of a group share, and its own. Prefill is the
//! same operation with the prompt as the position's own span.

mod cache;

use crate::linear::tile::{self, FULL, Half};
use crate::math::exp;
use crate::panel::{LANES, Lanes, Panels};
use crate::parallel::{Shared, for_each};
use crate::rotary::Rotary;
use crate::simd::dispatch;

pub use cache::{Cache, Shape};

/// The first positions of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Slot of the cache.
    pub slot: usize,
    /// Positions, at least 1.
    pub len: usize,
}

/// Where one new position stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position in the sequence, which its rotation depends on.
    pub position: usize,
    /// What comes before its own span.
    pub context: Option<Span>,
    /// Its own span, ending in itself.
    pub own: Span,
}

/// What is done with the products of queries and keys before the softmax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// Factor of the products.
    pub scale: f32,
    /// The bound c of the scaled products x, which become c · tanh(x / c).
    pub cap: Option<f32>,
    /// Positions that one sees at most, itself among them; all where there is none.
    pub window: Option<usize>,
}

impl Scores {
    /// Products over the root of the head's width.
    pub fn plain(dim: usize) -> Self {
        Scores {
            scale: 1.0 / (dim as f32).sqrt(),
            cap: None,
            window: None,
        }
    }
}

/// The part of a span that is seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    slot: usize,
    /// The first position that is computed: a multiple of sixteen.
    start: usize,
    /// Of those computed, how many the window hides.
    hidden: usize,
    /// Positions that are computed.
    len: usize,
}

impl Seen {
    /// The span without its first `outside` positions.
    fn of(span: Span, outside: usize) -> Option<Seen> {
        let start = outside / LANES * LANES;
        (outside < span.len).then(|| Seen {
            slot: span.slot,
            start,
            hidden: outside - start,
            len: span.len - start,
        })
    }

    /// What a place sees of its context and of its own span.
    fn by(place: &Place, window: Option<usize>) -> impl Iterator<Item = Seen> + Clone {
        let before = place.context.map_or(0, |c| c.len);
        let total = before + place.own.len;
        let outside = window.map_or(0, |w| total.saturating_sub(w));
        let context = place.context.and_then(|c| Seen::of(c, outside));
        let own = Seen::of(place.own, outside.saturating_sub(before));
        context.into_iter().chain(own)
    }
}

/// Rotates queries and keys, caches keys and values, and leaves the queries row-major in `queries`.
///
/// `qkv` holds a row for each place: queries, keys and values of one layer. No two places end their own span at the
/// same position of one slot.
pub fn store(
    cache: &mut Cache,
    layer: usize,
    qkv: &Panels,
    places: &[Place],
    rotary: Option<&Rotary>,
    queries: &mut Vec<f32>,
) {
    let Shape {
        heads,
        kv_heads,
        dim,
        ..
    } = cache.shape;
    let width = heads * dim;
    assert_eq!(qkv.rows(), places.len(), "a row for each place");
    assert_eq!(
        qkv.features(),
        width + 2 * kv_heads * dim,
        "queries, keys and values"
    );
    assert!(
        rotary.is_none_or(|rotary| rotary.dim() <= dim),
        "elements of a head"
    );
    queries.resize(places.len() * width, 0.0);
    let queries = Shared::new(queries);
    let spans = |place: &Place, head| {
        let Span { slot, len } = place.own;
        assert!(
            (1..=cache.slots[slot].capacity).contains(&len),
            "a position within the slot"
        );
        (
            cache.key_span(slot, layer, head),
            cache.value_span(slot, layer, head),
        )
    };
    let located: Vec<_> = places
        .iter()
        .map(|place| (0..kv_heads).map(|h| spans(place, h)).collect::<Vec<_>>())
        .collect();
    let capacities: Vec<usize> = places
        .iter()
        .map(|p| cache.slots[p.own.slot].capacity)
        .collect();
    let keys = Shared::new(floats(&mut cache.keys));
    let values = Shared::new(floats(&mut cache.values));
    for_each(qkv.panels(), |p| {
        let mut row = vec![0f32; qkv.features()];
        for r in p * LANES..p * LANES + qkv.live(p) {
            let place = &places[r];
            row.iter_mut().zip(qkv.row(r)).for_each(|(to, x)| *to = x);
            let (q, kv) = row.split_at_mut(width);
            let (k, v) = kv.split_at_mut(kv_heads * dim);
            if let Some(rotary) = rotary {
                rotary.rotate(place.position, dim, q);
                rotary.rotate(place.position, dim, k);
            }
            // SAFETY: a row's queries are its own.
            unsafe { queries.slice(r * width, width) }.copy_from_slice(q);
            let at = place.own.len - 1;
            for (h, ((key, _), (value, _))) in located[r].iter().enumerate() {
                for i in 0..dim {
                    let key = (key + at / LANES * dim + i) * LANES + at % LANES;
                    let value = (value + i / LANES * capacities[r] + at) * LANES + i % LANES;
                    // SAFETY: no other place ends at this position, so these elements are this row's alone.
                    unsafe {
                        keys.write(key, k[h * dim + i]);
                        values.write(value, v[h * dim + i]);
                    }
                }
            }
        }
    });
}

fn floats(lanes: &mut [Lanes]) -> &mut [f32] {
    // SAFETY: `Lanes` is `repr(C)` with sixteen f32 and no padding.
    unsafe { std::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * LANES) }
}

/// `softmax(q kᵀ · scale) v` for every place: `queries` as [`store`] left them, `out` `[places, heads · dim]`.
pub fn attend(
    cache: &Cache,
    layer: usize,
    queries: &[f32],
    places: &[Place],
    rule: &Scores,
    out: &mut Panels,
) {
    let Shape {
        heads,
        kv_heads,
        dim,
        ..
    } = cache.shape;
    let width = heads * dim;
    let shared = cache.shape.shared();
    assert_eq!(queries.len(), places.len() * width, "queries of each place");
    assert_eq!(out.features(), width, "the output's features");
    out.resize(places.len());
    let floats = Shared::new(out.floats_mut());
    // One item for a panel of rows and a head: rows of a group read the same prompt, and items write different lines.
    for_each(places.len().div_ceil(LANES) * kv_heads, |item| {
        let (p, head) = (item / kv_heads, item % kv_heads);
        let mut work = Work::new(shared, dim);
        let rows = places.iter().enumerate().skip(p * LANES).take(LANES);
        for (r, place) in rows {
            let first = r * width + head * shared * dim;
            let spans = Seen::by(place, rule.window);
            let q = &queries[first..first + shared * dim];
            work.attend(cache, layer, head, q, rule, spans);
            for (i, &value) in work.result.iter().enumerate() {
                let at = Panels::index(width, r, head * shared * dim + i);
                // SAFETY: a row's features of a head are this item's alone.
                unsafe { floats.write(at, value) };
            }
        }
    });
}

/// One thread's buffers.
struct Work {
    shared: usize,
    dim: usize,
    /// Scores of the spans one after another, each `[shared, len]`.
    scores: Vec<f32>,
    tiles: Vec<Lanes>,
    /// `[shared, dim]`.
    result: Vec<f32>,
}

impl Work {
    fn new(shared: usize, dim: usize) -> Self {
        Work {
            shared,
            dim,
            scores: Vec::new(),
            tiles: vec![Lanes::ZERO; shared],
            result: vec![0.0; shared * dim],
        }
    }

    /// The query heads `q`, `[shared, dim]`, over the spans.
    fn attend(
        &mut self,
        cache: &Cache,
        layer: usize,
        head: usize,
        q: &[f32],
        rule: &Scores,
        spans: impl Iterator<Item = Seen> + Clone,
    ) {
        let (shared, dim) = (self.shared, self.dim);
        let total: usize = spans.clone().map(|s| s.len).sum();
        self.scores.resize(shared * total, 0.0);
        let mut at = 0;
        for Seen {
            slot,
            start,
            hidden,
            len,
        } in spans.clone()
        {
            let (first, size) = cache.key_span(slot, layer, head);
            let keys = &cache.keys[first + start / LANES * dim..first + size];
            let scores = &mut self.scores[at..at + shared * len];
            for (b, block) in keys.chunks_exact(dim).take(len.div_ceil(LANES)).enumerate() {
                rows(block, q, &mut self.tiles);
                let live = LANES.min(len - b * LANES);
                for (scores, tile) in scores.chunks_exact_mut(len).zip(&self.tiles) {
                    scores[b * LANES..b * LANES + live].copy_from_slice(&tile.0[..live]);
                }
            }
            let bend = |s: &mut f32, cap: f32| *s = cap * (*s * (rule.scale / cap)).tanh();
            for scores in scores.chunks_exact_mut(len) {
                if let Some(cap) = rule.cap {
                    scores.iter_mut().for_each(|s| bend(s, cap));
                }
                scores[..hidden].fill(f32::NEG_INFINITY);
            }
            at += shared * len;
        }

        // Bent products are scaled already.
        let scale = rule.cap.map_or(rule.scale, |_| 1.0);
        let mut norms = vec![0f32; shared];
        for (h, norm) in norms.iter_mut().enumerate() {
            let mut top = f32::NEG_INFINITY;
            each_span(&mut self.scores, shared, spans.clone(), h, |scores| {
                top = scores.iter().fold(top, |top, &s| top.max(s));
            });
            each_span(&mut self.scores, shared, spans.clone(), h, |scores| {
                *norm += exponentials(scores, scale, top);
            });
        }

        self.result.fill(0.0);
        at = 0;
        for Seen {
            slot, start, len, ..
        } in spans
        {
            let (first, size) = cache.value_span(slot, layer, head);
            let values = &cache.values[first..first + size];
            let weights = &self.scores[at..at + shared * len];
            for (b, block) in values.chunks_exact(cache.slots[slot].capacity).enumerate() {
                rows(&block[start..start + len], weights, &mut self.tiles);
                let live = LANES.min(dim - b * LANES);
                for (result, tile) in self.result.chunks_exact_mut(dim).zip(&self.tiles) {
                    for (r, t) in result[b * LANES..b * LANES + live].iter_mut().zip(tile.0) {
                        *r += t;
                    }
                }
            }
            at += shared * len;
        }
        for (result, norm) in self.result.chunks_exact_mut(dim).zip(&norms) {
            result.iter_mut().for_each(|r| *r /= norm);
        }
    }
}

/// `out[n] = Σ_k w[n][k] · x[k]` for all of `out`.
fn rows(x: &[Lanes], w: &[f32], out: &mut [Lanes]) {
    for (i, out) in out.chunks_mut(FULL).enumerate() {
        tile::compute(x, w, i * FULL, Half::No, out);
    }
}

/// Runs `each` on the scores of query head `h` in every span.
fn each_span(
    scores: &mut [f32],
    shared: usize,
    spans: impl Iterator<Item = Seen>,
    h: usize,
    mut each: impl FnMut(&mut [f32]),
) {
    let mut at = 0;
    for Seen { len, .. } in spans {
        each(&mut scores[at + h * len..at + (h + 1) * len]);
        at += shared * len;
    }
}

dispatch! {
    /// `scores = exp((scores − top) · scale)`; returns their sum.
    fn exponentials(scores: &mut [f32], scale: f32, top: f32) -> f32 = exponentials_body
}

#[inline(always)]
fn exponentials_body<const FMA: bool>(scores: &mut [f32], scale: f32, top: f32) -> f32 {
    let mut sums = [0f32; LANES];
    let mut chunks = scores.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (s, sum) in chunk.iter_mut().zip(&mut sums) {
            *s = exp::<FMA>((*s - top) * scale);
            *sum += *s;
        }
    }
    for (s, sum) in chunks.into_remainder().iter_mut().zip(&mut sums) {
        *s = exp::<FMA>((*s - top) * scale);
        *sum += *s;
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests;
