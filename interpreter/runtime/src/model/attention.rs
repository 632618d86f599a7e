//! Tree attention over packed lines: a prompt attends to itself, a response to its prompt and itself.
//!
//! Queries are gathered into [`Block`]s of equal length, each with the keys it may see; query heads
//! that share a key head become further queries of it, so keys are never repeated. Padding exists only
//! here, where responses of unlike length share a block.

use tch::{Device, Kind, Tensor};

use super::config::Config;
use super::pack::{Span, Tree};

/// Most queries of one block along the sequence: bounds the scores of a long response.
const QUERIES: i64 = 256;
/// Most scores of one block over all heads.
const SCORES: i64 = 1 << 23;
/// Longest key range for which probabilities are kept for the backward pass; beyond it they are
/// computed again, since they would outgrow the other activations.
const KEPT_KEYS: i64 = 512;

/// Head counts and widths, and what is done with the products of queries and keys.
#[derive(Clone, Copy, Debug)]
struct Heads {
    /// Key and value heads.
    keys: i64,
    /// Query heads for each key head.
    share: i64,
    width: i64,
    /// Factor of the products.
    scale: f64,
    /// The bound c of the scaled products x, which become c · tanh(x / c).
    cap: Option<f64>,
    /// Keys a query sees at most, its own among them.
    window: i64,
}

/// The attention of one packed batch; serves every layer.
#[derive(Debug)]
pub struct Attention {
    blocks: Vec<Block>,
    heads: Heads,
}

/// Attention probabilities kept for the backward pass, one entry a block.
#[derive(Debug, Default)]
pub struct Kept(Vec<Option<Tensor>>);

/// `count` query ranges of `queries` lines, each seeing `keys` lines.
#[derive(Debug)]
struct Block {
    count: i64,
    queries: i64,
    keys: i64,
    /// Packed lines of the queries, `[count · queries]`; a padded one names line 0.
    from: Tensor,
    /// Packed lines of the keys, `[count · keys]`.
    to: Tensor,
    /// Where in `from` padding stands and where it does not; none when there is no padding.
    padding: Option<Padding>,
    /// 0 where a query may look and −∞ elsewhere, `[share · queries, keys]`.
    mask: Tensor,
}

#[derive(Debug)]
struct Padding {
    padded: Tensor,
    real: Tensor,
    /// Packed lines of the real queries.
    lines: Tensor,
}

impl Attention {
    /// Plans the attention of these trees in layers with this window.
    pub fn new(config: &Config, window: Option<usize>, trees: &[Tree]) -> Attention {
        let heads = Heads {
            keys: config.kv_heads as i64,
            share: (config.heads / config.kv_heads) as i64,
            width: config.head_dim as i64,
            scale: config.query_scale,
            cap: config.attention_cap,
            window: window.map_or(i64::MAX, |w| w as i64),
        };
        let none = Span { start: 0, len: 0 };
        let mut blocks = Vec::new();
        for tree in trees {
            plan(&mut blocks, heads, none, std::slice::from_ref(&tree.trunk));
            plan(&mut blocks, heads, tree.trunk, &tree.branches);
        }
        Attention { blocks, heads }
    }

    /// Attention output `[packed, heads · width]` from the fused projections `qkv`
    /// `[packed, (heads + 2 · kv_heads) · width]`, positions already applied.
    pub fn forward(&self, qkv: &Tensor) -> Tensor {
        self.run(qkv, |_, _| ())
    }

    /// The same, keeping what the backward pass would otherwise compute again.
    pub fn forward_kept(&self, qkv: &Tensor) -> (Tensor, Kept) {
        let mut kept = Vec::with_capacity(self.blocks.len());
        let out = self.run(qkv, |block, probabilities| {
            kept.push((block.keys <= KEPT_KEYS).then_some(probabilities));
        });
        (out, Kept(kept))
    }

    fn run(&self, qkv: &Tensor, mut keep: impl FnMut(&Block, Tensor)) -> Tensor {
        let heads = self.heads;
        let mut out = Tensor::empty([qkv.size()[0], heads.query_width()], like(qkv));
        for block in &self.blocks {
            let (q, k, v) = block.gather(heads, qkv);
            let probabilities = block.probabilities(heads, &q, &k);
            let mixed = block
                .lines(heads, &probabilities.bmm(&v))
                .to_kind(qkv.kind());
            block.scatter(&mut out, &mixed);
            keep(block, probabilities);
        }
        out
    }

