//! `rlhf eval`: values and gradients against closed forms, and what it says of a wrong expression.

#[path = "../../interpreter/runtime/tests/losses/mod.rs"]
mod losses;

use std::sync::Mutex;

use rlhf_tests::Scene;
use serde_json::{Value, json};

fn eval(words: &[&str]) -> Value {
    let scene = Scene::new();
    let all: Vec<&str> = ["eval"].iter().chain(words).copied().collect();
    let ran = scene.rlhf(&all);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.out))
}

/// The same shape, the same numbers.
fn close(found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| close(a, b));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().expect("finite"), b.as_f64().expect("finite"));
            assert!(
                (a - b).abs() < 1e-9 * b.abs().max(1.0),
                "{a} instead of {b}"
            );
        }
        _ => panic!("{found} instead of {expected}"),
    }
}

#[test]
fn a_mean_over_ragged_rows_is_by_token_or_by_response() {
    let x = "x[B, T]=[[1, 2, 3], [10]]";
    close(&eval(&["mean(x)", "--let", x]), &4.0.into());
    let found = eval(&["mean(mean(x, T), B)", "--let", x, "--grad", "x"]);
    close(&found["value"], &6.0.into());
    let sixth = 1.0 / 6.0;
    close(
        &found["grad"],
        &serde_json::json!([[sixth, sixth, sixth], [0.5]]),
    );
}

#[test]
fn the_clipped_surrogate_stops_the_gradient_outside_the_region() {
    let words = [
        "sum(clipped(exp(lp - old), adv, 0.2))",
        "--use",
        "std.ppo",
        "--let",
        "lp[B]=[0.5, 0.1, -0.5, -0.5]",
        "--let",
        "old[B]=[0, 0, 0, 0]",
        "--let",
        "adv[B]=[1, 1, 1, -1]",
        "--grad",
        "lp",
    ];
    let found = eval(&words);
    let (up, down) = (0.1f64.exp(), (-0.5f64).exp());
    close(&found["value"], &(1.2 + up + down - 0.8).into());
    close(&found["grad"], &serde_json::json!([0.0, up, down, 0.0]));
}

#[test]
fn k3_is_a_kl_estimate_with_its_gradient() {
    let words = [
        "mean(k3(p, q))",
        "--use",
        "std.kl",
        "--let",
        "p[B]=[-1, -2]",
        "--let",
        "q[B]=[-1.5, -1]",
        "--grad",
        "p",
    ];
    let found = eval(&words);
    let k3 = |x: f64| x.exp() - x - 1.0;
    close(&found["value"], &((k3(-0.5) + k3(1.0)) / 2.0).into());
    let slope = |x: f64| (1.0 - x.exp()) / 2.0;
    close(
        &found["grad"],
        &serde_json::json!([slope(-0.5), slope(1.0)]),
    );
}

#[test]
fn group_relative_centres_and_scales_each_group() {
    let words = [
        "group_relative(r, G)",
        "--use",
        "std.grpo",
        "--let",
        "r[B, G]=[[1, 0], [2, 2]]",
    ];
    let std = 0.5f64.sqrt();
    let a = 0.5 / (std + 1e-4);
    close(&eval(&words), &serde_json::json!([[a, -a], [0.0, 0.0]]));
}

#[test]
fn a_suffix_sum_decays_along_each_response() {
    let words = [
        "suffix_sum(x, T, decay: 0.5)",
        "--let",
        "x[B, T]=[[1, 2, 4], [8]]",
    ];
    close(&eval(&words), &serde_json::json!([[3.0, 4.0, 4.0], [8.0]]));
    let words = [
        "sum(suffix_sum(x, T, decay: 0.5))",
        "--let",
        "x[B, T]=[[1, 2, 4], [8]]",
        "--grad",
        "x",
    ];
    let grad = &eval(&words)["grad"];
    close(grad, &serde_json::json!([[1.0, 1.5, 1.75], [1.0]]));
}

#[test]
fn texts_and_numbers_stand_in_expressions() {
    let words = [
        "if last_number(t) == number(a) then 1 else 0",
        "--let",
        "t[B]=[\"it is 5.\", \"none\"]",
        "--let",
        "a[B]=[\"5\", \"5\"]",
    ];
    close(&eval(&words), &serde_json::json!([1, 0]));
}

