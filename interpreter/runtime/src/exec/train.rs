//! Training: minibatches, micro-batches, one global denominator.
//!
//! A loss is evaluated on the whole minibatch at once: its leaves are the live numbers of tokens and
//! responses, which are small. Only the model's passes are cut into micro-batches; each gets its slice of the loss's
//! gradient, so the cut cannot change a denominator.

use std::ops::Range;

use rlhf_kernels::philox;
use rlhf_lang::graph::{ForwardOutput, Graph, Node, NodeKind, Scope, Train, ValueId};
use rlhf_plan::launch::Event;
use rlhf_plan::memory::MICRO_TOKENS;
use tch::{Kind, Tensor};

use super::context::Context;
use super::outputs::{self, Live};
use super::pass::{Drawn, Pass, missing};
use super::reach;
use crate::data;
use crate::expr::{self, Env};
use crate::fault::{Fault, Result};
use crate::model::{AdamW, Model};

/// One optimizer step's numbers.
#[derive(Clone, Debug)]
pub struct Update {
    /// The loss before the step.
    pub loss: f64,
    /// The global gradient norm before clipping.
    pub grad_norm: f64,
    /// Metrics in the order of the `train` block; none and NaN as NaN.
    pub metrics: Vec<f64>,
    /// The mean of the importance ratio before the step, where the rollout is the model's own.
    pub ratio: Option<f64>,
}

/// How an optimizer step is taken.
pub struct Step<'a> {
    /// Moments and master weights.
    pub optimizer: &'a mut AdamW,
    /// Learning rate of this step.
    pub lr: f64,
    /// Largest global gradient norm.
    pub clip_norm: Option<f64>,
}

/// One update of `model` on a minibatch: `env` holds its values, `drawn` its rollouts by forward pass.
/// Passes are cut so that none has more than `micro_tokens` tokens, unless one group alone has.
///
/// The loss is the program's scalar over the minibatch; its gradient is taken with respect to the live
/// numbers (`[tokens]` or `[responses]`) and continued through the model.
pub fn update(
    graph: &Graph,
    train: &Train,
    env: &mut Env,
    drawn: &[Drawn],
    model: &mut Model,
    step: Step,
    micro_tokens: usize,
) -> Result<Update> {
    let measured = measure(graph, train, env, drawn, model, micro_tokens)?;
    let grad_norm = step.optimizer.step(model, step.lr, step.clip_norm);
    if !grad_norm.is_finite() {
        let message = format!(
            "the gradient of `train {}` became {grad_norm}",
            graph.model(train.model).name
        );
        return Err(Fault::code("R401", message)
            .help("lower the learning rate or set `clip` in `adamw(…)`"));
    }
    Ok(Update {
        grad_norm,
        ..measured
    })
}

