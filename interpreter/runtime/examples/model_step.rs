//! Seconds of one scoring and one training pass: `model_step DIR PROMPTS PROMPT_LEN GROUP RESPONSE_LEN [bf16]`.

use std::time::Instant;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{AdamW, Dtype, LivePass, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = |i: usize| args[i].parse::<usize>();
    let (prompts, prompt_len, group, response_len) = (count(1)?, count(2)?, count(3)?, count(4)?);
    tch::set_num_threads(2);
    let dtype = match args.get(5) {
        Some(_) => Dtype::Bf16,
        None => Dtype::F32,
    };
    let start = Instant::now();
    let mut model = Model::load(args[0].as_ref(), dtype)?;
    println!("load {:.2} s", start.elapsed().as_secs_f64());
    let ids = |seed: usize, len: usize| {
        (0..len).map(move |i| ((seed * 7919 + i * 104_729) % 40_000) as u32)
    };
    let rows = Rows {
        prompts: (0..prompts).map(|p| ids(p, prompt_len).collect()).collect(),
        group,
        responses: (0..prompts * group)
            .map(|r| ids(r + 99, response_len).collect())
            .collect(),
    };
    let mut adamw = AdamW::new(&model, (0.9, 0.999), 1e-8, 0.0);
    for _ in 0..3 {
        let start = Instant::now();
        let score = model.score(&rows, 1.0, false).logp;
        let scored = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let live = LivePass::forward(&mut model, &rows, 1.0, false);
        let forward = start.elapsed().as_secs_f64();
        let off = (live.logp() - &score).abs().max().double_value(&[]);
        let start = Instant::now();
        live.backward(&(score.ones_like() * -1e-3), None);
        let backward = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let norm = adamw.step(&mut model, 1e-6, Some(1.0));
        let step = start.elapsed().as_secs_f64();
        println!(
            "score {scored:.2}  forward {forward:.2}  backward {backward:.2}  adamw {step:.2} s  norm {norm:.4}  logp apart {off:.1e}"
        );
    }
    Ok(())
}
