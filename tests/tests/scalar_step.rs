//! A training step of a critic: its loss is that of transformers' numbers, and micro-batches move nothing.

use std::path::PathBuf;
use std::sync::Arc;

use rlhf_lang::compile::{Request, compile};
use rlhf_lang::graph::{Graph, Lora, NodeKind, Train};
use rlhf_runtime::batch::Rows;
use rlhf_runtime::exec::{Drawn, Step, Update, update};
use rlhf_runtime::expr::Env;
use rlhf_runtime::model::{AdamW, Draws, Dtype, Model};
use tch::{Kind, Tensor};

/// Tokens and ends weigh unlike, so that a number of the wrong kind shows.
const PROGRAM: &str = r#"
data d = jsonl("d.jsonl") { question: text }
model policy = causal("here")
model critic = scalar("here", per: token, optim: adamw(1e-3))
step over d[B: 2], iterations: 1 {
  roll = generate(policy, question)[G: 3, T: ..8]
  train critic {
    v = value(critic, roll)
    minimize mean((v - 1) * (v - 1)) + 3 * mean((v.end - 2) * (v.end - 2))
    log level: mean(v), end: mean(v.end)
  }
}
"#;

const DRAWS: Draws = Draws {
    seed: 1,
    model: "critic",
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../interpreter/runtime/tests/fixtures/llama-classifier")
}

fn graph() -> Graph {
    let request = Request {
        name: "critic.rlhf",
        text: PROGRAM,
        overrides: &[],
        load: &|_| None,
    };
    let compiled = compile(&request);
    compiled
        .graph
        .unwrap_or_else(|| panic!("the program is sound: {:?}", compiled.diagnostics))
}

fn training(graph: &Graph) -> Train {
    let nodes = graph.dag.order().map(|id| graph.dag.node(id));
    let mut trains = nodes.filter_map(|node| match &node.kind {
        NodeKind::Train(train) => Some(train.clone()),
        _ => None,
    });
    trains.next().expect("the program trains")
}

/// The rollout of the fixture.
fn drawn(train: &Train) -> Drawn {
    let text = std::fs::read_to_string(folder().join("rows.json")).expect("a committed fixture");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let lists = |key: &str| -> Vec<Vec<u32>> {
        serde_json::from_value(json[key].clone()).expect("lists of tokens")
    };
    let rows = Rows {
        prompts: lists("prompts").into_iter().map(Arc::from).collect(),
        group: 3,
        responses: lists("responses"),
    };
    Drawn {
        rollout: train.forwards[0].rollout,
        logp: Tensor::zeros([rows.tokens() as i64], (Kind::Float, tch::Device::Cpu)),
        finished: vec![true; rows.responses.len()],
        texts: vec![Arc::from(""); rows.responses.len()],
        rows,
    }
}

/// Two updates with passes of at most `micro_tokens`, and the parameters after them.
fn run(mut model: Model, micro_tokens: usize) -> (Vec<Update>, Tensor) {
    let graph = graph();
    let train = training(&graph);
    assert_eq!(train.forwards.len(), 1, "value and end are one pass");
    let drawn = [drawn(&train)];
    let mut env = Env {
        iteration: 1.0,
        iterations: 1.0,
        ..Env::default()
    };
    let rollout = graph.rollout(train.forwards[0].rollout);
    let group = rollout.group.expect("the program has a group");
    let rows = &drawn[0].rows;
    env.shapes.set(rollout.rows, rows.prompts.len());
    env.shapes.set(group, rows.group);
    let parents = vec![rollout.rows, group];
    env.shapes
        .set_ragged(rollout.tokens, parents, rows.offsets());
    let mut optimizer = AdamW::new(&model, (0.9, 0.95), 1e-4, 0.1);
    let mut step = || {
        let step = Step {
            optimizer: &mut optimizer,
            lr: 1e-2,
            clip_norm: Some(1.0),
        };
        let mut env = env.clone();
        update(
            &graph,
            &train,
            &mut env,
            &drawn,
            &mut model,
            step,
            micro_tokens,
        )
        .expect("a sound step")
    };
    let updates = vec![step(), step()];
    (updates, model.flat().copy())
}

fn critic() -> Model {
    Model::load_scalar(&folder(), Dtype::F32, &DRAWS).expect("a committed checkpoint")
}

fn adapted() -> Model {
    let lora = Lora {
        rank: 2,
        alpha: 2.0,
        targets: vec![],
    };
    let mut model = critic();
    model.adapt(&lora, &DRAWS).expect("layers to adapt");
    model
}

#[test]
fn the_loss_is_that_of_transformers_numbers() {
    let tensors = Tensor::read_safetensors(folder().join("expected.safetensors"));
    let tensors = tensors.expect("a committed fixture");
    let of = |name: &str| {
        let found = tensors.iter().find(|(n, _)| n == name);
        found.expect("in the fixture").1.to_kind(Kind::Double)
    };
    let mean = |t: Tensor| t.mean(None).double_value(&[]);
    let (before, after) = (of("before"), of("after"));
    let expected = mean((&before - 1.0).square()) + 3.0 * mean((&after - 2.0).square());
    let (updates, _) = run(critic(), usize::MAX);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
    close(updates[0].loss, expected);
    close(updates[0].metrics[0], mean(before));
    close(updates[0].metrics[1], mean(after));
    assert!(updates[0].ratio.is_none());
    assert!(updates[1].loss < updates[0].loss);
}

#[test]
fn micro_batches_do_not_change_the_numbers_of_a_critic() {
    for model in [critic, adapted] {
        let (whole, weights) = run(model(), usize::MAX);
        let (cut, cut_weights) = run(model(), 1);
        for (a, b) in cut.iter().zip(&whole) {
            assert!((a.loss / b.loss - 1.0).abs() < 1e-5, "{a:?} {b:?}");
            assert!(
                (a.grad_norm / b.grad_norm - 1.0).abs() < 1e-4,
                "{a:?} {b:?}"
            );
        }
        let worst = (weights - cut_weights).abs().max().double_value(&[]);
        assert!(worst < 1e-5, "weights differ by {worst:e}");
    }
}
