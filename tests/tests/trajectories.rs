//! Fifty steps of sft, dpo and reward against TRL 1.16: the same weights, rows and optimizer, the loss of
//! every step (`tests/reference/trajectories.py` wrote TRL's).

use rlhf_tests::{Checkpoint, Scene};
use serde_json::Value;

const FILES: &str = r#"
data demos = jsonl("demos.jsonl") { prompt: text, completion: text }
data pairs = jsonl("pairs.jsonl") { prompt: text, chosen: text, rejected: text }
"#;

const SFT: &str = r#"
model policy = causal("./model", dtype: f32, optim: adamw(lr: 1e-3))
step over demos[B: 4], iterations: 50, shuffle: false {
  gold = answer(prompt, completion)[W: ..80]
  train policy {
    minimize -mean(logp(policy, gold))
  }
}
"#;

const DPO: &str = r#"
use std.dpo { dpo }
model policy = causal("./model", dtype: f32, optim: adamw(lr: 1e-3))
model anchor = frozen(policy)
step over pairs[B: 4], iterations: 50, shuffle: false {
  win      = answer(prompt, chosen)[W: ..80]
  lose     = answer(prompt, rejected)[L: ..80]
  ref_win  = logp(anchor, win)
  ref_lose = logp(anchor, lose)
  train policy {
    w = sum(logp(policy, win) - ref_win, W)
    l = sum(logp(policy, lose) - ref_lose, L)
    minimize mean(dpo(w - l, beta: 0.1))
  }
}
"#;

const REWARD: &str = r#"
use std.reward { preference }
model judge = scalar("./judge", per: response, dtype: f32, optim: adamw(lr: 1e-3))
step over pairs[B: 4], iterations: 50, shuffle: false {
  win  = answer(prompt, chosen)[W: ..80]
  lose = answer(prompt, rejected)[L: ..80]
  train judge {
    minimize mean(preference(score(judge, win), score(judge, lose)))
  }
}
"#;

/// The largest relative distance from TRL's losses.
fn distance(name: &str, program: &str, model: &str) -> f64 {
    let scene = Scene::new();
    Checkpoint::new(7)
        .with_scalar_head()
        .write(&scene.path("judge"));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for data in ["demos", "pairs"] {
        let rows = std::fs::read_to_string(format!("{root}/algorithms/data/{data}.jsonl"));
        scene.write(&format!("{data}.jsonl"), &rows.expect("the shipped data"));
    }
    scene.write("program.rlhf", &(FILES.to_string() + program));
    scene.train(&["program.rlhf", "--out", "run"]);
    let ours = scene.metrics("run", "step");
    let fixture = include_str!("fixtures/trajectories.json");
    let fixture: Value = serde_json::from_str(fixture).expect("JSON");
    let theirs = fixture[name].as_array().expect("a list of losses");
    assert_eq!((ours.len(), theirs.len()), (50, 50));
    let apart = |(ours, theirs): (&Value, &Value)| {
        let loss = ours["metrics"][format!("{model}.loss")].as_f64();
        let (a, b) = loss.zip(theirs.as_f64()).expect("numbers");
        ((a - b) / b).abs()
    };
    ours.iter().zip(theirs).map(apart).fold(0.0, f64::max)
}

#[test]
fn fifty_steps_of_sft_follow_trl() {
    let apart = distance("sft", SFT, "policy");
    assert!(apart < 1e-3, "{apart}");
}

#[test]
fn fifty_steps_of_dpo_follow_trl() {
    let apart = distance("dpo", DPO, "policy");
    assert!(apart < 1e-3, "{apart}");
}

#[test]
fn fifty_steps_of_a_reward_model_follow_trl() {
    let apart = distance("reward", REWARD, "judge");
    assert!(apart < 1e-3, "{apart}");
}
