//! Operations along a sequence axis: each row by itself, no padding in what they return.

use std::sync::Arc;

use rlhf_lang::graph::AxisId;
use tch::{Device, Kind, Tensor};

use crate::fault::{Fault, Result};
use crate::value::{Data, Ragged, Shapes, Value, align, arange, dims, ragged_of, storage, to_f64s};

/// One end of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// A value as `[lead…, tokens]` with the rows of `axis` along the last dimension. An axis that is not
/// ragged is one row.
struct Rows {
    /// The axes of such a tensor.
    axes: Vec<AxisId>,
    ragged: Arc<Ragged>,
    /// The axes of one number a row.
    row_axes: Vec<AxisId>,
}

impl Rows {
    /// `axes` are those of the tensors to come; they contain `axis`.
    fn new(axes: &[AxisId], axis: AxisId, shapes: &Shapes) -> Result<Rows> {
        if let Some(ragged) = shapes.ragged(axis) {
            let mut row_axes = dims(axes, shapes);
            row_axes.extend(&ragged.parents);
            return Ok(Rows {
                axes: axes.to_vec(),
                ragged: ragged.clone(),
                row_axes,
            });
        }
        if ragged_of(axes, shapes).is_some() {
            return Err(Fault::new(
                "a sequence operation along an axis that another is ragged beside",
            ));
        }
        let row_axes: Vec<AxisId> = axes.iter().filter(|a| **a != axis).copied().collect();
        let mut axes = row_axes.clone();
        axes.push(axis);
        let ragged = Arc::new(Ragged::new(vec![], vec![0, shapes.length(axis)?]));
        Ok(Rows {
            axes,
            ragged,
            row_axes,
        })
    }

    fn tensor(&self, x: &Value, shapes: &Shapes) -> Result<Tensor> {
        align(x, &self.axes, shapes)?.tensor()
    }

    /// Back from `[lead…, tokens]`.
    fn tokens(&self, t: &Tensor, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
        align(&Value::num(self.axes.clone(), t), axes, shapes)
    }

    /// Back from `[lead…, rows]`.
    fn per_row(&self, t: &Tensor, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
        let sizes = storage(&self.row_axes, shapes)?;
        align(
            &Value::num(self.row_axes.clone(), &t.f_reshape(&sizes)?),
            axes,
            shapes,
        )
    }
}

/// Keeps booleans booleans through an operation on numbers.
fn as_was(x: &Value, result: Value) -> Result<Value> {
    match &x.data {
        Data::Bool(_) => Ok(Value::bool(result.axes.clone(), &result.tensor()?)),
        _ => Ok(result),
    }
}

/// `y_t = x_{t-by}`, and `fill` where that lies outside the row.
pub(super) fn shift(
    x: &Value,
    fill: &Value,
    axis: AxisId,
    by: i64,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let rows = Rows::new(axes, axis, shapes)?;
    let mut from = Vec::with_capacity(rows.ragged.tokens());
    let mut inside = Vec::with_capacity(rows.ragged.tokens());
    for w in rows.ragged.offsets.windows(2) {
        let (lo, hi) = (w[0] as i64, w[1] as i64);
        for t in lo..hi {
            let source = t.saturating_sub(by);
            let there = (lo..hi).contains(&source);
            inside.push(there);
            from.push(if there { source } else { t });
        }
    }
    let (source, fill_at) = (rows.tensor(x, shapes)?, rows.tensor(fill, shapes)?);
    let moved = source.f_index_select(-1, &Tensor::f_from_slice(&from)?)?;
    let y = moved.f_where_self(&Tensor::f_from_slice(&inside)?, &fill_at)?;
    as_was(x, rows.tokens(&y, axes, shapes)?)
}

/// The first or last element of each row; 0 for an empty row.
pub(super) fn end(
    x: &Value,
    axis: AxisId,
    which: End,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let rows = Rows::new(&x.axes, axis, shapes)?;
    let tensor = rows.tensor(x, shapes)?;
    // One more element, 0, which the empty rows read.
    let tokens = rows.ragged.tokens();
    let at: Vec<i64> = rows
        .ragged
        .offsets
        .windows(2)
        .map(|w| match which {
            _ if w[0] == w[1] => tokens as i64,
            End::First => w[0] as i64,
            End::Last => w[1] as i64 - 1,
        })
        .collect();
    let y = with_zero(&tensor)?.f_index_select(-1, &Tensor::f_from_slice(&at)?)?;
    as_was(x, rows.per_row(&y, axes, shapes)?)
}

/// `x` on the last element of each row, 0 on the others.
pub(super) fn at_last(x: &Value, axis: AxisId, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let rows = Rows::new(axes, axis, shapes)?;
    let mut last = vec![false; rows.ragged.tokens()];
    for w in rows.ragged.offsets.windows(2) {
        if w[1] > w[0] {
            last[w[1] - 1] = true;
        }
    }
    let spread = rows.tensor(x, shapes)?;
    let y = spread.f_where_self(&Tensor::f_from_slice(&last)?, &Tensor::from(0.0))?;
    rows.tokens(&y, axes, shapes)
}

