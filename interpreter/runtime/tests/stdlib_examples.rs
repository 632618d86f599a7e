//! The examples in the doc comments of the standard library are worth what they say.

mod eval_support;
#[path = "../../../stdlib/tests/example/mod.rs"]
mod example;

use eval_support::{Program, flat};
use example::{Example, examples};
use serde_json::Value as Json;

fn value(example: &Example) -> Json {
    let inputs = example.inputs.iter();
    let inputs: Vec<_> = inputs
        .map(|(name, axes, data)| {
            let data = serde_json::from_str(data).unwrap();
            (name.clone(), axes.clone(), data)
        })
        .collect();
    let uses: &[&str] = match example.module {
        "std.prelude" => &[],
        ref other => std::slice::from_ref(other),
    };
    Program::new(&example.expression, uses, &inputs).value()
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
    assert!(count > 70, "{count} examples");
}
