//! What the verbs need of models, in whole runs: reward models, critics, adapters, random weights.

use std::process::Command;

use rlhf_runtime::model::{Draws, Dtype, Model};
use rlhf_tests::Scene;
use serde_json::Value;

/// A model that scores responses, trained on pairs.
const REWARD: &str = r#"
param base: checkpoint = "./model"
data pairs = jsonl("pairs.jsonl") { question: text, chosen: text, rejected: text }
model judge = scalar(base, per: response, dtype: f32, optim: adamw(3e-3))
step over pairs[B: 4], iterations: 12 {
  win  = answer(chat(question), chosen)[W: ..16]
  lose = answer(chat(question), rejected)[L: ..16]
  train judge {
    margin = score(judge, win) - score(judge, lose)
    minimize -mean(log_sigmoid(margin))
    log accuracy: mean(if margin > 0 then 1 else 0)
  }
}
"#;

/// A critic trained on what a rollout is worth, beside a frozen copy of itself.
const CRITIC: &str = r#"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal("./model", dtype: f32)
model critic = scalar("./model", per: token, dtype: f32, optim: adamw(3e-3))
model before = frozen(critic)
step over sums[B: 6], iterations: 8 {
  roll = answer(chat(question), answer)[T: ..8]
  v0   = value(before, roll)
  now  = value(critic, roll)
  train critic {
    v = value(critic, roll)
    minimize mean((v - 1) * (v - 1)) + mean((v.end - 2) * (v.end - 2))
  }
  log drift: mean(abs(now - v0)), level: mean(v0), end: mean(now.end)
}
"#;

/// A policy trained through adapters, held near its base.
const LORA: &str = r#"
use std.kl { k3 }

data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal("./model", dtype: f32, lora: {rank: 4, alpha: 8}, optim: adamw(1e-2))
model anchor = frozen(policy)
step over sums[B: 6], iterations: 8 {
  roll = answer(chat(question), answer)[T: ..8]
  ref  = logp(anchor, roll)
  train policy {
    lp = logp(policy, roll)
    minimize mean(0.01 * k3(lp, ref) - lp)
    log kl: mean(k3(lp, ref))
  }
  log ref: mean(ref)
}
"#;

fn scene() -> Scene {
    let scene = Scene::new();
    let rows: String = (1..5)
        .map(|n| {
            format!("{{\"question\": \"{n}?\", \"chosen\": \"yes {n}\", \"rejected\": \"no\"}}\n")
        })
        .collect();
    scene.write("pairs.jsonl", &rows);
    scene
}

fn series(scene: &Scene, run: &str, metric: &str) -> Vec<f64> {
    let number = |line: &Value| {
        let value = &line["metrics"][metric];
        let number = value.as_f64();
        number.unwrap_or_else(|| panic!("`{metric}` is {value} in {line}"))
    };
    scene.metrics(run, "step").iter().map(number).collect()
}

fn falls(losses: &[f64]) {
    let halved = losses.last().zip(losses.first()).map(|(l, f)| 2.0 * l < *f);
    assert_eq!(halved, Some(true), "{losses:?}");
}

/// How far numbers of equal weights may lie apart: rows come in another order in every epoch.
fn rounding(dtype: &str) -> f64 {
    match dtype {
        "bf16" => 2e-2,
        _ => 1e-5,
    }
}

fn stays(numbers: &[f64], rounding: f64) {
    let moved = numbers.iter().any(|n| (n - numbers[0]).abs() > rounding);
    assert!(!moved, "{numbers:?}");
}

/// Runs a Python text with words and gives the JSON it prints.
fn python(text: &str, words: &[&str]) -> Value {
    let set = std::env::var("RLHF_PYTHON").ok().filter(|p| !p.is_empty());
    let python = set.expect("RLHF_PYTHON names a Python with transformers; ./test sets it");
    let output = Command::new(python)
        .args(["-c", text])
        .args(words)
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("the text prints JSON")
}

/// Numbers of a list.
fn numbers(list: &Value) -> Vec<f64> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_f64).collect()
}

