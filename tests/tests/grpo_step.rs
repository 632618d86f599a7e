//! A GRPO training step of a program equals PyTorch's, and does not move with micro-batches.
//!
//! The rollout, the expected losses, gradient norms and weights come from `tests/reference/grpo_step.py`.

use std::path::PathBuf;
use std::sync::Arc;

use rlhf_lang::compile::{Request, compile};
use rlhf_lang::graph::{Graph, Member, NodeKind, Train, ValueId};
use rlhf_runtime::batch::Rows;
use rlhf_runtime::exec::{Drawn, Step, Update, update};
use rlhf_runtime::expr::Env;
use rlhf_runtime::model::{AdamW, Dtype, Model};
use rlhf_runtime::value::Value;
use serde::Deserialize;
use tch::Tensor;

const PROGRAM: &str = r#"
use std.kl { k3 }
use std.ppo { clipped }
data d = jsonl("d.jsonl") { question: text }
model policy = causal("here", optim: adamw(5e-4))
model anchor = frozen(policy)
step over d[B: 3], iterations: 1 {
  roll = generate(policy, question, temperature: 0.8)[G: 4, T: ..16]
  ref  = logp(anchor, roll)
  adv  = mean(roll.logp, T)
  train policy {
    lp   = logp(policy, roll)
    loss = 0.04 * k3(lp, ref) - clipped(exp(lp - roll.logp), adv, 0.2)
    minimize mean(mean(loss, T), [B, G])
    log kl: mean(k3(lp, ref))
  }
}
"#;

#[derive(Deserialize)]
struct Fixture {
    temperature: f64,
    group: usize,
    prompts: Vec<Vec<u32>>,
    responses: Vec<Vec<u32>>,
    logp: Vec<Vec<f64>>,
    ref_logp: Vec<Vec<f64>>,
    advantage: Vec<f64>,
    optimizer: Optimizer,
    updates: Vec<Expected>,
}

#[derive(Deserialize)]
struct Optimizer {
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    max_norm: f64,
}

#[derive(Deserialize)]
struct Expected {
    loss: f64,
    grad_norm: f64,
    kl: f64,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../interpreter/runtime/tests/fixtures/grpo_step")
}

fn fixture() -> Fixture {
    let text = std::fs::read_to_string(folder().join("step.json")).expect("a committed fixture");
    serde_json::from_str(&text).expect("the fixture's own format")
}

fn graph() -> Graph {
    let request = Request {
        name: "step.rlhf",
        text: PROGRAM,
        overrides: &[],
        load: &|_| None,
    };
    let compiled = compile(&request);
    compiled
        .graph
        .unwrap_or_else(|| panic!("the program is sound: {:?}", compiled.diagnostics))
}

/// The values that a rank would have before training: by the name they have in the program.
struct Prepared {
    graph: Graph,
    train: Train,
    env: Env,
    fixture: Fixture,
}

impl Prepared {
    fn new() -> Self {
        let (graph, fixture) = (graph(), fixture());
        let nodes: Vec<NodeKind> = graph
            .dag
            .order()
            .map(|id| graph.dag.node(id).kind.clone())
            .collect();
        let train = nodes.iter().find_map(|n| {
            if let NodeKind::Train(t) = n {
                Some(t.clone())
            } else {
                None
            }
        });
        let train = train.expect("the program trains");
        let mut env = Env {
            iteration: 1.0,
            iterations: 1.0,
            ..Env::default()
        };
        let rollout = graph.rollout(train.forwards[0].rollout).clone();
        let group = rollout.group.expect("the program has a group");
        env.shapes.set(rollout.rows, fixture.prompts.len());
        env.shapes.set(group, fixture.group);
        let rows = rows(&fixture);
        env.shapes
            .set_ragged(rollout.tokens, vec![rollout.rows, group], rows.offsets());
        let flat = |nested: &[Vec<f64>]| nested.iter().flatten().copied().collect::<Vec<f64>>();
        for node in &nodes {
            let (value, numbers): (ValueId, Vec<f64>) = match node {
                NodeKind::Generate { members, .. } => {
                    let logp = members
                        .iter()
                        .find(|(m, _)| *m == Member::Logp)
                        .expect("the loss reads it");
                    (logp.1, flat(&fixture.logp))
                }
                NodeKind::Forward(forward) => (forward.outputs[0].1, flat(&fixture.ref_logp)),
                NodeKind::Map { value, .. } => (*value, fixture.advantage.clone()),
                _ => continue,
            };
            let axes = graph.value(value).ty.axes.clone();
            let value_of =
                Value::from_f64(axes, &numbers, &env.shapes).expect("the fixture's shapes agree");
            env.values.insert(value, value_of);
        }
        Prepared {
            graph,
            train,
            env,
            fixture,
        }
    }

