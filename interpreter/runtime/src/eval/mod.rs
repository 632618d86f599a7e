//! A pure expression over JSON: what `rlhf eval` computes.

mod json;

use rlhf_lang::graph::{Elem, ExprRef, Graph, ValueId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tch::Tensor;

use crate::expr::{self, Env};
use crate::fault::{Fault, Result};
use crate::value::{Data, Value};

pub use json::{read, write};

/// What to evaluate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalRequest {
    /// Holds the expression and the types of the inputs.
    pub graph: Graph,
    /// The expression.
    pub root: ExprRef,
    /// Nested lists, axes in the order of each value's type; rows of a ragged axis may differ.
    pub inputs: Vec<(ValueId, Json)>,
    /// The inputs to differentiate by; with any, the expression must be one number.
    pub grad: Vec<ValueId>,
}

/// `{"value": …}`, with `"grad": …` in the shape of the input where one was asked for, and an object of
/// gradients by name where several were.
///
/// None is `null`; an infinite number is the text `"inf"` or `"-inf"`.
pub fn run(request: &EvalRequest) -> Result<Json> {
    let graph = &request.graph;
    let mut env = read(graph, &request.inputs)?;
    if !request.grad.is_empty() {
        require_number(graph, request.root)?;
    }
    let leaves = request
        .grad
        .iter()
        .map(|id| leaf(&mut env, *id, graph))
        .collect::<Result<Vec<_>>>()?;
    let value = expr::eval_kept(graph, request.root, &mut env)?;
    let ty = &graph.expr(request.root).ty;
    let mut answer = json!({ "value": write(&value, ty.elem, &env.shapes)? });
    let mut gradients = Map::new();
    let found = gradients_by(&value, &leaves)?;
    for (id, gradient) in request.grad.iter().zip(&found) {
        let input = graph.value(*id);
        let gradient = Value::num(input.ty.axes.clone(), gradient);
        let gradient = write(&gradient, Elem::Float, &env.shapes)?;
        gradients.insert(input.name.clone(), gradient);
    }
    match request.grad.as_slice() {
        [] => {}
        [one] => answer["grad"] = gradients[&graph.value(*one).name].take(),
        _ => answer["grad"] = gradients.into(),
    }
    Ok(answer)
}

fn require_number(graph: &Graph, root: ExprRef) -> Result<()> {
    let expr = graph.expr(root);
    let is = graph.show_type(&expr.ty);
    let message = format!("a gradient needs one number, and this is {is}");
    let help = match expr.ty.elem {
        Elem::Float | Elem::Int if expr.ty.axes.is_empty() => return Ok(()),
        Elem::Float | Elem::Int => "reduce it first, as in `mean(…)` or `sum(…)`",
        Elem::Bool => "`if … then 1 else 0` makes a number of it, whose gradient is 0 everywhere",
        _ => "`number(…)` makes numbers of text; gradients flow through numbers only",
    };
    Err(Fault::new(message).at(expr.span).help(help))
}

fn leaf(env: &mut Env, id: ValueId, graph: &Graph) -> Result<Tensor> {
    let name = &graph.value(id).name;
    match env.values.get_mut(&id).map(|v| &mut v.data) {
        Some(Data::Num(t)) => {
            *t = t.f_set_requires_grad(true)?;
            Ok(t.shallow_clone())
        }
        Some(other) => Err(Fault::new(format!(
            "`{name}` holds {}, so there is no gradient by it",
            other.kind()
        ))),
        None => Err(Fault::new(format!("`{name}` has no value"))),
    }
}

/// What the value has for every leaf; 0 where it does not depend on one.
fn gradients_by(value: &Value, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
    let zero = |leaf: &Tensor| -> Result<Tensor> { Ok(leaf.f_zeros_like()?.f_detach()?) };
    match &value.data {
        Data::Num(t) if t.requires_grad() => {
            let found = Tensor::f_run_backward(&[t], leaves, false, false)?;
            let found = found.into_iter().zip(leaves);
            found
                .map(|(gradient, leaf)| match gradient.defined() {
                    true => Ok(gradient),
                    false => zero(leaf),
                })
                .collect()
        }
        _ => leaves.iter().map(zero).collect(),
    }
}
