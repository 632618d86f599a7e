//! Every construct of the language, as a tree.

mod syntax_dump;

use rlhf_lang::source::FileId;
use rlhf_lang::syntax::ast::*;
use rlhf_lang::syntax::parse;
use syntax_dump::*;

fn each(show: impl std::ops::Fn(&str) -> String, texts: &[&str]) -> String {
    let line = |text: &&str| format!("{text}\n    {}", show(text));
    texts.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_sample_program_parses() {
    let tree = items(GRPO);
    insta::assert_snapshot!(tree);
}

#[test]
fn all_items() {
    let trees = each(
        items,
        &[
            "use std.kl { k1, k3 }",
            "use \"mine.rlhf\" { f, }",
            "use std.data { data, model, param }",
            "param n: int",
            "param n: int in 1.. = 8",
            "param n: float in ..64",
            "param n: float in -1..1 = -0.5",
            "param n: \"token\" | \"sequence\" = \"token\"",
            "param clip: float in 0..clip_max = a * 2",
            "param\n  n\n  : int\n  in 1..\n  = 8",
            "data d = jsonl(\"x\") { q: text, h: chat, f: float, w: text[] from \"other name\", }",
            "data d = hf(\"a/b\", split: \"train\")\n{ from: text from \"from\" }",
            "model m = scalar(base, per: token, lora: {rank: 8, alpha: 16}, init: random(config: \"c\"))",
            "model anchor = frozen(policy)",
            "reward f(response: text, n: int = 3) -> float = python(\"file.py:fn\", timeout: 10, otherwise: 0)",
            "state beta: float = 0.1",
            "fn f(x: float[..], y: float[.., T], g: axis, m: model, k: float = 0.5) -> float[..] = x + y",
            "fn f() = 1",
            "fn f(x: float) -> float { a = x; b = a * 2\n return b }",
            "fn f(x: float) -> float {\n  return x\n}",
            "step over d { }",
            "step over d[B: n], iterations: 3, epochs: 2 { a = 1 }",
            "eval every 20 over d { a = 1 }",
            "eval every n * 2 over d[B: 64] { }",
            "place grpo on cluster(nodes: 2, gpus: 8, device: \"h100-80g\") {\n roll on gpus(0, 16) { dp: 8, tp: 2 }\n train policy on gpus(0, 16) { zero: 1, recompute: true, offload: host }\n reward on gpus(0, 1)\n state on gpus(1, 1); train on gpus(2, 1)\n}",
            "param a: int = 1; param b: int = 2",
            "",
            "// nothing",
        ],
    );
    insta::assert_snapshot!(trees);
}

#[test]
fn all_statements() {
    let trees = each(
        statement,
        &[
            "a = 1",
            "a = 1; b = 2;; c = 3;",
            "a = b\n  + c\n  * d",
            "a = f\n(x)",
            "a =\n\n  1",
            "rows D = B where std(r, G) > 0, limit: 64",
            "rows D = B\n where a and b",
            "train m { minimize x }",
            "train m, minibatch: 4, epochs: 2, shuffle: false { lp = x\n minimize -lp\n log kl: y }",
            "train m, options: { a: 1 } { minimize x }",
            "minimize (a + b) * c",
            "minimize mean(x, [B, G, T])",
            "minimize if a then b else c",
            "log reward: mean(r), length: mean(len(roll, T)),",
            "log if: a, log: log(x)",
            "next beta = beta * 1.5",
            "next anchor = lerp(anchor, policy, 0.01)",
        ],
    );
    insta::assert_snapshot!(trees);
}

#[test]
fn words_are_soft() {
    let trees = each(
        statement,
        &[
            "data = 1\nmodel = 2\nparam = 3\nstep = 4\neval = 5\nuse = 6\nreward = 7\nstate = 8\nfn = 9\nplace = 10",
            "next = 1\nlog = 2\ntrain = 3\nrows = 4\nminimize = 5\nreturn = 6",
            "x = log(y) + log + next.step - ref(data, step: model)",
            "x = roll.if.then.log.and",
            "x = f(if: 1, not: 2, true: 3, in: 4)",
            "in = where + over\nwhere = from",
            "next next = next",
            "log log: log, next: next, train: train",
            "train train, train: 1 { minimize minimize }",
            "rows rows = rows where where",
            "androgen = notes + iffy",
        ],
    );
    insta::assert_snapshot!(trees);
}

#[test]
fn all_expressions() {
    let trees = each(
        value,
        &[
            "1",
            "1.5",
            "1e-5",
            "2E+3",
            "1_000",
            "1_0.2_5e1_0",
            "\"a\\n\\t\\\\\\\"\\u{e9}\\r é // no comment\"",
            "true",
            "false",
            "x",
            "(x)",
            "((x))",
            "f()",
            "f(x)",
            "f(x,)",
            "f(x, by: 2, [B, G], { rank: 8 })",
            "{}",
            "[]",
            "{ a, b: 1, }",
            "generate(policy, chat(question), temperature: 1)[G: n * 2, T: ..64]",
            "answer(prompt, text)[W: ..n + 1]",
            "f(x)[G]",
            "a.b.c",
            "f(x).end",
            "roll\n  .text",
            "generate(m, p)[T: ..8].text",
            "1..2",
            "1..",
            "..2",
            "a + 1..b * 2",
            "f(0..1)",
            "[0..1, 2..]",
            "(1..)",
            "-x",
            "--x",
            "-x ^ 2",
            "2 ^ -x ^ y",
            "-2 * -x",
            "a - -b",
            "x^2^3",
            "a + b * c - d",
            "a * b / c % d",
            "a - b - c",
            "(a + b) * c",
            "a == b",
            "a != b and c <= d or e >= f and g > h",
            "not a == b",
            "not a and b",
            "a or not b",
            "a + b < c * d",
            "not not a",
            "if a then b else c",
            "if a then b else if c then d else e",
            "if a then if b then c else d else e",
            "x + if a then b else c + d",
            "f(if a then 1 else 0)",
            "(if a then b else c) * d",
            "beta * k3(lp, ref) - clipped(exp(lp - roll.logp), adv, clip)",
            "a // comment\n + b",
        ],
    );
    insta::assert_snapshot!(trees);
}

#[test]
fn spans_are_exact() {
    let text = "// c\nstep over d[B: 8] {  // c\n  x = f( a , b: -1 )[ T: ..8 ] . y // c\n\n  log k: (a)  + \"é\" // c\n}\n\n/// doc\n\nparam n : int in 1 .. = 8 // c\n";
    let mut seen = vec![];
    let file = good(text);
    let slice = |span: rlhf_lang::source::Span| text[span.range()].to_string();
    fn walk(e: &Expr, seen: &mut Vec<rlhf_lang::source::Span>) {
        seen.push(e.span);
        match &e.kind {
            ExprKind::Call { args, axes, .. } => {
                args.iter().for_each(|a| walk(&a.value, seen));
                seen.extend(axes.iter().map(|a| a.span));
            }
            ExprKind::Member { base, .. } => walk(base, seen),
            ExprKind::Unary { operand, .. } => walk(operand, seen),
            ExprKind::Paren(inner) => walk(inner, seen),
            ExprKind::Binary {
                op_span,
                left,
                right,
                ..
            } => {
                seen.push(*op_span);
                walk(left, seen);
                walk(right, seen);
            }
            _ => {}
        }
    }
    for item in &file.items {
        seen.push(item.span);
        match &item.kind {
            ItemKind::Step(step) => {
                for stmt in &step.body {
                    seen.push(stmt.span);
                    match &stmt.kind {
                        StmtKind::Bind { value, .. } => walk(value, &mut seen),
                        StmtKind::Log(metrics) => walk(&metrics[0].1, &mut seen),
                        _ => {}
                    }
                }
            }
            ItemKind::Param(p) => {
                seen.extend([p.name.span, p.ty.span]);
                seen.extend(p.range.iter().map(|r| r.span));
            }
            _ => {}
        }
    }
    let seen: Vec<String> = seen.into_iter().map(slice).collect();
    insta::assert_debug_snapshot!(seen);
}

#[test]
fn expressions_of_a_file_have_numbers_of_their_own() {
    let file = good(GRPO);
    let debug = format!("{file:?}");
    let mut ids: Vec<u32> = debug
        .split("ExprId(")
        .skip(1)
        .filter_map(|rest| rest.split(')').next()?.parse().ok())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..file.exprs).collect::<Vec<_>>());
}

