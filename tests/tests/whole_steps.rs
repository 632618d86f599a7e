//! Steps with many parts: an actor and a critic, two turns with a judge, columns of every type. What
//! must hold of the numbers is a metric of the program itself.

use rlhf_tests::Scene;
use serde_json::Value;

const ROWS: &str = r#"{"question": "1 + 1 =", "answer": "2", "n": 2, "good": true, "w": 0.5}
{"question": "2 + 3 =", "answer": "5", "n": 5, "good": false, "w": 1.0}
{"question": "4 + 1 =", "answer": "5", "n": 5, "good": false, "w": 2.0}
{"question": "5 + 2 =", "answer": "7", "n": 7, "good": true, "w": 2.5}
"#;

const PPO: &str = r#"
use std.advantage { gae, whiten }
use std.kl { k1 }
use std.ppo { clipped, value_loss }
param mode: "plain" | "doubled" = "doubled"
data sums = jsonl("rows.jsonl") { question: text, answer: text, n: int, good: bool, w: float }
data held = jsonl("held.jsonl") { question: text, answer: text }
model actor = causal("./model", dtype: f32, optim: adamw(1e-3))
model anchor = frozen(actor)
model critic = scalar("./model", per: token, dtype: f32, optim: adamw(1e-3))
state beta: float = 0.1
step over sums[B: 4], iterations: 2 {
  roll = generate(actor, chat(question), temperature: 0.9, stale: 1)[G: 2, T: ..6]
  ref  = logp(anchor, roll)
  old  = value(critic, roll)
  h    = entropy(actor, roll)
  told = if contains(lower(roll.text), "a") or starts_with(roll.text, "b") then w else 0
  s    = (if good then 1 else 0) + told * (if mode == "doubled" then 2 else 1)
  kl   = k1(roll.logp, ref)
  end  = if roll.finished then 0 else old.end
  paid = at_last(s, T) - beta * kl
  adv  = gae(paid, old, 1, 1, end: end)
  ret  = adv + old
  a    = whiten(adv, [B, G, T])
  num  = last_number(roll.text)
  train actor, minibatch: 2, epochs: 4, shuffle: true {
    lp = logp(actor, roll)
    minimize -mean(mean(clipped(exp(lp - roll.logp), a, 0.2) + 0.01 * entropy(actor, roll), T))
    log ratio: mean(exp(lp - roll.logp))
  }
  train critic, minibatch: 2, epochs: 2 {
    v = value(critic, roll)
    minimize mean(mean(value_loss(v, old, ret), T))
    log error: mean((v - ret) ^ 2)
  }
  next beta = beta * (1 + 0.1 * clamp(mean(kl) / 0.02 - 1, -0.2, 0.2))
  log telescopes: mean(abs(first(ret, T) - sum(paid, T) - end)),
    whitened: mean(a) + std(a) - 1,
    running: mean(abs(last(prefix_sum(roll.logp, T), T) - sum(roll.logp, T))),
    places: mean(abs(sum(index(T), T) - len(roll, T) * (len(roll, T) - 1) / 2)),
    none: mean(if num + 1 > 0 or num + 1 <= 0 then 1 else 0) - count(num) / count(s),
    good: mean(good), n: sum(n), digits: mean(extract(answer, "[0-9]") == answer), h: mean(h), beta: beta
}
eval every 1 over held[R: 1] {
  best = generate(actor, trim(" " + question), temperature: 0)[S: ..4]
  log rows: count(len(best, S)), right: mean(number(best.text) == number(answer))
}
"#;

fn number(line: &Value, metric: &str) -> f64 {
    let value = &line["metrics"][metric];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("`{metric}` is {value} in {line}"))
}

fn zero(line: &Value, metrics: &[&str]) {
    for metric in metrics {
        let found = number(line, metric);
        assert!(found.abs() < 1e-5, "`{metric}` is {found}");
    }
}

#[test]
fn an_actor_and_its_critic_learn_from_one_rollout() {
    let scene = Scene::new();
    scene.write("rows.jsonl", ROWS);
    scene.write("ppo.rlhf", PPO);
    scene.train(&["ppo.rlhf", "--out", "run"]);
    let steps = scene.metrics("run", "step");
    for line in &steps {
        zero(
            line,
            &["telescopes", "whitened", "running", "places", "none"],
        );
        assert_eq!((number(line, "good"), number(line, "n")), (0.5, 19.0));
        assert_eq!(number(line, "digits"), 1.0);
        assert!(number(line, "actor.grad_norm") > 0.0 && number(line, "critic.grad_norm") > 0.0);
        assert!(number(line, "h") > 0.0 && number(line, "error") > 0.0);
    }
    // No KL before the first update: the weight goes down by a fiftieth.
    assert!((number(&steps[1], "beta") - 0.098).abs() < 1e-9);
    for line in scene.metrics("run", "eval") {
        assert_eq!(number(&line, "rows"), 1.0);
    }
}

const TURNS: &str = r#"
data sums = jsonl("rows.jsonl") { question: text, answer: text, n: int, good: bool }
model policy = causal("./model", dtype: f32, optim: adamw(1e-4))
model judge = scalar("./model", per: response, dtype: f32, optim: adamw(1e-4))
step over sums[B: 4], iterations: 2 {
  roll = generate(policy, "Say a number. ", temperature: 0.9)[G: 2, T: ..6]
  turn = generate(policy, question + roll.text + "\nAgain: ", temperature: 0.9)[H: 2, U: ..6]
  more = generate(policy, question, temperature: 0.9, stop: "a")[G, V: ..6]
  s    = score(judge, turn)
  first_best = pick(turn, G, argmax(s, G))
  best = pick(turn, H, argmax(s, H))
  s_of = score(judge, best)
  w_of = logp(policy, first_best)
  w    = logp(policy, turn)
  rows D = B where good
  train policy, epochs: 2, minibatch: 2 {
    lp = logp(policy, turn)
    minimize -mean(mean(exp(lp - turn.logp) * (s - mean(s, H)), U), [D, G, H])
  }
  train judge {
    live = score(judge, turn)
    minimize -mean(log_sigmoid(pick(live, H, 0) - pick(live, H, 1)), [D, G])
  }
  log picked: mean(abs(s_of - max(s, H))),
    along: mean(abs(w_of - pick(w, G, argmax(s, G)))),
    longer: mean(len(more, V))
}
"#;

#[test]
fn a_second_turn_is_scored_picked_and_trained_on_like_the_first() {
    let scene = Scene::new();
    scene.write("rows.jsonl", ROWS);
    scene.write("turns.rlhf", TURNS);
    scene.train(&["turns.rlhf", "--out", "run"]);
    for line in scene.metrics("run", "step") {
        zero(&line, &["picked", "along"]);
        assert!(number(&line, "policy.grad_norm") > 0.0, "{line}");
        assert!(number(&line, "judge.grad_norm") > 0.0, "{line}");
        assert!(number(&line, "longer") > 0.0);
    }
}
