//! Every function of the standard library has an example that compiles; schedules are worth what theirs
//! says. The numbers of the others need libtorch: `interpreter/runtime/tests/stdlib_examples.rs`.

use rlhf_lang::compile::{Expression, Input, compile_expression};
use rlhf_lang::graph::{Binary, Elem, ExprRef, Graph, Op, Unary};
use serde_json::Value as Json;

use super::example::{Example, examples};
use super::none;

fn all() -> Vec<(String, Option<Example>)> {
    let modules = rlhf_stdlib::modules().iter().copied();
    modules
        .chain(["std.prelude"])
        .flat_map(|m| examples(m, rlhf_stdlib::module(m).expect("listed modules exist")))
        .collect()
}

/// The common length of the lists at a depth, `None` where they differ.
fn length(data: &Json, depth: usize) -> Option<usize> {
    let items = data.as_array()?;
    match depth {
        0 => Some(items.len()),
        _ => {
            let mut lengths = items.iter().map(|i| length(i, depth - 1));
            let first = lengths.next()??;
            lengths.all(|n| n == Some(first)).then_some(first)
        }
    }
}

fn depth(data: &Json) -> usize {
    match data {
        Json::Array(items) => 1 + items.first().map_or(0, depth),
        _ => 0,
    }
}

fn compiled(example: &Example) -> Result<Expression, String> {
    let mut inputs = vec![];
    for (name, axes, data) in &example.inputs {
        let data: Json = serde_json::from_str(data).map_err(|e| format!("{data}: {e}"))?;
        let axes = axes.iter().enumerate();
        inputs.push(Input {
            name: name.clone(),
            axes: axes.map(|(d, a)| (a.clone(), length(&data, d))).collect(),
            elem: Elem::Float,
        });
    }
    let uses = match example.module {
        "std.prelude" => vec![],
        other => vec![other.to_string()],
    };
    compile_expression(&example.expression, &uses, &inputs, &|_| None)
        .map_err(|(_, found)| format!("{found:?}"))
}

#[test]
fn every_function_has_an_example_that_compiles_and_calls_it() {
    let all = all();
    let mut wrong = vec![];
    for (function, example) in &all {
        let Some(example) = example else {
            wrong.push(format!("`{function}` has no example above its `fn`"));
            continue;
        };
        if !example.expression.contains(&format!("{function}(")) {
            wrong.push(format!("the example of `{function}` does not call it"));
        }
        let made = match compiled(example) {
            Ok(made) => made,
            Err(why) => {
                wrong.push(format!("`{function}`: {why}"));
                continue;
            }
        };
        let value: Json = serde_json::from_str(&example.value).expect("a value is JSON");
        let axes = match example.iterations {
            Some(_) => 1,
            None => made.graph.expr(made.value).ty.axes.len(),
        };
        if depth(&value) != axes {
            wrong.push(format!(
                "`{function}`: {axes} axes, and the example says {value}"
            ));
        }
    }
    none("examples of the standard library", &wrong);
    assert!(all.len() > 70, "{} functions", all.len());
}

#[test]
fn schedules_are_worth_what_their_examples_say() {
    let mut count = 0;
    for (_, example) in all() {
        let Some((example, iterations)) = example.and_then(|e| e.iterations.map(|n| (e, n))) else {
            continue;
        };
        count += 1;
        let made = compiled(&example).expect("examples compile");
        let says: Vec<f64> = serde_json::from_str(&example.value).expect("a list of numbers");
        assert_eq!(says.len(), iterations, "{}", example.expression);
        for (i, says) in says.iter().enumerate() {
            let is = at(&made.graph, made.value, (i + 1) as f64, iterations as f64);
            assert!(
                (is - says).abs() < 1e-3,
                "{} in iteration {} is {is}, not {says}",
                example.expression,
                i + 1
            );
        }
    }
    assert!(count >= 9, "{count} schedules");
}

/// A schedule's value in an iteration of a run.
fn at(graph: &Graph, e: ExprRef, now: f64, all: f64) -> f64 {
    let x = graph.expr(e);
    let arg = |i: usize| at(graph, x.args[i], now, all);
    match &x.op {
        Op::Number(v) => *v,
        Op::Bool(b) => f64::from(*b),
        Op::Iteration => now,
        Op::Iterations => all,
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
