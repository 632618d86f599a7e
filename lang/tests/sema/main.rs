//! From text to graph: what each rule finds, what grpo becomes, and that no text makes it panic.

mod calls;
mod expression;
mod fuzz;
mod graph;
mod pages;
mod rules;
mod stdlib;

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::diag::Level;

/// Compiles a text that imports no files.
pub fn check(text: &str, overrides: &[(&str, &str)]) -> Compiled {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect();
    compile(&Request {
        name: "test.rlhf",
        text,
        overrides: &overrides,
        load: &|_| None,
    })
}

/// Codes with the messages, one a line, for a failing assertion to show.
pub fn messages(compiled: &Compiled) -> String {
    let told = compiled
        .diagnostics
        .iter()
        .filter(|d| d.level != Level::Hint);
    let lines = told.map(|d| {
        let at = d.span().map_or(String::new(), |s| {
            let source = compiled.sources.get(s.file);
            format!("{}:{}", source.name, source.line_column(s.lo).0)
        });
        format!("{} {at} {}\n", d.code, d.message)
    });
    lines.collect()
}

/// Items and statements in a small program around them.
pub fn program(fragment: &str) -> String {
    let items = [
        "use", "param", "data", "model", "reward", "fn", "state", "place", "eval",
    ];
    let is_comment = |l: &&str| l.starts_with("//");
    let first = fragment
        .lines()
        .find(|l| !is_comment(l))
        .and_then(|l| l.split_whitespace().next())
        .unwrap_or_default();
    if fragment.contains("data d =") {
        return fragment.to_string();
    }
    let (items, body) = if items.contains(&first) {
        (fragment, "")
    } else {
        ("", fragment)
    };
    let whole = items.contains("step over");
    let anchor = if body.contains("anchor") || (body.is_empty() && !whole) {
        "model anchor = frozen(policy)"
    } else {
        ""
    };
    let header = format!(
        "/// Where weights start.\nparam base: checkpoint = \"model\"\n\
         data d = jsonl(\"d.jsonl\") {{ question: text, answer: text }}\n\
         model policy = causal(base, optim: adamw(lr: 1e-5))\n{anchor}\n"
    );
    if whole {
        return format!("{header}{items}\n");
    }
    let reads = if body.is_empty() {
        "  ref = logp(anchor, roll)\n  log ref: mean(ref)\n"
    } else {
        ""
    };
    let train = if body.contains("train ") {
        ""
    } else {
        "  train policy { minimize -mean(mean(clamp(exp(logp(policy, roll) - roll.logp), 0, 2) * r, T)) }\n"
    };
    format!(
        "{header}{items}\n\
         step over d[B: 4], iterations: 10 {{\n  \
         roll = generate(policy, question)[G: 4, T: ..32]\n  \
         r = if roll.text == answer then 1 else 0\n  \
         log reward: mean(r)\n{reads}{body}\n{train}}}\n"
    )
}