#[test]
fn docs_and_comments_are_kept() {
    let text = "//! one\n//!  two\n\n// plain\n/// a\n/// b\nparam x: int = 1 // trailing\n//// not doc\nparam y: int = 2\n/// late\n";
    let file = good(text);
    assert_eq!(file.doc, "one\n two");
    let docs: Vec<Option<&str>> = file.items.iter().map(|i| i.doc.as_deref()).collect();
    assert_eq!(docs, [Some("a\nb"), None]);
    let comments: Vec<(CommentKind, &str)> = file
        .comments
        .iter()
        .map(|c| (c.kind, c.text.as_str()))
        .collect();
    use CommentKind::*;
    assert_eq!(
        comments,
        [
            (Module, " one"),
            (Module, "  two"),
            (Line, " plain"),
            (Doc, " a"),
            (Doc, " b"),
            (Line, " trailing"),
            (Line, "// not doc"),
            (Doc, " late"),
        ]
    );
    assert_eq!(&text[file.comments[5].span.range()], "// trailing");
}

#[test]
fn line_ends_and_marks_of_other_systems_are_white_space() {
    let file = good(
        "\u{feff}param a: int = 1\r\n// c\r\nstep over d {\r\n  x =\u{a0}1\r\n  y = 2\r\n}\r\n",
    );
    assert_eq!(
        syntax_dump::file(&file),
        "(param a int = 1)\n(step d (x = 1) (y = 2))"
    );
    assert_eq!(file.comments[0].text, " c");
    let (broken, diagnostics) = parse(FileId(0), "step over d {\r\n  x = \"a\r\n  y = 2\r\n}\r\n");
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(syntax_dump::file(&broken), "(step d (x = BAD) (y = 2))");
}