    /// Gradient with respect to `qkv`, given that of the output.
    pub fn backward(&self, qkv: &Tensor, kept: &Kept, grad: &Tensor) -> Tensor {
        let heads = self.heads;
        let split = heads.query_width();
        let d_qkv = Tensor::zeros(qkv.size(), like(qkv));
        let mut d_q = d_qkv.narrow(1, 0, split);
        let mut d_kv = d_qkv.narrow(1, split, d_qkv.size()[1] - split);
        for (block, kept) in self.blocks.iter().zip(&kept.0) {
            let (q, k, v) = block.gather(heads, qkv);
            let probabilities = match kept {
                Some(p) => p.shallow_clone(),
                None => block.probabilities(heads, &q, &k),
            };
            let d_out = block.gather_grad(heads, grad);
            let d_v = probabilities.transpose(-2, -1).bmm(&d_out);
            let d_p = d_out.bmm(&v.transpose(-2, -1));
            let d_s = Tensor::internal_softmax_backward_data(&d_p, &probabilities, -1, Kind::Float);
            let d_s = match heads.cap {
                None => d_s * heads.scale,
                Some(cap) => {
                    let bent = block.bent(heads, cap, &q, &k);
                    d_s * (1.0 - bent.square()) * heads.scale
                }
            };
            let d_k = d_s.transpose(-2, -1).bmm(&q);
            let d_queries = block.lines(heads, &d_s.bmm(&k)).to_kind(qkv.kind());
            block.scatter(&mut d_q, &d_queries);
            let pair = Tensor::cat(&[block.keyed(heads, &d_k), block.keyed(heads, &d_v)], 1);
            let _ = d_kv.index_add_(0, &block.to, &pair.to_kind(qkv.kind()));
        }
        d_qkv
    }
}

impl Heads {
    fn query_width(self) -> i64 {
        self.keys * self.share * self.width
    }
}

fn like(tensor: &Tensor) -> (Kind, Device) {
    (tensor.kind(), tensor.device())
}

/// Adds the blocks of spans that each see `before` and themselves.
fn plan(blocks: &mut Vec<Block>, heads: Heads, before: Span, spans: &[Span]) {
    let mut short: Vec<Span> = Vec::new();
    for &span in spans {
        match span.len {
            0 => {}
            len if len <= QUERIES => short.push(span),
            len => (0..len).step_by(QUERIES as usize).for_each(|at| {
                let end = len.min(at + QUERIES);
                blocks.push(Block::new(heads, before, &[span], at, end - at));
            }),
        }
    }
    short.sort_by_key(|s| std::cmp::Reverse(s.len));
    while let Some(first) = short.first() {
        let longest = first.len;
        let scores = heads.keys * heads.share * longest * (before.len + longest);
        let room = (SCORES / scores).max(1) as usize;
        // Unlike lengths share a block while at most a quarter of it is padding.
        let alike = short
            .iter()
            .take_while(|s| 4 * s.len >= 3 * longest)
            .count();
        let rest = short.split_off(alike.min(room));
        blocks.push(Block::new(heads, before, &short, 0, longest));
        short = rest;
    }
}

