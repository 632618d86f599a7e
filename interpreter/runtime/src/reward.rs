//! External rewards over values: one call for each element of the arguments.

use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisId, Elem};
use rlhf_text::reward::Pool;
use serde_json::{Value as Json, json};

use crate::fault::Result;
use crate::value::{Data, Shapes, Value, align, to_bools, to_f64s};

/// Calls the function once for each element of the arguments, all broadcast to `axes`, of which the first
/// is that of `rows`, by their index in the data set. With the result comes R403 when calls failed and
/// `otherwise` took their place.
pub fn score(
    pool: &Pool,
    args: &[Value],
    axes: &[AxisId],
    shapes: &Shapes,
    rows: &[usize],
) -> Result<(Value, Option<Diagnostic>)> {
    let reward = pool.reward();
    let columns = args
        .iter()
        .zip(&reward.params)
        .map(|(arg, (name, elem))| cells(&align(arg, axes, shapes)?, name, *elem))
        .collect::<Result<Vec<_>>>()?;
    let count = crate::value::numel(axes, shapes)?;
    let calls: Vec<Vec<Json>> = (0..count)
        .map(|i| columns.iter().map(|column| column[i].clone()).collect())
        .collect();
    let each = count.checked_div(rows.len()).unwrap_or(0).max(1);
    let place = |i: usize| match rows.get(i / each) {
        Some(row) if each == 1 => format!("row {}", row + 1),
        Some(row) => format!("row {}, response {}", row + 1, i % each + 1),
        None => format!("call {}", i + 1),
    };
    let scored = pool.score(&calls, &place)?;
    let value = match reward.result {
        Elem::Bool => {
            let flags: Vec<bool> = scored.values.iter().map(|x| *x != 0.0).collect();
            Value::from_bool(axes.to_vec(), &flags, shapes)?
        }
        _ => Value::from_f64(axes.to_vec(), &scored.values, shapes)?,
    };
    Ok((value, scored.warning))
}

/// The elements of an argument as JSON, in storage order. A text that is given for a chat is a message: of
/// the user for a prompt, of the assistant otherwise.
fn cells(value: &Value, name: &str, elem: Elem) -> Result<Vec<Json>> {
    Ok(match &value.data {
        Data::Num(t) => to_f64s(t)?
            .into_iter()
            .map(|x| match elem {
                Elem::Int if x.fract() == 0.0 && x.abs() < 9e15 => json!(x as i64),
                // None and what JSON cannot hold.
                _ => json!(x),
            })
            .collect(),
        Data::Bool(t) => to_bools(t)?.into_iter().map(Json::Bool).collect(),
        Data::Text(v) if elem == Elem::Chat => {
            let role = match name {
                "prompt" | "prompts" | "question" => "user",
                _ => "assistant",
            };
            let message = |t: &Option<Arc<str>>| json!([{"role": role, "content": t.as_deref()}]);
            v.iter().map(message).collect()
        }
        Data::Text(v) => v.iter().map(|t| json!(t.as_deref())).collect(),
        Data::Chat(v) => v.iter().map(|c| json!(c.as_ref())).collect(),
        Data::TextList(v) => v
            .iter()
            .map(|l| l.iter().map(|t| Json::from(t.as_ref())).collect())
            .collect(),
    })
}
