//! What is said about text that does not parse, and what is still read around it.

mod syntax_dump;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::FileId;
use rlhf_lang::syntax::{parse, parse_expression};
use syntax_dump::*;

/// Messages, then the tree.
fn read(text: &str) -> String {
    let (tree, diagnostics) = parse(FileId(0), text);
    assert!(diagnostics.iter().all(|d| d.code == "E001"));
    format!("{}\n---\n{}", messages(text, &diagnostics), file(&tree))
}

/// The one message of a text that stands between two good items.
fn one(broken: &str) -> String {
    let text = format!("param before: int = 1\n{broken}\nparam after: int = 2\n");
    let (tree, diagnostics) = parse(FileId(0), &text);
    let tree = file(&tree);
    let kept =
        tree.starts_with("(param before int = 1)") && tree.ends_with("(param after int = 2)");
    said(&text, &diagnostics, kept, &tree)
}

/// The one message of a statement that stands between two good ones.
fn statement(broken: &str) -> String {
    let text =
        format!("step over d {{\n  before = 1\n  {broken}\n  after = 2\n}}\nparam last: int = 1\n");
    let (tree, diagnostics) = parse(FileId(0), &text);
    let tree = file(&tree);
    let kept = tree.starts_with("(step d (before = 1)")
        && tree.contains("(after = 2))\n(param last int = 1)");
    said(&text, &diagnostics, kept, &tree)
}

/// The message; marked when there is not exactly one, or the good neighbours are lost.
fn said(text: &str, diagnostics: &[Diagnostic], kept: bool, tree: &str) -> String {
    let said = messages(text, diagnostics);
    for fix in diagnostics.iter().filter_map(|d| d.fix.as_ref()) {
        let mut mended = text.to_string();
        for (span, replacement) in fix.edits.iter().rev() {
            mended.replace_range(span.range(), replacement);
        }
        let left = parse(FileId(0), &mended).1;
        if !left.is_empty() {
            return format!("UNEXPECTED after the fix: {}", messages(&mended, &left));
        }
    }
    match (diagnostics.len(), kept) {
        (1, true) => said,
        (count, _) => format!("UNEXPECTED: {count} messages\n{said}\n{tree}"),
    }
}

fn expression(text: &str) -> String {
    let (_, diagnostics) = parse_expression(FileId(0), text);
    messages(text, &diagnostics)
}

fn each(say: impl Fn(&str) -> String, texts: &[&str]) -> String {
    let show = |text: &&str| format!("{text}\n    {}", say(text));
    let all = texts.iter().map(show).collect::<Vec<_>>().join("\n");
    assert!(!all.contains("UNEXPECTED"), "{all}");
    all
}

