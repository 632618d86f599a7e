//! What operations give at the edges: none, no tokens, one element, ties, texts.

mod expr_support;

use expr_support::{B, Build, G, T};
use rlhf_lang::graph::{Binary, Elem, ExprRef, Op, Reduce, TextOp, Unary, ValueId};
use rlhf_runtime::eval::{EvalRequest, read, run};
use rlhf_runtime::expr::{eval, first_non_finite, last_number, parse_number, require_finite};
use serde_json::{Value as Json, json};

fn value(b: &Build, root: ExprRef, inputs: &[(&str, Json)]) -> Json {
    let inputs = inputs.iter().map(|(n, j)| (b.id(n), j.clone())).collect();
    answer(b, root, inputs, vec![])["value"].clone()
}

fn gradient(b: &Build, root: ExprRef, inputs: &[(&str, Json)], by: &str) -> Json {
    let inputs = inputs.iter().map(|(n, j)| (b.id(n), j.clone())).collect();
    answer(b, root, inputs, vec![b.id(by)])["grad"].clone()
}

fn answer(b: &Build, root: ExprRef, inputs: Vec<(ValueId, Json)>, grad: Vec<ValueId>) -> Json {
    run(&EvalRequest {
        graph: b.graph.clone(),
        root,
        inputs,
        grad,
    })
    .unwrap()
}

#[test]
fn every_reduction_of_an_empty_row_is_zero() {
    let x = json!([[[], [2.0, 4.0]]]);
    for (op, full) in [
        (Reduce::Mean, 3.0),
        (Reduce::Sum, 6.0),
        (Reduce::Max, 4.0),
        (Reduce::Min, 2.0),
        (Reduce::Var, 2.0),
        (Reduce::Std, 2f64.sqrt()),
        (Reduce::Count, 2.0),
    ] {
        let mut b = Build::new();
        let e = b.input("x", Elem::Float, &[B, G, T]);
        let y = b.reduce(op, e, &[T]);
        assert_eq!(
            value(&b, y, &[("x", x.clone())]),
            json!([[0.0, full]]),
            "{op:?}"
        );
        if op != Reduce::Count {
            let total = b.reduce(Reduce::Sum, y, &[B, G]);
            let g = gradient(&b, total, &[("x", x.clone())], "x");
            assert!(g[0][1][0].is_f64() && g[0][1][1].is_f64(), "{op:?}: {g}");
        }
    }
}

#[test]
fn a_batch_without_tokens_has_a_loss_of_zero_and_no_gradient() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let decay = b.num(0.9);
    let sum = b.along(Op::SuffixSum(T), &[x, decay]);
    let shifted = b.along(Op::Shift { axis: T, by: 1 }, &[sum, decay]);
    let loss = b.reduce(Reduce::Mean, shifted, &[B, G, T]);
    let x = json!([[[], []]]);
    assert_eq!(value(&b, loss, &[("x", x.clone())]), json!(0.0));
    assert_eq!(gradient(&b, loss, &[("x", x.clone())], "x"), x);
}

#[test]
fn the_std_of_one_element_is_none_unless_biased() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let (y, biased) = (
        b.reduce(Reduce::Std, x, &[T]),
        b.reduce_as(Reduce::Std, x, &[T], true),
    );
    let x = json!([[[5.0], [1.0, 3.0]]]);
    assert_eq!(
        value(&b, y, &[("x", x.clone())]),
        json!([[null, 2f64.sqrt()]])
    );
    assert_eq!(value(&b, biased, &[("x", x)]), json!([[0.0, 1.0]]));
}

#[test]
fn the_std_of_equal_elements_has_gradient_zero() {
    let mut b = Build::new();
    let r = b.input("r", Elem::Float, &[B, G]);
    let std = b.reduce(Reduce::Std, r, &[G]);
    let loss = b.reduce(Reduce::Sum, std, &[B]);
    let r = json!([[2.0, 2.0, 2.0]]);
    assert_eq!(
        gradient(&b, loss, &[("r", r)], "r"),
        json!([[0.0, 0.0, 0.0]])
    );
}

