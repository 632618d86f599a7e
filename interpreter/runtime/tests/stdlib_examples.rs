//! The examples in the doc comments of the standard library are worth what they say.

#[path = "../../../stdlib/tests/example/mod.rs"]
mod example;

use example::{Example, examples};
use rlhf_lang::graph::{Elem, ValueId};
use rlhf_lang::{Input, compile_expression};
use rlhf_runtime::eval::{EvalRequest, run};
use serde_json::Value as Json;

/// The common length of the lists at each depth, `None` where they differ.
fn lengths(data: &Json, depth: usize) -> Option<usize> {
    fn collect(data: &Json, depth: usize, out: &mut Vec<usize>) {
        let items = data.as_array().unwrap();
        match depth {
            0 => out.push(items.len()),
            _ => items.iter().for_each(|i| collect(i, depth - 1, out)),
        }
    }
    let mut all = vec![];
    collect(data, depth, &mut all);
    all.iter().all(|n| *n == all[0]).then_some(all[0])
}

fn flat(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

fn value(example: &Example) -> Json {
    let mut inputs = vec![];
    let mut given = vec![];
    for (i, (name, axes, data)) in example.inputs.iter().enumerate() {
        let data: Json = serde_json::from_str(data).unwrap();
        let axes = axes.iter().enumerate();
        inputs.push(Input {
            name: name.clone(),
            axes: axes
                .map(|(depth, axis)| (axis.clone(), lengths(&data, depth)))
                .collect(),
            elem: Elem::Float,
        });
        given.push((ValueId(i as u32), data));
    }
    let uses = match example.module {
        "std.prelude" => vec![],
        other => vec![other.to_string()],
    };
    let compiled = match compile_expression(&example.expression, &uses, &inputs, &|_| None) {
        Ok(compiled) => compiled,
        Err((_, diagnostics)) => panic!("{example:?}: {diagnostics:?}"),
    };
    let request = EvalRequest {
        graph: compiled.graph,
        root: compiled.value,
        inputs: given,
        grad: None,
    };
    run(&request).unwrap()["value"].clone()
}

#[test]
fn every_example_of_the_standard_library_is_worth_what_it_says() {
    let mut count = 0;
    for module in rlhf_stdlib::modules()
        .iter()
        .copied()
        .chain(["std.prelude"])
    {
        let text = rlhf_stdlib::module(module).unwrap();
        for (function, example) in examples(module, text) {
            let example = example.unwrap_or_else(|| panic!("{module}.{function} has no example"));
            if example.iterations.is_some() {
                // The language's own tests run the schedules.
                continue;
            }
            count += 1;
            let ours = value(&example);
            let says: Json = serde_json::from_str(&example.value).unwrap();
            let (a, b) = (flat(&ours), flat(&says));
            assert_eq!(a.len(), b.len(), "{module}.{function}: {ours}");
            for (a, b) in a.iter().zip(&b) {
                let close = (a - b).abs() <= 1e-3 * (1.0 + b.abs());
                assert!(close, "{module}.{function}: {ours}, and it says {says}");
            }
        }
    }
    assert!(count > 25, "{count} examples");
}
