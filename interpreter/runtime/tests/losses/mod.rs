//! Which program computes each number of `fixtures/losses.json`, and over which inputs.
//!
//! The fixture holds what TRL 1.16 and OpenRLHF 0.11 compute on small batches; `_provenance` says how.
//! Both `rlhf eval` and the evaluator itself run this table.
#![allow(dead_code)] // each test file uses its part

mod inputs;
mod programs;

use serde_json::Value as Json;

pub use inputs::Input;
pub use programs::{CASES, Case, LEFT_OUT};

/// What a case gives: a number or lists, and gradients by input.
pub struct Expected {
    /// The value, nested like the axes of the result.
    pub value: Json,
    /// Gradients by the name of the input.
    pub gradients: Vec<(&'static str, Json)>,
    /// The Euclidean norm of the gradient by the logits that `by` were computed from.
    pub norm: Option<f64>,
}

/// The fixture.
pub fn fixture() -> Json {
    serde_json::from_str(include_str!("../fixtures/losses.json")).expect("the fixture is JSON")
}

/// The part of the fixture that a case names: `trl/grpo_loss/dapo`. A `/` in a key is written `~`.
pub fn at<'j>(fixture: &'j Json, path: &str) -> &'j Json {
    let keys = path.split('/').map(|key| key.replace('~', "/"));
    keys.fold(fixture, |json, key| &json[key.as_str()])
}

/// The inputs of a case.
pub fn inputs(fixture: &Json, case: &Case) -> Vec<Input> {
    inputs::of(fixture, case.world, case.path)
}

/// What the case has to give.
pub fn expected(fixture: &Json, case: &Case) -> Expected {
    let found = at(fixture, case.path);
    assert!(!found.is_null(), "no case {}", case.path);
    let keys = ["loss", "mean"];
    let value = keys.iter().map(|k| &found[*k]).find(|v| !v.is_null());
    let value = value.unwrap_or(found);
    let value = match value {
        Json::Array(rows) if rows.first().is_some_and(Json::is_array) => {
            inputs::trimmed(fixture, value, case.world)
        }
        other => other.clone(),
    };
    let gradients = case.by.iter().zip(case.gradients);
    let gradients = gradients
        .map(|(by, key)| {
            let gradient = match *key {
                // Chosen and rejected in one list.
                "grad[..3]" => Json::from(found["grad"].as_array().expect("six")[..3].to_vec()),
                "grad[3..]" => Json::from(found["grad"].as_array().expect("six")[3..].to_vec()),
                key => found[key].clone(),
            };
            assert!(!gradient.is_null(), "{} has no {key}", case.path);
            let gradient = match &gradient {
                Json::Array(rows) if rows[0].is_array() => {
                    inputs::trimmed(fixture, &gradient, case.world)
                }
                other => other.clone(),
            };
            (*by, gradient)
        })
        .collect();
    Expected {
        value,
        gradients,
        norm: found["grad_logits_l2"].as_f64(),
    }
}

/// |∂loss/∂logits| from the gradients by the token log-probabilities of the two halves of the batch.
pub fn logits_norm(fixture: &Json, gradients: &[Json]) -> f64 {
    inputs::logits_norm(fixture, gradients)
}

/// Every number in the order of rows.
pub fn flat(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        Json::Null => vec![f64::NAN],
        other => vec![other.as_f64().expect("a number")],
    }
}

/// Equal within 1e-6 of the largest number of the list.
pub fn assert_close(what: &str, ours: &Json, theirs: &Json) {
    let (a, b) = (flat(ours), flat(theirs));
    assert_eq!(a.len(), b.len(), "{what}: {ours} against {theirs}");
    let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (a, b) in a.iter().zip(&b) {
        assert!(
            (a - b).abs() <= 1e-6 * largest,
            "{what}: {ours} against {theirs}"
        );
    }
}
