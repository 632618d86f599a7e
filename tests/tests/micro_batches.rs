//! The law of micro-batches: the loss, the metrics and the gradient of an update do not move with the
//! token budget of a pass, whatever the shape of the loss.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use rlhf_lang::compile::{Request, compile};
use rlhf_lang::graph::{
    AxisId, Elem, ForwardOutput, Graph, Member, NodeKind, RolloutId, Scope, Train, ValueId,
};
use rlhf_runtime::batch::Rows;
use rlhf_runtime::exec::{Drawn, Update, measure};
use rlhf_runtime::expr::{self, Env};
use rlhf_runtime::model::{Dtype, Model};
use rlhf_runtime::value::Value;
use rlhf_tests::Checkpoint;
use tch::Tensor;

const ROWS: usize = 5;

const HEAD: &str = r#"
use std.kl { k3 }
data d = jsonl("d.jsonl") { question: text, answer: text, other: text, x: float }
model policy = causal("here", optim: adamw(1e-3))
model anchor = frozen(policy)
step over d[B: 5], iterations: 1 {
  roll = generate(policy, question)[G: 3, T: ..12]
  ref  = logp(anchor, roll)
  s    = mean(roll.logp, T)
  adv  = s - mean(s, G)
"#;

const RATIO: &str = "lp = logp(policy, roll)\n ratio = exp(lp - roll.logp)\n";

/// Name, what stands above `train`, what stands in it.
fn shapes() -> Vec<(&'static str, &'static str, String)> {
    let ratio = |rest: &str| format!("{RATIO}{rest}\n log kl: mean(k3(lp, ref))");
    vec![
        ("tokens", "", ratio("minimize -mean(ratio * adv, [B, G, T])")),
        ("responses", "", ratio("minimize -mean(mean(min(ratio * adv, clamp(ratio, 0.8, 1.2) * adv), T), [B, G])")),
        ("constant", "", ratio("minimize -mean(sum(ratio * adv, T) / 16, [B, G])")),
        ("sequence", "", ratio("minimize -mean(exp(mean(lp - roll.logp, T)) * adv)")),
        ("group", "", ratio("minimize mean(log(mean(exp(mean(lp - ref, T)), G)))")),
        ("entropy", "", ratio("minimize -mean(mean(ratio * adv, T)) - 0.01 * mean(entropy(policy, roll))")),
        ("part", "rows D = B where x > 0", ratio("minimize -mean(mean(ratio * adv, T), [D, G])")),
        (
            "part alone",
            "rows D = B where x > 0, limit: 2",
            format!("{RATIO} minimize -mean(ratio * adv + lp, [D, G, T])\n log kl: mean(k3(lp, ref), [D, G, T])"),
        ),
        (
            "picked",
            "best = pick(roll, G, argmax(s, G))\n two = top(roll, G, by: s, k: 2)",
            "minimize -mean(mean(logp(policy, best), T)) - mean(logp(policy, two), [B, G, T])".into(),
        ),
        (
            "picked numbers",
            "i = argmax(s, G)",
            ratio("minimize -mean(mean(pick(lp, G, i), T)) - mean(top(ratio * adv, G, by: s, k: 2))"),
        ),
        (
            "pairs",
            "win = answer(question, answer)[W: ..12]\n lose = answer(question, other)[L: ..12]\n rw = logp(anchor, win)\n rl = logp(anchor, lose)",
            "m = sum(logp(policy, win) - rw, W) - sum(logp(policy, lose) - rl, L)\n minimize -mean(log_sigmoid(0.1 * m))\n log m: mean(m)".into(),
        ),
    ]
}

fn graph(above: &str, inside: &str) -> Graph {
    let text = format!("{HEAD} {above}\n train policy {{\n {inside}\n }}\n log s: mean(s)\n}}\n");
    let request = Request {
        name: "law.rlhf",
        text: &text,
        overrides: &[],
        load: &|_| None,
    };
    let compiled = compile(&request);
    compiled
        .graph
        .unwrap_or_else(|| panic!("{text}: {:?}", compiled.diagnostics))
}

/// Random lengths and tokens of one case.
#[derive(Clone, Debug)]
struct Draw {
    /// Prompts of 1 to 6 tokens.
    prompts: Vec<Vec<u32>>,
    /// Responses of 0 to 12 tokens, enough for every rollout.
    responses: Vec<Vec<u32>>,
    x: Vec<f64>,
}

fn draw() -> impl Strategy<Value = Draw> {
    let ids = |lengths| prop::collection::vec(0u32..258, lengths);
    (
        prop::collection::vec(ids(1..7), ROWS),
        prop::collection::vec(ids(0..13), 3 * ROWS),
        prop::collection::vec(-1.0..1.0f64, ROWS),
    )
        .prop_map(|(prompts, responses, x)| Draw {
            prompts,
            responses,
            x,
        })
}

/// The values before training, as a rank would have them.
struct Prepared {
    graph: Graph,
    train: Train,
    env: Env,
    drawn: HashMap<RolloutId, Drawn>,
    rows: AxisId,
    policy: Model,
}

impl Prepared {
    fn new(graph: Graph, draw: &Draw, policy: &Model, anchor: &Model) -> Prepared {
        let mut env = Env {
            iteration: 1.0,
            iterations: 1.0,
            ..Env::default()
        };
        for (i, axis) in graph.axes.iter().enumerate() {
            if let rlhf_lang::graph::AxisSize::Fixed(n) = axis.size {
                env.shapes.set(AxisId(i as u32), n);
            }
        }
        let mut drawn = HashMap::new();
        let (mut train, mut rows) = (None, AxisId(0));
        for id in graph.order(Scope::Step) {
            match &graph.dag.node(id).kind {
                NodeKind::Load { axis, columns, .. } => {
                    rows = *axis;
                    for (_, value) in columns {
                        if graph.value(*value).ty.elem == Elem::Float {
                            let x = Value::from_f64(vec![*axis], &draw.x, &env.shapes);
                            env.values.insert(*value, x.expect("one number a row"));
                        }
                    }
                }
                NodeKind::Generate {
                    rollout, members, ..
                } => {
                    let made = sampled(&graph, *rollout, draw, policy);
                    bind(&graph, made, members, &mut env, &mut drawn);
                }
                NodeKind::Answer {
                    rollout, members, ..
                } => {
                    let made = sampled(&graph, *rollout, draw, policy);
                    bind(&graph, made, members, &mut env, &mut drawn);
                }
                NodeKind::Select {
                    from,
                    by,
                    rollout,
                    members,
                } => {
                    let axes = |r: RolloutId| graph.axis(graph.rollout(r).tokens).parents.clone();
                    let chosen =
                        expr::responses(&graph, by, &axes(*from), &axes(*rollout), &mut env);
                    let group = graph
                        .rollout(*rollout)
                        .group
                        .map_or(1, |g| env.shapes.length(g).expect("a fixed axis"));
                    let made = drawn[from].pick(*rollout, &chosen.expect("sound"), group);
                    bind(&graph, made.expect("sound"), members, &mut env, &mut drawn);
                }
                NodeKind::Forward(forward) => {
                    let scores =
                        anchor.score(&drawn[&forward.rollout].rows, forward.temperature, false);
                    for (output, value) in &forward.outputs {
                        assert_eq!(*output, ForwardOutput::Logp);
                        let axes = graph.value(*value).ty.axes.clone();
                        env.values.insert(*value, Value::num(axes, &scores.logp));
                    }
                }
                NodeKind::Map { expr, value } => {
                    let computed = expr::eval_kept(&graph, *expr, &mut env);
                    env.values
                        .insert(*value, computed.expect("a sound expression"));
                }
                NodeKind::Train(t) => train = Some(t.clone()),
                other => panic!("{other:?}"),
            }
            env.settle(&graph).expect("conditions of data");
        }
        Prepared {
            train: train.expect("the program trains"),
            graph,
            env,
            drawn,
            rows,
            policy: policy.snapshot(),
        }
    }

    fn measure(&self, rows: &[usize], micro_tokens: usize) -> (Update, Tensor) {
        let mut model = self.policy.snapshot();
        let drawn: Vec<Drawn> = self
            .train
            .forwards
            .iter()
            .map(|f| self.drawn[&f.rollout].select(rows).expect("these rows"))
            .collect();
        let mut env = self.env.restrict(self.rows, rows).expect("these rows");
        let done = measure(
            &self.graph,
            &self.train,
            &mut env,
            &drawn,
            &mut model,
            micro_tokens,
        );
        let done = done.expect("a sound loss");
        let gradient = match model.gradient() {
            Some(gradient) => gradient.copy(),
            None => model.flat().zeros_like(),
        };
        (done, gradient)
    }

    fn whole(&self, micro_tokens: usize) -> (Update, Tensor) {
        self.measure(&(0..ROWS).collect::<Vec<_>>(), micro_tokens)
    }
}

fn sampled(graph: &Graph, rollout: RolloutId, draw: &Draw, policy: &Model) -> Drawn {
    let group = if graph.rollout(rollout).group.is_some() {
        3
    } else {
        1
    };
    // Rollouts of one response a row take different ones.
    let skip = match group {
        1 => rollout.0 as usize,
        _ => 0,
    };
    let rows = Rows {
        prompts: draw
            .prompts
            .iter()
            .map(|p| Arc::from(p.as_slice()))
            .collect(),
        group,
        responses: draw.responses[skip..skip + ROWS * group].to_vec(),
    };
    let own = policy.score(&rows, 1.0, false).logp;
    // As an older version would have sampled.
    let tokens: Vec<f32> = rows.responses.iter().flatten().map(|t| *t as f32).collect();
    let shift = Tensor::from_slice(&tokens).sin() * 0.1;
    Drawn {
        rollout,
        logp: own + shift,
        finished: vec![true; rows.responses.len()],
        texts: vec![Arc::from(""); rows.responses.len()],
        rows,
    }
}

fn bind(
    graph: &Graph,
    made: Drawn,
    members: &[(Member, ValueId)],
    env: &mut Env,
    drawn: &mut HashMap<RolloutId, Drawn>,
) {
    let tokens = graph.rollout(made.rollout).tokens;
    let parents = graph.axis(tokens).parents.clone();
    env.shapes.set_ragged(tokens, parents, made.rows.offsets());
    for (member, value) in members {
        assert_eq!(*member, Member::Logp);
        let axes = graph.value(*value).ty.axes.clone();
        env.values.insert(*value, Value::num(axes, &made.logp));
    }
    drawn.insert(made.rollout, made);
}

fn load(seed: u64) -> Model {
    // On a tiny model threads only wait for each other.
    tch::set_num_threads(1);
    let folder = tempfile::tempdir().expect("a temporary directory");
    Checkpoint::new(seed).write(folder.path());
    Model::load(folder.path(), Dtype::F32).expect("a tiny model")
}

/// The largest difference, relative to the largest number.
fn apart(a: &Tensor, b: &Tensor) -> f64 {
    let largest = |t: &Tensor| t.abs().max().double_value(&[]);
    largest(&(a - b)) / largest(b).max(1e-6)
}

fn near(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1e-2);
    assert!(error <= 1e-5, "{what}: {found} instead of {expected}");
}

