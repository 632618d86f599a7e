//! Milliseconds that the matrix products of one decoding step of SmolLM2-135M take, by libtorch and by the panel
//! kernels: `cargo run --release -p rlhf-kernels --example floor -- [rows] [threads]`.
//!
//! Every product is timed alone and its best time counts, so that other work on the machine disturbs little.

use rlhf_kernels::gate::Activation;
use rlhf_kernels::linear::{Linear, accumulate, gated, logits, project};
use rlhf_kernels::panel::Panels;
use rlhf_kernels::storage::Matrix;
use std::time::Instant;
use tch::{Kind, Tensor};

const LAYERS: usize = 30;
const REPEATS: usize = 20;
const HIDDEN: i64 = 576;
const QKV: i64 = 960;
const INNER: i64 = 1536;
const VOCABULARY: i64 = 49_152;

fn linear(weight: &Tensor) -> Result<Linear<'_>, String> {
    Ok(Linear {
        weight: Matrix::of(weight)?,
        bias: None,
    })
}

fn time(best: &mut f64, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    *best = best.min(start.elapsed().as_secs_f64() * 1e3);
}

fn panels(rows: usize, features: i64) -> Panels {
    let count = rows as i64 * features;
    let values: Vec<f32> = (0..count).map(|i| (i % 7) as f32 * 0.1).collect();
    Panels::from_rows(&values, features as usize)
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let rows = arguments.next().and_then(Result::ok).unwrap_or(32);
    let threads = arguments.next().and_then(Result::ok).unwrap_or(2);
    tch::set_num_threads(threads as i32);
    rlhf_kernels::parallel::set_threads(threads)?;
    for kind in [Kind::Float, Kind::BFloat16] {
        let random = |out: i64, inputs: i64| {
            (Tensor::randn([out, inputs], tch::kind::FLOAT_CPU) * 0.02).to_kind(kind)
        };
        // Queries, keys and values; output; gate; up; down.
        let shapes = [
            (QKV, HIDDEN),
            (HIDDEN, HIDDEN),
            (INNER, HIDDEN),
            (INNER, HIDDEN),
            (HIDDEN, INNER),
        ];
        let layers: Vec<[Tensor; 5]> = (0..LAYERS)
            .map(|_| shapes.map(|(out, inputs)| random(out, inputs)))
            .collect();
        let head = random(VOCABULARY, HIDDEN);
        let (x, z) = (random(rows as i64, HIDDEN), random(rows as i64, INNER));
        let (px, pz) = (panels(rows, HIDDEN), panels(rows, INNER));
        let mut residual = px.clone();
        let mut qkv = Panels::new(QKV as usize);
        let mut inner = Panels::new(INNER as usize);
        let mut scores = vec![0f32; rows * VOCABULARY as usize];
        let mut torch = [f64::INFINITY; 5];
        let mut ours = [f64::INFINITY; 5];
        for _ in 0..REPEATS {
            for [w_qkv, out, gate, up, down] in &layers {
                let product = |x: &Tensor, w: &Tensor| drop(x.matmul(&w.tr()));
                time(&mut torch[0], || product(&x, w_qkv));
                time(&mut torch[1], || product(&x, out));
                time(&mut torch[2], || {
                    product(&x, gate);
                    product(&x, up);
                });
                time(&mut torch[3], || product(&z, down));
                let (w_qkv, out, down) = (linear(w_qkv)?, linear(out)?, linear(down)?);
                let (gate, up) = (linear(gate)?, linear(up)?);
                time(&mut ours[0], || project(&px, &[w_qkv], &mut qkv));
                time(&mut ours[1], || accumulate(&px, &out, &mut residual));
                time(&mut ours[2], || {
                    gated(&px, Activation::Silu, &gate, &up, &mut inner)
                });
                time(&mut ours[3], || accumulate(&pz, &down, &mut residual));
            }
            let w = Matrix::of(&head)?;
            time(&mut torch[4], || drop(x.matmul(&head.tr())));
            time(&mut ours[4], || logits(&px, &w, &mut scores));
        }
        let step = |best: [f64; 5]| best[..4].iter().sum::<f64>() * LAYERS as f64 + best[4];
        println!(
            "{kind:?}, {rows} rows, {threads} threads: libtorch {:.1} ms, panels {:.1} ms",
            step(torch),
            step(ours)
        );
    }
    Ok(())
}
