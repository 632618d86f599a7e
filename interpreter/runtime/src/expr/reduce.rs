//! Reductions over any set of axes, ragged ones by segments.
//!
//! Over no elements every reduction is 0 (`any` false, `all` true), so that a response without tokens
//! adds nothing to a loss and never makes it NaN. `std` and `var` of one element are none unless biased.

use rlhf_lang::graph::{AxisId, Reduce};
use tch::{Device, Kind, Tensor};

use crate::fault::{Fault, Result};
use crate::value::{
    Data, Shapes, Value, align, arange, dims, ragged_of, storage, to_f64s, to_i64s,
};

/// `value` without `removed`, over `axes`.
pub(super) fn reduce(
    value: &Value,
    op: Reduce,
    removed: &[AxisId],
    biased: bool,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    if let Some(lost) = removed.iter().find(|a| !value.axes.contains(a)) {
        return Err(Fault::new(format!(
            "axis {} is not there to remove",
            lost.0
        )));
    }
    let x = match op {
        Reduce::Count => present(value)?,
        Reduce::Any | Reduce::All => value.flags()?.f_to_kind(Kind::Double)?,
        _ => value.tensor()?,
    };
    let fold = Fold::new(&x, &value.axes, removed, shapes)?;
    let x = &fold.x;
    let data = match op {
        Reduce::Sum | Reduce::Count => Data::Num(fold.sum(x)?),
        Reduce::Mean => Data::Num(fold.mean()?),
        Reduce::Var => Data::Num(fold.var(biased)?),
        Reduce::Std => Data::Num(sqrt_with_flat_zero(&fold.var(biased)?)?),
        Reduce::Max => Data::Num(fold.max(x)?),
        Reduce::Min => Data::Num(fold.max(&x.f_neg()?)?.f_neg()?),
        Reduce::Any => Data::Bool(fold.sum(x)?.f_gt(0.0)?),
        Reduce::All => {
            let met = fold.sum(x)?.f_eq_tensor(&fold.counts)?;
            Data::Bool(met)
        }
        Reduce::Argmax => Data::Num(fold.argmax()?),
    };
    let sizes = storage(&fold.kept, shapes)?;
    let reshape = |t: Tensor| t.f_reshape(&sizes);
    let result = Value {
        axes: fold.kept,
        data: match data {
            Data::Bool(t) => Data::Bool(reshape(t)?),
            Data::Num(t) => Data::Num(reshape(t)?),
            other => other,
        },
    };
    align(&result, axes, shapes)
}

/// 1 where a boolean is true, where a number or a text is not none, and for everything else.
fn present(value: &Value) -> Result<Tensor> {
    let from = |flags: Vec<f64>| -> Result<Tensor> { Ok(Tensor::f_from_slice(&flags)?) };
    match &value.data {
        Data::Bool(t) => Ok(t.f_to_kind(Kind::Double)?),
        Data::Num(t) => Ok(t.f_isnan()?.f_logical_not()?.f_to_kind(Kind::Double)?),
        Data::Text(v) => from(v.iter().map(|t| f64::from(t.is_some())).collect()),
        Data::Chat(v) => from(vec![1.0; v.len()]),
        Data::TextList(v) => from(vec![1.0; v.len()]),
    }
}

/// The root, with a derivative of 0 at 0 where the true one is infinite.
fn sqrt_with_flat_zero(x: &Tensor) -> Result<Tensor> {
    let zero = x.f_eq(0.0)?;
    Ok(x.f_masked_fill(&zero, 1.0)?
        .f_sqrt()?
        .f_masked_fill(&zero, 0.0)?)
}

/// The elements as `[kept…, elements]` and how the last dimension is put together.
struct Fold {
    x: Tensor,
    /// For several results along the last dimension: which one each element belongs to.
    segments: Option<Tensor>,
    /// How many elements make each result: f64 `[results]`, or without dimensions.
    counts: Tensor,
    /// The axes that stay, in the order of the result's dimensions.
    kept: Vec<AxisId>,
}

