//! What an iteration hands to the next: states, and frozen models that follow trained ones.

use rlhf_tests::Scene;
use safetensors::SafeTensors;
use serde_json::Value;

const STATES: &str = r#"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
data held = jsonl("held.jsonl") { question: text, answer: text }
model policy = causal("./model", dtype: f32, optim: adamw(lr: scale / 1000))
state scale: float = 1
state seen: int = 0
state odd: bool = false
step over sums[B: 3], iterations: 3 {
  roll = generate(policy, question, temperature: 1)[T: ..4]
  train policy {
    minimize -mean(mean(logp(policy, roll), T) * scale)
    log inside: scale
  }
  next scale = scale * 2 + mean(len(roll, T)) * 0
  next seen = seen + count(len(roll, T))
  next odd = not odd
  log scale: scale, seen: seen, odd: if odd then 1 else 0
}
eval every 2 over held {
  log now: scale + 0 * mean(number(answer)), had: seen + 0 * mean(number(answer))
}
"#;

fn series(scene: &Scene, run: &str, kind: &str, metric: &str) -> Vec<f64> {
    let of = |line: &Value| line["metrics"][metric].as_f64();
    let lines = scene.metrics(run, kind);
    lines
        .iter()
        .map(|line| of(line).unwrap_or_else(|| panic!("`{metric}` in {line}")))
        .collect()
}

fn weights(scene: &Scene, checkpoint: &str) -> Vec<(String, Vec<f32>)> {
    let bytes = scene.bytes(&format!("{checkpoint}/model.safetensors"));
    let file = SafeTensors::deserialize(&bytes).expect("a checkpoint");
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let mut all: Vec<_> = file
        .tensors()
        .into_iter()
        .map(|(name, t)| (name, t.data().chunks(4).map(number).collect()))
        .collect();
    all.sort_by(|(a, _): &(String, Vec<f32>), (b, _)| a.cmp(b));
    all
}

#[test]
fn a_state_is_read_as_the_iteration_began_and_an_evaluation_reads_the_newest() {
    let scene = Scene::new();
    scene.write("states.rlhf", STATES);
    scene.train(&["states.rlhf", "--out", "run"]);
    let of = |metric| series(&scene, "run", "step", metric);
    assert_eq!(of("scale"), [1.0, 2.0, 4.0]);
    assert_eq!(of("inside"), [1.0, 2.0, 4.0]);
    assert_eq!(of("policy.lr"), [0.001, 0.002, 0.004]);
    assert_eq!(of("seen"), [0.0, 3.0, 6.0]);
    assert_eq!(of("odd"), [0.0, 1.0, 0.0]);
    assert_eq!(series(&scene, "run", "eval", "now"), [1.0, 4.0, 8.0]);
    assert_eq!(series(&scene, "run", "eval", "had"), [0.0, 6.0, 9.0]);
}

#[test]
fn a_state_that_is_no_longer_finite_ends_the_run_where_it_is_set() {
    let scene = Scene::new();
    let text = STATES.replace("next scale = scale * 2", "next scale = log(0 - scale)");
    scene.write("states.rlhf", &text);
    let ran = scene.rlhf(&["run", "states.rlhf", "--threads", "1", "--out", "run"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let said = "`next scale` became NaN at iteration 1";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("states.rlhf:14"), "{}", ran.err);
}

const FOLLOWS: &str = r#"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
data held = jsonl("held.jsonl") { question: text, answer: text }
model policy = causal("./model", dtype: f32, optim: adamw(1e-2))
model anchor = frozen(policy)
step over sums[B: 3], iterations: 1 {
  roll = generate(policy, question, temperature: 1)[T: ..4]
  ref  = logp(anchor, roll)
  train policy {
    lp = logp(policy, roll)
    minimize -mean(mean(lp - ref, T))
  }
  next anchor = lerp(anchor, policy, 0.25)
  log drift: mean(roll.logp - ref)
}
eval every 1 over held {
  gold = answer(question, answer)[T: ..8]
  own  = logp(policy, gold)
  ref  = logp(anchor, gold)
  log apart: mean(abs(own - ref))
}
"#;

#[test]
fn a_model_that_follows_moves_by_its_rate_towards_the_updated_weights_and_is_saved() {
    let scene = Scene::new();
    scene.write("ema.rlhf", FOLLOWS);
    scene.train(&["ema.rlhf", "--out", "run"]);
    let [before, policy, anchor] =
        ["model", "run/policy", "run/anchor"].map(|dir| weights(&scene, dir));
    let mut moved = 0.0f32;
    for (((name, w), (_, v)), (_, found)) in before.iter().zip(&policy).zip(&anchor) {
        for ((w, v), found) in w.iter().zip(v).zip(found) {
            assert!((w + 0.25 * (v - w) - found).abs() < 1e-6, "{name}");
            moved = moved.max((found - w).abs());
        }
    }
    assert!(moved > 1e-3, "{moved}");
    // The iteration read the anchor it began with; the evaluation after it reads the moved one.
    assert!(series(&scene, "run", "step", "drift")[0].abs() < 1e-5);
    let apart = series(&scene, "run", "eval", "apart");
    assert!(apart[0] < 1e-6 && apart[1] > 1e-4, "{apart:?}");
}

#[test]
fn a_rate_that_changes_moves_a_model_when_it_is_not_zero() {
    let scene = Scene::new();
    let text = FOLLOWS.replace("iterations: 1", "iterations: 3").replace(
        "lerp(anchor, policy, 0.25)",
        "lerp(anchor, policy, if iteration % 2 == 0 then 1 else 0)",
    );
    scene.write("sync.rlhf", &text);
    scene.train(&["sync.rlhf", "--out", "run"]);
    let apart = series(&scene, "run", "eval", "apart");
    // As loaded, then left behind, then caught up, then left behind again.
    assert!(apart[0] < 1e-6 && apart[1] > 1e-4, "{apart:?}");
    assert!(apart[2] < 1e-6 && apart[3] > 1e-4, "{apart:?}");
}

#[test]
fn next_without_lerp_takes_the_new_weights_as_they_are() {
    let scene = Scene::new();
    let text = FOLLOWS.replace("lerp(anchor, policy, 0.25)", "policy");
    scene.write("copy.rlhf", &text);
    scene.train(&["copy.rlhf", "--out", "run"]);
    assert_eq!(weights(&scene, "run/policy"), weights(&scene, "run/anchor"));
}
