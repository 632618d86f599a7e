//! `pick`, `top` and `rows` in whole runs, and prompts made of responses: every identity is a metric of
//! the program itself.

use rlhf_tests::Scene;
use serde_json::Value;

fn number(line: &Value, metric: &str) -> f64 {
    let value = &line["metrics"][metric];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("`{metric}` is {value} in {line}"))
}

fn head(iterations: usize) -> String {
    format!(
        r#"
data sums = jsonl("sums.jsonl") {{ question: text, answer: text }}
model policy = causal("./model", dtype: f32, optim: adamw(1e-3))
step over sums[B: 3], iterations: {iterations} {{
  roll = generate(policy, question, temperature: 1)[G: 4, T: ..6]
  s    = chars(roll.text) + 0.1 * tanh(mean(roll.logp, T))
"#
    )
}

/// Runs a program whose step begins as [`head`] says.
fn run(scene: &Scene, name: &str, iterations: usize, rest: &str) -> Vec<Value> {
    let file = format!("{name}.rlhf");
    scene.write(&file, &(head(iterations) + rest));
    scene.train(&[&file, "--out", name]);
    scene.metrics(name, "step")
}

fn zero(line: &Value, metrics: &[&str]) {
    for metric in metrics {
        let found = number(line, metric);
        assert!(found.abs() < 1e-5, "`{metric}` is {found}");
    }
}

#[test]
fn the_best_of_a_group_is_a_rollout_with_the_numbers_of_its_responses() {
    let scene = Scene::new();
    let rest = r#"
  i    = argmax(s, G)
  best = pick(roll, G, i)
  ref  = logp(policy, roll)
  own  = logp(policy, best)
  train policy {
    lp = logp(policy, best)
    minimize -mean(mean(lp, T))
    log live: mean(abs(lp - own)), picked: mean(abs(lp - pick(ref, G, i)))
  }
  log sampled: mean(abs(best.logp - pick(roll.logp, G, i))),
    scored: mean(abs(own - pick(ref, G, i))),
    length: mean(abs(len(best, T) - pick(len(roll, T), G, i))),
    text: mean(if best.text == pick(roll.text, G, i) then 0 else 1),
    best: mean(abs(pick(s, G, i) - max(s, G))),
    ended: mean(if best.finished == pick(roll.finished, G, i) then 0 else 1)
}
"#;
    for line in run(&scene, "raft", 2, rest) {
        let all = [
            "live", "picked", "sampled", "scored", "length", "text", "best", "ended",
        ];
        zero(&line, &all);
        assert!(number(&line, "policy.grad_norm") > 0.0);
    }
}

#[test]
fn the_top_of_a_group_is_its_best_responses_in_order() {
    let scene = Scene::new();
    let rest = r#"
  two   = top(roll, G, by: s, k: 2)
  every = top(roll, G, by: s, k: 4)
  own   = logp(policy, every)
  ref   = logp(policy, roll)
  train policy { minimize -mean(mean(logp(policy, two), T)) }
  log sampled: mean(abs(two.logp - top(roll.logp, G, by: s, k: 2))),
    same: sum(own) - sum(ref),
    largest: mean(abs(pick(top(s, G, by: s, k: 2), G, 0) - max(s, G))),
    smallest: mean(abs(pick(top(s, G, by: s, k: 4), G, 3) - min(s, G))),
    text: mean(if pick(every.text, G, 0) == pick(roll.text, G, argmax(s, G)) then 0 else 1)
}
"#;
    for line in run(&scene, "top", 2, rest) {
        zero(&line, &["sampled", "same", "largest", "smallest", "text"]);
    }
}

const KEPT: &str = r#"
  rows D = B where number(answer) > 4
  ref = logp(policy, roll)
  adv = s - mean(s, G)
  train policy {
    lp = logp(policy, roll)
    ratio = exp(lp - roll.logp)
    minimize -mean(mean(ratio * adv + lp, T), [D, G])
  }
  log kept: sum(mean(s, G) * 0 + 1, D), kl: mean(ref - roll.logp, [D, G, T])
}
"#;

