//! Whole runs of the real executables on a tiny model: what they leave behind, and that it repeats.

use rlhf_tests::{Checkpoint, Scene};
use serde_json::Value;

const GRPO: &str = r#"
use std.grpo { group_relative }
use std.ppo { clipped }
use std.kl { k3 }

param base: checkpoint = "./model"
param batch: int in 1.. = 3
param group: int in 2.. = 4
param clip: float in 0..1 = 0.2
param beta: float in 0.. = 0.04
param lr: float in 0..1 = 1e-2

data sums = jsonl("sums.jsonl") { question: text, answer: text }
data held = jsonl("held.jsonl") { question: text, answer: text }

model policy = causal(base, dtype: f32, optim: adamw(lr: warmup(lr, 2)))
model anchor = frozen(policy)

step over sums[B: batch], iterations: 3 {
  roll = generate(policy, chat(question), temperature: 1)[G: group, T: ..8]
  r    = if matches(roll.text, "[a-z]") then 1 else 0
  ref  = logp(anchor, roll)
  adv  = group_relative(r, G)

  train policy {
    lp   = logp(policy, roll)
    loss = beta * k3(lp, ref) - clipped(exp(lp - roll.logp), adv, clip)
    minimize mean(mean(loss, T), [B, G])
    log kl: mean(k3(lp, ref))
  }
  log reward: mean(r), length: mean(len(roll, T))
}

eval every 2 over held {
  best = generate(policy, chat(question), temperature: 0)[T: ..8]
  log accuracy: mean(if last_number(best.text) == number(answer) then 1 else 0),
    confidence: mean(best.logp)
}
"#;

fn grpo() -> Scene {
    let scene = Scene::new();
    scene.write("grpo.rlhf", GRPO);
    scene
}

fn number(line: &Value, metric: &str) -> f64 {
    let value = &line["metrics"][metric];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("`{metric}` is {value} in {line}"))
}

/// A metric of every step line.
fn series(scene: &Scene, run: &str, metric: &str) -> Vec<f64> {
    let steps = scene.metrics(run, "step");
    steps.iter().map(|line| number(line, metric)).collect()
}

/// The numbers of `metrics.jsonl` that do not depend on the clock.
fn timeless(scene: &Scene, run: &str) -> Vec<Value> {
    let mut lines = scene.lines(&format!("{run}/metrics.jsonl"));
    for line in &mut lines {
        let line = line.as_object_mut().expect("a line is an object");
        line.retain(|key, _| !key.contains("seconds"));
    }
    lines
}

