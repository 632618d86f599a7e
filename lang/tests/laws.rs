//! Laws of axes: what holds of every expression and every function, tried on random ones.
//!
//! Terms are over a number `s`, values over `[B]` and `[B, G]`, and tokens over `[B, G, T]`. A model of a
//! few lines says which axes a term has; the language must agree.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rlhf_lang::compile::{Compiled, Expression, Input, Request, compile, compile_expression};
use rlhf_lang::graph::{Elem, show};

/// Axes in the order in which they are introduced.
const AXES: [&str; 3] = ["B", "G", "T"];

/// Inputs and how many of the axes each has.
const INPUTS: [(&str, usize); 4] = [("s", 0), ("q", 1), ("r", 2), ("x", 3)];

type Axes = BTreeSet<usize>;

/// A well-typed expression.
#[derive(Clone, Debug)]
enum Term {
    /// One of the inputs, or of the parameters of a function.
    Leaf(usize),
    Number(&'static str),
    Call(&'static str, Box<Term>),
    Pair(&'static str, Box<Term>, Box<Term>),
    If(&'static str, [Box<Term>; 4]),
    /// The axes to remove; those that cannot be are left out.
    Reduce(&'static str, u8, Box<Term>),
    /// Along `T`, where the term has it.
    Along(&'static str, Box<Term>),
}

impl Term {
    /// The axes it has, where a leaf has those of `leaves`.
    fn axes(&self, leaves: &[Axes]) -> Axes {
        match self {
            Term::Leaf(i) => leaves[*i].clone(),
            Term::Number(_) => Axes::new(),
            Term::Call(_, a) => a.axes(leaves),
            Term::Pair(_, a, b) => &a.axes(leaves) | &b.axes(leaves),
            Term::If(_, parts) => parts.iter().flat_map(|p| p.axes(leaves)).collect(),
            Term::Reduce(_, wanted, a) => {
                let all = a.axes(leaves);
                &all - &removed(*wanted, &all)
            }
            Term::Along(_, a) => a.axes(leaves),
        }
    }

    /// Its text, where leaves and axes are written as given.
    fn text(&self, leaves: &[Axes], names: &[String], axes: &[&str]) -> String {
        let write = |t: &Term| t.text(leaves, names, axes);
        match self {
            Term::Leaf(i) => names[*i].clone(),
            Term::Number(n) => n.to_string(),
            Term::Call(f, a) => format!("{f}({})", write(a)),
            Term::Pair(op @ ("min" | "max"), a, b) => format!("{op}({}, {})", write(a), write(b)),
            Term::Pair(op, a, b) => format!("({} {op} {})", write(a), write(b)),
            Term::If(op, [a, b, c, d]) => format!(
                "(if {} {op} {} then {} else {})",
                write(a),
                write(b),
                write(c),
                write(d)
            ),
            Term::Reduce(op, wanted, a) => {
                let gone = removed(*wanted, &a.axes(leaves));
                match gone.is_empty() {
                    true => write(a),
                    false => format!("{op}({}, {})", write(a), list(&gone, axes)),
                }
            }
            Term::Along(f, a) => match a.axes(leaves).contains(&2) {
                true => format!("{f}({}, {})", write(a), axes[2]),
                false => write(a),
            },
        }
    }
}

/// What of the wanted axes can go: while `T` remains, what it is ragged over remains.
fn removed(wanted: u8, all: &Axes) -> Axes {
    let gone: Axes = all
        .iter()
        .copied()
        .filter(|a| wanted >> a & 1 == 1)
        .collect();
    match all.contains(&2) && !gone.contains(&2) {
        true => Axes::new(),
        false => gone,
    }
}

fn list(axes: &Axes, names: &[&str]) -> String {
    let names: Vec<&str> = axes.iter().map(|a| names[*a]).collect();
    format!("[{}]", names.join(", "))
}

/// The first `n` axes.
fn first(n: usize) -> Axes {
    (0..n).collect()
}

fn input_axes() -> Vec<Axes> {
    INPUTS.iter().map(|(_, n)| first(*n)).collect()
}

fn input_names() -> Vec<String> {
    INPUTS.iter().map(|(n, _)| n.to_string()).collect()
}

fn inputs(names: &[String], axes: &[&str]) -> Vec<Input> {
    let lengths = [Some(2), Some(3), None];
    let input = |(name, (_, n)): (&String, &(&str, usize))| Input {
        name: name.clone(),
        axes: (0..*n).map(|a| (axes[a].to_string(), lengths[a])).collect(),
        elem: Elem::Float,
    };
    names.iter().zip(&INPUTS).map(input).collect()
}

/// Terms over `leaves` leaves; element-wise operators alone, or reductions and sequences too.
fn term(leaves: usize, reduces: bool) -> BoxedStrategy<Term> {
    let leaf = prop_oneof![
        4 => (0..leaves).prop_map(Term::Leaf),
        1 => prop::sample::select(vec!["0.5", "-1.5", "3.25"]).prop_map(Term::Number),
    ];
    let calls = prop::sample::select(vec!["exp", "abs", "sigmoid", "tanh", "relu", "stop", "-"]);
    let pairs = prop::sample::select(vec!["+", "-", "*", "/", "min", "max"]);
    let compares = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let reduces_by = prop::sample::select(vec!["mean", "sum", "min", "max", "std", "var"]);
    let along = prop::sample::select(vec!["suffix_sum", "prefix_sum", "shift"]);
    let deeper = leaf.prop_recursive(3, 14, 4, move |inner| {
        let boxed = inner.prop_map(Box::new).boxed();
        let four = [boxed.clone(), boxed.clone(), boxed.clone(), boxed.clone()];
        let elementwise = prop_oneof![
            2 => (calls.clone(), boxed.clone()).prop_map(|(f, a)| Term::Call(f, a)),
            4 => (pairs.clone(), boxed.clone(), boxed.clone()).prop_map(|(o, a, b)| Term::Pair(o, a, b)),
            1 => (compares.clone(), four).prop_map(|(o, parts)| Term::If(o, parts)),
        ];
        if !reduces {
            return elementwise.boxed();
        }
        prop_oneof![
            3 => elementwise,
            2 => (reduces_by.clone(), 1..8u8, boxed.clone()).prop_map(|(o, w, a)| Term::Reduce(o, w, a)),
            1 => (along.clone(), boxed).prop_map(|(f, a)| Term::Along(f, a)),
        ]
        .boxed()
    });
    deeper.boxed()
}

fn expression(text: &str, library: &str, inputs: &[Input]) -> Expression {
    let uses = match library {
        "" => vec![],
        _ => vec!["lib.rlhf".to_string()],
    };
    let load = |path: &str| (path == "lib.rlhf").then(|| library.to_string());
    match compile_expression(text, &uses, inputs, &load) {
        Ok(e) => e,
        Err((_, found)) => panic!("{text}\n{library}\n{found:#?}"),
    }
}

/// The formula and the type.
fn meaning(e: &Expression) -> String {
    let ty = &e.graph.expr(e.value).ty;
    format!(
        "{}: {}",
        show::formula(&e.graph, e.value),
        e.graph.show_type(ty)
    )
}

/// The names of the axes of the result.
fn result_axes(e: &Expression) -> Vec<String> {
    let axes = &e.graph.expr(e.value).ty.axes;
    axes.iter().map(|a| e.graph.axis(*a).name.clone()).collect()
}

fn named(axes: &Axes, names: &[&str]) -> Vec<String> {
    axes.iter().map(|a| names[*a].to_string()).collect()
}

/// A function of four parameters, the last along `T`, and of the other axes.
fn function(body: &Term, params: &[&str], leaves: &[Axes]) -> String {
    let names: Vec<String> = params.iter().map(|p| p.to_string()).collect();
    let [a, b, c, d] = params else {
        panic!("four parameters");
    };
    format!(
        "fn f({a}: float[..], {b}: float[..], {c}: float[..], {d}: float[.., T], B: axis, G: axis) -> float[..] = {}\n",
        body.text(leaves, &names, &AXES)
    )
}

fn program(metric: &str, items: &str) -> Compiled {
    let text = format!(
        "data d = jsonl(\"d.jsonl\") {{ question: text, answer: text }}\n\
         model policy = causal(\"model\", optim: adamw(lr: 1e-5))\n{items}\
         step over d[B: 4], iterations: 10 {{\n  \
         roll = generate(policy, question)[G: 4, T: ..32]\n  \
         r = (if roll.text == answer then 1 else 0) * 1.0\n  \
         q = mean(r, G)\n  x = roll.logp\n  t = 0.25\n  \
         train policy {{ minimize -mean(mean(clamp(exp(logp(policy, roll) - x), 0, 2) * r, T)) }}\n  \
         log m: mean({metric})\n}}\n"
    );
    compile(&Request {
        name: "law.rlhf",
        text: &text,
        overrides: &[],
        load: &|_| None,
    })
}

/// What the program logs.
fn metric(compiled: &Compiled) -> String {
    let Some(graph) = &compiled.graph else {
        panic!("{:#?}", compiled.diagnostics);
    };
    show::formula(graph, graph.metrics[0].expr)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_term_has_the_axes_of_the_model(t in term(4, true)) {
        let (leaves, names) = (input_axes(), input_names());
        let text = t.text(&leaves, &names, &AXES);
        let e = expression(&text, "", &inputs(&names, &AXES));
        prop_assert_eq!(result_axes(&e), named(&t.axes(&leaves), &AXES), "{}", text);
    }

    #[test]
    fn a_call_is_its_body_with_the_arguments_put_in(
        body in term(4, true),
        args in prop::array::uniform3(term(4, false)),
    ) {
        let (leaves, names) = (input_axes(), input_names());
        // The last argument has the axis `T`, as the signature wants.
        let mut given: Vec<String> = args.iter().map(|a| a.text(&leaves, &names, &AXES)).collect();
        given.push("x".into());
        let mut given_axes: Vec<Axes> = args.iter().map(|a| a.axes(&leaves)).collect();
        given_axes.push(first(3));
        let library = function(&body, &["a", "b", "c", "d"], &given_axes);
        let call = format!("f({}, B, G)", given.join(", "));
        let inlined: Vec<String> = given.iter().map(|g| format!("({g})")).collect();
        let inlined = body.text(&given_axes, &inlined, &AXES);
        let all = inputs(&names, &AXES);
        let (call, inlined) = (expression(&call, &library, &all), expression(&inlined, "", &all));
        prop_assert_eq!(meaning(&call), meaning(&inlined), "{}", library);
    }

    #[test]
    fn a_call_in_a_step_is_its_body_there(body in term(4, true)) {
        let leaves = [Axes::new(), first(1), first(2), first(3)];
        let library = function(&body, &["a", "b", "c", "d"], &leaves);
        let names = ["t", "q", "r", "x"].map(str::to_string);
        let inlined = body.text(&leaves, &names, &AXES);
        let call = program("f(t, q, r, x, B, G)", &library);
        prop_assert_eq!(metric(&call), metric(&program(&inlined, "")), "{}", library);
    }

    #[test]
    fn a_body_in_braces_is_its_value_with_the_bindings_put_in(
        parts in prop::array::uniform3(term(4, false)),
        op in prop::sample::select(vec!["+", "-", "*", "/"]),
    ) {
        let (leaves, params) = (input_axes(), ["a", "b", "c", "d"].map(str::to_string));
        let [p, q, r] = parts.map(|t| t.text(&leaves, &params, &AXES));
        let head = "fn f(a: float[..], b: float[..], c: float[..], d: float[.., T]) -> float[..]";
        let plain = format!("{head} = ({p} {op} ({q})) * ({r})\n");
        let bound = format!("{head} {{\n  u = {p} {op} ({q})\n  v = {r}\n  return u * v\n}}\n");
        let all = inputs(&input_names(), &AXES);
        let call = "f(s, q, r, x)";
        let (plain, bound) = (expression(call, &plain, &all), expression(call, &bound, &all));
        prop_assert_eq!(meaning(&plain), meaning(&bound));
    }

    #[test]
    fn the_names_of_parameters_change_nothing(body in term(4, true)) {
        let leaves = input_axes();
        let all = inputs(&input_names(), &AXES);
        let call = "f(s, q, r, x, B, G)";
        let one = expression(call, &function(&body, &["a", "b", "c", "d"], &leaves), &all);
        // The names of the caller's own values, in another order.
        let two = expression(call, &function(&body, &["x", "r", "q", "s"], &leaves), &all);
        prop_assert_eq!(meaning(&one), meaning(&two));
    }

    #[test]
    fn the_names_of_axes_and_inputs_change_nothing(t in term(4, true)) {
        let (leaves, names) = (input_axes(), input_names());
        let others = ["u1", "u2", "u3", "u4"].map(str::to_string);
        let axes = ["Z", "Y", "X"];
        let one = expression(&t.text(&leaves, &names, &AXES), "", &inputs(&names, &AXES));
        let two = expression(&t.text(&leaves, &others, &axes), "", &inputs(&others, &axes));
        let mut renamed = meaning(&two);
        for (from, to) in others.iter().zip(&names) {
            renamed = renamed.replace(from.as_str(), to);
        }
        for (from, to) in axes.iter().zip(AXES) {
            renamed = renamed.replace(from, to);
        }
        prop_assert_eq!(meaning(&one), renamed);
    }

    #[test]
    fn the_order_of_operands_does_not_change_the_axes(
        a in term(4, true),
        b in term(4, true),
        op in prop::sample::select(vec!["+", "-", "*", "/", "<", "=="]),
    ) {
        let (leaves, names) = (input_axes(), input_names());
        let (x, y) = (a.text(&leaves, &names, &AXES), b.text(&leaves, &names, &AXES));
        let all = inputs(&names, &AXES);
        let one = expression(&format!("({x}) {op} ({y})"), "", &all);
        let two = expression(&format!("({y}) {op} ({x})"), "", &all);
        prop_assert_eq!(result_axes(&one), result_axes(&two));
        let union = &a.axes(&leaves) | &b.axes(&leaves);
        prop_assert_eq!(result_axes(&one), named(&union, &AXES));
    }

    #[test]
    fn the_order_of_reduced_axes_changes_nothing(
        t in term(4, false),
        op in prop::sample::select(vec!["mean", "sum", "std", "var", "min", "max", "count"]),
        order in Just(vec![0usize, 1, 2]).prop_shuffle(),
    ) {
        let (leaves, names) = (input_axes(), input_names());
        let has = t.axes(&leaves);
        prop_assume!(!has.is_empty());
        let text = t.text(&leaves, &names, &AXES);
        let all = inputs(&names, &AXES);
        let shuffled: Vec<&str> = order.iter().filter(|a| has.contains(a)).map(|a| AXES[*a]).collect();
        let written = format!("{op}({text}, [{}])", shuffled.join(", "));
        let sorted = format!("{op}({text}, {})", list(&has, &AXES));
        let none = format!("{op}({text})");
        let meant = meaning(&expression(&sorted, "", &all));
        prop_assert_eq!(&meaning(&expression(&written, "", &all)), &meant);
        prop_assert_eq!(&meaning(&expression(&none, "", &all)), &meant);
    }

    #[test]
    fn a_function_of_element_wise_operators_takes_any_axes_and_keeps_them(
        body in term(2, false),
        which in 0..4usize,
        other in 0..4usize,
    ) {
        let names = ["a", "b"].map(str::to_string);
        let library = format!(
            "fn f(a: float[..], b: float[..]) -> float[..] = {}\n",
            body.text(&[Axes::new(), Axes::new()], &names, &AXES)
        );
        let all = inputs(&input_names(), &AXES);
        let call = format!("f({}, {})", INPUTS[which].0, INPUTS[other].0);
        let e = expression(&call, &library, &all);
        let axes = body.axes(&[first(INPUTS[which].1), first(INPUTS[other].1)]);
        prop_assert_eq!(result_axes(&e), named(&axes, &AXES), "{}", library);
    }

    #[test]
    fn a_text_compiles_to_the_same_graph_every_time(body in term(4, true)) {
        let names = ["t", "q", "r", "x"].map(str::to_string);
        let leaves = [Axes::new(), first(1), first(2), first(3)];
        let text = body.text(&leaves, &names, &AXES);
        let json = |c: Compiled| serde_json::to_string(&c.graph).expect("graphs are written");
        let one = json(program(&text, ""));
        prop_assert!(one.len() > 100);
        prop_assert_eq!(one, json(program(&text, "")));
    }

    #[test]
    fn a_broken_text_gives_the_same_diagnostics_every_time(at in 0..600usize, c in "[(){}=a1]") {
        let text = include_str!("sema/grpo.rlhf");
        let at = (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let broken = format!("{}{c}{}", &text[..at], &text[at..]);
        let found = || {
            let request = Request { name: "law.rlhf", text: &broken, overrides: &[], load: &|_| None };
            compile(&request).diagnostics
        };
        prop_assert_eq!(found(), found());
    }
}