/// The loss, the metrics and, added to the model's own, the gradient of [`update`], whose norm is not
/// known yet.
pub fn measure(
    graph: &Graph,
    train: &Train,
    env: &mut Env,
    drawn: &[Drawn],
    model: &mut Model,
    micro_tokens: usize,
) -> Result<Update> {
    let reached = reach::reached(graph, train, env, drawn)?;
    let cuts: Vec<Vec<Range<usize>>> = reached
        .iter()
        .map(|r| r.rows.portions(micro_tokens))
        .collect();
    let single = cuts.iter().all(|c| c.len() <= 1);
    // With one micro-batch the pass that scores is the pass that is differentiated.
    let mut open: Vec<Option<Live>> = vec![];
    let mut leaves: Vec<(usize, ForwardOutput, Tensor)> = vec![];
    let mut ratio = None;
    for (index, forward) in train.forwards.iter().enumerate() {
        let rows = &reached[index].rows;
        let numbers = if single {
            let live = Live::forward(model, rows, forward);
            let numbers = live.numbers();
            open.push(Some(live));
            numbers
        } else {
            outputs::score(model, rows, forward)
        };
        if let Some(logp) = numbers.get(ForwardOutput::Logp)
            && ratio.is_none()
            && drawn[index].own(graph, train.model, forward.temperature)
            && rows.tokens() > 0
        {
            let sampled = reached[index].of(ForwardOutput::Logp, &drawn[index].logp)?;
            let drift = (logp.to_kind(Kind::Double) - sampled.to_kind(Kind::Double))
                .exp()
                .mean(None);
            ratio = Some(drift.double_value(&[]));
        }
        for (output, value) in &forward.outputs {
            let Some(numbers) = numbers.get(*output) else {
                continue;
            };
            let leaf = reached[index]
                .among_all(*output, &numbers.detach())?
                .to_kind(Kind::Double)
                .set_requires_grad(true);
            let shaped = outputs::value(graph, *value, &leaf, &env.shapes)?;
            env.values.insert(*value, shaped);
            leaves.push((index, *output, leaf));
        }
    }

    let loss = expr::eval(graph, train.loss, env)?.tensor()?;
    let metrics = tch::no_grad(|| {
        train
            .metrics
            .iter()
            .map(|m| expr::eval(graph, m.expr, env)?.as_f64())
            .collect::<Result<Vec<f64>>>()
    })?;
    let total = loss.double_value(&[]);
    if !total.is_finite() {
        return Err(not_finite(graph, train, env, total));
    }

    let gradients = gradients(&loss, &leaves);
    for (index, forward) in train.forwards.iter().enumerate() {
        let mut slopes = vec![];
        for ((i, output, _), gradient) in leaves.iter().zip(&gradients) {
            if *i == index {
                let slope = reached[index].of(*output, gradient)?;
                slopes.push((*output, slope.to_kind(Kind::Float)));
            }
        }
        let of = |what| {
            let found = slopes.iter().find(|(output, _)| *output == what);
            found.map(|(_, slope)| slope.shallow_clone())
        };
        if let Some(live) = open.get_mut(index).and_then(Option::take) {
            live.backward(model, of);
            continue;
        }
        let rows = &reached[index].rows;
        let offsets = rows.offsets();
        for cut in &cuts[index] {
            let (first, end) = (cut.start * rows.group, cut.end * rows.group);
            let slice = |output| {
                let (from, to) = match outputs::per_token(output) {
                    true => (offsets[first], offsets[end]),
                    false => (first, end),
                };
                of(output).map(|d| d.narrow(0, from as i64, (to - from) as i64))
            };
            let part = rows.select_prompts(cut.clone());
            Live::forward(model, &part, forward).backward(model, slice);
        }
    }
    Ok(Update {
        loss: total,
        grad_norm: f64::NAN,
        metrics,
        ratio,
    })
}

/// d loss / d leaf for every leaf; zero for one the loss does not reach.
fn gradients(loss: &Tensor, leaves: &[(usize, ForwardOutput, Tensor)]) -> Vec<Tensor> {
    if loss.requires_grad() {
        loss.backward();
    }
    leaves
        .iter()
        .map(|(_, _, leaf)| {
            let grad = leaf.grad();
            if grad.defined() {
                grad
            } else {
                leaf.zeros_like()
            }
        })
        .collect()
}

/// Names the first leaf number that is not finite, or else the loss alone.
fn not_finite(graph: &Graph, train: &Train, env: &Env, loss: f64) -> Fault {
    let name = &graph.model(train.model).name;
    let outputs = train
        .forwards
        .iter()
        .flat_map(|f| &f.outputs)
        .map(|(_, value)| *value);
    let place = outputs.into_iter().find_map(|value: ValueId| {
        let found = expr::first_non_finite(env.values.get(&value)?, graph, &env.shapes)
            .ok()
            .flatten()?;
        Some(format!(
            ": `{}` is {} at {}",
            graph.value(value).name,
            found.number,
            found.place
        ))
    });
    let message = format!(
        "the loss of `train {name}` became {loss}{}",
        place.unwrap_or_default()
    );
    Fault::code("R401", message)
        .at(graph.expr(train.loss).span)
        .help("a division by a standard deviation of 0, an `exp` of a large difference or a learning rate that is too high are the usual causes")
}

