//! Laws that hold for every operation: gradients equal finite differences, and rows do not know of each
//! other's order.

mod expr_support;

use expr_support::{B, Build, G, T, W};
use rlhf_lang::graph::{Binary, Elem, ExprRef, Op, Reduce, Unary};
use rlhf_runtime::eval::{EvalRequest, read, run, write};
use rlhf_runtime::expr::eval;
use serde_json::{Value as Json, json};

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// In −1.5..1.5, and never within 0.02 of another draw's kink at 0.
    fn real(&mut self) -> f64 {
        let x = (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 1.48 + 0.02;
        if self.below(2) == 0 { x } else { -x }
    }
}

struct World {
    x: Json,
    d: Json,
    r: Json,
    u: Json,
    h: Json,
}

fn world(seed: u64) -> World {
    let mut random = Random(seed);
    let (rows, group) = (1 + random.below(4), 1 + random.below(3));
    let lengths: Vec<Vec<u64>> = (0..rows)
        .map(|_| (0..group).map(|_| random.below(6)).collect())
        .collect();
    let mut ragged = |lengths: &[Vec<u64>]| -> Json {
        let row = |row: &Vec<u64>, random: &mut Random| -> Json {
            row.iter()
                .map(|n| (0..*n).map(|_| json!(random.real())).collect::<Json>())
                .collect()
        };
        lengths.iter().map(|l| row(l, &mut random)).collect()
    };
    let (x, d) = (ragged(&lengths), ragged(&lengths));
    let dense: Vec<Vec<u64>> = (0..rows).map(|_| vec![group]).collect();
    let r: Json = ragged(&dense)
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].clone())
        .collect();
    let h: Json = ragged(&[vec![rows]])[0][0].clone();
    let words: Vec<Vec<u64>> = (0..rows).map(|i| vec![(i * 2 + seed) % 4]).collect();
    let u: Json = ragged(&words)
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].clone())
        .collect();
    World { x, d, r, u, h }
}