#[test]
fn a_run_leaves_metrics_samples_curves_a_manifest_and_a_checkpoint() {
    let scene = grpo();
    let ran = scene.train(&["grpo.rlhf", "group=5", "--seed", "3", "--out", "run"]);
    for what in [
        "plan",
        "reward",
        "kl",
        "3 iterations",
        "checkpoint",
        "accuracy",
    ] {
        assert!(ran.out.contains(what), "{what}: {}", ran.out);
    }

    let steps = scene.metrics("run", "step");
    assert_eq!(steps.len(), 3);
    for (i, step) in steps.iter().enumerate() {
        assert_eq!(step["iteration"], i + 1);
        let reward = number(step, "reward");
        assert!((0.0..=1.0).contains(&reward), "{step}");
        let length = number(step, "length");
        assert!((0.0..=8.0).contains(&length), "{step}");
        assert!(number(step, "kl") >= 0.0, "{step}");
        assert!(number(step, "policy.grad_norm") > 0.0, "{step}");
        assert!(number(step, "policy.loss").is_finite(), "{step}");
    }
    assert_eq!(series(&scene, "run", "policy.lr"), [0.005, 0.01, 0.01]);
    let evals = scene.metrics("run", "eval");
    let at: Vec<&Value> = evals.iter().map(|line| &line["iteration"]).collect();
    assert_eq!(at, [0, 2, 3]);
    for eval in &evals {
        assert!((0.0..=1.0).contains(&number(eval, "accuracy")), "{eval}");
    }

    let samples = scene.lines("run/samples.jsonl");
    assert_eq!(samples.len(), 3 * 3 * 5);
    for sample in &samples {
        assert!(sample["prompt"].to_string().contains(" ="), "{sample}");
        let response = sample["response"].as_str().expect("a response is text");
        let letters = response.chars().any(|c| c.is_ascii_lowercase());
        assert_eq!(sample["reward"], f64::from(u8::from(letters)), "{sample}");
    }

    assert!(scene.read("run/curves.svg").starts_with("<svg"));
    let manifest: Value = serde_json::from_str(&scene.read("run/manifest.json")).expect("JSON");
    assert_eq!(manifest["program"]["name"], "grpo");
    let hash = manifest["program"]["sha256"].as_str().expect("a hash");
    assert_eq!(hash.len(), 64);
    assert_eq!(manifest["params"]["group"], 5);
    assert_eq!(manifest["params"]["clip"], 0.2);
    assert_eq!(manifest["overridden"], serde_json::json!(["group"]));
    assert_eq!(manifest["seed"], 3);
    assert_eq!(manifest["outcome"]["completed"], true);
    assert_eq!(manifest["outcome"]["iteration"], 3);
    assert_eq!(scene.read("run/program.rlhf"), GRPO);

    for file in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        assert!(scene.path("run/policy").join(file).is_file(), "{file}");
    }
    let (before, after) = (
        scene.bytes("model/model.safetensors"),
        scene.bytes("run/policy/model.safetensors"),
    );
    assert_ne!(before, after);
    assert!(
        !scene.path("run/anchor").exists(),
        "only what is trained is saved"
    );
}

#[test]
fn a_saved_policy_is_the_start_of_another_run() {
    let scene = grpo();
    scene.train(&["grpo.rlhf", "--out", "first"]);
    scene.train(&["grpo.rlhf", "base=first/policy", "--out", "second"]);
    let last = scene.metrics("first", "eval").pop().expect("an evaluation");
    let first = scene.metrics("second", "eval").swap_remove(0);
    assert_eq!(last["metrics"], first["metrics"]);
    // A frozen anchor is the policy as it was loaded: nothing to diverge from before the first update.
    assert!(series(&scene, "second", "kl")[0].abs() < 1e-6);
}

#[test]
fn a_seed_fixes_every_number_and_another_seed_gives_other_samples() {
    let scene = grpo();
    for (run, seed) in [("a", "5"), ("b", "5"), ("c", "6")] {
        scene.train(&["grpo.rlhf", "--seed", seed, "--out", run]);
    }
    assert_eq!(timeless(&scene, "a"), timeless(&scene, "b"));
    assert_eq!(scene.read("a/samples.jsonl"), scene.read("b/samples.jsonl"));
    let weights = |run: &str| scene.bytes(&format!("{run}/policy/model.safetensors"));
    assert_eq!(weights("a"), weights("b"));
    assert_ne!(scene.read("a/samples.jsonl"), scene.read("c/samples.jsonl"));
}

#[test]
fn the_number_of_threads_does_not_change_the_samples() {
    let scene = grpo();
    for threads in ["1", "2"] {
        scene.train(&["grpo.rlhf", "--threads", threads, "--out", threads]);
    }
    assert_eq!(scene.read("1/samples.jsonl"), scene.read("2/samples.jsonl"));
}

#[test]
fn minibatches_epochs_and_shuffling_take_several_steps_an_iteration() {
    let scene = grpo();
    let whole = "train policy {";
    let cut = "train policy, minibatch: 2, epochs: 2, shuffle: true {";
    scene.write("cut.rlhf", &GRPO.replace(whole, cut));
    scene.train(&["cut.rlhf", "batch=4", "--iterations", "2", "--out", "cut"]);
    scene.train(&[
        "grpo.rlhf",
        "batch=4",
        "--iterations",
        "2",
        "--out",
        "whole",
    ]);
    assert_eq!(series(&scene, "cut", "policy.loss").len(), 2);
    // The first rollout is the same; four updates move the policy further than one.
    assert_eq!(
        series(&scene, "cut", "reward")[0],
        series(&scene, "whole", "reward")[0]
    );
    assert!(series(&scene, "cut", "kl")[0] > series(&scene, "whole", "kl")[0]);
}