#[test]
fn a_reward_model_learns_pairs_and_transformers_gives_its_scores() {
    let scene = scene();
    scene.write("reward.rlhf", REWARD);
    scene.train(&["reward.rlhf", "--out", "run"]);
    falls(&series(&scene, "run", "judge.loss"));
    assert_eq!(series(&scene, "run", "accuracy").last(), Some(&1.0));

    let config: Value = serde_json::from_str(&scene.read("run/judge/config.json")).expect("JSON");
    assert_eq!(
        config["architectures"],
        serde_json::json!(["LlamaForSequenceClassification"])
    );

    // Scored again in a run of its own, from the saved checkpoint.
    let again = "
data pairs = jsonl(\"pairs.jsonl\") { question: text, chosen: text }
model judge = scalar(\"run/judge\", per: response, dtype: f32)
model policy = causal(\"./model\", dtype: f32, optim: adamw(1e-3))
step over pairs[B: 4], iterations: 1 {
  win = answer(question, chosen)[W: ..16]
  s   = score(judge, win)
  train policy { minimize -mean(logp(policy, win) * s) }
  log low: min(s), high: max(s), mean: mean(s)
}
";
    scene.write("again.rlhf", again);
    scene.train(&["again.rlhf", "--out", "again"]);
    let text = r#"
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
assert model.score.weight.shape == (1, 32), model.score.weight.shape
scores = []
for n in range(1, 5):
    ids = tokenizer(f"{n}?")["input_ids"] + tokenizer(f"yes {n}<|im_end|>")["input_ids"]
    with torch.no_grad():
        scores.append(model(torch.tensor([ids])).logits.item())
print(json.dumps(scores))
"#;
    let path = scene.path("run/judge").display().to_string();
    let theirs = numbers(&python(text, &[&path]));
    let low = theirs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = theirs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = theirs.iter().sum::<f64>() / 4.0;
    for (metric, expected) in [("low", low), ("high", high), ("mean", mean)] {
        let found = series(&scene, "again", metric)[0];
        assert!(
            (found - expected).abs() < 2e-4,
            "{metric}: {found} {expected}"
        );
    }
}

#[test]
fn a_classifier_that_transformers_saved_starts_a_reward_model() {
    let scene = scene();
    let text = r#"
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.manual_seed(5)
base, out = sys.argv[1:]
model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1, pad_token_id=None)
torch.nn.init.normal_(model.score.weight)
model.save_pretrained(out)
AutoTokenizer.from_pretrained(base).save_pretrained(out)
print(json.dumps(model(torch.tensor([[1, 2, 3, 257]])).logits[0].tolist()))
"#;
    let path = |name: &str| scene.path(name).display().to_string();
    let theirs = numbers(&python(text, &[&path("model"), &path("classifier")]));
    let draws = Draws {
        seed: 0,
        model: "judge",
    };
    let model = Model::load_scalar(&scene.path("classifier"), Dtype::F32, &draws);
    let rows = rlhf_runtime::batch::Rows {
        prompts: vec![vec![1, 2].into()],
        group: 1,
        responses: vec![vec![3, 257]],
    };
    let values = model
        .expect("a classifier loads")
        .values(&rows, rlhf_runtime::model::States::After);
    let ours = values.after.double_value(&[0]);
    assert!((ours - theirs[0]).abs() < 2e-4, "{ours} {theirs:?}");
    scene.write("reward.rlhf", REWARD);
    scene.train(&["reward.rlhf", "base=classifier", "--out", "run"]);
}

#[test]
fn a_critic_learns_returns_and_its_frozen_copy_stays() {
    let scene = scene();
    for (dtype, out) in [("f32", "f32"), ("bf16", "bf16")] {
        scene.write(
            "critic.rlhf",
            &CRITIC.replace("dtype: f32", &format!("dtype: {dtype}")),
        );
        scene.train(&["critic.rlhf", "--out", out]);
        falls(&series(&scene, out, "critic.loss"));
        let drift = series(&scene, out, "drift");
        assert!(drift[0] < rounding(dtype), "{drift:?}");
        assert!(drift[7] > 0.1, "{drift:?}");
        stays(&series(&scene, out, "level"), rounding(dtype));
    }
    // The saved critic is where the next run starts.
    let next = CRITIC.replace("scalar(\"./model\"", "scalar(\"f32/critic\"");
    scene.write("next.rlhf", &next);
    scene.train(&["next.rlhf", "--iterations", "1", "--out", "next"]);
    let (first, last) = (
        series(&scene, "next", "end")[0],
        series(&scene, "f32", "end")[7],
    );
    assert!(
        (first - 2.0).abs() < (series(&scene, "f32", "end")[0] - 2.0).abs(),
        "{first} {last}"
    );
}

#[test]
fn a_new_head_follows_the_seed() {
    let scene = scene();
    scene.write("critic.rlhf", CRITIC);
    for (seed, out) in [("1", "a"), ("1", "b"), ("2", "c")] {
        scene.train(&[
            "critic.rlhf",
            "--seed",
            seed,
            "--iterations",
            "1",
            "--out",
            out,
        ]);
    }
    let level = |run: &str| series(&scene, run, "level")[0];
    assert_eq!(level("a"), level("b"));
    assert_ne!(level("a"), level("c"));
}

#[test]
fn a_critic_does_not_move_with_minibatches_that_are_cut() {
    let scene = scene();
    scene.write("critic.rlhf", CRITIC);
    let cut = CRITIC.replace("train critic {", "train critic, minibatch: 2, epochs: 2 {");
    scene.write("cut.rlhf", &cut);
    scene.train(&["critic.rlhf", "--out", "whole"]);
    scene.train(&["cut.rlhf", "--out", "cut"]);
    assert!(series(&scene, "cut", "critic.loss")[7] < series(&scene, "whole", "critic.loss")[7]);
}

#[test]
fn a_policy_trains_through_adapters_and_is_saved_merged_and_as_peft_does() {
    let scene = scene();
    scene.write("lora.rlhf", LORA);
    scene.train(&["lora.rlhf", "--out", "run"]);
    let losses = series(&scene, "run", "policy.loss");
    assert!(losses[7] < 0.8 * losses[0], "{losses:?}");
    stays(&series(&scene, "run", "ref"), rounding("f32"));
    assert!(series(&scene, "run", "kl")[0].abs() < 1e-9);

    // The adapter applied by hand to the base gives the merged checkpoint's logits.
    let text = r#"
import json, sys
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
torch.set_num_threads(1)
adapter, merged = sys.argv[1:]
config = json.load(open(adapter + "/adapter_config.json"))
AutoTokenizer.from_pretrained(adapter)
load = lambda path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
model = load(config["base_model_name_or_path"])
tensors = load_file(adapter + "/adapter_model.safetensors")
ids = torch.tensor([[1, 50, 7, 257, 33, 90]])
with torch.no_grad():
    before = model(ids).logits
    for name, a in tensors.items():
        if name.endswith("lora_A.weight"):
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            assert module.split(".")[-1] in config["target_modules"], module
            b = tensors[name.replace("lora_A", "lora_B")]
            model.get_submodule(module).weight += config["lora_alpha"] / config["r"] * b @ a
    after = model(ids).logits
    whole = load(merged)(ids).logits
print(json.dumps([len(tensors), (after - whole).abs().max().item(), (after - before).abs().max().item()]))
"#;
    let path = |name: &str| scene.path(name).display().to_string();
    let found = numbers(&python(
        text,
        &[&path("run/policy-adapter"), &path("run/policy")],
    ));
    assert_eq!(found[0], 2.0 * 2.0 * 7.0);
    assert!(found[1] < 1e-4 && found[2] > 0.1, "{found:?}");

    // The merged checkpoint is the start of the next run.
    let next = LORA.replace("causal(\"./model\"", "causal(\"run/policy\"");
    scene.write("next.rlhf", &next);
    scene.train(&["next.rlhf", "--iterations", "1", "--out", "next"]);
    assert!(series(&scene, "next", "policy.loss")[0] < losses[7]);
}

#[test]
fn a_critic_trains_through_adapters_with_its_head_whole() {
    let scene = scene();
    let text = CRITIC.replace(
        "per: token, dtype: f32",
        "per: token, dtype: bf16, lora: {rank: 2, targets: [\"q_proj\", \"v_proj\"]}",
    );
    scene.write("critic.rlhf", &text);
    scene.train(&["critic.rlhf", "--out", "run"]);
    let losses = series(&scene, "run", "critic.loss");
    assert!(losses[7] < losses[0], "{losses:?}");
    stays(&series(&scene, "run", "level"), rounding("bf16"));
    let config = scene.read("run/critic-adapter/adapter_config.json");
    let config: Value = serde_json::from_str(&config).expect("JSON");
    assert_eq!(config["task_type"], "SEQ_CLS");
}

#[test]
fn random_weights_need_no_stored_ones() {
    let scene = scene();
    std::fs::remove_file(scene.path("model/model.safetensors")).expect("it was there");
    let program = r#"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal(init: random(config: "./model"), dtype: f32, optim: adamw(1e-2))
step over sums[B: 6], iterations: 6 {
  roll = answer(chat(question), answer)[T: ..8]
  train policy { minimize -mean(logp(policy, roll)) }
}
"#;
    scene.write("fresh.rlhf", program);
    for (seed, out) in [("1", "a"), ("1", "b"), ("2", "c")] {
        scene.train(&["fresh.rlhf", "--seed", seed, "--out", out]);
    }
    let losses = series(&scene, "a", "policy.loss");
    // Weights of 0.02 give every one of 260 tokens the same probability.
    assert!((losses[0] - 260f64.ln()).abs() < 0.05, "{losses:?}");
    assert!(losses[5] < 0.8 * losses[0], "{losses:?}");
    assert_eq!(losses, series(&scene, "b", "policy.loss"));
    assert_ne!(losses, series(&scene, "c", "policy.loss"));

    let stored = program.replace("init: random(config: \"./model\")", "\"./model\"");
    scene.write("stored.rlhf", &stored);
    let ran = scene.rlhf(&["run", "stored.rlhf", "--out", "d"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("no weights"), "{}", ran.err);
}

#[test]
fn an_adapter_on_a_layer_that_is_not_there_ends_the_run_before_it_begins() {
    let scene = scene();
    let text = LORA.replace("alpha: 8", "alpha: 8, targets: [\"c_attn\"]");
    scene.write("lora.rlhf", &text);
    let ran = scene.rlhf(&["run", "lora.rlhf", "--out", "run"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.err
            .contains("`policy` has no linear layer `c_attn` to adapt")
            && ran.err.contains("q_proj, k_proj"),
        "{}",
        ran.err
    );
}

#[test]
fn an_actor_a_critic_and_a_reward_model_train_over_groups() {
    let scene = scene();
    let program = r#"
data sums = jsonl("sums.jsonl") { question: text }
model actor = causal("./model", dtype: f32, optim: adamw(1e-3))
model critic = scalar("./model", per: token, dtype: f32, optim: adamw(1e-3))
model judge = scalar("./model", per: response, dtype: f32)
step over sums[B: 3], iterations: 2 {
  roll = generate(actor, chat(question), temperature: 1)[G: 2, T: ..8]
  s    = score(judge, roll)
  v    = value(critic, roll)
  adv  = s - v
  train actor { minimize -mean(adv * logp(actor, roll)) }
  train critic {
    now = value(critic, roll)
    minimize mean((now - s) * (now - s)) + mean((now.end - s) * (now.end - s))
  }
  log spread: mean(std(s, G)), end: mean(v.end)
}
"#;
    scene.write("actor.rlhf", program);
    scene.train(&["actor.rlhf", "--out", "run"]);
    assert!(series(&scene, "run", "spread").iter().all(|s| *s > 0.0));
    for name in ["actor", "critic"] {
        let file = format!("run/{name}/model.safetensors");
        assert!(scene.path(&file).is_file(), "{file}");
    }
    assert!(!scene.path("run/judge").exists());
    assert!(!scene.path("run/actor-adapter").exists());
}
