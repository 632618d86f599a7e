//! The work of parsing, counted in rule calls. Alone in its process: pest's limit is global.

use std::num::NonZeroUsize;

use rlhf_lang::source::FileId;
use rlhf_lang::syntax::parse_expression;

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
