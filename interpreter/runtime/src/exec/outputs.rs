//! The numbers of a pass by what the program calls them, whatever head the model has.

use rlhf_lang::graph::{Forward, ForwardOutput, Graph, ValueId};
use tch::Tensor;

use crate::batch::Rows;
use crate::fault::Result;
use crate::model::{LivePass, Model, ScalarPass, States, Values};
use crate::value::{Shapes, Value, storage};

/// Numbers by output: one a response token, or one a response.
#[derive(Debug, Default)]
pub struct Numbers(Vec<(ForwardOutput, Tensor)>);

impl Numbers {
    /// Those of an output, where it was asked for.
    pub fn get(&self, output: ForwardOutput) -> Option<&Tensor> {
        let found = self.0.iter().find(|(o, _)| *o == output);
        found.map(|(_, numbers)| numbers)
    }

    fn of_values(values: &Values, outputs: &[ForwardOutput]) -> Numbers {
        let of = |output| match per_token(output) {
            true => (output, values.before.shallow_clone()),
            false => (output, values.after.shallow_clone()),
        };
        Numbers(outputs.iter().copied().map(of).collect())
    }

    fn of_scores(logp: Tensor, entropy: Option<Tensor>) -> Numbers {
        let entropy = entropy.map(|numbers| (ForwardOutput::Entropy, numbers));
        let logp = (ForwardOutput::Logp, logp);
        Numbers([Some(logp), entropy].into_iter().flatten().collect())
    }
}

/// Numbers of a pass as a value over the axes that the program gives it. Gradient tracking is kept.
pub fn value(graph: &Graph, id: ValueId, numbers: &Tensor, shapes: &Shapes) -> Result<Value> {
    let axes = graph.value(id).ty.axes.clone();
    let sizes = storage(&axes, shapes)?;
    Ok(Value::num(axes, &numbers.f_reshape(sizes)?))
}

/// Whether an output has a number for each response token rather than one a response.
pub fn per_token(output: ForwardOutput) -> bool {
    match output {
        ForwardOutput::Logp | ForwardOutput::Entropy | ForwardOutput::Value => true,
        ForwardOutput::End | ForwardOutput::Score => false,
    }
}

/// Runs the pass, keeping nothing for a gradient.
pub fn score(model: &Model, rows: &Rows, forward: &Forward) -> Numbers {
    match Head::of(forward) {
        Head::Language { entropy } => {
            let scores = model.score(rows, forward.temperature, entropy);
            Numbers::of_scores(scores.logp, scores.entropy)
        }
        Head::Scalar(states) => Numbers::of_values(&model.values(rows, states), &outputs(forward)),
    }
}

/// A pass whose numbers can be differentiated.
#[derive(Debug)]
pub enum Live {
    /// Through a language head.
    Language(LivePass),
    /// Through a scalar head, for these outputs.
    Scalar(ScalarPass, Vec<ForwardOutput>),
}

impl Live {
    /// Runs the pass.
    pub fn forward(model: &Model, rows: &Rows, forward: &Forward) -> Live {
        match Head::of(forward) {
            Head::Language { entropy } => {
                let pass = LivePass::forward(model, rows, forward.temperature, entropy);
                Live::Language(pass)
            }
            Head::Scalar(states) => {
                Live::Scalar(ScalarPass::forward(model, rows, states), outputs(forward))
            }
        }
    }

    /// Its numbers.
    pub fn numbers(&self) -> Numbers {
        match self {
            Live::Language(pass) => Numbers::of_scores(pass.logp(), pass.entropy()),
            Live::Scalar(pass, outputs) => Numbers::of_values(&pass.values(), outputs),
        }
    }

    /// Adds to the gradient of `model`, given `slope`: d loss / d numbers of an output, where the loss
    /// has one.
    pub fn backward(self, model: &mut Model, slope: impl Fn(ForwardOutput) -> Option<Tensor>) {
        match self {
            Live::Language(pass) => {
                let d_logp = slope(ForwardOutput::Logp).unwrap_or_else(|| pass.logp().zeros_like());
                let d_entropy = slope(ForwardOutput::Entropy);
                pass.backward(model, &d_logp, d_entropy.as_ref());
            }
            Live::Scalar(pass, outputs) => {
                let mut grads = pass.values();
                grads.before = grads.before.zeros_like();
                grads.after = grads.after.zeros_like();
                for output in outputs {
                    let Some(d) = slope(output) else {
                        continue;
                    };
                    match per_token(output) {
                        true => grads.before += d,
                        false => grads.after += d,
                    }
                }
                pass.backward(model, &grads);
            }
        }
    }
}

/// What a pass runs through. A model has one head, so its outputs agree.
enum Head {
    Language { entropy: bool },
    Scalar(States),
}

impl Head {
    fn of(forward: &Forward) -> Head {
        let asked = |output| forward.outputs.iter().any(|(o, _)| *o == output);
        let after = asked(ForwardOutput::End) || asked(ForwardOutput::Score);
        match (asked(ForwardOutput::Value), after) {
            (false, false) => Head::Language {
                entropy: asked(ForwardOutput::Entropy),
            },
            (true, false) => Head::Scalar(States::Before),
            (false, true) => Head::Scalar(States::After),
            (true, true) => Head::Scalar(States::All),
        }
    }
}

fn outputs(forward: &Forward) -> Vec<ForwardOutput> {
    forward.outputs.iter().map(|(o, _)| *o).collect()
}
