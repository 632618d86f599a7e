//! The standard library's mathematics against the numbers of well-known implementations.

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

fn assert_close(case: &str, ours: &Json, theirs: &Json, tol: f64) {
    let (a, b) = (flat(ours), flat(theirs));
    assert_eq!(a.len(), b.len(), "{case}");
    for (a, b) in a.iter().zip(&b) {
        assert!(
            (a - b).abs() <= tol * (1.0 + b.abs()),
            "{case}: {ours} against {theirs}"
        );
    }
}

#[test]
fn losses_advantages_and_estimators_equal_the_published_implementations() {
    let fixture: Json = serde_json::from_str(include_str!("fixtures/losses.json")).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        let text = case["expr"].as_str().unwrap();
        let name = format!("{} ({text})", case["source"].as_str().unwrap());
        let uses: Vec<String> = serde_json::from_value(case["uses"].clone()).unwrap();
        let mut inputs = vec![];
        let mut given = vec![];
        let mut grad = None;
        for (i, (input, spec)) in case["inputs"].as_object().unwrap().iter().enumerate() {
            let axes: Vec<String> = serde_json::from_value(spec["axes"].clone()).unwrap();
            inputs.push(Input {
                name: input.clone(),
                axes: axes
                    .into_iter()
                    .enumerate()
                    .map(|(depth, axis)| (axis, lengths(&spec["data"], depth)))
                    .collect(),
                elem: Elem::Float,
            });
            let id = ValueId(i as u32);
            given.push((id, spec["data"].clone()));
            if case["by"].as_str() == Some(input) {
                grad = Some(id);
            }
        }
        let compiled = match compile_expression(text, &uses, &inputs, &|_| None) {
            Ok(compiled) => compiled,
            Err((_, diagnostics)) => panic!("{name}: {diagnostics:?}"),
        };
        let request = EvalRequest {
            graph: compiled.graph,
            root: compiled.value,
            inputs: given,
            grad,
        };
        let answer = run(&request).unwrap();
        let tol = case["tol"].as_f64().unwrap();
        assert_close(&name, &answer["value"], &case["value"], tol);
        if grad.is_some() {
            assert_close(&name, &answer["grad"], &case["grad"], tol);
        }
    }
}
