//! Every function of the standard library lowers, and is documented.

use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::graph::{Binary, Elem, ExprRef, Graph, Op, Unary};
use rlhf_lang::source::FileId;
use rlhf_lang::syntax::ast::{FnParam, ItemKind, TypeKind};
use rlhf_lang::syntax::parse;

fn modules() -> impl Iterator<Item = &'static str> {
    rlhf_stdlib::modules()
        .iter()
        .copied()
        .chain(["std.prelude"])
}

/// An argument that fits a parameter.
fn argument(p: &FnParam, all: &[FnParam]) -> String {
    let along_tokens = all.iter().any(|p| p.name.text == "t");
    let of_tokens = |p: &FnParam| p.ty.axes.as_ref().is_some_and(|a| a.len() > 1);
    match (&p.ty.kind, &p.ty.axes) {
        (TypeKind::Name(n), _) if n == "axis" && p.name.text == "t" => "T".into(),
        (TypeKind::Name(n), _) if n == "axis" => "G".into(),
        (TypeKind::Name(n), _) if n == "axes" && all.iter().any(of_tokens) => "[B, G, T]".into(),
        (TypeKind::Name(n), _) if n == "axes" => "[B, G]".into(),
        (TypeKind::Name(n), None) if n == "int" => "3".into(),
        (TypeKind::Name(n), None) if n == "bool" => "true".into(),
        (TypeKind::Name(n), Some(_)) if n == "bool" => "r > 0".into(),
        (_, None) => "0.5".into(),
        (_, Some(_)) if along_tokens || of_tokens(p) => "x".into(),
        _ => "r".into(),
    }
}

#[test]
fn every_function_lowers_with_all_its_arguments_and_with_none_of_its_defaults() {
    let input = |name: &str, axes: &[(&str, Option<usize>)]| Input {
        name: name.into(),
        axes: axes.iter().map(|(n, s)| (n.to_string(), *s)).collect(),
        elem: Elem::Float,
    };
    let inputs = [
        input("r", &[("B", Some(2)), ("G", Some(3))]),
        input("x", &[("B", Some(2)), ("G", Some(3)), ("T", None)]),
    ];
    let mut count = 0;
    for module in modules() {
        let text = rlhf_stdlib::module(module).expect("listed modules exist");
        let (file, diagnostics) = parse(FileId(0), text);
        assert!(diagnostics.is_empty(), "{module}: {diagnostics:?}");
        for item in &file.items {
            let ItemKind::Fn(f) = &item.kind else {
                continue;
            };
            count += 1;
            assert!(item.doc.is_some(), "{module}.{} has no doc", f.name.text);
            for defaults in [true, false] {
                let given = f.params.iter().filter(|p| defaults || p.default.is_none());
                let args: Vec<String> = given.map(|p| argument(p, &f.params)).collect();
                let call = format!("{}({})", f.name.text, args.join(", "));
                let uses = match module {
                    "std.prelude" => vec![],
                    other => vec![other.to_string()],
                };
                let result = compile_expression(&call, &uses, &inputs, &|_| None);
                if let Err((_, found)) = result {
                    panic!("{module}: {call}: {found:?}");
                }
            }
        }
    }
    assert!(count > 70, "{count} functions");
}

/// The value of a schedule in an iteration of a run.
fn value(graph: &Graph, e: ExprRef, at: f64, of: f64) -> f64 {
    let x = graph.expr(e);
    let arg = |i: usize| value(graph, x.args[i], at, of);
    match &x.op {
        Op::Number(v) => *v,
        Op::Bool(b) => f64::from(*b),
        Op::Iteration => at,
        Op::Iterations => of,
        Op::Binary(Binary::Add) => arg(0) + arg(1),
        Op::Binary(Binary::Sub) => arg(0) - arg(1),
        Op::Binary(Binary::Mul) => arg(0) * arg(1),
        Op::Binary(Binary::Div) => arg(0) / arg(1),
        Op::Binary(Binary::Min) => arg(0).min(arg(1)),
        Op::Binary(Binary::Max) => arg(0).max(arg(1)),
        Op::Unary(Unary::Sqrt) => arg(0).sqrt(),
        Op::Binary(Binary::Le) => f64::from(arg(0) <= arg(1)),
        Op::Select => arg(if arg(0) != 0.0 { 1 } else { 2 }),
        Op::Clamp => arg(0).max(arg(1)).min(arg(2)),
        other => panic!("{other:?} in a schedule"),
    }
}

fn schedule(text: &str, iterations: usize) -> Vec<f64> {
    let made = compile_expression(text, &[], &[], &|_| None);
    let made = made.unwrap_or_else(|(_, found)| panic!("{text}: {found:?}"));
    (1..=iterations)
        .map(|i| value(&made.graph, made.value, i as f64, iterations as f64))
        .collect()
}

#[test]
fn schedules_follow_their_formulas() {
    let close = |a: Vec<f64>, b: &[f64]| {
        assert_eq!(a.len(), b.len());
        let near = a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(near, "{a:?} is not {b:?}");
    };
    close(schedule("warmup(1, 2)", 4), &[0.5, 1.0, 1.0, 1.0]);
    close(schedule("linear(1)", 4), &[1.0, 0.75, 0.5, 0.25]);
    close(
        schedule("linear(1, 2, 0.5)", 6),
        &[0.5, 1.0, 1.0, 0.875, 0.75, 0.625],
    );
    let half = |p: f64| (1.0 + (std::f64::consts::PI * p).cos()) / 2.0;
    close(
        schedule("cosine(1, 2)", 6),
        &[0.5, 1.0, 1.0, half(0.25), half(0.5), half(0.75)],
    );
}