#[test]
fn every_comparison_with_none_is_false() {
    for op in [
        Binary::Eq,
        Binary::Ne,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
    ] {
        let mut b = Build::new();
        let x = b.input("x", Elem::Float, &[B]);
        let y = b.input("y", Elem::Float, &[B]);
        let c = b.bin(op, x, y);
        let inputs = [
            ("x", json!([null, 1.0, null])),
            ("y", json!([1.0, null, null])),
        ];
        assert_eq!(
            value(&b, c, &inputs),
            json!([false, false, false]),
            "{op:?}"
        );
        let mut b = Build::new();
        let x = b.input("x", Elem::Text, &[B]);
        let y = b.input("y", Elem::Text, &[B]);
        let c = b.bin(op, x, y);
        let inputs = [
            ("x", json!([null, "a", null])),
            ("y", json!(["a", null, null])),
        ];
        assert_eq!(
            value(&b, c, &inputs),
            json!([false, false, false]),
            "{op:?} on text"
        );
    }
}

#[test]
fn a_response_without_a_number_is_scored_as_wrong() {
    let mut b = Build::new();
    let response = b.input("response", Elem::Text, &[B, G]);
    let answer = b.input("answer", Elem::Text, &[B]);
    let found = b.on_text(TextOp::LastNumber, &[response], Elem::Float);
    let gold = b.on_text(TextOp::Number, &[answer], Elem::Float);
    let right = b.bin(Binary::Eq, found, gold);
    let (one, zero) = (b.num(1.0), b.num(0.0));
    let r = b.select(right, one, zero);
    let inputs = [
        (
            "response",
            json!([["7 + 5 = 12.", "no idea"], ["3", "it is 4"]]),
        ),
        ("answer", json!(["12", " 4 "])),
    ];
    assert_eq!(value(&b, r, &inputs), json!([[1.0, 0.0], [0.0, 1.0]]));
}

#[test]
fn the_first_largest_element_wins_and_none_never_does() {
    let mut b = Build::new();
    let r = b.input("r", Elem::Float, &[B, G]);
    let best = b.reduce(Reduce::Argmax, r, &[G]);
    let picked = b.push(Op::Pick(G), &[r, best], Elem::Float, &[B]);
    let r = json!([[1.0, 3.0, 3.0], [null, -2.0, -5.0], [null, null, null]]);
    assert_eq!(value(&b, best, &[("r", r.clone())]), json!([1.0, 1.0, 0.0]));
    assert_eq!(value(&b, picked, &[("r", r)]), json!([3.0, -2.0, null]));
}

#[test]
fn pick_takes_texts_and_refuses_an_index_outside() {
    let mut b = Build::new();
    let t = b.input("t", Elem::Text, &[B, G]);
    let i = b.input("i", Elem::Int, &[B]);
    let picked = b.push(Op::Pick(G), &[t, i], Elem::Text, &[B]);
    let t = json!([["a", "b"], ["c", "d"]]);
    assert_eq!(
        value(&b, picked, &[("t", t.clone()), ("i", json!([1, 0]))]),
        json!(["b", "c"])
    );
    let inputs = vec![(b.id("t"), t), (b.id("i"), json!([2, 0]))];
    let fault = run(&EvalRequest {
        graph: b.graph.clone(),
        root: picked,
        inputs,
        grad: vec![],
    });
    let message = fault.unwrap_err().to_string();
    assert_eq!(message, "`pick` along `G` at 2, which is not one of 0 to 1");
}

