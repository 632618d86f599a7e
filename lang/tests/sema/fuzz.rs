//! No text panics.

use proptest::prelude::*;
use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::graph::{Elem, show};

use super::check;

const SEED: &str = include_str!("grpo.rlhf");

/// Words that a mutation puts in: the language's own, so that most mutants still parse.
const WORDS: &[&str] = &[
    "policy",
    "anchor",
    "roll",
    "r",
    "adv",
    "lp",
    "T",
    "G",
    "B",
    "[B, G]",
    "question",
    "mean",
    "sum",
    "std",
    "exp",
    "logp",
    "generate",
    "entropy",
    "train policy {",
    "}",
    "{",
    "(",
    ")",
    "minimize",
    "log",
    "1",
    "0.5",
    "-1",
    "1e400",
    "\"text\"",
    "..",
    "=",
    "==",
    "if",
    "then",
    "else",
    "fn f(x: float[..]) = f(x)",
    "stop(",
    "shift(lp, T)",
    "min(",
    "max(",
    "len(roll, T)",
    "answer(question, answer)[W: ..4]",
    "rows D = B where r > 0",
    "next policy = policy",
    "state s: float = 0",
    "param q: int = q",
    "use std.kl { k1 }",
    "iteration",
    ",",
    ":",
    "\n",
    "é",
    "frozen(anchor)",
    "causal(",
    "pick(r, G, argmax(r, G))",
    "clamp(",
    "suffix_sum(",
    "roll.text",
    "value(",
];

fn mutant(edits: &[(usize, usize, usize)]) -> String {
    let mut text: Vec<char> = SEED.chars().collect();
    for (at, remove, word) in edits {
        let at = at % (text.len() + 1);
        let end = (at + remove).min(text.len());
        let word = WORDS[word % WORDS.len()].chars();
        text.splice(at..end, word);
    }
    text.into_iter().collect()
}

/// Replaces whole words, which keeps far more of the text parseable.
fn swapped(edits: &[(usize, usize)]) -> String {
    let mut words: Vec<&str> = SEED.split(' ').collect();
    for (at, word) in edits {
        let at = at % words.len();
        words[at] = WORDS[word % WORDS.len()];
    }
    words.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_programs_give_an_answer(edits in prop::collection::vec((0usize..4000, 0usize..12, 0usize..1000), 1..5)) {
        let compiled = check(&mutant(&edits), &[]);
        if let Some(graph) = &compiled.graph {
            show::text(graph);
            show::svg(graph);
        }
    }

    #[test]
    fn programs_with_other_words_give_an_answer(edits in prop::collection::vec((0usize..1000, 0usize..1000), 1..4)) {
        let compiled = check(&swapped(&edits), &[]);
        prop_assert!(compiled.graph.is_some() != compiled.diagnostics.iter().any(|d| d.level == rlhf_lang::diag::Level::Error)
            || !compiled.file.items.iter().any(|i| matches!(i.kind, rlhf_lang::syntax::ast::ItemKind::Step(_))));
        if let Some(graph) = &compiled.graph {
            show::text(graph);
            show::svg(graph);
        }
    }

    #[test]
    fn any_expression_gives_an_answer(words in prop::collection::vec(0usize..1000, 0..12)) {
        let text: Vec<&str> = words.iter().map(|w| WORDS[w % WORDS.len()]).collect();
        let inputs = [
            Input { name: "r".into(), axes: vec![("B".into(), Some(2)), ("G".into(), Some(3))], elem: Elem::Float },
            Input { name: "lp".into(), axes: vec![("B".into(), Some(2)), ("G".into(), Some(3)), ("T".into(), None)], elem: Elem::Float },
        ];
        let _ = compile_expression(&text.join(" "), &["std.ppo".into()], &inputs, &|_| None);
    }

    #[test]
    fn any_text_gives_an_answer(text in ".{0,300}") {
        check(&text, &[]);
    }
}

#[test]
fn truncated_programs_give_an_answer() {
    for (at, _) in SEED.char_indices().step_by(7) {
        check(&SEED[..at], &[]);
        check(&SEED[at..], &[]);
    }
}

#[test]
fn functions_that_double_at_every_level_are_stopped() {
    let mut text = String::from("fn f0(x: float[..]) -> float[..] = x + 1\n");
    for i in 1..40 {
        text += &format!(
            "fn f{i}(x: float[..]) -> float[..] = f{0}(x) + f{0}(x * {i})\n",
            i - 1
        );
    }
    let text = format!("{text}param n: float = f39(1)\n");
    let compiled = check(&text, &[]);
    assert!(compiled.diagnostics.iter().any(|d| d.code == "E015"));
}
