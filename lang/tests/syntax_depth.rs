//! Deep and endless texts: a message, no overflow.

use rlhf_lang::source::FileId;
use rlhf_lang::syntax::{parse, parse_expression};

#[test]
fn deep_texts_end_with_one_message() {
    for depth in [199, 200, 201, 20_000] {
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
        let text = link.repeat(20_000) + "x";
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
        let text = text.repeat(3_000);
        let (_, diagnostics) = parse(FileId(0), &text);
        assert!(!diagnostics.is_empty());
        let text = format!("step over d {{ {text}");
        parse(FileId(0), &text);
        rlhf_lang::fmt::format(&text);
    }
}
