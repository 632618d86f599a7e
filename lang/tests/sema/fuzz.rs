//! Every text gets an answer: a graph or an error, and every message points into a text.

use proptest::prelude::*;
use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::graph::{Elem, show};

use rlhf_lang::compile::Compiled;
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;
use rlhf_lang::syntax::ast::ItemKind;

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

/// Labels and fixes lie inside their texts, between whole characters.
fn point_into_texts(sources: &Sources, diagnostics: &[Diagnostic]) {
    for d in diagnostics {
        let fixes = d.fix.iter().flat_map(|f| f.edits.iter().map(|(s, _)| *s));
        for span in d.labels.iter().map(|l| l.span).chain(fixes) {
            let text = &sources.get(span.file).text;
            assert!(text.get(span.range()).is_some(), "{d:?}");
        }
    }
}

/// Compiles a text and holds the answer against what every answer must be.
fn answered(text: &str) -> Compiled {
    let compiled = check(text, &[]);
    point_into_texts(&compiled.sources, &compiled.diagnostics);
    let failed = compiled.diagnostics.iter().any(|d| d.level == Level::Error);
    let runs = compiled
        .file
        .items
        .iter()
        .any(|i| matches!(i.kind, ItemKind::Step(_)));
    assert_eq!(compiled.graph.is_some(), runs && !failed, "{text}");
    compiled
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_programs_give_an_answer(edits in prop::collection::vec((0usize..4000, 0usize..12, 0usize..1000), 1..5)) {
        let compiled = answered(&mutant(&edits));
        if let Some(graph) = &compiled.graph {
            show::text(graph);
            show::svg(graph);
        }
    }

    #[test]
    fn programs_with_other_words_give_an_answer(edits in prop::collection::vec((0usize..1000, 0usize..1000), 1..4)) {
        let compiled = answered(&swapped(&edits));
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
        match compile_expression(&text.join(" "), &["std.ppo".into()], &inputs, &|_| None) {
            Ok(made) => prop_assert!((made.value.0 as usize) < made.graph.exprs.len()),
            Err((sources, diagnostics)) => {
                prop_assert!(diagnostics.iter().any(|d| d.level == Level::Error));
                point_into_texts(&sources, &diagnostics);
            }
        }
    }

    #[test]
    fn any_text_gives_an_answer(text in ".{0,300}") {
        answered(&text);
    }
}

#[test]
fn truncated_programs_give_an_answer() {
    for (at, _) in SEED.char_indices().step_by(17) {
        answered(&SEED[..at]);
        answered(&SEED[at..]);
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
