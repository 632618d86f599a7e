//! The work of parsing, counted in rule calls. Alone in its process: pest's limit is global.

use std::num::NonZeroUsize;

use rlhf_lang::source::FileId;
use rlhf_lang::syntax::{parse, parse_expression};

/// Rule calls one token may cost; backtracking that doubles with depth goes far beyond.
const CALLS_A_TOKEN: usize = 150;

fn parses_within(text: &str, tokens: usize) -> bool {
    let calls = NonZeroUsize::new(tokens * CALLS_A_TOKEN);
    pest::set_call_limit(calls);
    let (_, diagnostics) = parse_expression(FileId(0), text);
    pest::set_call_limit(None);
    diagnostics.is_empty()
}

#[test]
fn nesting_costs_a_constant_a_token() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("f(", ")"),
        ("f(a: ", ")"),
        ("{a: ", "}"),
        ("f(x)[T: ..", "]"),
        ("f(x)[T: ", "]"),
        ("if a then ", " else b"),
        ("if ", " then a else b"),
        ("-(", ")"),
    ] {
        for depth in [10, 100, 190] {
            let text = open.repeat(depth) + "x" + &close.repeat(depth);
            let tokens = (open.split_whitespace().count() + 4) * depth + 10;
            assert!(parses_within(&text, tokens), "{open} {depth}");
        }
    }
    assert!(
        !parses_within(&("(".repeat(100) + "x" + &")".repeat(100)), 1),
        "the limit counts"
    );
}

#[test]
fn deep_texts_end_with_one_message() {
    for depth in [199, 200, 201, 100_000] {
        for (open, close) in [
            ("(", ")"),
            ("if ", " then a else b"),
            ("f(", ")"),
            ("{a: ", "}"),
        ] {
            let text = open.repeat(depth) + "x" + &close.repeat(depth);
            let (_, diagnostics) = parse_expression(FileId(0), &text);
            assert_eq!(
                diagnostics.len(),
                usize::from(depth > 200),
                "{open} {depth}"
            );
        }
    }
    for link in ["-", "not ", "x + ", "x ^ ", "a.", "x == y and "] {
        let text = link.repeat(100_000) + "x";
        let (_, diagnostics) = parse_expression(FileId(0), &text);
        assert_eq!(diagnostics.len(), 1, "{link}");
        assert!(
            diagnostics[0].message.contains("deeper"),
            "{}",
            diagnostics[0].message
        );
    }
    for text in [
        "step over d { ",
        "train m { ",
        "(",
        "}",
        "step over d ",
        "train m",
        "\"",
        "= ",
        "fn f(",
    ] {
        let text = text.repeat(20_000);
        let (_, diagnostics) = parse(FileId(0), &text);
        assert!(!diagnostics.is_empty());
        let text = format!("step over d {{ {text}");
        parse(FileId(0), &text);
        rlhf_lang::fmt::format(&text);
    }
}