/// The same, its rows weighed by hand.
const WEIGHED: &str = r#"
  d   = if number(answer) > 4 then 1 else 0
  ref = logp(policy, roll)
  adv = s - mean(s, G)
  train policy {
    lp = logp(policy, roll)
    ratio = exp(lp - roll.logp)
    minimize -mean(sum(mean(ratio * adv + lp, T) * d, B) / sum(d, B), G)
  }
  log kept: sum(d), kl: sum((ref - roll.logp) * d) / sum(len(roll, T) * d)
}
"#;

#[test]
fn a_loss_over_a_part_of_the_rows_is_the_loss_of_those_rows() {
    let scene = Scene::new();
    let part = run(&scene, "part", 3, KEPT);
    let weighed = run(&scene, "weighed", 3, WEIGHED);
    for (a, b) in part.iter().zip(&weighed) {
        for metric in ["policy.loss", "policy.grad_norm", "kept", "kl"] {
            let (a, b) = (number(a, metric), number(b, metric));
            assert!(
                (a - b).abs() <= 1e-4 * b.abs().max(1e-2),
                "{metric}: {a} and {b}"
            );
        }
    }
    let kept: Vec<f64> = part.iter().map(|line| number(line, "kept")).collect();
    assert!(kept.iter().any(|k| *k < 3.0), "{kept:?}");
}

#[test]
fn a_limit_takes_the_first_rows_that_are_left() {
    let scene = Scene::new();
    let rest = r#"
  rows D = B where number(answer) > 0, limit: 2
  rows E = D where number(answer) > 4
  train policy { minimize -mean(mean(logp(policy, roll), T), [D, G]) }
  log some: sum(mean(s, G) * 0 + 1, D), fewer: sum(mean(s, G) * 0 + 1, E),
    sum: sum(number(answer), D)
}
"#;
    for line in run(&scene, "limit", 2, rest) {
        assert_eq!(number(&line, "some"), 2.0);
        assert!(number(&line, "fewer") <= 2.0);
    }
}

#[test]
fn an_update_with_no_row_left_is_skipped_and_said() {
    let scene = Scene::new();
    let rest = KEPT.replace("number(answer) > 4", "number(answer) > 1000");
    let file = "none.rlhf";
    scene.write(file, &(head(2) + &rest));
    let ran = scene.train(&[file, "--out", "none"]);
    let said = "no row is left for an update of `train policy`, which is skipped";
    assert_eq!(
        ran.err.matches(said).count() + ran.out.matches(said).count(),
        1,
        "{}",
        ran.err
    );
    for line in scene.metrics("none", "step") {
        assert_eq!(line["metrics"]["policy.loss"], Value::Null, "{line}");
        assert_eq!(number(&line, "kept"), 0.0);
        assert_eq!(number(&line, "kl"), 0.0);
    }
    let weights = |dir: &str| {
        let bytes = scene.bytes(&format!("{dir}/model.safetensors"));
        let file = safetensors::SafeTensors::deserialize(&bytes).expect("a checkpoint");
        let tensor = file.tensor("model.norm.weight").expect("the last norm");
        tensor.data().to_vec()
    };
    assert_eq!(weights("none/policy"), weights("model"));
}

#[test]
fn a_minibatch_has_the_rows_of_a_part_that_are_among_its_own() {
    let scene = Scene::new();
    let cut = KEPT.replace(
        "train policy {",
        "train policy, minibatch: 1, shuffle: false {\n log here: sum(mean(s, G) * 0 + 1, D)",
    );
    for line in run(&scene, "cut", 2, &cut) {
        // Of three updates those without a row of the part are skipped, each of the others has one.
        assert_eq!(number(&line, "here"), 1.0, "{line}");
    }
}