#[test]
fn a_wrong_expression_is_drawn_with_the_problem_in_it() {
    let scene = Scene::new();
    for (words, said) in [
        (
            vec!["mean(lpp)", "--let", "lp[B]=[1, 2]"],
            vec!["no `lpp`", "`lp`", "mean(lpp)"],
        ),
        (
            vec!["mean(lp, T)", "--let", "lp[B]=[1, 2]"],
            vec!["T", "mean(lp, T)"],
        ),
        (vec!["mean(lp", "--let", "lp[B]=[1, 2]"], vec!["mean(lp"]),
        (
            vec!["k3(a, a)", "--let", "a=1"],
            vec!["`k3`", "std.kl", "k3(a, a)"],
        ),
        (
            vec!["a", "--let", "a=1", "--use", "std.klo"],
            vec!["std.klo", "std.kl"],
        ),
        (
            vec!["lp", "--let", "lp[B]=[1, 2]", "--grad", "lp"],
            vec!["lp"],
        ),
    ] {
        let all: Vec<&str> = ["eval"].iter().chain(&words).copied().collect();
        let ran = scene.rlhf(&all);
        assert_eq!(ran.code, 1, "{words:?}: {}{}", ran.out, ran.err);
        for word in said {
            assert!(ran.err.contains(word), "`{word}` of {words:?}: {}", ran.err);
        }
    }
}

#[test]
fn a_gradient_of_no_input_lists_the_inputs() {
    let scene = Scene::new();
    let ran = scene.rlhf(&[
        "eval", "a + b", "--let", "a=1", "--let", "b=2", "--grad", "c",
    ]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`--grad c` names no input"), "{}", ran.err);
    assert!(ran.err.contains("inputs: a, b"), "{}", ran.err);
}

#[test]
fn a_gradient_of_what_is_no_number_says_so() {
    let scene = Scene::new();
    for (expression, says) in [
        ("x > 1", "a gradient needs one number, and this is bool"),
        ("x * [1", "x * [1"),
        ("name", "a gradient needs one number, and this is text"),
    ] {
        let ran = scene.rlhf(&[
            "eval", expression, "--let", "x=2", "--let", "name=ann", "--grad", "x",
        ]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(says), "{}", ran.err);
    }
    let ran = scene.rlhf(&[
        "eval", "x", "--let", "x=2", "--let", "name=ann", "--grad", "name",
    ]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("`name` holds text"), "{}", ran.err);
}

/// One case of the table by the command line: its value and its gradients.
fn through_the_command(scene: &Scene, fixture: &Value, case: &losses::Case) {
    let mut words = vec!["eval".to_string(), case.program.into()];
    for module in case.uses {
        words.extend(["--use".into(), module.to_string()]);
    }
    for input in losses::inputs(fixture, case) {
        let given = format!("{}[{}]={}", input.name, input.axes.join(","), input.data);
        words.extend(["--let".into(), given]);
    }
    for by in case.by {
        words.extend(["--grad".into(), by.to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = scene.rlhf(&words);
    assert_eq!(ran.code, 0, "{}: {}{}", case.path, ran.out, ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let says = losses::expected(fixture, case);
    let (value, gradients) = match case.by {
        [] => (found, vec![]),
        [_] => (found["value"].clone(), vec![found["grad"].clone()]),
        by => {
            let gradients = by.iter().map(|b| found["grad"][*b].clone());
            (found["value"].clone(), gradients.collect())
        }
    };
    losses::assert_close(case.path, &value, &says.value);
    for (gradient, (by, theirs)) in gradients.iter().zip(&says.gradients) {
        losses::assert_close(&format!("{} by {by}", case.path), gradient, theirs);
    }
    if let Some(norm) = says.norm {
        let ours = losses::logits_norm(fixture, &gradients);
        losses::assert_close(case.path, &json!(ours), &json!(norm));
    }
}

#[test]
fn losses_and_gradients_by_the_command_equal_trl_and_openrlhf() {
    let fixture = losses::fixture();
    let scene = Scene::new();
    let cases = Mutex::new(losses::CASES.iter());
    // Each is a process of its own, so two are kept busy.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let case = cases.lock().expect("no case panics with the lock").next();
                    match case {
                        Some(case) => through_the_command(&scene, &fixture, case),
                        None => break,
                    }
                }
            });
        }
    });
}
