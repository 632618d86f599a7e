//! The scalar head: one number for a state, before each response token or after the last one.

use tch::{Device, Kind, Tensor};

use super::head::joined;
use super::live::{LINES, Trunk};
use super::pack::Packed;
use super::{HeadKind, Model};
use crate::batch::Rows;

/// Which states of a response are valued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum States {
    /// Those before each token.
    Before,
    /// The one after the last token.
    After,
    /// Both.
    All,
}

/// The numbers of a scalar model, f32. Empty where they were not asked for.
#[derive(Debug)]
pub struct Values {
    /// Of the state that predicts each response token, `[tokens]`.
    pub before: Tensor,
    /// Of the state after each response, `[responses]`; of a response without tokens it is the state
    /// after the prompt.
    pub after: Tensor,
}

impl States {
    fn packed(self, rows: &Rows) -> Packed {
        match self {
            States::Before => Packed::rows(rows),
            States::After | States::All => Packed::whole(rows),
        }
    }

    /// The packed lines whose states are valued: those before tokens, then those after responses.
    fn lines(self, packed: &Packed) -> Tensor {
        match self {
            States::Before => packed.predicting.shallow_clone(),
            States::After => packed.last.shallow_clone(),
            States::All => Tensor::cat(&[&packed.predicting, &packed.last], 0),
        }
    }

    /// Numbers of lines in the order of [`States::lines`], cut in two.
    fn split(self, numbers: &Tensor, responses: i64) -> Values {
        let all = numbers.size()[0];
        let tokens = match self {
            States::Before => all,
            States::After => 0,
            States::All => all - responses,
        };
        Values {
            before: numbers.narrow(0, 0, tokens),
            after: numbers.narrow(0, tokens, all - tokens),
        }
    }
}

impl Model {
    /// Values of the wanted states of each response, in the order of the rows. Keeps nothing for a
    /// gradient.
    pub fn values(&self, rows: &Rows, states: States) -> Values {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for range in rows.portions(LINES) {
            let part = rows.select_prompts(range);
            let packed = states.packed(&part);
            if packed.is_empty() {
                continue;
            }
            let hidden = self.hidden(&packed, &states.lines(&packed));
            let found = states.split(&self.number(&hidden), part.responses.len() as i64);
            before.push(found.before);
            after.push(found.after);
        }
        Values {
            before: joined(&before),
            after: joined(&after),
        }
    }

    /// The head's number for each hidden state, in f32 whatever the model's type is.
    fn number(&self, hidden: &Tensor) -> Tensor {
        debug_assert_eq!(self.config.head, HeadKind::Scalar);
        let weight = self.weights.head.to_kind(Kind::Float).view(-1);
        hidden.to_kind(Kind::Float).mv(&weight)
    }
}

/// A forward pass of a scalar model whose numbers can be differentiated: see [`super::LivePass`].
#[derive(Debug)]
pub struct ScalarPass {
    states: States,
    responses: i64,
    /// None where there is no state to value.
    trunk: Option<Trunk>,
    numbers: Tensor,
}

impl ScalarPass {
    /// Runs the model over the rows.
    pub fn forward(model: &Model, rows: &Rows, states: States) -> Self {
        let packed = states.packed(rows);
        let trunk = (!packed.is_empty()).then(|| {
            let lines = states.lines(&packed);
            Trunk::forward(model, packed, lines)
        });
        let numbers = match &trunk {
            Some(trunk) => model.number(&trunk.hidden(model)),
            None => Tensor::empty([0], (Kind::Float, Device::Cpu)),
        };
        ScalarPass {
            states,
            responses: rows.responses.len() as i64,
            trunk,
            numbers,
        }
    }

    /// The numbers that were asked for.
    pub fn values(&self) -> Values {
        self.states.split(&self.numbers, self.responses)
    }

    /// Adds to the gradient of `model`, which must be as it was in the forward pass, given the loss's
    /// gradient with respect to each number, in the shapes of [`ScalarPass::values`].
    pub fn backward(self, model: &mut Model, grads: &Values) {
        let Some(trunk) = self.trunk else {
            return;
        };
        let parts = match self.states {
            States::Before => vec![&grads.before],
            States::After => vec![&grads.after],
            States::All => vec![&grads.before, &grads.after],
        };
        let d_number = Tensor::cat(&parts, 0).to_kind(Kind::Float);
        let mut gradient = model.gradient_views();
        let model: &Model = model;
        let hidden = trunk.hidden(model);
        let pull = hidden.to_kind(Kind::Float).tr().mv(&d_number);
        gradient.head += pull.unsqueeze(0);
        let weight = model.weights.head.to_kind(Kind::Float);
        let d_hidden = (d_number.unsqueeze(1) * weight).to_kind(hidden.kind());
        trunk.backward(model, &mut gradient, d_hidden);
    }
}
