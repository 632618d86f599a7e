//! Every differentiable operation against PyTorch: values and gradients of `expr_ops.json`, which
//! `tests/reference/expr_ops.py` writes.

mod expr_support;

use expr_support::{B, Build, G, T};
use rlhf_lang::graph::{Binary, Elem, ExprRef, Op, Reduce, Unary};
use rlhf_runtime::eval::{self, EvalRequest};
use serde_json::{Value as Json, json};

fn expression(name: &str, b: &mut Build) -> ExprRef {
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let d = b.input("d", Elem::Float, &[B, G, T]);
    let r = b.input("r", Elem::Float, &[B, G]);
    let one = b.num(1.0);
    let tenth = b.num(0.1);
    let squared = b.bin(Binary::Mul, x, x);
    let near = b.bin(Binary::Add, squared, tenth);
    match name {
        "mean_t" => b.reduce(Reduce::Mean, x, &[T]),
        "sum_t" => b.reduce(Reduce::Sum, x, &[T]),
        "max_t" => b.reduce(Reduce::Max, x, &[T]),
        "min_t" => b.reduce(Reduce::Min, x, &[T]),
        "std_t" => b.reduce(Reduce::Std, x, &[T]),
        "var_t_biased" => b.reduce_as(Reduce::Var, x, &[T], true),
        "mean_gt" => b.reduce(Reduce::Mean, x, &[G, T]),
        "std_gt" => b.reduce(Reduce::Std, x, &[G, T]),
        "max_gt" => b.reduce(Reduce::Max, x, &[T, G]),
        "mean_bgt" => b.reduce(Reduce::Mean, x, &[B, G, T]),
        "mean_of_mean" => {
            let per_response = b.reduce(Reduce::Mean, x, &[T]);
            b.reduce(Reduce::Mean, per_response, &[B, G])
        }
        "sum_bt" => b.reduce(Reduce::Sum, x, &[B, T]),
        "std_g" => b.reduce(Reduce::Std, r, &[G]),
        "max_b" => b.reduce(Reduce::Max, r, &[B]),
        "suffix_sum" => b.along(Op::SuffixSum(T), &[x, d]),
        "prefix_sum" => b.along(Op::PrefixSum(T), &[x, d]),
        "suffix_row_decay" => b.along(Op::SuffixSum(T), &[x, r]),
        "shift_later" => b.along(Op::Shift { axis: T, by: 1 }, &[x, r]),
        "shift_earlier" => b.along(Op::Shift { axis: T, by: -2 }, &[x, r]),
        "first" => b.without(Op::First(T), x, T),
        "last" => b.without(Op::Last(T), x, T),
        "at_last" => b.push(Op::AtLast(T), &[r], Elem::Float, &[B, G, T]),
        "product" => {
            let xd = b.bin(Binary::Mul, x, d);
            b.bin(Binary::Add, xd, r)
        }
        "quotient" => {
            let dd = b.bin(Binary::Mul, d, d);
            let below = b.bin(Binary::Add, dd, one);
            b.bin(Binary::Div, x, below)
        }
        "clamp" => {
            let (lo, hi) = (b.num(-0.5), b.num(0.75));
            b.clamp(x, lo, hi)
        }
        "min" => b.bin(Binary::Min, x, d),
        "max" => b.bin(Binary::Max, x, r),
        "min_equal" => {
            let same = b.bin(Binary::Mul, x, one);
            b.bin(Binary::Min, x, same)
        }
        "pow" => {
            let base = b.un(Unary::Exp, x);
            b.bin(Binary::Pow, base, d)
        }
        "remainder" => {
            let by = b.num(0.7);
            b.bin(Binary::Rem, x, by)
        }
        "exp" => b.un(Unary::Exp, x),
        "log" => b.un(Unary::Log, near),
        "log1p" => b.un(Unary::Log1p, squared),
        "expm1" => b.un(Unary::Expm1, x),
        "abs" => b.un(Unary::Abs, x),
        "sqrt" => b.un(Unary::Sqrt, near),
        "sigmoid" => b.un(Unary::Sigmoid, x),
        "log_sigmoid" => b.un(Unary::LogSigmoid, x),
        "softplus" => b.un(Unary::Softplus, x),
        "relu" => b.un(Unary::Relu, x),
        "tanh" => b.un(Unary::Tanh, x),
        "sign" => {
            let sign = b.un(Unary::Sign, x);
            b.bin(Binary::Mul, sign, x)
        }
        "round" => {
            let round = b.un(Unary::Round, x);
            b.bin(Binary::Mul, round, x)
        }
        "whiten" => {
            let mean = b.reduce(Reduce::Mean, x, &[B, G, T]);
            let std = b.reduce(Reduce::Std, x, &[B, G, T]);
            let eps = b.num(1e-5);
            let below = b.bin(Binary::Add, std, eps);
            let above = b.bin(Binary::Sub, x, mean);
            b.bin(Binary::Div, above, below)
        }
        "group_relative" => {
            let mean = b.reduce(Reduce::Mean, r, &[G]);
            let std = b.reduce(Reduce::Std, r, &[G]);
            let eps = b.num(1e-4);
            let below = b.bin(Binary::Add, std, eps);
            let above = b.bin(Binary::Sub, r, mean);
            b.bin(Binary::Div, above, below)
        }
        "ppo" => {
            let old = b.push(Op::Stop, &[d], Elem::Float, &[B, G, T]);
            let delta = b.bin(Binary::Sub, x, old);
            let ratio = b.un(Unary::Exp, delta);
            let (lo, hi) = (b.num(0.8), b.num(1.2));
            let clipped = b.clamp(ratio, lo, hi);
            let (p, q) = (b.bin(Binary::Mul, ratio, r), b.bin(Binary::Mul, clipped, r));
            let best = b.bin(Binary::Min, p, q);
            let loss = b.un(Unary::Neg, best);
            let per_response = b.reduce(Reduce::Mean, loss, &[T]);
            b.reduce(Reduce::Mean, per_response, &[B, G])
        }
        "if_overflow" => {
            // Where r ≤ 0 the branch not taken overflows: its derivative is infinite there.
            let (lo, hi) = (b.num(-0.5), b.num(0.5));
            let zero = b.num(0.0);
            let taken = b.bin(Binary::Gt, r, zero);
            let inside = b.clamp(x, lo, hi);
            let big = b.num(4000.0);
            let dark = b.bin(Binary::Sub, one, inside);
            let scale = b.select(taken, zero, big);
            let over = b.bin(Binary::Mul, scale, dark);
            let spoil = b.un(Unary::Exp, over);
            let none = b.bin(Binary::Sub, spoil, one);
            let value = b.un(Unary::Exp, inside);
            let yes = b.bin(Binary::Add, none, value);
            let two = b.num(2.0);
            let no = b.bin(Binary::Mul, x, two);
            b.select(taken, yes, no)
        }
        other => panic!("no expression for the case {other}"),
    }
}

