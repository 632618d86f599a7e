//! The TextMate grammar of `editors/vscode` gives every word of the language its colour.

mod engine;

use std::collections::BTreeSet;

use engine::Grammar;
use rlhf_lang::reference::{Chapter, entries};

const GRAMMAR: &str = include_str!("../../../editors/vscode/syntaxes/rlhf.tmLanguage.json");
const PEST: &str = include_str!("../../src/grammar.pest");

/// Text with every keyword in its place.
const KEYWORDS: &str = r#"use std.kl { k3 }
param a: int in 1.. = 3
data d = jsonl("d.jsonl") { q: text from "Q" }
model m = causal(base)
reward f(x: text) -> float = python("f.py:f")
state s: float = 0.1
fn g(x: float) -> float {
  return if not true and false or x > 0 then 1 else 0
}
step over d[B: 4], iterations: 3 {
  rows D = B where r > 0
  train m {
    minimize loss
  }
  next s = 1
  log r: mean(r)
}
eval every 3 over d {
}
place p on cluster(nodes: 1) {
}
"#;

fn grammar() -> Grammar {
    Grammar::read(GRAMMAR).unwrap_or_else(|e| panic!("{e}"))
}

/// The scopes of the first occurrence of a word in a text.
fn scope(text: &str, word: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let whole = text.match_indices(word).find(|(i, _)| {
        let before = text[..*i].chars().next_back();
        let after = text[i + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    let (at, _) = whole.unwrap_or_else(|| panic!("`{word}` is in the text"));
    let scopes = grammar().scopes(text);
    let of = &scopes[at..at + word.len()];
    assert!(
        of.iter().all(|s| s == &of[0]),
        "`{word}` has one colour: {of:?}"
    );
    of[0].clone()
}

fn expect(text: &str, word: &str, wanted: &str) {
    let found = scope(text, word);
    let innermost = found.split(' ').next_back().unwrap_or_default();
    assert!(
        innermost.starts_with(wanted),
        "`{word}` in `{text}` is `{found}`, not `{wanted}`"
    );
}

/// The words that the parser's grammar names as keywords.
fn keywords() -> BTreeSet<String> {
    let rules = PEST.lines().filter(|l| l.starts_with("kw_"));
    let mut words: BTreeSet<String> = rules
        .filter_map(|l| Some(l.split('"').nth(1)?.to_string()))
        .collect();
    let hard = ["and", "or", "not", "true", "false"];
    words.extend(hard.map(String::from));
    words
}

#[test]
fn every_keyword_is_one_in_its_place() {
    let all = keywords();
    assert!(all.len() > 25, "{all:?}");
    for word in all {
        let found = scope(KEYWORDS, &word);
        let wanted = ["keyword.", "constant.language"];
        assert!(
            wanted.iter().any(|w| found.starts_with(w)),
            "`{word}` is `{found}`"
        );
    }
}

#[test]
fn every_built_in_name_has_its_colour() {
    for entry in entries() {
        let name = entry.name;
        match entry.chapter {
            Chapter::Operator => expect(
                &format!("  x = {name}(y)"),
                name,
                "support.function.builtin",
            ),
            Chapter::Verb if name.starts_with('.') => {
                expect(
                    &format!("  x = y{name}"),
                    &name[1..],
                    "variable.other.member",
                );
            }
            Chapter::Verb => expect(&format!("  x = {name}(y)"), name, "support.function.verb"),
            Chapter::Model | Chapter::Source => {
                expect(&format!("model m = {name}(y)"), name, "support.class.kind");
            }
            Chapter::Type => {
                expect(
                    &format!("fn f(z: {name}) -> float = 1"),
                    name,
                    "support.type",
                );
                expect(
                    &format!("fn f(z: float) -> {name} = 1"),
                    name,
                    "support.type",
                );
            }
            Chapter::Item => expect(KEYWORDS, name, "keyword."),
            Chapter::Statement if name.starts_with("iteration") => {
                expect(&format!("  x = {name} + 1"), name, "variable.language");
            }
            Chapter::Statement => expect(KEYWORDS, name, "keyword."),
        }
    }
}

#[test]
fn a_word_out_of_its_place_is_a_name() {
    for word in [
        "train", "log", "next", "rows", "data", "model", "step", "in", "from", "over",
    ] {
        let found = scope(&format!("  {word} = 1"), word);
        assert!(!found.contains("keyword"), "`{word} = 1`: {found}");
        let found = scope(&format!("  x = f({word}: 1)"), word);
        assert!(
            found.starts_with("variable.parameter"),
            "`{word}: 1`: {found}"
        );
        let found = scope(&format!("  x = y.{word}"), word);
        assert!(!found.contains("keyword"), "`y.{word}`: {found}");
    }
    assert!(scope("  x = mean + 1", "mean").is_empty());
}

#[test]
fn numbers_texts_comments_and_axes_have_their_colours() {
    for number in ["8", "0.2", "1e-5", "2.5e+3", "1_000"] {
        expect(&format!("  x = {number} * y"), number, "constant.numeric");
    }
    expect("param a: int in 1.. = 4", "1", "constant.numeric");
    expect("  x = y2 + 1", "1", "constant.numeric");
    assert!(scope("  x = y2 + z", "y2").is_empty());
    expect("  x = \"a b\" + y", "a b", "string.quoted");
    expect("  x = \"a\\\" b\" + y", "b", "string.quoted");
    expect("  x = \"open\ny = 1", "1", "constant.numeric");
    expect("x = 1 // why", "why", "comment.line.double-slash");
    expect("/// Half.", "Half", "comment.line.documentation");
    expect("//! About.", "About", "comment.line.documentation.module");
    expect("x = \"// no\" + 1", "1", "constant.numeric");
    for text in [
        "step over d[B: 4]",
        "  x = mean(y, [A, B])",
        "  x = mean(y, B)",
        "fn f(x: float[.., B])",
    ] {
        expect(text, "B", "entity.name.type.axis");
    }
    assert!(scope("  x = mean(y, [A, B])", "B").starts_with("meta.axes"));
}

#[test]
fn the_shipped_programs_leave_every_bracket_closed() {
    for (name, text) in rlhf_stdlib::algorithms() {
        let scopes = grammar().scopes(text);
        assert_eq!(scopes.len(), text.len(), "{name}");
        let last = text.rfind('}').map(|i| scopes[i].as_str());
        assert_eq!(last, Some(""), "{name}: the last brace stands alone");
    }
}

#[test]
fn the_extension_is_valid_json_and_names_files_that_exist() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode");
    let read = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(folder.join(name)).expect("the extension's file");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let package = read("package.json");
    read("language-configuration.json");
    let contributes = &package["contributes"];
    for path in [
        &package["main"],
        &contributes["languages"][0]["configuration"],
        &contributes["grammars"][0]["path"],
    ] {
        let path = path.as_str().expect("a path");
        assert!(folder.join(path).is_file(), "{path}");
    }
    let scope = contributes["grammars"][0]["scopeName"].as_str();
    let grammar: serde_json::Value = serde_json::from_str(GRAMMAR).expect("JSON");
    assert_eq!(grammar["scopeName"].as_str(), scope);
}
