//! Seconds of one scoring and one training pass: `model_step DIR PROMPTS PROMPT_LEN GROUP RESPONSE_LEN THREADS [bf16]`.
//!
//! Processor seconds stand in brackets: on a busy machine they say more than the clock.

use std::time::Instant;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{AdamW, Dtype, LivePass, Model};

/// A stopwatch for the clock and for this process's processor time.
struct Watch(Instant, f64);

impl Watch {
    fn start() -> Watch {
        Watch(Instant::now(), processor())
    }

    fn read(&self) -> String {
        let (clock, processor) = (self.0.elapsed().as_secs_f64(), processor() - self.1);
        format!("{clock:.2} s ({processor:.2})")
    }
}

/// Processor seconds used so far, from Linux's accounts; 0 elsewhere.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or("").split(' ');
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = |i: usize| args[i].parse::<usize>();
    let (prompts, prompt_len, group, response_len) = (count(1)?, count(2)?, count(3)?, count(4)?);
    tch::set_num_threads(args[5].parse()?);
    let dtype = match args.get(6) {
        Some(_) => Dtype::Bf16,
        None => Dtype::F32,
    };
    let start = Watch::start();
    let mut model = Model::load(args[0].as_ref(), dtype)?;
    println!("load {}", start.read());
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
    for _ in 0..2 {
        let start = Watch::start();
        let score = model.score(&rows, 1.0, false).logp;
        let scored = start.read();
        let start = Watch::start();
        let live = LivePass::forward(&model, &rows, 1.0, false);
        let forward = start.read();
        let off = (live.logp() - &score).abs().max().double_value(&[]);
        let start = Watch::start();
        live.backward(&mut model, &(score.ones_like() * -1e-3), None);
        let backward = start.read();
        let start = Watch::start();
        let norm = adamw.step(&mut model, 1e-6, Some(1.0));
        let step = start.read();
        println!(
            "score {scored}  forward {forward}  backward {backward}  adamw {step}  norm {norm:.4}  logp apart {off:.1e}"
        );
    }
    Ok(())
}