fn flat(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        Json::Null => vec![f64::NAN],
        other => vec![other.as_f64().unwrap()],
    }
}

fn assert_close(case: &str, what: &str, ours: &Json, theirs: &Json) {
    let (ours, theirs) = (flat(ours), flat(theirs));
    assert_eq!(ours.len(), theirs.len(), "{case}: {what}");
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        let close = (a - b).abs() <= 1e-12 + 1e-11 * b.abs();
        assert!(close, "{case}: {what}[{i}] is {a}, PyTorch has {b}");
    }
}

/// `sum(w · y)` with w = 0.3, 0.47, … over the elements of y in the order of rows.
fn weighted(b: &mut Build, y: ExprRef, weights: &Json) -> ExprRef {
    let axes = b.axes(y);
    let w = b.input("w", Elem::Float, &axes);
    let wy = b.bin(Binary::Mul, w, y);
    assert_eq!(flat(weights).first(), Some(&0.3));
    match axes.is_empty() {
        true => wy,
        false => b.reduce(Reduce::Sum, wy, &axes),
    }
}

fn weights(y: &Json, next: &mut f64) -> Json {
    match y {
        Json::Array(items) => items.iter().map(|y| weights(y, next)).collect(),
        _ => {
            let w = 0.3 + 0.17 * *next;
            *next += 1.0;
            json!(w)
        }
    }
}

#[test]
fn values_and_gradients_equal_pytorch() {
    let text = include_str!("fixtures/expr_ops.json");
    let cases: Vec<Json> = serde_json::from_str(text).unwrap();
    assert!(cases.len() > 40);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let mut b = Build::new();
        let y = expression(name, &mut b);
        let w = weights(&case["y"], &mut 0.0);
        let loss = weighted(&mut b, y, &w);
        let inputs = vec![
            (b.id("x"), case["x"].clone()),
            (b.id("d"), case["d"].clone()),
            (b.id("r"), case["r"].clone()),
            (b.id("w"), w),
        ];
        let mut request = EvalRequest {
            graph: b.graph.clone(),
            root: y,
            inputs,
            grad: vec![],
        };
        let value = eval::run(&request).unwrap();
        assert_close(name, "value", &value["value"], &case["y"]);
        request.root = loss;
        for input in ["x", "d", "r"] {
            request.grad = vec![b.id(input)];
            let answer = eval::run(&request).unwrap();
            let gradient = format!("g{input}");
            assert_close(name, &gradient, &answer["grad"], &case[&gradient]);
        }
    }
}