/// Every operation a gradient flows through, in expressions that mix axes.
fn expressions(b: &mut Build) -> Vec<(&'static str, ExprRef)> {
    let x = b.input("x", Elem::Float, &[B, G, T]);
    let d = b.input("d", Elem::Float, &[B, G, T]);
    let r = b.input("r", Elem::Float, &[B, G]);
    let h = b.input("h", Elem::Float, &[B]);
    let u = b.input("u", Elem::Float, &[B, W]);
    let (zero, half, two) = (b.num(0.0), b.num(0.5), b.num(2.0));
    let mut all = vec![
        ("x*d", b.bin(Binary::Mul, x, d)),
        ("x+r", b.bin(Binary::Add, x, r)),
        ("h-x", b.bin(Binary::Sub, h, x)),
        ("r/h", b.bin(Binary::Div, r, h)),
        // G is no parent of W: it keeps a dimension beside the tokens.
        ("u*r", b.bin(Binary::Mul, u, r)),
        ("u*h", b.bin(Binary::Mul, u, h)),
        ("min", b.bin(Binary::Min, x, r)),
        ("max", b.bin(Binary::Max, d, h)),
        ("shift", b.along(Op::Shift { axis: T, by: 2 }, &[x, r])),
        (
            "shift back",
            b.along(Op::Shift { axis: T, by: -1 }, &[x, zero]),
        ),
        ("suffix", b.along(Op::SuffixSum(T), &[x, d])),
        ("prefix", b.along(Op::PrefixSum(T), &[x, d])),
        ("suffix, decay a row", b.along(Op::SuffixSum(T), &[x, h])),
        ("suffix, one decay", b.along(Op::SuffixSum(T), &[d, half])),
        ("suffix along G", b.along(Op::SuffixSum(G), &[r, h])),
        ("suffix beside G", b.along(Op::SuffixSum(W), &[u, r])),
        ("first", b.without(Op::First(T), x, T)),
        ("last", b.without(Op::Last(T), x, T)),
        ("last in G", b.without(Op::Last(G), r, G)),
        (
            "at last",
            b.push(Op::AtLast(T), &[r], Elem::Float, &[B, G, T]),
        ),
        ("mean T", b.reduce(Reduce::Mean, x, &[T])),
        ("mean G T", b.reduce(Reduce::Mean, x, &[G, T])),
        ("mean B T", b.reduce(Reduce::Mean, x, &[B, T])),
        ("mean all", b.reduce(Reduce::Mean, x, &[B, G, T])),
        ("var all", b.reduce_as(Reduce::Var, x, &[B, G, T], true)),
        ("var T", b.reduce_as(Reduce::Var, x, &[T], true)),
        ("var B T", b.reduce_as(Reduce::Var, x, &[T, B], true)),
        ("max T", b.reduce(Reduce::Max, x, &[T])),
        ("min B T", b.reduce(Reduce::Min, x, &[B, T])),
        ("sum B", b.reduce(Reduce::Sum, r, &[B])),
        ("min G", b.reduce(Reduce::Min, r, &[G])),
    ];
    let ur = b.bin(Binary::Mul, u, r);
    all.push(("mean G beside W", b.reduce(Reduce::Mean, ur, &[G])));
    all.push(("sum W beside G", b.reduce(Reduce::Sum, ur, &[W])));
    all.push((
        "var all of B G W",
        b.reduce_as(Reduce::Var, ur, &[B, G, W], true),
    ));
    all.push(("max B W", b.reduce(Reduce::Max, ur, &[B, W])));
    for op in [
        Unary::Neg,
        Unary::Exp,
        Unary::Expm1,
        Unary::Abs,
        Unary::Sigmoid,
        Unary::LogSigmoid,
        Unary::Softplus,
        Unary::Relu,
        Unary::Tanh,
    ] {
        all.push(("unary", b.un(op, x)));
    }
    let square = b.bin(Binary::Mul, x, x);
    let near = b.bin(Binary::Add, square, half);
    for op in [Unary::Log, Unary::Log1p, Unary::Sqrt] {
        all.push(("unary of positive", b.un(op, near)));
    }
    all.push(("pow", b.bin(Binary::Pow, near, d)));
    all.push(("square", b.bin(Binary::Pow, x, two)));
    let top = b.bin(Binary::Add, near, two);
    all.push(("clamp", b.clamp(x, zero, near)));
    all.push(("clamp both", b.clamp(d, r, top)));
    let c = b.bin(Binary::Gt, x, r);
    let yes = b.un(Unary::Exp, x);
    let inner = b.bin(Binary::Lt, d, h);
    let deep = b.select(inner, square, r);
    let twice = b.bin(Binary::Mul, deep, yes);
    all.push(("if in if", b.select(c, yes, twice)));
    let mean = b.reduce(Reduce::Mean, x, &[T]);
    let relative = b.bin(Binary::Sub, x, mean);
    all.push(("if over a mean", b.select(c, relative, d)));
    all
}

fn inputs(b: &Build, w: &World) -> Vec<(rlhf_lang::graph::ValueId, Json)> {
    [
        ("x", &w.x),
        ("d", &w.d),
        ("r", &w.r),
        ("u", &w.u),
        ("h", &w.h),
    ]
    .into_iter()
    .map(|(name, json)| (b.id(name), json.clone()))
    .collect()
}