#[test]
fn broken_items() {
    let said = each(
        one,
        &[
            "param clip float in 0..1 = 0.2",
            "param clip: = 0.2",
            "param clip: float in = 0.2",
            "param clip: float in 3 = 0.2",
            "param clip: float in 0..1 0.2",
            "param clip: float = 0.2 0.3",
            "param clip = 0.2",
            "param",
            "data d jsonl(\"x\") { q: text }",
            "data d = jsonl(\"x\")",
            "data d = jsonl(\"x\") { q text }",
            "data d = jsonl(\"x\") { q: text\n a: text }",
            "data d = jsonl(\"x { q: text }",
            "model policy causal(base)",
            "model policy = causal(base",
            "model policy = causal(base))",
            "model policy =",
            "modle policy = causal(base)",
            "pram x: int = 3",
            "state beta = 0.1",
            "state beta: float",
            "reward f(a: text) = python(\"f.py:f\")",
            "reward f(a) -> float = python(\"f.py:f\")",
            "use std.kl k3",
            "use std.kl { k3 k1 }",
            "fn f(x) -> float = x",
            "fn f(x: float) -> float",
            "fn f(x: float) -> = x",
            "fn f(x: float) -> float { y = x }",
            "fn f(x: float) -> float { return x; return x }",
            "fn f(x: float) -> float { return x; y = x }",
            "fn f(x: float) -> float { log a: x; return x }",
            "fn f(x: float -> float = x",
            "def f(x): return x",
            "from std.kl import k3",
            "import std.kl",
            "for x in d { y = 1 }",
            "let x = 3",
            "x = 3",
            "train policy { minimize x }",
            "banana",
            "}",
            "step d { a = 1 }",
            "step over d, iterations 3 {\n a = 1\n}",
            "step over d[B: 8] iterations: 3 {\n a = 1\n}",
            "step over d[B: 8, iterations: 3 {\n a = 1\n}",
            "step over d",
            "eval 20 over d {\n a = 1\n}",
            "eval every 20 d {\n a = 1\n}",
            "place p on cluster(gpus: 8) {\n  roll gpus(0, 1)\n  ref on gpus(0, 1)\n}",
            "# a comment",
            "step over d {\n return 3\n}",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn broken_statements() {
    let said = each(
        statement,
        &[
            "r = if a = b then 1 else 0",
            "r = if a == b then 1",
            "r = if a == b: 1 else: 0",
            "r = if a == b 1 else 0",
            "r = 1 if a == b else 0",
            "r = f(a b)",
            "r = f(a, b",
            "r = f(a, (b + c)",
            "r = mean(x, [B, G)",
            "r = f(a, b))",
            "r = f(temperature=1)",
            "r = f(a, temperature = 1)",
            "r = a && b",
            "r = a || b",
            "r = !a",
            "r = a ** 2",
            "r = lambda x: x + 1",
            "r = f(lambda x: x)",
            "r = True",
            "r = f(a, None)",
            "r = not False",
            "r = 'text'",
            "r = “text”",
            "r = \"text",
            "r = \"te\\dxt\"",
            "r = \"te\\u{zz}xt\"",
            "r = x +",
            "r = x + * y",
            "r = x y",
            "r = x[0]",
            "r = x.f(y)",
            "r = .5",
            "r = 1.",
            "r = 8x",
            "r = a < b < c",
            "r = β",
            "r = 1e999",
            "r =",
            "r == 3",
            "r: float = 3",
            "r, s = f(x)",
            "r += 1",
            "r := 1",
            "f(x)",
            "mean(x",
            "minimise x",
            "minimize",
            "minimize x = 3",
            "log x",
            "log reward mean(r)",
            "log reward: mean(r) length: 3",
            "log(x)",
            "next beta 3",
            "next beta",
            "rows D = B if x > 0",
            "rows D = B where x = 0",
            "train {\n    minimize x\n  }",
            "train policy minibatch: 4 {\n    minimize x\n  }",
            "train policy, minibatch 4 {\n    minimize x\n  }",
            "train policy, epochs: 2",
            "train policy {\n    minimize x +\n  }",
            "train policy {\n    a = 3 4\n    minimize x\n  }",
            "for x in y",
            "for x in y {\n    z = 1\n  }",
            "trian policy {\n    minimize x\n  }",
            "train policy, { minimize x }",
            "if a then b else c",
            "data d = jsonl(\"x\") { }",
            "r = a ? b : c",
            "r = a; s = ; t = 3",
            "print(x)",
            "r = x @ y",
            "r = sum(x for y in z)",
            "r = (a, b)",
            "r = f(a,, b)",
            "r = f(,)",
            "r = [a b]",
            "r = {rank: 8 alpha: 3}",
            "r = generate(m, p)[G 8]",
            "r = generate(m, p)[T: 0..8]",
            "r = x then y",
            "r = x else y",
            "3 = r",
            ")",
            "train policy, {\n    minimize x\n  }",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn broken_expressions() {
    let said = each(
        expression,
        &[
            "", "1 +", "x y", "f(x", "x = 3", "mean(x))", "\"abc", "a\nb", ")", "1 2 3", "x;",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn two_broken_lines_are_two_messages() {
    insta::assert_snapshot!(read(
        "param a int = 1\nmodle b = causal(a)\nstep over d {\n  x = (1\n  y = 2\n  z = 3 +\n}\nparam c: int = 4\n"
    ));
}

#[test]
fn a_block_that_is_not_closed_ends_where_its_indentation_does() {
    let inner = GRPO.replacen(
        "    log kl: mean(k3(lp, ref))\n  }\n",
        "    log kl: mean(k3(lp, ref))\n",
        1,
    );
    insta::assert_snapshot!("inner", read(&inner));
    let outer = GRPO.replacen("len(roll, T))\n}\n", "len(roll, T))\n", 1);
    insta::assert_snapshot!("outer", read(&outer));
    let surplus = GRPO.replacen(
        "adv  = group_relative(r, G)\n",
        "adv  = group_relative(r, G)\n  }\n",
        1,
    );
    insta::assert_snapshot!("surplus", read(&surplus));
    let opener = GRPO.replacen("iterations: 60 {", "iterations: 60", 1);
    insta::assert_snapshot!("opener", read(&opener));
}

#[test]
fn python_comments_are_read_and_reported_once() {
    insta::assert_snapshot!(read(
        "# one\nparam a: int = 1 # two\nstep over d {\n  # three\n  x = 1\n}\n"
    ));
}

#[test]
fn a_python_comment_within_brackets_may_hold_any_character() {
    for comment in ["#ä", "#é)", "#\u{1f600} 2]", "# (ä", "#"] {
        let text =
            format!("step over d {{\n  x = mean(r {comment}\n  , B)\n  y = [1 {comment}\n}}\n");
        let (_, diagnostics) = parse(FileId(0), &text);
        assert!(!diagnostics.is_empty(), "{text}");
    }
}