#[test]
fn every_response_may_have_a_prompt_of_its_own_and_draws_numbers_of_its_own() {
    let scene = Scene::new();
    let rest = r#"
  again = generate(policy, if roll.text == "never" then "a" else "b", temperature: 1)[U: ..6]
  more  = generate(policy, roll.text + "?", temperature: 1)[K: 2, V: ..6]
  gold  = answer(roll.text + "=", answer)[W: ..8]
  own   = logp(policy, again)
  of_gold = logp(policy, gold)
  train policy {
    minimize -mean(mean(logp(policy, again), U), [B, G]) - mean(mean(logp(policy, more), V), [B, G, K])
  }
  log again: mean(abs(own - again.logp)), count: count(len(again, U)), more: count(len(more, V)),
    gold: mean(of_gold)
}
"#;
    for line in run(&scene, "over", 2, rest) {
        zero(&line, &["again"]);
        assert_eq!(number(&line, "count"), 12.0);
        assert_eq!(number(&line, "more"), 24.0);
        assert!(number(&line, "gold") < 0.0);
    }
    let samples = scene.lines("over/samples.jsonl");
    let of = |call: &str| -> Vec<&Value> {
        samples
            .iter()
            .filter(|s| s["call"] == call && s["iteration"] == 1)
            .collect()
    };
    let again = of("again");
    assert_eq!(again.len(), 12);
    let mut texts: Vec<&str> = again
        .iter()
        .filter_map(|s| s["response"].as_str())
        .collect();
    texts.sort_unstable();
    texts.dedup();
    assert!(texts.len() > 10, "{texts:?}");
    let (first, second) = (of("roll"), of("more"));
    assert_eq!(second.len(), 24);
    for (i, sample) in second.iter().enumerate() {
        // Two samples to each of the four responses to a row.
        let asked = &first[i / 2];
        assert_eq!(sample["row"], asked["row"]);
        assert_eq!(sample["sample"], i % 8);
        let prompt = format!("{}?", asked["response"].as_str().expect("text"));
        assert_eq!(sample["prompt"], prompt);
    }
}

#[test]
fn the_rows_that_top_chooses_can_be_sampled_again() {
    let scene = Scene::new();
    let rest = r#"
  far  = top(question, B, by: number(answer), k: 2)
  more = generate(policy, far, temperature: 1)[K: 2, V: ..6]
  own  = logp(policy, more)
  c    = top(s, B, by: number(answer), k: 2)
  train policy, minibatch: 1 {
    lp = logp(policy, more)
    minimize -mean(mean(lp, V)) + 0.1 * mean(mean(logp(policy, roll), T))
    log live: sum(mean(lp - own, V) * 0 + 1)
  }
  log same: mean(abs(own - more.logp)), s: mean(c), top: mean(top(number(answer), B, by: number(answer), k: 1)) - max(number(answer))
}
"#;
    for line in run(&scene, "far", 2, rest) {
        zero(&line, &["same", "top"]);
        // Of three minibatches two have a chosen row with two responses.
        assert!((number(&line, "live") - 4.0 / 3.0).abs() < 1e-9, "{line}");
    }
    let samples = scene.lines("far/samples.jsonl");
    let rows = |call: &str| -> Vec<u64> {
        let of = samples
            .iter()
            .filter(|s| s["call"] == call && s["iteration"] == 1);
        of.filter_map(|s| s["row"].as_u64()).collect()
    };
    let (all, again) = (rows("roll"), rows("more"));
    assert_eq!(again.len(), 4);
    assert!(again.iter().all(|row| all.contains(row)));
    assert_eq!((again[0], again[2]), (again[1], again[3]));
    let answers = scene.lines("sums.jsonl");
    let answer = |row: u64| -> u32 {
        let text = answers[row as usize]["answer"].as_str().expect("text");
        text.parse().expect("a sum")
    };
    let least = again.iter().map(|r| answer(*r)).min();
    let left = all
        .iter()
        .filter(|r| !again.contains(r))
        .map(|r| answer(*r))
        .max();
    assert!(least >= left, "{again:?} of {all:?}");
}
