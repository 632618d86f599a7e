//! The standard library's mathematics against TRL, OpenRLHF, transformers and the papers' formulas.

mod eval_support;
mod losses;

use eval_support::{Given, Program, assert_close};
use losses::{CASES, LEFT_OUT, expected, fixture, inputs, logits_norm};
use serde_json::{Value as Json, json};

/// Of the largest number of a list: some peers multiply by constants stored as f32.
const TOLERANCE: f64 = 1e-6;

fn given(name: &str, axes: &[&str], data: &Json) -> Given {
    let axes = axes.iter().map(|a| a.to_string()).collect();
    (name.to_string(), axes, data.clone())
}

#[test]
fn values_and_gradients_equal_trl_and_openrlhf() {
    let fixture = fixture();
    for case in CASES {
        let all = inputs(&fixture, case);
        let all: Vec<Given> = all.iter().map(|i| given(i.name, i.axes, &i.data)).collect();
        let program = Program::new(case.program, case.uses, &all);
        let says = expected(&fixture, case);
        assert_close(case.path, &program.value(), &says.value, TOLERANCE);
        let gradients: Vec<Json> = case.by.iter().map(|by| program.gradient(by)).collect();
        for (gradient, (by, theirs)) in gradients.iter().zip(&says.gradients) {
            let what = format!("{} by {by}", case.path);
            assert_close(&what, gradient, theirs, TOLERANCE);
        }
        if let Some(norm) = says.norm {
            let ours = logits_norm(&fixture, &gradients);
            let what = format!("{}, gradient", case.path);
            assert_close(&what, &json!(ours), &json!(norm), TOLERANCE);
        } else {
            assert_eq!(gradients.len(), says.gradients.len(), "{}", case.path);
        }
    }
}

/// Keys of numbers that no loss is: settings, inputs, and what was logged beside.
const NOT_CASES: &[&str] = &[
    "config",
    "metrics",
    "inputs",
    "note",
    "clip_ratio",
    "ppo_kl",
    "chosen",
    "rejected",
    "margin",
    "dpo_inputs",
    "avg_chosen_logps",
    "avg_rejected_logps",
    "beta",
    "values",
    "mask",
    "group",
];

fn paths(json: &Json, path: &str, out: &mut Vec<String>) {
    match json.as_object() {
        Some(map) if !map.contains_key("loss") && !map.contains_key("losses") => {
            for (key, part) in map.iter().filter(|(k, _)| !NOT_CASES.contains(&k.as_str())) {
                paths(part, &format!("{path}/{}", key.replace('/', "~")), out);
            }
        }
        _ => out.push(path.to_string()),
    }
}

#[test]
fn no_number_of_trl_or_openrlhf_is_left_without_a_program() {
    let fixture = fixture();
    // `margin` is a case of TRL's reward model and an input of OpenRLHF's.
    let mut all = vec!["trl/reward/margin".to_string()];
    for peer in ["openrlhf", "trl"] {
        paths(&fixture[peer], peer, &mut all);
    }
    let known = |p: &String| {
        CASES.iter().any(|c| c.path == p) || LEFT_OUT.iter().any(|(left, _)| left == p)
    };
    let missing: Vec<&String> = all.iter().filter(|p| !known(p)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(all.len() > 65, "{} cases", all.len());
}

fn library() -> Json {
    serde_json::from_str(include_str!("fixtures/library.json")).unwrap()
}

#[test]
fn functions_without_a_case_equal_the_papers_formulas() {
    let library = library();
    let cases = library["cases"].as_array().unwrap();
    assert!(cases.len() > 55, "{} cases", cases.len());
    for case in cases {
        let text = case["program"].as_str().unwrap();
        let uses: Vec<String> = serde_json::from_value(case["uses"].clone()).unwrap();
        let inputs = case["inputs"].as_object().unwrap();
        let inputs: Vec<Given> = inputs
            .iter()
            .map(|(name, input)| {
                let axes: Vec<String> = serde_json::from_value(input["axes"].clone()).unwrap();
                (name.clone(), axes, input["data"].clone())
            })
            .collect();
        let program = Program::new(text, &uses, &inputs);
        assert_close(text, &program.value(), &case["value"], 1e-9);
        for (by, theirs) in case["gradients"].as_object().unwrap() {
            let what = format!("{text} by {by}");
            assert_close(&what, &program.gradient(by), theirs, 1e-9);
        }
    }
}

#[test]
fn learning_rates_equal_those_of_transformers() {
    let library = library();
    let rates = library["rates"].as_array().unwrap();
    assert!(rates.len() > 10);
    for rate in rates {
        let text = rate["program"].as_str().unwrap();
        let program = Program::new(text, &["std.optim"], &[]);
        let theirs = rate["values"].as_array().unwrap();
        let ours: Json = (1..=theirs.len())
            .map(|i| json!(program.in_iteration(i, theirs.len())))
            .collect();
        assert_close(text, &ours, &rate["values"], 1e-9);
    }
}
