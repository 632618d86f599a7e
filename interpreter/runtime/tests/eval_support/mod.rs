//! A program over named inputs, for the tests of the standard library.
#![allow(dead_code)] // each test file uses its part

use rlhf_lang::graph::{Elem, ValueId};
use rlhf_lang::{Input, compile_expression};
use rlhf_runtime::eval::{EvalRequest, read, run};
use serde_json::Value as Json;

/// A named input: axes, outermost first, and nested lists.
pub type Given = (String, Vec<String>, Json);

/// A program ready to run.
pub struct Program {
    names: Vec<String>,
    request: EvalRequest,
}

/// The common length of the lists at a depth, `None` where they differ.
fn lengths(data: &Json, depth: usize) -> Option<usize> {
    fn collect(data: &Json, depth: usize, out: &mut Vec<usize>) {
        let items = data.as_array().expect("a list for every axis");
        match depth {
            0 => out.push(items.len()),
            _ => items.iter().for_each(|i| collect(i, depth - 1, out)),
        }
    }
    let mut all = vec![];
    collect(data, depth, &mut all);
    all.iter().all(|n| *n == all[0]).then_some(all[0])
}

impl Program {
    /// Compiles a program that calls functions of the modules `uses`; fails with its diagnostics.
    pub fn new<S: AsRef<str>>(program: &str, uses: &[S], given: &[Given]) -> Program {
        let typed: Vec<Input> = given
            .iter()
            .map(|(name, axes, data)| Input {
                name: name.clone(),
                axes: axes
                    .iter()
                    .enumerate()
                    .map(|(depth, axis)| (axis.clone(), lengths(data, depth)))
                    .collect(),
                elem: Elem::Float,
            })
            .collect();
        let uses: Vec<String> = uses.iter().map(|u| u.as_ref().to_string()).collect();
        let compiled = match compile_expression(program, &uses, &typed, &|_| None) {
            Ok(compiled) => compiled,
            Err((_, diagnostics)) => panic!("{program}: {diagnostics:?}"),
        };
        let inputs = given.iter().enumerate();
        Program {
            names: given.iter().map(|(name, _, _)| name.clone()).collect(),
            request: EvalRequest {
                graph: compiled.graph,
                root: compiled.value,
                inputs: inputs
                    .map(|(i, (_, _, data))| (ValueId(i as u32), data.clone()))
                    .collect(),
                grad: None,
            },
        }
    }

    /// Its value.
    pub fn value(&self) -> Json {
        let request = EvalRequest {
            grad: None,
            ..self.request.clone()
        };
        run(&request).expect("it evaluates")["value"].clone()
    }

    /// The gradient of its one number by an input.
    pub fn gradient(&self, by: &str) -> Json {
        let place = self.names.iter().position(|n| n == by);
        let place = place.unwrap_or_else(|| panic!("no input {by}"));
        let request = EvalRequest {
            grad: Some(ValueId(place as u32)),
            ..self.request.clone()
        };
        run(&request).expect("it evaluates")["grad"].clone()
    }

    /// The value of a schedule in iteration `at` of a run of `of`.
    pub fn in_iteration(&self, at: usize, of: usize) -> f64 {
        let graph = &self.request.graph;
        let mut env = read(graph, &self.request.inputs).expect("no inputs");
        (env.iteration, env.iterations) = (at as f64, of as f64);
        let value = rlhf_runtime::expr::eval(graph, self.request.root, &env);
        value.expect("it evaluates").numbers().expect("one number")[0]
    }
}

/// Every number in the order of rows.
pub fn flat(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        Json::Null => vec![f64::NAN],
        other => vec![other.as_f64().expect("a number")],
    }
}

/// Equal within `tolerance` of the largest number of the list.
pub fn assert_close(what: &str, ours: &Json, theirs: &Json, tolerance: f64) {
    let (a, b) = (flat(ours), flat(theirs));
    assert_eq!(a.len(), b.len(), "{what}: {ours} against {theirs}");
    let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (a, b) in a.iter().zip(&b) {
        assert!(
            (a - b).abs() <= tolerance * largest,
            "{what}: {ours} against {theirs}"
        );
    }
}