#[test]
fn iterations_on_the_command_line_stop_early_with_the_same_schedule() {
    let scene = grpo();
    scene.train(&["grpo.rlhf", "--out", "long"]);
    scene.train(&["grpo.rlhf", "--iterations", "1", "--out", "short"]);
    let steps = scene.metrics("short", "step");
    assert_eq!(steps.len(), 1);
    assert_eq!(
        steps[0]["metrics"],
        scene.metrics("long", "step")[0]["metrics"]
    );
    let evals = scene.metrics("short", "eval");
    let at: Vec<&Value> = evals.iter().map(|line| &line["iteration"]).collect();
    assert_eq!(at, [0, 1]);
    assert!(scene.path("short/policy/model.safetensors").is_file());
}

#[test]
fn a_reward_in_python_scores_every_response() {
    let scene = grpo();
    scene.write(
        "reward.py",
        "def score(response, answer):\n    print('scored')\n    return len(response) + float(answer) / 100\n",
    );
    let declared = "reward points(response: text, answer: text) -> float = python(\"reward.py:score\")\nstep over";
    let text = GRPO.replace("step over", declared).replace(
        "if matches(roll.text, \"[a-z]\") then 1 else 0",
        "points(roll.text, answer)",
    );
    scene.write("python.rlhf", &text);
    scene.train(&["python.rlhf", "--out", "run"]);
    let answers: Vec<f64> = scene
        .lines("sums.jsonl")
        .iter()
        .filter_map(|row| row["answer"].as_str()?.parse().ok())
        .collect();
    for sample in scene.lines("run/samples.jsonl") {
        let length = sample["response"].as_str().expect("text").chars().count();
        let row = sample["row"].as_u64().expect("a row") as usize;
        let wanted = length as f64 + answers[row] / 100.0;
        let found = sample["reward"].as_f64().expect("a reward");
        assert!((found - wanted).abs() < 1e-9, "{sample}: {wanted}");
    }
    assert!(scene.read("run/rewards.log").contains("scored"));
}

/// Four questions in a batch of four: every iteration sees all of them.
fn fixed_batch() -> Scene {
    let scene = Scene::new();
    let rows: String = (1..5)
        .map(|n| {
            format!("{{\"question\": \"{n}?\", \"chosen\": \"yes {n}\", \"rejected\": \"no\"}}\n")
        })
        .collect();
    scene.write("pairs.jsonl", &rows);
    scene
}

fn falls(losses: &[f64]) {
    assert_eq!(losses.len(), 8);
    for (i, pair) in losses.windows(2).enumerate() {
        assert!(pair[1] < pair[0], "after iteration {}: {losses:?}", i + 1);
    }
}

#[test]
fn supervised_fine_tuning_on_a_fixed_batch_lowers_its_loss() {
    let scene = fixed_batch();
    let program = r#"
data pairs = jsonl("pairs.jsonl") { question: text, chosen: text }
model policy = causal("./model", dtype: f32, optim: adamw(3e-3))
step over pairs[B: 4], iterations: 8 {
  roll = answer(chat(question), chosen)[T: ..16]
  train policy { minimize -mean(logp(policy, roll)) }
  log length: mean(len(roll, T))
}
"#;
    scene.write("sft.rlhf", program);
    scene.train(&["sft.rlhf", "--out", "run"]);
    falls(&series(&scene, "run", "policy.loss"));
    // "yes n" is five bytes and the end of the sequence.
    assert_eq!(series(&scene, "run", "length"), [6.0; 8]);
}