impl Fold {
    fn new(x: &Tensor, axes: &[AxisId], removed: &[AxisId], shapes: &Shapes) -> Result<Fold> {
        let own = dims(axes, shapes);
        let sizes = storage(axes, shapes)?;
        // Counting gives flat tensors.
        let x = x.f_reshape(&sizes)?;
        let (gone, kept): (Vec<usize>, Vec<usize>) =
            (0..own.len()).partition(|i| removed.contains(&own[*i]));
        let product = |dims: &[usize]| dims.iter().map(|d| sizes[*d]).product::<i64>();
        let mut kept_axes: Vec<AxisId> = kept.iter().map(|i| own[*i]).collect();
        let mut lead: Vec<i64> = kept.iter().map(|i| sizes[*i]).collect();
        let mut order: Vec<i64> = kept.iter().map(|i| *i as i64).collect();
        let gone_dims = gone.iter().map(|i| *i as i64);
        let whole = |x: Tensor, lead: Vec<i64>, n: i64, kept: Vec<AxisId>| -> Result<Fold> {
            Ok(Fold {
                x: reshape_last(&x, lead, n)?,
                segments: None,
                counts: Tensor::from(n as f64),
                kept,
            })
        };
        let Some((token_axis, ragged)) = ragged_of(axes, shapes) else {
            order.extend(gone_dims);
            return whole(x.f_permute(&order)?, lead, product(&gone), kept_axes);
        };
        let tokens = ragged.tokens() as i64;
        if !removed.contains(&token_axis) {
            if removed.iter().any(|a| ragged.parents.contains(a)) {
                return Err(Fault::new(
                    "an axis cannot be reduced while another is ragged over it",
                ));
            }
            order.push(own.len() as i64);
            order.extend(gone_dims);
            lead.push(tokens);
            let kept = axes
                .iter()
                .filter(|a| !removed.contains(a))
                .copied()
                .collect();
            return whole(x.f_permute(&order)?, lead, product(&gone), kept);
        }
        order.extend(gone_dims);
        order.push(own.len() as i64);
        let copies = product(&gone);
        let x = x.f_permute(&order)?;
        let parents: Vec<AxisId> = ragged
            .parents
            .iter()
            .filter(|a| !removed.contains(a))
            .copied()
            .collect();
        if parents.is_empty() {
            return whole(x, lead, copies * tokens, kept_axes);
        }
        // Which result each row, then each token, belongs to.
        let results = storage(&parents, shapes)?;
        let count: i64 = results.iter().product();
        let ids = Value::num(
            parents.clone(),
            &arange(count as usize)?.f_reshape(&results)?,
        );
        let of_row = align(&ids, &ragged.parents, shapes)?
            .tensor()?
            .f_to_kind(Kind::Int64)?
            .f_reshape([-1i64].as_slice())?;
        let segments = of_row
            .f_index_select(0, &ragged.row_of()?)?
            .f_repeat([copies].as_slice())?;
        let ones = Tensor::f_ones([copies * tokens].as_slice(), (Kind::Double, Device::Cpu))?;
        let counts = Tensor::f_zeros([count].as_slice(), (Kind::Double, Device::Cpu))?
            .f_index_add(0, &segments, &ones)?;
        kept_axes.extend(&parents);
        Ok(Fold {
            x: reshape_last(&x, lead, copies * tokens)?,
            segments: Some(segments),
            counts,
            kept: kept_axes,
        })
    }

    /// `[kept…, results]` filled with a number.
    fn results(&self, x: &Tensor, fill: f64) -> Result<Tensor> {
        let mut sizes = x.size();
        if let Some(last) = sizes.last_mut() {
            *last = self.counts.numel() as i64;
        }
        Ok(Tensor::f_full(&sizes, fill, (Kind::Double, Device::Cpu))?)
    }

    fn sum(&self, x: &Tensor) -> Result<Tensor> {
        Ok(match &self.segments {
            None => x.f_sum_dim_intlist([-1i64].as_slice(), false, Kind::Double)?,
            Some(ids) => self.results(x, 0.0)?.f_index_add(-1, ids, x)?,
        })
    }

