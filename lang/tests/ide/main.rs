//! What an editor is told: the reference, hover, completion, definition, rename.

mod complete;
mod hover;
mod laws;
mod navigate;
mod reference;

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::ide::Document;

/// A program in which every test finds what it asks for.
pub const PROGRAM: &str = r#"//! A program to ask about.
use std.grpo { group_relative }
use std.kl { k3 }

/// Where it starts.
param base: checkpoint = "model"
/// Prompts.
param batch: int in 1.. = 4
/// How hard.
param kind: "hard" | "soft" = "soft"

data sums = jsonl("sums.jsonl") { question: text, answer: text from "result" }
data held = jsonl("held.jsonl") { question: text, answer: text }

model policy = causal(base, optim: adamw(lr: warmup(1e-5, 5)))
model anchor = frozen(policy)

/// Half of the distance.
fn half(x: float[..], y: float[.., T], g: axis, scale: float = 0.5) -> float[..] {
  d = x - mean(y, T)
  return scale * (d - mean(d, g))
}

step over sums[B: batch], iterations: 60 {
  roll = generate(policy, chat(question), temperature: 1)[G: 8, T: ..16]
  r    = if roll.text == answer then 1 else 0
  ref  = logp(anchor, roll)
  adv  = group_relative(r, G) + half(r, ref, G, scale: 2)

  train policy {
    lp = logp(policy, roll)
    minimize mean(mean(k3(lp, ref) - lp * adv, T), [B, G])
  }
  log reward: mean(r)
}

eval every 20 over held {
  best = generate(policy, chat(question), temperature: 0)[T: ..16]
  log accuracy: mean(if best.text == answer then 1 else 0)
}
"#;

/// Compiles a text that imports no files.
pub fn check(text: &str) -> Compiled {
    compile(&Request {
        name: "test.rlhf",
        text,
        overrides: &[],
        load: &|_| None,
    })
}

/// A text ready for questions.
pub fn document(text: &str) -> Document {
    Document::new(check(text))
}

/// A text without the mark `|`, and the byte at which it stands.
pub fn marked(text: &str) -> (String, u32) {
    let at = text.rfind('§').expect("the text has a mark");
    (text.replace('§', ""), at as u32)
}

/// The byte of the `n`th occurrence of a text in the program, from 0.
pub fn find(text: &str, what: &str, n: usize) -> u32 {
    let mut found = text.match_indices(what);
    found.nth(n).map(|(i, _)| i as u32).expect("it is there")
}

/// Codes with the messages, one a line, for a failing assertion to show.
pub fn messages(compiled: &Compiled) -> String {
    let lines = compiled
        .diagnostics
        .iter()
        .map(|d| format!("{} {}\n", d.code, d.message));
    lines.collect()
}