/// The length of each row.
pub(super) fn len(axis: AxisId, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let value = match shapes.ragged(axis) {
        None => Value::scalar(shapes.length(axis)? as f64),
        Some(ragged) => {
            let lengths: Vec<f64> = ragged.lengths().iter().map(|n| *n as f64).collect();
            Value::from_f64(ragged.parents.clone(), &lengths, shapes)?
        }
    };
    align(&value, axes, shapes)
}

/// The position in the row, from 0.
pub(super) fn index(axis: AxisId, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let value = match shapes.ragged(axis) {
        None => Value::num(vec![axis], &arange(shapes.length(axis)?)?),
        Some(ragged) => {
            let positions: Vec<f64> = ragged
                .lengths()
                .iter()
                .flat_map(|n| (0..*n).map(|t| t as f64))
                .collect();
            let mut own = ragged.parents.clone();
            own.push(axis);
            Value::from_f64(own, &positions, shapes)?
        }
    };
    align(&value, axes, shapes)
}

/// `y_t = x_t + decay_t · y_next`, where the sum runs from `from` and `y` beyond that end is 0.
pub(super) fn running_sum(
    x: &Value,
    decay: &Value,
    axis: AxisId,
    from: End,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let rows = Rows::new(axes, axis, shapes)?;
    let (x, decay) = (rows.tensor(x, shapes)?, rows.tensor(decay, shapes)?);
    let y = match x.requires_grad() || decay.requires_grad() {
        true => recorded(&x, &decay, &rows.ragged, from)?,
        false => plain(&x, &decay, &rows.ragged, from)?,
    };
    rows.tokens(&y, axes, shapes)
}

/// Without a gradient: one loop over the numbers.
fn plain(x: &Tensor, decay: &Tensor, ragged: &Ragged, from: End) -> Result<Tensor> {
    let (mut y, d) = (to_f64s(x)?, to_f64s(decay)?);
    let tokens = ragged.tokens();
    for start in (0..y.len()).step_by(tokens.max(1)) {
        for w in ragged.offsets.windows(2) {
            let mut carry = 0.0;
            let mut step = |t: usize| {
                y[t] += d[t] * carry;
                carry = y[t];
            };
            let row = start + w[0]..start + w[1];
            match from {
                End::Last => row.rev().for_each(&mut step),
                End::First => row.for_each(&mut step),
            }
        }
    }
    Ok(Tensor::f_from_slice(&y)?.f_reshape(x.size())?)
}

/// With a gradient: one libtorch step a position, over all rows at once.
fn recorded(x: &Tensor, decay: &Tensor, ragged: &Ragged, from: End) -> Result<Tensor> {
    let lengths = ragged.lengths();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if longest == 0 {
        return Ok(x.shallow_clone());
    }
    // `[longest, rows]` of token positions, each row counted from the end where the sum starts, and
    // for each token its place in that table.
    let (count, beyond) = (ragged.rows(), ragged.tokens() as i64);
    let mut table = vec![beyond; longest * count];
    let mut place = vec![0i64; ragged.tokens()];
    for (row, w) in ragged.offsets.windows(2).enumerate() {
        for i in 0..lengths[row] {
            let token = match from {
                End::Last => w[1] - 1 - i,
                End::First => w[0] + i,
            };
            table[i * count + row] = token as i64;
            place[token] = (i * count + row) as i64;
        }
    }
    let table = Tensor::f_from_slice(&table)?;
    let steps = |t: &Tensor| -> Result<Vec<Tensor>> {
        let mut sizes = t.size();
        sizes.pop();
        sizes.extend([longest as i64, count as i64]);
        let laid = with_zero(t)?
            .f_index_select(-1, &table)?
            .f_reshape(&sizes)?;
        Ok(laid.f_unbind(-2)?)
    };
    let mut sums: Vec<Tensor> = Vec::with_capacity(longest);
    for (x, d) in steps(x)?.iter().zip(steps(decay)?) {
        let y = match sums.last() {
            None => x.shallow_clone(),
            Some(before) => x.f_add(&d.f_mul(before)?)?,
        };
        sums.push(y);
    }
    let mut flat = x.size();
    flat.pop();
    flat.push((longest * count) as i64);
    let all = Tensor::f_stack(&sums, -2)?.f_reshape(&flat)?;
    Ok(all.f_index_select(-1, &Tensor::f_from_slice(&place)?)?)
}

/// `[lead…, tokens]` with one more 0 at the end.
fn with_zero(t: &Tensor) -> Result<Tensor> {
    let mut sizes = t.size();
    if let Some(last) = sizes.last_mut() {
        *last = 1;
    }
    let zero = Tensor::f_zeros(&sizes, (Kind::Double, Device::Cpu))?;
    Ok(Tensor::f_cat(&[t, &zero], -1)?)
}
