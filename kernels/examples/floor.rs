//! Milliseconds that the matrix products of one decoding step of SmolLM2-135M take, by libtorch and by the panel
//! kernels: `cargo run --release -p rlhf-kernels --example floor -- [rows] [threads]`.

use rlhf_kernels::linear::{Linear, accumulate, gated, logits, project};
use rlhf_kernels::panel::Panels;
use rlhf_kernels::storage::Matrix;
use std::time::Instant;
use tch::{Kind, Tensor};

const LAYERS: usize = 30;
const HIDDEN: i64 = 576;
const QKV: [i64; 3] = [576, 192, 192];
const INNER: i64 = 1536;
const VOCABULARY: i64 = 49_152;

struct Layer {
    qkv: Vec<Tensor>,
    out: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

fn linear(weight: &Tensor) -> Result<Linear<'_>, String> {
    Ok(Linear {
        weight: Matrix::of(weight)?,
        bias: None,
    })
}

fn best_of(times: usize, mut step: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        step()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
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
        let layers: Vec<Layer> = (0..LAYERS)
            .map(|_| Layer {
                qkv: QKV.iter().map(|&n| random(n, HIDDEN)).collect(),
                out: random(HIDDEN, HIDDEN),
                gate: random(INNER, HIDDEN),
                up: random(INNER, HIDDEN),
                down: random(HIDDEN, INNER),
            })
            .collect();
        let head = random(VOCABULARY, HIDDEN);

        let x = random(rows as i64, HIDDEN);
        let z = random(rows as i64, INNER);
        let torch = best_of(8, || {
            for layer in &layers {
                for w in layer.qkv.iter().chain([&layer.out, &layer.gate, &layer.up]) {
                    let _ = x.matmul(&w.tr());
                }
                let _ = z.matmul(&layer.down.tr());
            }
            let _ = x.matmul(&head.tr());
            Ok(())
        })?;

        let values = |n: i64| {
            (0..rows as i64 * n)
                .map(|i| (i % 7) as f32 * 0.1)
                .collect::<Vec<f32>>()
        };
        let x = Panels::from_rows(&values(HIDDEN), HIDDEN as usize);
        let mut residual = x.clone();
        let mut qkv = Panels::new(QKV.iter().sum::<i64>() as usize);
        let mut inner = Panels::new(INNER as usize);
        let mut scores = vec![0f32; rows * VOCABULARY as usize];
        let ours = best_of(8, || {
            for layer in &layers {
                let [q, k, v] = [0, 1, 2].map(|i| linear(&layer.qkv[i]));
                project(&x, &[q?, k?, v?], &mut qkv);
                accumulate(&x, &linear(&layer.out)?, &mut residual);
                gated(&x, &linear(&layer.gate)?, &linear(&layer.up)?, &mut inner);
                accumulate(&inner, &linear(&layer.down)?, &mut residual);
            }
            logits(&x, &Matrix::of(&head)?, &mut scores);
            Ok(())
        })?;
        println!(
            "{kind:?}, {rows} rows, {threads} threads: libtorch {torch:.1} ms, panels {ours:.1} ms"
        );
    }
    Ok(())
}
