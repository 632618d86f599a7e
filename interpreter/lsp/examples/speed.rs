//! How long an editor waits: edits of a program of 500 lines, and hovers over it.
//!
//! `cargo run --release -p rlhf-lsp --example speed -- [ROUNDS]` prints one JSON object; `bench/check`
//! runs it beside the rest.

use std::time::{Duration, Instant};

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::ide::Document;

/// A shipped program with functions and evaluations of its own, up to the number of lines.
fn program(lines: usize) -> String {
    let base = rlhf_stdlib::algorithms()
        .iter()
        .find(|(name, _)| *name == "grpo")
        .map_or("", |(_, text)| *text);
    let mut text = base.to_string();
    for i in 0.. {
        if text.lines().count() >= lines {
            return text;
        }
        text += &format!(
            "\n/// Half of the distance to the mean of the group, limited.\n\
             fn _shape{i}(r: float[..], g: axis, limit: float = 0.{i}5) -> float[..] {{\n  \
             centred = r - mean(r, g)\n  spread = std(r, g) + 1e-4\n  \
             return clamp(centred / spread / 2, -limit, limit)\n}}\n\n\
             eval every {} over held {{\n  \
             best{i} = generate(policy, chat(question), temperature: 0)[U: ..16]\n  \
             right{i} = if last_number(best{i}.text) == number(answer) then 1 else 0\n  \
             log accuracy{i}: mean(right{i}), length{i}: mean(len(best{i}, U))\n}}\n",
            i + 2
        );
    }
    text
}

fn checked(text: &str) -> Compiled {
    compile(&Request {
        name: "program.rlhf",
        text,
        overrides: &[],
        load: &|_| None,
    })
}

/// Milliseconds at a share of the sorted times.
fn at(times: &mut [Duration], share: f64) -> f64 {
    times.sort();
    let last = times.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    times.get(index).map_or(0.0, |t| t.as_secs_f64() * 1e3)
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(300);
    let text = program(500);
    let lines = text.lines().count();
    let (mut edits, mut hovers) = (vec![], vec![]);
    let mut diagnostics = 0;
    for round in 0..rounds {
        // A digit is typed somewhere: every line in turn, some of which then do not parse.
        let line = round * 37 % lines;
        let start: usize = text.lines().take(line).map(|l| l.len() + 1).sum();
        let length = text.lines().nth(line).map_or(0, str::len);
        let place = start + length * (round % 5) / 5;
        let place = (0..=place)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        let mut edited = text.clone();
        edited.insert(place, '7');
        let begun = Instant::now();
        let compiled = checked(&edited);
        edits.push(begun.elapsed());
        diagnostics += compiled.diagnostics.len();
        let document = Document::new(compiled);
        let begun = Instant::now();
        std::hint::black_box(document.hover(place as u32));
        hovers.push(begun.elapsed());
    }
    println!(
        "{{\"lines\": {lines}, \"bytes\": {}, \"rounds\": {rounds}, \"diagnostics\": {diagnostics}, \
         \"edit_p50_ms\": {:.3}, \"edit_p95_ms\": {:.3}, \"hover_p50_ms\": {:.4}, \"hover_max_ms\": {:.4}}}",
        text.len(),
        at(&mut edits, 0.5),
        at(&mut edits, 0.95),
        at(&mut hovers, 0.5),
        at(&mut hovers, 1.0),
    );
}