#[test]
fn booleans_are_counted_and_tested() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let zero = b.num(0.0);
    let flags = b.bin(Binary::Gt, x, zero);
    let x = json!([[[1.0, -1.0, 2.0], []], [[-1.0], [3.0]]]);
    for (op, expected) in [
        (Reduce::Any, json!([[true, false], [false, true]])),
        (Reduce::All, json!([[false, true], [false, true]])),
        (Reduce::Count, json!([[2.0, 0.0], [0.0, 1.0]])),
        (Reduce::Sum, json!([[2.0, 0.0], [0.0, 1.0]])),
        (Reduce::Mean, json!([[2.0 / 3.0, 0.0], [0.0, 1.0]])),
    ] {
        let y = b.reduce(op, flags, &[T]);
        assert_eq!(value(&b, y, &[("x", x.clone())]), expected, "{op:?}");
    }
    let last = b.push(Op::Last(T), &[flags], Elem::Bool, &[B, G]);
    assert_eq!(
        value(&b, last, &[("x", x)]),
        json!([[true, false], [false, true]])
    );
}

#[test]
fn lengths_and_positions_follow_the_rows() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let len = b.without(Op::Len(T), x, T);
    let index = b.push(Op::Index(T), &[], Elem::Int, &[B, G, T]);
    let group = b.push(Op::Index(G), &[], Elem::Int, &[G]);
    let all = b.bin(Binary::Add, index, group);
    let x = json!([[[0.0, 0.0], []], [[0.0], [0.0, 0.0, 0.0]]]);
    assert_eq!(
        value(&b, len, &[("x", x.clone())]),
        json!([[2.0, 0.0], [1.0, 3.0]])
    );
    assert_eq!(
        value(&b, index, &[("x", x.clone())]),
        json!([[[0, 1], []], [[0], [0, 1, 2]]])
    );
    assert_eq!(
        value(&b, all, &[("x", x)]),
        json!([[[0.0, 1.0], []], [[0.0], [1.0, 2.0, 3.0]]])
    );
}

#[test]
fn generalised_advantages_equal_the_recursion() {
    // d_t = r_t + γ V_{t+1} − V_t; A_t = d_t + γλ A_{t+1}
    let (gamma, lambda) = (0.9, 0.8);
    let (r, v) = ([0.5, -0.2, 1.0], [0.3, 0.1, -0.4]);
    let mut expected = [0.0; 3];
    let mut next = 0.0;
    for t in (0..3).rev() {
        let after = if t == 2 { 0.0 } else { v[t + 1] };
        next = r[t] + gamma * after - v[t] + gamma * lambda * next;
        expected[t] = next;
    }
    let mut b = Build::new();
    let reward = b.input("r", Elem::Float, &[B, G, T]);
    let state = b.input("v", Elem::Float, &[B, G, T]);
    let (zero, g, gl) = (b.num(0.0), b.num(gamma), b.num(gamma * lambda));
    let after = b.along(Op::Shift { axis: T, by: -1 }, &[state, zero]);
    let scaled = b.bin(Binary::Mul, g, after);
    let with = b.bin(Binary::Add, reward, scaled);
    let delta = b.bin(Binary::Sub, with, state);
    let adv = b.along(Op::SuffixSum(T), &[delta, gl]);
    let found = value(&b, adv, &[("r", json!([[r]])), ("v", json!([[v]]))]);
    for (t, x) in expected.iter().enumerate() {
        assert!((found[0][0][t].as_f64().unwrap() - x).abs() < 1e-15);
    }
}

#[test]
fn a_branch_not_taken_cannot_spoil_the_gradient() {
    // if x < 1 then exp(1000 x) - log(x − 2) … else x, at x where the other branch overflows.
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B]);
    let (one, k) = (b.num(1.0), b.num(1000.0));
    let small = b.bin(Binary::Lt, x, one);
    let scaled = b.bin(Binary::Mul, k, x);
    let exp = b.un(Unary::Exp, scaled);
    let root = b.un(Unary::Sqrt, x);
    let both = b.bin(Binary::Add, exp, root);
    let y = b.select(small, both, x);
    // A selection inside a branch of another.
    let zero = b.num(0.0);
    let positive = b.bin(Binary::Gt, x, zero);
    let outer = b.select(positive, y, zero);
    let loss = b.reduce(Reduce::Sum, outer, &[B]);
    let g = gradient(&b, loss, &[("x", json!([5.0, 0.0, -1.0, 0.25]))], "x");
    let inside = 1000.0 * (250f64).exp() + 1.0;
    assert_eq!(g[0], json!(1.0));
    assert_eq!(g[1], json!(0.0));
    assert_eq!(g[2], json!(0.0));
    assert!((g[3].as_f64().unwrap() / inside - 1.0).abs() < 1e-12);
}

