//! Attention over the cache against libtorch's, with and without a shared prompt.

use super::*;
use tch::{Kind, Tensor};

fn flat(x: &Tensor) -> Vec<f32> {
    let x = x.to_kind(Kind::Float).contiguous();
    let mut values = vec![0f32; x.numel()];
    x.copy_data(&mut values, x.numel());
    values
}

/// Causal attention of a whole sequence by libtorch: `[len, heads · dim]` from `[len, (heads + 2 kv) · dim]`.
fn reference(qkv: &Tensor, shape: Shape, frequencies: &[f32], rule: &Scores) -> Tensor {
    let len = qkv.size()[0];
    let (heads, kv, dim) = (shape.heads as i64, shape.kv_heads as i64, shape.dim as i64);
    let part = |from: i64, n: i64| {
        let part = qkv.narrow(1, from * dim, n * dim);
        part.reshape([len, n, dim]).transpose(0, 1)
    };
    let angles = Tensor::arange(len, tch::kind::FLOAT_CPU).outer(&Tensor::from_slice(frequencies));
    let turn = |x: Tensor| {
        let (a, b) = (x.narrow(2, 0, dim / 2), x.narrow(2, dim / 2, dim / 2));
        let (c, s) = (angles.cos(), angles.sin());
        Tensor::cat(&[&a * &c - &b * &s, &b * &c + &a * &s], 2)
    };
    let spread = |x: Tensor| x.repeat_interleave_self_int(heads / kv, 0, None);
    let (q, k, v) = (
        turn(part(0, heads)),
        spread(turn(part(heads, kv))),
        spread(part(heads + kv, kv)),
    );
    let mut scores = q.matmul(&k.transpose(1, 2)) * f64::from(rule.scale);
    if let Some(cap) = rule.cap {
        scores = (scores / f64::from(cap)).tanh() * f64::from(cap);
    }
    let window = rule.window.map_or(len, |w| w as i64);
    let mask = Tensor::ones([len, len], (Kind::Bool, tch::Device::Cpu))
        .tril(0)
        .triu(1 - window)
        .logical_not();
    let weights = scores
        .masked_fill(&mask, f64::NEG_INFINITY)
        .softmax(-1, Kind::Float);
    weights
        .matmul(&v)
        .transpose(0, 1)
        .reshape([len, heads * dim])
}

/// Plain, within a window, and bent within a window that no block of positions fits.
fn rules(dim: usize) -> [Scores; 3] {
    let plain = Scores::plain(dim);
    [
        plain,
        Scores {
            window: Some(16),
            ..plain
        },
        Scores {
            scale: 0.3,
            cap: Some(1.5),
            window: Some(19),
        },
    ]
}

#[test]
fn prefill_then_decoding_equals_attention_of_the_whole_sequence() {
    let shapes = [
        (4, 2, 16, 23, 20),
        (9, 3, 64, 44, 3),
        (8, 1, 8, 1, 18),
        (2, 1, 8, 5, 40),
        (2, 2, 40, 33, 1),
    ];
    let cases = (0..3).flat_map(|rule| shapes.map(|shape| (rule, shape)));
    for (case, (heads, kv_heads, dim, prompt, more)) in cases {
        let shape = Shape {
            layers: 2,
            heads,
            kv_heads,
            dim,
        };
        let features = (heads + 2 * kv_heads) * dim;
        let frequencies: Vec<f32> = (0..dim / 2).map(|i| 0.7f32.powi(i as i32)).collect();
        let rotary = Rotary::new(&frequencies, prompt + more);
        // Two samples share the prompt and differ after it.
        let samples = 2;
        let rule = rules(dim)[case];
        let start = Tensor::randn([prompt as i64, features as i64], tch::kind::FLOAT_CPU);
        let ends: Vec<Tensor> = (0..samples)
            .map(|_| Tensor::randn([more as i64, features as i64], tch::kind::FLOAT_CPU))
            .collect();
        let expected: Vec<Vec<f32>> = ends
            .iter()
            .map(|end| {
                flat(&reference(
                    &Tensor::cat(&[&start, end], 0),
                    shape,
                    &frequencies,
                    &rule,
                ))
            })
            .collect();
        let width = heads * dim;
        let check = |ours: Vec<f32>, sample: usize, first: usize| {
            let theirs = &expected[sample][first * width..first * width + ours.len()];
            for (a, b) in ours.iter().zip(theirs) {
                assert!((a - b).abs() < 2e-5, "{a} {b}, {shape:?} {rule:?}");
            }
        };

        let mut cache = Cache::new(shape, [prompt, more, more]);
        let mut queries = Vec::new();
        let mut out = Panels::new(width);
        let places: Vec<Place> = (0..prompt)
            .map(|position| Place {
                position,
                context: None,
                own: Span {
                    slot: 0,
                    len: position + 1,
                },
            })
            .collect();
        let qkv = Panels::from_rows(&flat(&start), features);
        store(&mut cache, 1, &qkv, &places, Some(&rotary), &mut queries);
        attend(&cache, 1, &queries, &places, &rule, &mut out);
        check(out.to_rows(), 0, 0);

        for step in 0..more {
            let places: Vec<Place> = (0..samples)
                .map(|s| Place {
                    position: prompt + step,
                    context: Some(Span {
                        slot: 0,
                        len: prompt,
                    }),
                    own: Span {
                        slot: 1 + s,
                        len: step + 1,
                    },
                })
                .collect();
            let now: Vec<f32> = ends
                .iter()
                .flat_map(|end| flat(&end.get(step as i64)))
                .collect();
            let qkv = Panels::from_rows(&now, features);
            store(&mut cache, 1, &qkv, &places, Some(&rotary), &mut queries);
            attend(&cache, 1, &queries, &places, &rule, &mut out);
            for s in 0..samples {
                check(out.row(s).collect(), s, prompt + step);
            }
        }
    }
}
