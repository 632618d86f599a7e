//! Mutated programs: nothing panics, formatting settles, nothing is lost.

mod syntax_dump;

use proptest::prelude::*;
use rlhf_lang::fmt::format;
use rlhf_lang::source::FileId;
use rlhf_lang::syntax::{parse, parse_expression};
use syntax_dump::*;

/// More constructs than the sample program has.
const OTHER: &str = r#"
use "mine.rlhf" { f }
param kind: "token" | "sequence" = "token"
data d = jsonl("x.jsonl") { q: text from "Q", a: text[] }
reward exact(a: text, b: text) -> float = python("r.py:exact", timeout: 10)
state beta: float = 0.1
fn half(x: float[.., T], g: axis = T) -> float[..] {
  y = x / 2 // half
  return y
}
step over d[B: 8], epochs: 2 {
  rows D = B where std(r, G) > 0 and not done, limit: 64
  x = if a then -b ^ 2 else { rank: 8, alpha: [1, 2..] }.rank
  next beta = beta * 1.5
}
place p on cluster(gpus: 8) {
  train policy on gpus(0, 8) { dp: 8 }
}
"#;

#[derive(Clone, Debug)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, String),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = 0usize..3000;
    let length = prop_oneof![Just(1usize), 1usize..12, 1usize..300];
    let piece = prop_oneof![
        "[ -~]{1,3}",
        "\\PC{1,2}",
        prop::sample::select(vec![
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            "\"",
            "\n",
            ";",
            ",",
            "=",
            ":",
            "..",
            "//",
            "#",
            "\\",
            "é",
            "\u{1f600}",
            "\u{feff}",
            "\r\n",
            "\t",
            "\0",
            " if ",
            " then ",
            " else ",
            "\nparam ",
            "\nstep over d {",
            "\ntrain m {",
            "\n}",
            "\n  }\n",
            " not ",
            "1e",
            "0x",
            "1.",
            "\\u{",
            "\nreturn ",
            "\n  // c\n",
            " // c\n",
            "\ndata d = ",
            "-",
            "not",
        ])
        .prop_map(str::to_string),
    ];
    prop_oneof![
        (place.clone(), length.clone()).prop_map(|(at, n)| Edit::Delete(at, n)),
        (place.clone(), piece).prop_map(|(at, text)| Edit::Insert(at, text)),
        (place.clone(), length, place).prop_map(|(at, n, to)| Edit::Copy(at, n, to)),
    ]
}

fn mutate(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for edit in edits {
        let count = chars.len().max(1);
        match edit {
            Edit::Delete(at, n) => {
                let from = (at % count).min(chars.len());
                let to = (from + n).min(chars.len());
                chars.drain(from..to);
            }
            Edit::Insert(at, text) => {
                let at = (at % count).min(chars.len());
                chars.splice(at..at, text.chars());
            }
            Edit::Copy(at, n, to) => {
                let from = (at % count).min(chars.len());
                let end = (from + n).min(chars.len());
                let copy: Vec<char> = chars[from..end].to_vec();
                let to = (to % count).min(chars.len());
                chars.splice(to..to, copy);
            }
        }
    }
    chars.into_iter().collect()
}

/// The characters that layout never touches.
fn inked(text: &str) -> String {
    let white = |c: &char| c.is_whitespace() || "\u{feff},;".contains(*c);
    text.chars().filter(|c| !white(c)).collect()
}

/// What must hold of any text.
fn check(text: &str) -> Result<(), TestCaseError> {
    let (tree, diagnostics) = parse(FileId(0), text);
    for diagnostic in &diagnostics {
        prop_assert_eq!(&diagnostic.code, "E001");
        for label in &diagnostic.labels {
            prop_assert!(text.get(label.span.range()).is_some(), "{:?}", diagnostic);
        }
    }
    let mut end = 0;
    for item in &tree.items {
        prop_assert!(item.span.lo as usize >= end && !text[item.span.range()].is_empty());
        end = item.span.hi as usize;
    }
    let bad = file(&tree).contains("BAD");
    prop_assert!(!bad || !diagnostics.is_empty(), "a silent Bad");
    let once = format(text);
    let again = format(&once.text);
    prop_assert_eq!(&again.text, &once.text);
    prop_assert_eq!(inked(&once.text), inked(text));
    if diagnostics.is_empty() {
        prop_assert_eq!(again.diagnostics.len(), 0);
        prop_assert_eq!(file(&parse(FileId(0), &once.text).0), file(&tree));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn mutated_programs_are_read_and_laid_out(
        other in any::<bool>(),
        edits in prop::collection::vec(edit(), 1..6),
    ) {
        check(&mutate(if other { OTHER } else { GRPO }, &edits))?;
    }

    /// Any white space between two words of a statement means the same.
    #[test]
    fn layout_undoes_any_white_space(
        other in any::<bool>(),
        gaps in prop::collection::vec(prop::sample::select(vec![" ", "   ", "\t", "\n", "\n   ", "\r\n"]), 400),
    ) {
        let text = if other { OTHER.replace(" // half", "") } else { GRPO.to_string() };
        let mut gaps = gaps.iter().cycle();
        let scattered: String = text
            .lines()
            .map(|line| match line.contains("//") {
                true => format!("{line}\n"),
                false => line.trim().split(' ').map(|w| format!("{w}{}", gaps.next().unwrap_or(&" "))).collect::<String>() + "\n",
            })
            .collect();
        let (tree, diagnostics) = parse(FileId(0), &scattered);
        prop_assert_eq!(messages(&scattered, &diagnostics), "");
        prop_assert_eq!(file(&tree), items(&text));
        let blank = |text: &str| text.lines().filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
        let aligned = |text: &str| format(&blank(&format(text).text)).text;
        prop_assert_eq!(aligned(&scattered), aligned(&text));
    }

    #[test]
    fn any_text_is_read_and_laid_out(text in "\\PC{0,80}") {
        check(&text)?;
        parse_expression(FileId(0), &text);
    }

    #[test]
    fn any_row_of_tokens_is_read_and_laid_out(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b", "1", "\"t\"", "(", ")", "[", "]", "{", "}", ",", ":", "=", "==", "..", ".", "-",
                "+", "^", "if", "then", "else", "not", "and", "\n", "\n", ";", "// c\n", "\nparam",
                "\ndata", "\nmodel", "step over d", "\ntrain", "\nlog", "\nminimize", "\nreturn",
                "\nnext", "\nrows", "where", "on", "in", "\nfn", "->", "\n  ", "\nplace", "\neval every",
            ]),
            0..40,
        ),
    ) {
        check(&tokens.join(" "))?;
    }
}
