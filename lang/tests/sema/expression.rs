//! Expressions of the command line.

use rlhf_lang::compile::{Expression, Input, compile_expression};
use rlhf_lang::graph::{AxisId, AxisSize, Elem, Op, show};

fn input(name: &str, axes: &[(&str, Option<usize>)]) -> Input {
    Input {
        name: name.into(),
        axes: axes.iter().map(|(n, s)| (n.to_string(), *s)).collect(),
        elem: Elem::Float,
    }
}

fn compile(text: &str, uses: &[&str], inputs: &[Input]) -> Result<Expression, Vec<String>> {
    let uses: Vec<String> = uses.iter().map(|u| u.to_string()).collect();
    compile_expression(text, &uses, inputs, &|_| None).map_err(|(_, found)| {
        found
            .into_iter()
            .map(|d| format!("{} {}", d.code, d.message))
            .collect()
    })
}

fn formula(text: &str, uses: &[&str], inputs: &[Input]) -> String {
    match compile(text, uses, inputs) {
        Ok(e) => format!(
            "{}: {}",
            show::formula(&e.graph, e.value),
            e.graph.show_type(&e.graph.expr(e.value).ty)
        ),
        Err(found) => found.join("\n"),
    }
}

#[test]
fn inputs_are_values_in_order_and_share_axes_by_name() {
    let inputs = [
        input("a", &[("B", Some(2)), ("T", Some(3))]),
        input("b", &[("B", Some(2))]),
        input("c", &[]),
    ];
    let e = compile("a * b + c", &[], &inputs).expect("compiles");
    let names: Vec<&str> = e.graph.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(e.graph.axes.len(), 2);
    assert_eq!(e.graph.expr(e.value).ty.axes, [AxisId(0), AxisId(1)]);
}

#[test]
fn a_sequence_operator_makes_a_uniform_axis_a_sequence() {
    let inputs = [
        input("r", &[("B", Some(2)), ("T", Some(3))]),
        input("v", &[("B", Some(2)), ("T", Some(3))]),
    ];
    let e = compile("gae(r, v, 1, 0.95)", &["std.advantage"], &inputs).expect("compiles");
    assert_eq!(e.graph.axes[1].size, AxisSize::Ragged(3));
    assert_eq!(e.graph.axes[1].parents, [AxisId(0)]);
    assert!(
        e.graph
            .exprs
            .iter()
            .any(|x| matches!(x.op, Op::SuffixSum(_)))
    );
}

#[test]
fn a_sequence_is_the_innermost_axis() {
    let inputs = [input("x", &[("T", Some(3)), ("B", Some(2))])];
    assert_eq!(
        formula("suffix_sum(x, T)", &[], &inputs),
        "E036 `T` of `x` is a sequence, so it must be the innermost axis"
    );
}

#[test]
fn functions_are_inlined_with_the_axes_of_their_arguments() {
    let inputs = [input("r", &[("B", Some(2)), ("K", Some(4))])];
    assert_eq!(
        formula("group_relative(r, K)", &["std.grpo"], &inputs),
        "(r - mean(r, K)) / (std(r, K) + 1e-4): float[B, K]"
    );
    assert_eq!(
        formula("dr_grpo(r, B)", &["std.grpo"], &inputs),
        "r - mean(r, B): float[B, K]"
    );
}

#[test]
fn names_in_a_signature_bind_to_trailing_axes() {
    let inputs = [
        input("r", &[("B", Some(2)), ("S", None)]),
        input("q", &[("B", Some(2))]),
    ];
    assert_eq!(
        formula("returns(r, 0.5)", &["std.advantage"], &inputs),
        "suffix_sum(r, S, decay: 0.5): float[B, S]"
    );
    assert_eq!(
        formula("gae(r, q)", &["std.advantage"], &inputs),
        "E030 `v` of `gae` has axes `[.., T]`, and `q` has axes `[B]`"
    );
    assert_eq!(
        formula("clipped(r, r, q)", &["std.ppo"], &inputs),
        "E032 `clip` of `clipped` is one number, and `q` has axes `[B]`"
    );
}

#[test]
fn min_and_max_are_pairwise_unless_the_second_argument_is_an_axis() {
    let inputs = [input("a", &[("B", Some(2))]), input("b", &[("B", Some(2))])];
    assert_eq!(formula("min(a, b)", &[], &inputs), "min(a, b): float[B]");
    assert_eq!(formula("min(a, B)", &[], &inputs), "min(a, B): float");
    assert_eq!(formula("max(a)", &[], &inputs), "max(a, B): float");
}

#[test]
fn constants_are_folded() {
    assert_eq!(formula("2 * (3 - 1) ^ 2", &[], &[]), "8: float");
    assert_eq!(formula("if 1 < 2 then 3 else 4", &[], &[]), "3: int");
    assert_eq!(formula("\"a\" + \"b\"", &[], &[]), "\"ab\": text");
}

#[test]
fn inputs_that_disagree_are_reported() {
    let inputs = [input("a", &[("B", Some(2))]), input("b", &[("B", Some(3))])];
    assert_eq!(
        formula("a + b", &[], &inputs),
        "E030 `B` has length 3 in `b` and length 2 in an input before it"
    );
    let inputs = [
        input("x", &[("B", Some(2)), ("T", None)]),
        input("y", &[("T", None)]),
    ];
    assert!(formula("x + y", &[], &inputs).starts_with("E030"));
    let inputs = [input("a", &[]), input("a", &[])];
    assert!(formula("a", &[], &inputs).starts_with("E011"));
}

#[test]
fn verbs_have_no_place_in_an_expression() {
    assert!(formula("logp(a, b)", &[], &[]).starts_with("E020"));
    assert!(formula("", &[], &[]).starts_with("E0"));
    assert!(formula("1 +", &[], &[]).starts_with("E001"));
}
