//! Milliseconds a decoding step takes: `cargo run --release -p rlhf-runtime --example decode -- MODEL_DIR [f32|bf16]
//! [prompts] [group] [prompt tokens] [response tokens] [threads]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rlhf_runtime::generate::{Ending, MAX_ROWS, Request, SampleKey, Sampling, generate};
use rlhf_runtime::model::{Dtype, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let dir = arguments.get(1).ok_or("which model directory?")?;
    let dtype = match arguments.get(2).map(String::as_str) {
        Some("bf16") => Dtype::Bf16,
        _ => Dtype::F32,
    };
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |a| a.parse());
    let (prompts, group) = (number(3, 4)?, number(4, 8)?);
    let (prompt, response, threads) = (number(5, 44)?, number(6, 32)?, number(7, 2)?);
    tch::set_num_threads(threads as i32);
    rlhf_kernels::parallel::set_threads(threads)?;
    let model = Model::load(Path::new(dir), dtype)?;
    let ids = |p: usize| -> Arc<[u32]> {
        (0..prompt)
            .map(|i| (100 + 37 * p + i * 11) as u32 % 4000)
            .collect()
    };
    let prompts: Vec<Arc<[u32]>> = (0..prompts).map(ids).collect();
    let rows: Vec<u64> = (0..prompts.len() as u64).collect();
    let sampling = Sampling {
        max_tokens: response,
        ignore_eos: true,
        ..Sampling::default()
    };
    let request = Request {
        prompts: &prompts,
        rows: &rows,
        group,
        sampling: &sampling,
        key: SampleKey {
            seed: 0,
            call: 1,
            iteration: 0,
        },
        max_rows: MAX_ROWS,
    };
    let ending = Ending {
        eos: &[],
        decode: &|_| String::new(),
    };
    for _ in 0..3 {
        let start = Instant::now();
        let mut marks = Vec::new();
        generate(&model, ending, &request, &mut |_| {
            marks.push(start.elapsed().as_secs_f64() * 1e3);
            true
        })?;
        let mut steps: Vec<f64> = marks.windows(2).map(|w| w[1] - w[0]).collect();
        steps.sort_by(f64::total_cmp);
        println!(
            "prefill and first token {:.1} ms; a step: best {:.1}, median {:.1} ms; all {:.0} ms",
            marks[0],
            steps.first().copied().unwrap_or(f64::NAN),
            steps.get(steps.len() / 2).copied().unwrap_or(f64::NAN),
            marks[marks.len() - 1]
        );
    }
    Ok(())
}
