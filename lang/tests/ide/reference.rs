//! The reference says what the language does.

use rlhf_lang::diag::Level;
use rlhf_lang::reference::{Chapter, Entry, entries};

use super::{check, messages};

/// A program around an example: items before the step, statements and expressions in its body.
fn program(entry: &Entry) -> String {
    let example = &entry.example;
    let item = matches!(
        entry.chapter,
        Chapter::Item | Chapter::Model | Chapter::Source
    ) || example.starts_with("fn ");
    let statement = ["train", "log ", "next", "rows"]
        .iter()
        .any(|w| example.starts_with(w))
        || example.split_whitespace().nth(1) == Some("=");
    let (items, body) = match (item, statement) {
        (true, _) => (example.clone(), String::new()),
        (_, true) => (String::new(), example.replace('\n', "\n  ")),
        _ => (String::new(), format!("z = {example}")),
    };
    let train = match body.starts_with("train ") {
        true => "",
        false => "train policy { minimize -mean(logp(policy, roll) * r) }",
    };
    // A moving average and a critic read models that the others do not.
    let models = match entry.name {
        "value" => "model critic = scalar(base, per: token)",
        "score" => "model judge = scalar(base, per: response)",
        _ => "",
    };
    format!(
        "param base: checkpoint = \"model\"\n\
         data d = jsonl(\"d.jsonl\") {{ question: text, answer: text, messages: chat }}\n\
         data held = jsonl(\"held.jsonl\") {{ question: text, answer: text }}\n\
         model policy = causal(base, optim: adamw(lr: 1e-5))\n\
         model anchor = frozen(policy)\n{models}\n{items}\n\
         step over d[B: 4], iterations: 10 {{\n  \
         roll = generate(policy, question)[G: 4, T: ..32]\n  \
         r = if roll.text == answer then 1 else 0\n  \
         ref = logp(anchor, roll)\n  {body}\n  {train}\n}}\n"
    )
}

#[test]
fn every_example_of_the_reference_is_in_order() {
    for entry in entries().iter().filter(|e| !e.example.is_empty()) {
        let text = program(entry);
        let compiled = check(&text);
        // The language has some things that the interpreter refuses by one message of its own.
        let wrong = compiled
            .diagnostics
            .iter()
            .any(|d| d.level == Level::Error && d.code != "E090");
        assert!(!wrong, "{}:\n{text}\n{}", entry.name, messages(&compiled));
    }
}

#[test]
fn the_labels_of_every_call_are_those_of_its_signature() {
    let mut tried = 0;
    for entry in entries() {
        let call = match entry.chapter {
            Chapter::Verb if entry.signature.contains(")[") => {
                format!("z = {}(zzz: 1)[G: 4, S: ..8]", entry.name)
            }
            Chapter::Operator | Chapter::Verb if !entry.name.starts_with('.') => {
                format!("z = {}(zzz: 1)", entry.name)
            }
            _ => continue,
        };
        let text = format!(
            "data d = jsonl(\"d.jsonl\") {{ question: text }}\n\
             step over d[B: 4], iterations: 10 {{\n  {call}\n}}\n"
        );
        let compiled = check(&text);
        let takes = compiled
            .diagnostics
            .iter()
            .filter_map(|d| d.help.as_deref()?.strip_prefix("it takes `("))
            .find_map(|h| h.strip_suffix(")`"));
        let Some(takes) = takes else {
            let refused = compiled
                .diagnostics
                .iter()
                .any(|d| matches!(d.code.as_str(), "E090" | "E025"));
            assert!(refused, "{}: {}", entry.name, messages(&compiled));
            continue;
        };
        tried += 1;
        let takes: Vec<&str> = takes
            .split(", ")
            .map(|s| s.trim_end_matches(['?', ':']))
            .collect();
        let arguments = entry.arguments();
        let written: Vec<&str> = arguments.iter().map(|a| a.label).collect();
        assert_eq!(written, takes, "{}", entry.name);
    }
    assert!(tried > 40, "{tried}");
}
