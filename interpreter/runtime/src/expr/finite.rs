//! Where a value stopped being finite.

use rlhf_lang::graph::{AxisId, Graph};

use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, align, storage, to_f64s};

/// The first element that is NaN or infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// The element.
    pub number: f64,
    /// Where, counted from 1: `token 3 of response 17 of row 4`; empty for a value without axes.
    pub place: String,
}

/// Looks for an element that is not finite, in the order of rows.
pub fn first_non_finite(
    value: &Value,
    graph: &Graph,
    shapes: &Shapes,
) -> Result<Option<NonFinite>> {
    let Data::Num(tensor) = &value.data else {
        return Ok(None);
    };
    let numbers = to_f64s(tensor)?;
    let Some(flat) = numbers.iter().position(|x| !x.is_finite()) else {
        return Ok(None);
    };
    let mut parts = Vec::new();
    for (depth, axis) in value.axes.iter().enumerate() {
        let position = positions(*axis, &value.axes, shapes)?[flat] as usize + 1;
        parts.push(format!("{} {position}", noun(*axis, depth, graph, shapes)));
    }
    parts.reverse();
    Ok(Some(NonFinite {
        number: numbers[flat],
        place: parts.join(" of "),
    }))
}

/// R401 when an element of `value` is not finite. `what` is the subject: ``the loss of `train policy` ``.
pub fn require_finite(
    value: &Value,
    what: &str,
    iteration: usize,
    graph: &Graph,
    shapes: &Shapes,
) -> Result<()> {
    match first_non_finite(value, graph, shapes)? {
        None => Ok(()),
        Some(found) => {
            let became = if found.number.is_nan() {
                "NaN"
            } else {
                "infinite"
            };
            let place = match found.place.as_str() {
                "" => String::new(),
                place => format!(", {place}"),
            };
            Err(Fault::code(
                "R401",
                format!("{what} became {became} at iteration {iteration}{place}"),
            ))
        }
    }
}

/// For each element in storage order, its position along `axis`.
fn positions(axis: AxisId, axes: &[AxisId], shapes: &Shapes) -> Result<Vec<f64>> {
    let index_axes = match shapes.ragged(axis) {
        None => vec![axis],
        Some(ragged) => ragged.parents.iter().copied().chain([axis]).collect(),
    };
    let index = super::sequence::index(axis, &index_axes, shapes)?;
    let all = align(&index, axes, shapes)?;
    let numbers = all.numbers()?;
    debug_assert_eq!(
        numbers.len() as i64,
        storage(axes, shapes)?.iter().product::<i64>()
    );
    Ok(numbers)
}

fn noun(axis: AxisId, depth: usize, graph: &Graph, shapes: &Shapes) -> String {
    let group = |r: &rlhf_lang::graph::Rollout| r.group == Some(axis);
    if shapes.ragged(axis).is_some() {
        "token".to_string()
    } else if graph.rollouts.iter().any(group) {
        "response".to_string()
    } else if depth == 0 {
        "row".to_string()
    } else {
        format!("`{}`", graph.axis(axis).name)
    }
}