    /// Both updates with passes of at most `micro_tokens`; what they reported, and the final weights.
    fn run(&self, micro_tokens: usize) -> (Vec<Update>, Vec<Tensor>) {
        let mut model = Model::load(&folder(), Dtype::F32).expect("a committed checkpoint");
        let o = &self.fixture.optimizer;
        let mut optimizer = AdamW::new(&model, o.betas, o.eps, o.weight_decay);
        let mut weights = vec![];
        let mut updates = vec![];
        for _ in &self.fixture.updates {
            let mut env = self.env.clone();
            let step = Step {
                optimizer: &mut optimizer,
                lr: o.lr,
                clip_norm: Some(o.max_norm),
            };
            let drawn = [self.drawn()];
            let done = update(
                &self.graph,
                &self.train,
                &mut env,
                &drawn,
                &mut model,
                step,
                micro_tokens,
            );
            updates.push(done.expect("a sound step"));
            weights.push(model.flat().copy());
        }
        (updates, weights)
    }

    fn drawn(&self) -> Drawn {
        let rows = rows(&self.fixture);
        let flat: Vec<f64> = self.fixture.logp.iter().flatten().copied().collect();
        Drawn {
            rollout: self.train.forwards[0].rollout,
            logp: Tensor::from_slice(&flat),
            finished: vec![true; rows.responses.len()],
            texts: vec![Arc::from(""); rows.responses.len()],
            rows,
        }
    }
}

fn rows(fixture: &Fixture) -> Rows {
    Rows {
        prompts: fixture
            .prompts
            .iter()
            .map(|p| Arc::from(p.as_slice()))
            .collect(),
        group: fixture.group,
        responses: fixture.responses.clone(),
    }
}

fn close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1e-3);
    assert!(
        error < 1e-4,
        "{what}: {found} instead of {expected}, relative error {error:e}"
    );
}

#[test]
fn the_step_equals_pytorch() {
    let prepared = Prepared::new();
    assert_eq!(
        prepared.train.forwards[0].temperature,
        prepared.fixture.temperature
    );
    let (updates, weights) = prepared.run(usize::MAX);
    for (i, (found, expected)) in updates.iter().zip(&prepared.fixture.updates).enumerate() {
        close(
            found.loss,
            expected.loss,
            &format!("loss of update {}", i + 1),
        );
        close(
            found.grad_norm,
            expected.grad_norm,
            &format!("gradient norm of update {}", i + 1),
        );
        close(
            found.metrics[0],
            expected.kl,
            &format!("kl of update {}", i + 1),
        );
        let model = Model::load(&after(i + 1), Dtype::F32).expect("a committed checkpoint");
        let (difference, scale) = (
            &weights[i] - model.flat(),
            model.flat().abs().max().double_value(&[]),
        );
        let worst = difference.abs().max().double_value(&[]) / scale;
        assert!(
            worst < 1e-4,
            "weights after update {}: relative error {worst:e}",
            i + 1
        );
    }
}

/// The updated weights as a checkpoint directory of their own.
fn after(update: usize) -> PathBuf {
    let place =
        std::env::temp_dir().join(format!("rlhf-grpo-step-{}-{update}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a temporary directory");
    let copy = |from: &str, to: &str| {
        std::fs::copy(folder().join(from), place.join(to)).expect("a small copy")
    };
    copy("config.json", "config.json");
    copy(&format!("after_{update}.safetensors"), "model.safetensors");
    place
}

#[test]
fn before_the_first_update_every_importance_ratio_is_one() {
    let prepared = Prepared::new();
    let ratio = prepared.run(usize::MAX).0[0]
        .ratio
        .expect("the rollout is the policy's own");
    assert!((ratio - 1.0).abs() < 1e-3, "mean ratio {ratio}");
}

#[test]
fn micro_batches_do_not_change_the_numbers() {
    let prepared = Prepared::new();
    let (whole, weights) = prepared.run(usize::MAX);
    // A budget of one token makes each group a micro-batch; 64 tokens leave two of them.
    for budget in [1, 64] {
        let (cut, cut_weights) = prepared.run(budget);
        for (a, b) in cut.iter().zip(&whole) {
            close(a.loss, b.loss, "loss");
            close(a.grad_norm, b.grad_norm, "gradient norm");
        }
        for (a, b) in cut_weights.iter().zip(&weights) {
            let worst = (a - b).abs().max().double_value(&[]);
            assert!(worst < 1e-6, "weights differ by {worst:e}");
        }
    }
}