#[test]
fn direct_preference_optimization_on_a_fixed_batch_lowers_its_loss() {
    let scene = fixed_batch();
    let program = r#"
use std.dpo { dpo, margin }
data pairs = jsonl("pairs.jsonl") { question: text, chosen: text, rejected: text }
model policy = causal("./model", dtype: f32, optim: adamw(1e-3))
model anchor = frozen(policy)
step over pairs[B: 4], iterations: 8 {
  win   = answer(chat(question), chosen)[W: ..16]
  lose  = answer(chat(question), rejected)[L: ..16]
  ref_w = logp(anchor, win)
  ref_l = logp(anchor, lose)
  train policy {
    m = margin(sum(logp(policy, win), W), sum(logp(policy, lose), L), sum(ref_w, W), sum(ref_l, L))
    minimize mean(dpo(m, beta: 0.1))
    log margin: mean(m)
  }
}
"#;
    scene.write("dpo.rlhf", program);
    scene.train(&["dpo.rlhf", "--out", "run"]);
    let losses = series(&scene, "run", "policy.loss");
    falls(&losses);
    // Before the first update the margin is 0, and the loss -log(1/2).
    assert!(
        (losses[0] - std::f64::consts::LN_2).abs() < 1e-6,
        "{losses:?}"
    );
    assert!(series(&scene, "run", "margin")[7] > 0.0);
}

#[test]
fn tied_heads_train_and_are_saved_tied() {
    let scene = grpo();
    let mut tied = Checkpoint::new(8);
    tied.config["tie_word_embeddings"] = true.into();
    tied.tensors.remove("lm_head.weight");
    tied.write(&scene.path("tied"));
    scene.train(&[
        "grpo.rlhf",
        "base=tied",
        "--iterations",
        "1",
        "--out",
        "run",
    ]);
    let config: Value = serde_json::from_str(&scene.read("run/policy/config.json")).expect("JSON");
    assert_eq!(config["tie_word_embeddings"], true);
    scene.train(&[
        "grpo.rlhf",
        "base=run/policy",
        "--iterations",
        "1",
        "--out",
        "again",
    ]);
}

#[test]
fn an_interrupt_ends_a_run_in_order_with_the_checkpoint_saved() {
    let scene = grpo();
    scene.write(
        "long.rlhf",
        &GRPO.replace("iterations: 3", "iterations: 100000"),
    );
    let mut run = scene.start(&[
        "run",
        "long.rlhf",
        "--threads",
        "1",
        "--json",
        "--out",
        "run",
    ]);
    run.wait_for(|line| line.contains("\"event\":\"iteration\""));
    run.interrupt();
    let ran = run.end();
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("stopping after the current call"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("stopped early"), "{}", ran.err);
    assert!(scene.path("run/policy/model.safetensors").is_file());
    assert!(scene.path("run/curves.svg").is_file());
    let manifest: Value = serde_json::from_str(&scene.read("run/manifest.json")).expect("JSON");
    assert_eq!(manifest["outcome"]["stopped"], true);
    assert_eq!(manifest["outcome"]["completed"], false);
    let steps = scene.metrics("run", "step").len();
    assert!((1..100_000).contains(&steps), "{steps}");
    assert_eq!(manifest["outcome"]["iteration"], steps);
}

#[test]
fn a_save_that_fails_leaves_the_earlier_checkpoint() {
    let scene = grpo();
    let text = GRPO.replace("iterations: 3", "iterations: 100000");
    scene.write("long.rlhf", &text.replace("eval every 2", "eval every 1"));
    let mut run = scene.start(&[
        "run",
        "long.rlhf",
        "--threads",
        "1",
        "--json",
        "--out",
        "run",
    ]);
    run.wait_for(|line| line.contains("\"event\":\"saved\""));
    // A file where the next checkpoint is to be written; while one is being written there is a folder.
    while std::fs::write(scene.path("run/policy.new"), "").is_err() {
        std::thread::yield_now();
    }
    run.interrupt();
    let ran = run.end();
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("cannot save `run/policy`"), "{}", ran.err);
    assert!(
        ran.err.contains("earlier checkpoint is still there"),
        "{}",
        ran.err
    );
    scene.train(&[
        "grpo.rlhf",
        "base=run/policy",
        "--iterations",
        "1",
        "--out",
        "next",
    ]);
}