fn holds(draw: &Draw, budget: usize) {
    let (own, anchor) = (load(7), load(8));
    for (name, above, inside) in shapes() {
        let prepared = Prepared::new(graph(above, &inside), draw, &own, &anchor);
        let (whole, gradient) = prepared.whole(usize::MAX);
        for budget in [1, budget] {
            let (cut, of_cut) = prepared.whole(budget);
            near(cut.loss, whole.loss, name);
            for (a, b) in cut.metrics.iter().zip(&whole.metrics) {
                near(*a, *b, name);
            }
            let worst = apart(&of_cut, &gradient);
            assert!(worst <= 1e-5, "{name}: gradients differ by {worst:e}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_do_not_move_with_the_budget_of_a_pass(draw in draw(), budget in 2usize..80) {
        holds(&draw, budget);
    }

    #[test]
    fn responses_of_rows_left_out_are_neither_read_nor_trained_on(draw in draw()) {
        let (own, anchor) = (load(7), load(8));
        let above = "rows D = B where x > 0";
        let inside = format!("{RATIO} minimize -mean(ratio * s, [D, G, T])");
        let prepared = Prepared::new(graph(above, &inside), &draw, &own, &anchor);
        let (whole, gradient) = prepared.whole(usize::MAX);
        let mut other = draw.clone();
        for row in (0..ROWS).filter(|r| draw.x[*r] <= 0.0) {
            other.prompts[row] = vec![1, 2, 3];
            for response in &mut other.responses[row * 3..row * 3 + 3] {
                *response = vec![5; 4];
            }
        }
        let changed = Prepared::new(graph(above, &inside), &other, &own, &anchor);
        let (after, of_changed) = changed.whole(usize::MAX);
        near(after.loss, whole.loss, "loss");
        prop_assert!(apart(&of_changed, &gradient) <= 1e-5);
    }

    #[test]
    fn losses_of_minibatches_average_to_the_loss_of_all_rows(mut draw in draw()) {
        // Every row counts alike where every row has one denominator.
        draw.responses.iter_mut().for_each(|r| r.push(9));
        let (own, anchor) = (load(7), load(8));
        let inside = format!("{RATIO} minimize -mean(mean(ratio * s, T), [B, G])");
        let prepared = Prepared::new(graph("", &inside), &draw, &own, &anchor);
        let (whole, gradient) = prepared.whole(usize::MAX);
        let parts: Vec<(Update, Tensor)> = (0..ROWS).map(|r| prepared.measure(&[r], usize::MAX)).collect();
        let loss = parts.iter().map(|(u, _)| u.loss).sum::<f64>() / ROWS as f64;
        near(loss, whole.loss, "loss");
        let mut sum = gradient.zeros_like();
        for (_, part) in &parts {
            sum += part;
        }
        prop_assert!(apart(&(sum / ROWS as f64), &gradient) <= 1e-5);
    }
}