fn leaves(json: &mut Json) -> Vec<&mut Json> {
    match json {
        Json::Array(items) => items.iter_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

fn numbers(json: &Json) -> Vec<f64> {
    let mut json = json.clone();
    leaves(&mut json)
        .iter()
        .map(|j| j.as_f64().unwrap())
        .collect()
}

/// `sum(sin-like weights · y)`: a weight that differs from element to element.
fn scalar(b: &mut Build, y: ExprRef) -> ExprRef {
    let axes = b.axes(y);
    if axes.is_empty() {
        return y;
    }
    let mut weight = b.num(0.7);
    for axis in axes.clone() {
        let of: Vec<_> = match axis {
            T => vec![B, G, T],
            W => vec![B, W],
            other => vec![other],
        };
        let i = b.push(Op::Index(axis), &[], Elem::Float, &of);
        let s = b.num(0.37 + f64::from(axis.0) / 7.0);
        let scaled = b.bin(Binary::Mul, i, s);
        weight = b.bin(Binary::Add, weight, scaled);
    }
    let wy = b.bin(Binary::Mul, weight, y);
    b.reduce(Reduce::Sum, wy, &axes)
}

#[test]
fn gradients_equal_finite_differences() {
    for seed in 0..4 {
        let w = world(seed);
        let mut b = Build::new();
        let all = expressions(&mut b);
        for (name, y) in all {
            let root = scalar(&mut b, y);
            let inputs = inputs(&b, &w);
            let at = |inputs| {
                let request = EvalRequest {
                    graph: b.graph.clone(),
                    root,
                    inputs,
                    grad: vec![],
                };
                run(&request).unwrap()["value"].as_f64().unwrap()
            };
            for input in 0..inputs.len() {
                let request = EvalRequest {
                    graph: b.graph.clone(),
                    root,
                    inputs: inputs.clone(),
                    grad: vec![inputs[input].0],
                };
                let gradient = numbers(&run(&request).unwrap()["grad"]);
                // Two elements of each input, chosen by the seed.
                for k in 0..2usize {
                    if gradient.is_empty() {
                        continue;
                    }
                    let i = (seed as usize * 7 + k * 5 + input) % gradient.len();
                    let moved = |by: f64| {
                        let mut inputs = inputs.clone();
                        let leaf = leaves(&mut inputs[input].1).remove(i);
                        *leaf = json!(leaf.as_f64().unwrap() + by);
                        at(inputs)
                    };
                    let h = 1e-5;
                    let slope = (moved(h) - moved(-h)) / (2.0 * h);
                    let error = (slope - gradient[i]).abs();
                    assert!(
                        error <= 1e-6 * (1.0 + slope.abs()),
                        "seed {seed}, {name}, input {input}[{i}]: {} against {slope}",
                        gradient[i]
                    );
                }
            }
        }
    }
}

fn permuted(json: &Json, order: &[usize]) -> Json {
    order.iter().map(|i| json[*i].clone()).collect()
}

fn close(a: &Json, b: &Json) -> bool {
    let (a, b) = (numbers(a), numbers(b));
    a.len() == b.len()
        && a.iter()
            .zip(&b)
            .all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()))
}

#[test]
fn rows_in_another_order_give_the_result_in_that_order() {
    for seed in 20..40 {
        let w = world(seed);
        let rows = w.h.as_array().unwrap().len();
        let mut random = Random(seed);
        let mut order: Vec<usize> = (0..rows).collect();
        for i in (1..rows).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let mut b = Build::new();
        let all = expressions(&mut b);
        let plain = read(&b.graph, &inputs(&b, &w)).unwrap();
        let moved = World {
            x: permuted(&w.x, &order),
            d: permuted(&w.d, &order),
            r: permuted(&w.r, &order),
            u: permuted(&w.u, &order),
            h: permuted(&w.h, &order),
        };
        let moved = read(&b.graph, &inputs(&b, &moved)).unwrap();
        let restricted = plain.restrict(B, &order).unwrap();
        for (name, y) in all {
            let value = eval(&b.graph, y, &plain).unwrap();
            let mut expected = write(&value, Elem::Float, &plain.shapes).unwrap();
            if value.axes.contains(&B) {
                expected = permuted(&expected, &order);
            }
            for env in [&moved, &restricted] {
                let value = eval(&b.graph, y, env).unwrap();
                let found = write(&value, Elem::Float, &env.shapes).unwrap();
                assert!(
                    close(&found, &expected),
                    "seed {seed}, {name}: {found} against {expected}"
                );
            }
        }
    }
}

#[test]
fn a_subset_of_the_rows_is_what_those_rows_alone_give() {
    for seed in 50..60 {
        let w = world(seed);
        let rows = w.h.as_array().unwrap().len();
        let order: Vec<usize> = (0..rows).rev().step_by(2).collect();
        let mut b = Build::new();
        let all = expressions(&mut b);
        let part = World {
            x: permuted(&w.x, &order),
            d: permuted(&w.d, &order),
            r: permuted(&w.r, &order),
            u: permuted(&w.u, &order),
            h: permuted(&w.h, &order),
        };
        let alone = read(&b.graph, &inputs(&b, &part)).unwrap();
        let restricted = read(&b.graph, &inputs(&b, &w))
            .unwrap()
            .restrict(B, &order)
            .unwrap();
        for (name, y) in all {
            let [a, c] = [&alone, &restricted].map(|env| {
                let value = eval(&b.graph, y, env).unwrap();
                write(&value, Elem::Float, &env.shapes).unwrap()
            });
            assert!(close(&a, &c), "seed {seed}, {name}: {a} against {c}");
        }
    }
}
