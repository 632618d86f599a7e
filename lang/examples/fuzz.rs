//! Mutates the shipped programs: `cargo run --release -p rlhf-lang --example fuzz -- [COUNT] [SEED]`.
//!
//! Every mutant is parsed, one in 20 laid out, one in 100 compiled and every fix of it applied. The
//! exit code is 1 when something does not hold.

#[path = "../tests/mutate/mod.rs"]
mod mutate;

use std::process::ExitCode;
use std::time::Instant;

/// Nanoseconds a byte that a parse may take.
const SLOW: f64 = 2000.0;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut number = |default| args.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let (count, seed): (usize, usize) = (number(100_000), number(1));
    // A panic is counted; its message would be printed millions of times.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut seen = mutate::Seen::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|t| {
                let seed = (seed * 1000 + t) as u64;
                let builder = std::thread::Builder::new().stack_size(64 << 20);
                builder.spawn_scoped(scope, move || mutate::run(seed, count / threads, (20, 100)))
            })
            .collect();
        for part in parts {
            match part.map(|p| p.join()) {
                Ok(Ok(part)) => seen.add(part),
                _ => seen.wrong.push("a thread ended".into()),
            }
        }
    });
    let survived = seen.survived as f64 / seen.items.max(1) as f64;
    println!("mutants parsed    {}", seen.texts);
    println!(
        "laid out          {} (one in 20; {} parse cleanly)",
        seen.texts / 20,
        seen.formatted
    );
    println!("compiled          {}", seen.compiled);
    println!("fixes applied     {}", seen.fixes);
    println!("items surviving   {:.1} %", 100.0 * survived);
    println!("slowest parse     {:.2} µs a byte", seen.slowest / 1000.0);
    println!("seconds           {:.0}", start.elapsed().as_secs_f64());
    for wrong in &seen.wrong {
        println!("==== {wrong}");
    }
    println!("violations        {}", seen.wrong.len());
    let holds = seen.wrong.is_empty() && seen.slowest < SLOW && survived >= 0.75;
    ExitCode::from(u8::from(!holds))
}