    /// A result at each of its elements.
    fn spread(&self, y: &Tensor) -> Result<Tensor> {
        Ok(match &self.segments {
            None => y.f_unsqueeze(-1)?,
            Some(ids) => y.f_index_select(-1, ids)?,
        })
    }

    fn mean(&self) -> Result<Tensor> {
        Ok(self.sum(&self.x)?.f_div(&self.counts.f_clamp_min(1.0)?)?)
    }

    fn var(&self, biased: bool) -> Result<Tensor> {
        let centred = self.x.f_sub(&self.spread(&self.mean()?)?)?;
        let squares = self.sum(&centred.f_square()?)?;
        let free = match biased {
            true => self.counts.shallow_clone(),
            false => self.counts.f_sub_scalar(1.0)?,
        };
        // No elements: 0 / 1. One element without bias: 0 / 0, which is none.
        let none = self.counts.f_eq(0.0)?;
        Ok(squares.f_div(&free.f_masked_fill(&none, 1.0)?)?)
    }

    /// Equal largest elements share the gradient.
    fn max(&self, x: &Tensor) -> Result<Tensor> {
        let Some(ids) = &self.segments else {
            let empty = x.size().last() == Some(&0);
            return match empty {
                true => self.sum(x),
                false => Ok(x.f_amax([-1i64].as_slice(), false)?),
            };
        };
        let best = self.largest(x, ids)?;
        let at = x
            .f_eq_tensor(&self.spread(&best)?)?
            .f_logical_and(&x.f_isfinite()?)?;
        let ties = self.sum(&at.f_to_kind(Kind::Double)?)?.f_clamp_min(1.0)?;
        let zero = Tensor::from(0.0);
        let shared = self.sum(&x.f_where_self(&at, &zero)?)?.f_div(&ties)?;
        // The value is `best` to the last bit; the difference is 0 and carries the gradient.
        Ok(best.f_add(&shared.f_sub(&shared.f_detach()?)?)?)
    }

    /// The largest of each segment without a gradient; NaN where one is NaN, 0 where there is none.
    fn largest(&self, x: &Tensor, ids: &Tensor) -> Result<Tensor> {
        let (numbers, ids) = (to_f64s(x)?, to_i64s(ids)?);
        let result = self.results(x, 0.0)?;
        let mut best: Vec<Option<f64>> = vec![None; result.numel()];
        let count = self.counts.numel();
        for (lead, row) in numbers.chunks(ids.len().max(1)).enumerate() {
            for (x, id) in row.iter().zip(&ids) {
                let slot = &mut best[lead * count + *id as usize];
                *slot = Some(match *slot {
                    Some(b) if b.is_nan() || b >= *x => b,
                    _ => *x,
                });
            }
        }
        let best: Vec<f64> = best.into_iter().map(|b| b.unwrap_or(0.0)).collect();
        Ok(Tensor::f_from_slice(&best)?.f_reshape(result.size())?)
    }

    /// None is never the largest; with nothing but none the index is 0.
    fn argmax(&self) -> Result<Tensor> {
        if self.segments.is_some() {
            return Err(Fault::new("`argmax` takes one axis that is not ragged"));
        }
        let x = self.x.f_detach()?;
        let n = x.size().last().copied().unwrap_or(0);
        if n == 0 {
            return Err(Fault::new("`argmax` over no elements"));
        }
        let x = x.f_masked_fill(&x.f_isnan()?, f64::NEG_INFINITY)?;
        let largest = x.f_eq_tensor(&x.f_amax([-1i64].as_slice(), true)?)?;
        let positions = arange(n as usize)?.f_to_kind(Kind::Double)?;
        let beyond = Tensor::from(n as f64);
        Ok(positions
            .f_where_self(&largest, &beyond)?
            .f_amin([-1i64].as_slice(), false)?)
    }
}

fn reshape_last(x: &Tensor, mut lead: Vec<i64>, n: i64) -> Result<Tensor> {
    lead.push(n);
    Ok(x.f_reshape(&lead)?)
}