#[test]
fn numbers_in_text() {
    for (text, whole, last) in [
        ("12", Some(12.0), Some(12.0)),
        (" -3 ", Some(-3.0), Some(-3.0)),
        ("1,234.5", Some(1234.5), Some(1234.5)),
        ("12,345,678", Some(12_345_678.0), Some(12_345_678.0)),
        ("1,23", None, Some(23.0)),
        ("$12", Some(12.0), Some(12.0)),
        ("-$4.50", Some(-4.5), Some(4.5)),
        ("$12.", None, Some(12.0)),
        ("12.", None, Some(12.0)),
        (".5", Some(0.5), Some(0.5)),
        ("-.5", Some(-0.5), Some(-0.5)),
        ("so 7 + 5 = 12.", None, Some(12.0)),
        ("7 - 5 = 2, then 3", None, Some(3.0)),
        ("x-3", None, Some(3.0)),
        ("5-3", None, Some(3.0)),
        ("= -3", None, Some(-3.0)),
        ("2e3", Some(2000.0), Some(2000.0)),
        ("1e999", None, None),
        ("12 apples", None, Some(12.0)),
        ("été 4 ½", None, Some(4.0)),
        ("no number", None, None),
        ("", None, None),
    ] {
        assert_eq!(parse_number(text), whole, "number({text:?})");
        assert_eq!(last_number(text), last, "last_number({text:?})");
    }
}

#[test]
fn text_operations() {
    let mut b = Build::new();
    let t = b.input("t", Elem::Text, &[B]);
    let pattern = b.text(r"####\s*(-?\d+)");
    let part = b.text("So");
    let ops = [
        (
            TextOp::Extract,
            vec![t, pattern],
            Elem::Text,
            json!(["42", null, null]),
        ),
        (
            TextOp::Matches,
            vec![t, pattern],
            Elem::Bool,
            json!([true, false, false]),
        ),
        (
            TextOp::Contains,
            vec![t, part],
            Elem::Bool,
            json!([true, false, false]),
        ),
        (
            TextOp::StartsWith,
            vec![t, part],
            Elem::Bool,
            json!([true, false, false]),
        ),
        (
            TextOp::EndsWith,
            vec![t, part],
            Elem::Bool,
            json!([false, false, false]),
        ),
        (
            TextOp::Trim,
            vec![t],
            Elem::Text,
            json!(["So #### 42", "é b", null]),
        ),
        (
            TextOp::Upper,
            vec![t],
            Elem::Text,
            json!(["SO #### 42", " É B", null]),
        ),
        (
            TextOp::Lower,
            vec![t],
            Elem::Text,
            json!(["so #### 42", " é b", null]),
        ),
        (TextOp::Words, vec![t], Elem::Int, json!([3, 2, null])),
        (TextOp::Chars, vec![t], Elem::Int, json!([10, 4, null])),
        (
            TextOp::Concat,
            vec![part, t],
            Elem::Text,
            json!(["SoSo #### 42", "So é b", null]),
        ),
    ];
    for (op, args, elem, expected) in ops {
        let y = b.on_text(op, &args, elem);
        let texts = json!(["So #### 42", " é b", null]);
        assert_eq!(value(&b, y, &[("t", texts)]), expected, "{op:?}");
    }
}

#[test]
fn a_bad_regular_expression_is_named() {
    let mut b = Build::new();
    let t = b.input("t", Elem::Text, &[B]);
    let pattern = b.text("(unclosed");
    let y = b.on_text(TextOp::Matches, &[t, pattern], Elem::Bool);
    let inputs = vec![(b.id("t"), json!(["a"]))];
    let fault = run(&EvalRequest {
        graph: b.graph.clone(),
        root: y,
        inputs,
        grad: vec![],
    });
    let message = fault.unwrap_err().to_string();
    assert_eq!(
        message,
        "`(unclosed` is not a regular expression: unclosed group"
    );
}