impl Block {
    /// Queries `at..at + queries` of each span, seeing `before` and the span up to themselves.
    fn new(heads: Heads, before: Span, spans: &[Span], at: i64, queries: i64) -> Block {
        let mut from = Vec::new();
        let mut to = Vec::new();
        // Keys that the window hides even from the first query.
        let unseen = (before.len + at + 1 - heads.window).max(0);
        let (mut padded, mut real, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for span in spans {
            let line = |i: i64| if i < span.len { span.start + i } else { 0 };
            for i in at..at + queries {
                let slot = from.len() as i64;
                from.push(line(i));
                match i < span.len {
                    true => {
                        real.push(slot);
                        lines.push(line(i));
                    }
                    false => padded.push(slot),
                }
            }
            // Padding among the keys comes after every real query, where the mask hides it.
            let own = (0..at + queries).map(line);
            let seen = (before.start..before.start + before.len).chain(own);
            to.extend(seen.skip(unseen as usize));
        }
        let keys = before.len + at + queries - unseen;
        let hidden = Tensor::full(
            [queries, keys],
            f64::NEG_INFINITY,
            (Kind::Float, Device::Cpu),
        );
        let mut mask = hidden.triu(keys - queries + 1);
        if heads.window < keys {
            mask += hidden.tril(keys - queries - heads.window);
        }
        Block {
            count: spans.len() as i64,
            queries,
            keys,
            from: Tensor::from_slice(&from),
            to: Tensor::from_slice(&to),
            padding: (!padded.is_empty()).then(|| Padding {
                padded: Tensor::from_slice(&padded),
                real: Tensor::from_slice(&real),
                lines: Tensor::from_slice(&lines),
            }),
            mask: mask.repeat([heads.share, 1]),
        }
    }

    /// Queries `[count · kv_heads, share · queries, width]`, keys and values
    /// `[count · kv_heads, keys, width]`, in f32.
    fn gather(&self, heads: Heads, qkv: &Tensor) -> (Tensor, Tensor, Tensor) {
        let split = heads.query_width();
        let side = heads.keys * heads.width;
        let q = self.headed(heads, &qkv.narrow(1, 0, split).index_select(0, &self.from));
        let kv = qkv.narrow(1, split, 2 * side).index_select(0, &self.to);
        let keyed = |part: i64| {
            let lines = kv.narrow(1, part * side, side).to_kind(Kind::Float);
            let heads_first = lines
                .view([self.count, self.keys, heads.keys, heads.width])
                .transpose(1, 2);
            heads_first.reshape([self.count * heads.keys, self.keys, heads.width])
        };
        (q, keyed(0), keyed(1))
    }

    /// The output's gradient in the shape of the queries, 0 at padding.
    fn gather_grad(&self, heads: Heads, grad: &Tensor) -> Tensor {
        let mut lines = grad.index_select(0, &self.from);
        if let Some(padding) = &self.padding {
            let _ = lines.index_fill_(0, &padding.padded, 0.0);
        }
        self.headed(heads, &lines)
    }

    fn probabilities(&self, heads: Heads, q: &Tensor, k: &Tensor) -> Tensor {
        let scores = match heads.cap {
            None => self.mask.baddbmm(q, &k.transpose(-2, -1), 1.0, heads.scale),
            Some(cap) => self.bent(heads, cap, q, k) * cap + &self.mask,
        };
        scores.softmax(-1, Kind::Float)
    }

    /// tanh(x / cap) of the scaled products x.
    fn bent(&self, heads: Heads, cap: f64, q: &Tensor, k: &Tensor) -> Tensor {
        let mut products = q.bmm(&k.transpose(-2, -1));
        products.g_mul_scalar_(heads.scale / cap).tanh_()
    }

    /// `[count · queries, heads · width]` to `[count · kv_heads, share · queries, width]`, in f32.
    fn headed(&self, heads: Heads, lines: &Tensor) -> Tensor {
        lines
            .to_kind(Kind::Float)
            .view([
                self.count,
                self.queries,
                heads.keys,
                heads.share,
                heads.width,
            ])
            .permute([0, 2, 3, 1, 4])
            .reshape([
                self.count * heads.keys,
                heads.share * self.queries,
                heads.width,
            ])
    }

    /// The inverse of `headed`.
    fn lines(&self, heads: Heads, headed: &Tensor) -> Tensor {
        headed
            .view([
                self.count,
                heads.keys,
                heads.share,
                self.queries,
                heads.width,
            ])
            .permute([0, 3, 1, 2, 4])
            .reshape([self.count * self.queries, heads.query_width()])
    }

    /// `[count · kv_heads, keys, width]` to `[count · keys, kv_heads · width]`.
    fn keyed(&self, heads: Heads, headed: &Tensor) -> Tensor {
        headed
            .view([self.count, heads.keys, self.keys, heads.width])
            .transpose(1, 2)
            .reshape([self.count * self.keys, heads.keys * heads.width])
    }

    /// Writes the real queries' lines to their places.
    fn scatter(&self, out: &mut Tensor, lines: &Tensor) {
        let _ = match &self.padding {
            None => out.index_copy_(0, &self.from, lines),
            Some(p) => out.index_copy_(0, &p.lines, &lines.index_select(0, &p.real)),
        };
    }
}
