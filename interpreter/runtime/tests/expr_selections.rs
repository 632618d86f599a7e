//! `pick`, `top` and the rows of a part over values of every kind: which elements, with which gradient,
//! and the same after a minibatch is cut.

mod expr_support;

use expr_support::{B, Build, G, T};
use rlhf_lang::graph::{Axis, AxisId, AxisSize, Elem, Op, Reduce};
use rlhf_lang::source::Span;
use rlhf_runtime::expr::{Env, demand, eval, eval_kept};
use rlhf_runtime::value::{Data, Value};
use tch::Tensor;

/// A part of the rows, the kept ones of a group, and the tokens of each selection.
const D: AxisId = AxisId(4);
const K: AxisId = AxisId(5);
const OF_PICK: AxisId = AxisId(6);
const OF_TOP: AxisId = AxisId(7);
const OF_D: AxisId = AxisId(8);

fn build() -> Build {
    let mut b = Build::new();
    let mut axis = |name: &str, size, parents, of| {
        b.graph.axes.push(Axis {
            name: name.into(),
            size,
            parents,
            of: Some(of),
            span: Span::default(),
        });
    };
    axis("D", AxisSize::Subset(Some(2)), vec![], B);
    axis("G", AxisSize::Fixed(2), vec![], G);
    axis("T", AxisSize::Ragged(9), vec![B], T);
    axis("T", AxisSize::Ragged(9), vec![B, K], T);
    axis("T", AxisSize::Ragged(9), vec![D, G], T);
    b
}

/// Two rows of three responses with 1, 0, 2 and 3, 1, 2 tokens, numbered from 0.
fn env(b: &Build) -> Env {
    let mut env = Env::default();
    env.shapes.set(B, 2);
    env.shapes.set(G, 3);
    env.shapes.set(K, 2);
    env.shapes
        .set_ragged(T, vec![B, G], vec![0, 1, 1, 3, 6, 7, 9]);
    let tokens = Tensor::arange(9, (tch::Kind::Double, tch::Device::Cpu)).set_requires_grad(true);
    env.values
        .insert(b.id("x"), Value::num(vec![B, G, T], &tokens));
    let score = Tensor::from_slice(&[0.5, f64::NAN, 2.0, 1.0, 3.0, 3.0]).reshape([2, 3]);
    env.values.insert(b.id("s"), Value::num(vec![B, G], &score));
    let texts = ["a", "b", "c", "d", "e", "f"].map(|t| Some(t.into()));
    env.values
        .insert(b.id("t"), Value::from_text(vec![B, G], texts.into()));
    env
}

struct Inputs {
    b: Build,
    x: rlhf_lang::graph::ExprRef,
    s: rlhf_lang::graph::ExprRef,
    t: rlhf_lang::graph::ExprRef,
}

fn inputs() -> Inputs {
    let mut b = build();
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let s = b.input("s", Elem::Float, &[B, G]);
    let t = b.input("t", Elem::Text, &[B, G]);
    Inputs { b, x, s, t }
}

fn texts(value: &Value) -> Vec<&str> {
    let texts = value.texts().expect("texts").iter();
    texts.map(|t| t.as_deref().expect("no none")).collect()
}

#[test]
fn a_picked_response_has_its_tokens_its_text_and_its_length() {
    let Inputs { mut b, x, s, t } = inputs();
    let at = b.reduce(Reduce::Argmax, s, &[G]);
    let tokens = b.push(Op::Pick(G), &[x, at], Elem::Float, &[B, OF_PICK]);
    let text = b.push(Op::Pick(G), &[t, at], Elem::Text, &[B]);
    let mut env = env(&b);
    let value = eval_kept(&b.graph, tokens, &mut env).expect("sound");
    // The third response of the first row, the second (first of equals) of the second.
    assert_eq!(value.numbers().expect("numbers"), [1.0, 2.0, 6.0]);
    let ragged = env.shapes.ragged(OF_PICK).expect("known now");
    assert_eq!(ragged.offsets, [0, 2, 3]);
    let text = eval(&b.graph, text, &env).expect("sound");
    assert_eq!(texts(&text), ["c", "e"]);
}

#[test]
fn the_top_is_ordered_and_none_comes_last() {
    let Inputs { mut b, x, s, t } = inputs();
    let top = Op::Top { axis: G, into: K };
    let tokens = b.push(top.clone(), &[x, s], Elem::Float, &[B, K, OF_TOP]);
    let text = b.push(top, &[t, s], Elem::Text, &[B, K]);
    let mut env = env(&b);
    let text = eval(&b.graph, text, &env).expect("sound");
    assert_eq!(texts(&text), ["c", "a", "e", "f"]);
    let value = eval_kept(&b.graph, tokens, &mut env).expect("sound");
    assert_eq!(
        value.numbers().expect("numbers"),
        [1.0, 2.0, 0.0, 6.0, 7.0, 8.0]
    );
    let ragged = env.shapes.ragged(OF_TOP).expect("known now");
    assert_eq!(ragged.offsets, [0, 2, 3, 4, 6]);
}

