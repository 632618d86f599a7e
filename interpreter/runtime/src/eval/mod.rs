//! A pure expression over JSON: what `rlhf eval` computes.

mod json;

use rlhf_lang::graph::{Elem, ExprRef, Graph, ValueId};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
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
    /// The input to differentiate by; the expression must then be one number.
    pub grad: Option<ValueId>,
}

/// `{"value": …}`, with `"grad": …` in the shape of the named input where one was asked for.
///
/// None is `null`; an infinite number is the text `"inf"` or `"-inf"`.
pub fn run(request: &EvalRequest) -> Result<Json> {
    let graph = &request.graph;
    let mut env = read(graph, &request.inputs)?;
    let leaf = match request.grad {
        None => None,
        Some(id) => Some((id, leaf(&mut env, id, graph)?)),
    };
    let value = expr::eval_kept(graph, request.root, &mut env)?;
    let ty = &graph.expr(request.root).ty;
    let mut answer = json!({ "value": write(&value, ty.elem, &env.shapes)? });
    if let Some((id, leaf)) = leaf {
        if !value.axes.is_empty() {
            return Err(Fault::new(format!(
                "a gradient needs one number, and this is {}",
                graph.show_type(ty)
            ))
            .at(graph.expr(request.root).span)
            .help("reduce it first, as in `mean(…)` or `sum(…)`"));
        }
        let gradient = gradient(&value, &leaf)?;
        let gradient = Value::num(graph.value(id).ty.axes.clone(), &gradient);
        answer["grad"] = write(&gradient, Elem::Float, &env.shapes)?;
    }
    Ok(answer)
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

fn gradient(value: &Value, leaf: &Tensor) -> Result<Tensor> {
    match &value.data {
        Data::Num(t) if t.requires_grad() => {
            let mut found = Tensor::f_run_backward(&[t], &[leaf], false, false)?;
            // One input in, one gradient out.
            Ok(found.remove(0))
        }
        _ => Ok(leaf.f_zeros_like()?.f_detach()?),
    }
}