impl Context<'_> {
    /// All updates of a `train` node on this iteration's values.
    pub fn train(&mut self, node: &Node, train: &Train, pass: &mut Pass) -> Result<()> {
        let graph = &self.job.graph;
        let index = train.model.0 as usize;
        let name = graph.models[index].name.clone();
        let optim = graph.models[index].optim.clone();
        let Some(optim) = optim else {
            return Err(
                Fault::new(format!("`{name}` has no `optim`, so it cannot be trained"))
                    .at(node.span),
            );
        };
        let lr = expr::eval(graph, optim.lr, &pass.env)?.as_f64()?;
        for forward in &train.forwards {
            let drawn = pass.rollouts.get(&forward.rollout);
            self.check_readable(
                forward,
                drawn.ok_or_else(|| missing(graph, forward.rollout))?,
            )?;
        }
        let prompts = pass.rows.len();
        let size = train.minibatch.unwrap_or(prompts).clamp(1, prompts.max(1));
        let total = train.epochs * prompts.div_ceil(size);
        let mut updates: Vec<Update> = vec![];
        for epoch in 0..train.epochs {
            let order = if train.shuffle && size < prompts {
                data::permutation(
                    &[
                        self.job.seed,
                        philox::hash(&node.name),
                        pass.iteration as u64,
                        epoch as u64,
                    ],
                    prompts,
                )
            } else {
                (0..prompts).collect()
            };
            for minibatch in order.chunks(size) {
                if self.stopped() && !updates.is_empty() {
                    break;
                }
                (self.emit)(Event::Progress {
                    iteration: pass.iteration,
                    call: node.name.clone(),
                    done: updates.len(),
                    total,
                });
                let (mut env, drawn) = pass.minibatch(graph, train, minibatch)?;
                if reach::reads_nothing(graph, train, &env)? {
                    self.warn_once(nothing_left(graph, train).at(node.span));
                    continue;
                }
                let model = &mut self.models[index];
                let Some(optimizer) = self.optimizers[index].as_mut() else {
                    continue;
                };
                let step = Step {
                    optimizer,
                    lr,
                    clip_norm: optim.clip_norm,
                };
                let done = update(graph, train, &mut env, &drawn, model, step, MICRO_TOKENS)
                    .map_err(|f| at_iteration(f, pass.iteration).at(node.span))?;
                if updates.is_empty()
                    && let Some(ratio) = done.ratio
                    && (ratio - 1.0).abs() > RATIO_DRIFT
                {
                    self.warn_once(ratio_drift(train, ratio));
                }
                self.updated = true;
                updates.push(done);
            }
        }
        let mean = |of: &dyn Fn(&Update) -> f64| {
            let finite: Vec<f64> = updates.iter().map(of).filter(|x| x.is_finite()).collect();
            (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
        };
        for (i, metric) in train.metrics.iter().enumerate() {
            pass.metrics
                .insert(metric.name.clone(), mean(&|u| u.metrics[i]));
        }
        pass.late_metrics
            .insert(format!("{name}.loss"), mean(&|u| u.loss));
        pass.late_metrics
            .insert(format!("{name}.grad_norm"), mean(&|u| u.grad_norm));
        pass.late_metrics.insert(format!("{name}.lr"), Some(lr));
        Ok(())
    }
}

/// A loss over rows of which none are left has no gradient, and a step of an optimizer would still move
/// the weights by its moments.
fn nothing_left(graph: &Graph, train: &Train) -> Fault {
    let name = &graph.model(train.model).name;
    Fault::new(format!(
        "no row is left for an update of `train {name}`, which is skipped"
    ))
    .help("a larger batch gives more rows to choose from; `count` of the condition, logged, shows how many are left")
}

/// How far the mean importance ratio may be from 1 before the first update.
const RATIO_DRIFT: f64 = 0.03;

fn ratio_drift(train: &Train, ratio: f64) -> Fault {
    let message = format!(
        "before the first update the importance ratio averages {ratio:.3}; sampling and scoring disagree"
    );
    let span = train.forwards.first().map(|f| f.span).unwrap_or_default();
    Fault::code("R404", message)
        .at(span)
        .help("`dtype: f32` samples and scores with the same rounding")
}

fn at_iteration(mut fault: Fault, iteration: usize) -> Fault {
    fault.diagnostic.message = format!("iteration {iteration}: {}", fault.diagnostic.message);
    fault
}

impl Drawn {
    /// Whether these responses were sampled in the step by `model` at `temperature`: then the first
    /// update's importance ratios are 1.
    fn own(&self, graph: &Graph, model: rlhf_lang::graph::ModelId, temperature: f64) -> bool {
        graph.dag.order().any(|id| {
            let node = graph.dag.node(id);
            match &node.kind {
                NodeKind::Generate {
                    model: sampler,
                    sampling,
                    rollout,
                    ..
                } => {
                    node.scope == Scope::Step
                        && *rollout == self.rollout
                        && *sampler == model
                        && sampling.temperature == temperature
                }
                _ => false,
            }
        })
    }
}