#[test]
fn gradients_return_to_the_chosen_tokens_alone() {
    let Inputs { mut b, x, s, .. } = inputs();
    let at = b.reduce(Reduce::Argmax, s, &[G]);
    let tokens = b.push(Op::Pick(G), &[x, at], Elem::Float, &[B, OF_PICK]);
    let square = b.bin(rlhf_lang::graph::Binary::Mul, tokens, tokens);
    let loss = b.reduce(Reduce::Sum, square, &[B, OF_PICK]);
    let env = env(&b);
    let Data::Num(leaf) = &env.values[&b.id("x")].data else {
        panic!("numbers");
    };
    let loss = eval(&b.graph, loss, &env)
        .expect("sound")
        .tensor()
        .expect("a number");
    loss.backward();
    let grad = Vec::<f64>::try_from(leaf.grad()).expect("numbers");
    assert_eq!(grad, [0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0]);
}

#[test]
fn an_index_outside_the_group_is_named() {
    let Inputs { mut b, s, .. } = inputs();
    let at = b.num(3.0);
    let picked = b.push(Op::Pick(G), &[s, at], Elem::Float, &[B]);
    let fault = eval(&b.graph, picked, &env(&b)).expect_err("there are three");
    assert_eq!(
        fault.to_string(),
        "`pick` along `G` at 3, which is not one of 0 to 2"
    );
}

/// Four rows of one response, the part of those above 0 (at most two), and a value over all rows.
fn parted() -> (Build, rlhf_lang::graph::ExprRef, Env) {
    let mut b = build();
    let r = b.input("r", Elem::Float, &[B]);
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let zero = b.num(0.0);
    let kept = b.bin(rlhf_lang::graph::Binary::Gt, r, zero);
    let part = b.push(Op::Restrict(D), &[x, kept], Elem::Float, &[D, G, OF_D]);
    let mut env = Env::default();
    env.shapes.set(B, 4);
    env.shapes.set(G, 1);
    env.shapes.set_ragged(T, vec![B, G], vec![0, 2, 3, 3, 5]);
    let r = Value::from_f64(vec![B], &[1.0, -1.0, 2.0, 3.0], &env.shapes);
    env.values.insert(b.id("r"), r.expect("four rows"));
    let x = Tensor::arange(5, (tch::Kind::Double, tch::Device::Cpu));
    env.values.insert(b.id("x"), Value::num(vec![B, G, T], &x));
    (b, part, env)
}

#[test]
fn a_part_has_the_first_rows_that_hold_and_their_tokens() {
    let (b, part, mut env) = parted();
    env.settle(&b.graph).expect("the condition is known");
    assert_eq!(env.shapes.part(D).expect("known now").kept, [0, 2]);
    let value = eval_kept(&b.graph, part, &mut env).expect("sound");
    assert_eq!(value.numbers().expect("numbers"), [0.0, 1.0]);
    assert_eq!(
        env.shapes.ragged(OF_D).expect("known now").offsets,
        [0, 2, 2]
    );
}

#[test]
fn a_minibatch_keeps_the_rows_of_a_part_that_the_whole_batch_chose() {
    let (b, part, mut env) = parted();
    env.settle(&b.graph).expect("the condition is known");
    eval_kept(&b.graph, part, &mut env).expect("sound");
    // The last row holds too, and the limit left it out.
    let cut = env.restrict(B, &[3, 1, 0]).expect("these rows");
    assert_eq!(cut.shapes.part(D).expect("still a part").kept, [2]);
    let value = eval(&b.graph, part, &cut).expect("sound");
    assert_eq!(value.numbers().expect("numbers"), [0.0, 1.0]);
    let none = env.restrict(B, &[3, 1]).expect("these rows");
    assert_eq!(none.shapes.length(D).expect("a length"), 0);
    let value = eval(&b.graph, part, &none).expect("sound");
    assert!(value.numbers().expect("numbers").is_empty());
}

#[test]
fn what_is_restricted_at_the_end_is_read_at_those_rows_alone() {
    let (mut b, part, mut env) = parted();
    let sum = b.reduce(Reduce::Sum, part, &[D, G, OF_D]);
    env.settle(&b.graph).expect("the condition is known");
    let read = demand(&b.graph, &[sum], B, &env.shapes).expect("sound");
    assert_eq!(read[&b.id("x")], [true, false, true, false]);
    assert!(
        !read.contains_key(&b.id("r")),
        "the condition is known already"
    );
}