#[test]
fn a_number_that_is_not_finite_is_found() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let inputs = [(
        b.id("x"),
        json!([[[1.0], [2.0, 3.0]], [[], [4.0, null, 6.0]]]),
    )];
    let env = read(&b.graph, &inputs).unwrap();
    let v = eval(&b.graph, x, &env).unwrap();
    let found = first_non_finite(&v, &b.graph, &env.shapes)
        .unwrap()
        .unwrap();
    assert_eq!(found.place, "token 2 of `G` 2 of row 2");
    let fault = require_finite(&v, "the loss of `train policy`", 311, &b.graph, &env.shapes);
    assert_eq!(
        fault.unwrap_err().to_string(),
        "the loss of `train policy` became NaN at iteration 311, token 2 of `G` 2 of row 2"
    );
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let mut b = Build::new();
    let x = b.input("lp", Elem::Float, &[B, G, T]);
    let r = b.input("adv", Elem::Float, &[B]);
    let y = b.bin(Binary::Mul, x, r);
    for (lp, adv, expected) in [
        (
            json!([[[1.0]], [[2.0]]]),
            json!([1.0]),
            "`adv` has 1 elements along `B`; `lp` has 2",
        ),
        (
            json!([[[1.0]], [2.0]]),
            json!([1.0, 2.0]),
            "`lp[1][0]` is the number 2.0; expected a list along `T`",
        ),
        (
            json!([[["a"]]]),
            json!([1.0]),
            "`lp[0][0][0]` is text; expected a number",
        ),
        (
            json!([[[1.0], [2.0]], [[1.0]]]),
            json!([1.0, 2.0]),
            "`lp[1]` has 1 elements along `G`; `the list before` has 2",
        ),
    ] {
        let inputs = vec![(b.id("lp"), lp), (b.id("adv"), adv)];
        let fault = run(&EvalRequest {
            graph: b.graph.clone(),
            root: y,
            inputs,
            grad: vec![],
        });
        assert_eq!(fault.unwrap_err().to_string(), expected);
    }
}

#[test]
fn gradients_by_several_inputs_come_by_name_and_are_zero_where_nothing_flows() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[B]);
    let d = b.input("d", Elem::Float, &[B]);
    b.input("h", Elem::Float, &[B]);
    let product = b.bin(Binary::Mul, x, d);
    let sum = b.reduce(Reduce::Sum, product, &[B]);
    let inputs = vec![
        (b.id("x"), json!([1.0, 2.0])),
        (b.id("d"), json!([3.0, 4.0])),
        (b.id("h"), json!([5.0, 6.0])),
    ];
    let grad = vec![b.id("x"), b.id("h"), b.id("d")];
    let found = answer(&b, sum, inputs, grad);
    let grad = json!({ "x": [3.0, 4.0], "h": [0.0, 0.0], "d": [1.0, 2.0] });
    assert_eq!(found, json!({ "value": 11.0, "grad": grad }));
}

#[test]
fn a_gradient_of_what_is_no_number_says_what_it_is() {
    let mut b = Build::new();
    let x = b.input("x", Elem::Float, &[]);
    let t = b.input("t", Elem::Text, &[]);
    let one = b.num(1.0);
    let above = b.bin(Binary::Gt, x, one);
    let inputs = vec![(b.id("x"), json!(2.0)), (b.id("t"), json!("a"))];
    for (root, by, says) in [
        (above, "x", "a gradient needs one number, and this is bool"),
        (t, "x", "a gradient needs one number, and this is text"),
        (x, "t", "`t` holds text, so there is no gradient by it"),
    ] {
        let fault = run(&EvalRequest {
            graph: b.graph.clone(),
            root,
            inputs: inputs.clone(),
            grad: vec![b.id(by)],
        });
        assert_eq!(fault.unwrap_err().to_string(), says);
    }
}
