//! Values over named axes: what flows between the calls of a program.
//!
//! Numbers are f64 throughout: a few bytes a token, and exact enough that a loss does not depend on
//! the order in which its parts were summed. `none` is NaN.

mod layout;
mod select;
mod shapes;

use std::sync::Arc;

use rlhf_lang::graph::AxisId;
use rlhf_text::Message;
use tch::{Kind, Tensor};

use crate::fault::{Fault, Result};

pub use layout::{align, numel, storage};
pub(crate) use layout::{align_tensor, dims, ragged_of};
pub use select::restrict;
pub(crate) use select::tokens_of_rows;
pub(crate) use shapes::arange;
pub use shapes::{Part, Ragged, Shapes};

/// Elements over named axes.
///
/// Without a ragged axis, storage has one dimension per axis in the order of `axes`. With one (always
/// the last), storage is flat: the axes it is not ragged over keep their dimensions, in order, and one
/// last dimension holds every token of every row. [`storage`] gives the sizes.
#[derive(Debug)]
pub struct Value {
    /// The axes, outermost first.
    pub axes: Vec<AxisId>,
    /// The elements.
    pub data: Data,
}

/// The elements of a [`Value`]; vectors are in storage order.
#[derive(Debug)]
pub enum Data {
    /// f64; NaN is none.
    Num(Tensor),
    /// Booleans.
    Bool(Tensor),
    /// Texts; `None` is none.
    Text(Vec<Option<Arc<str>>>),
    /// Conversations.
    Chat(Vec<Arc<[Message]>>),
    /// Lists of texts.
    TextList(Vec<Arc<[Arc<str>]>>),
}

impl Clone for Data {
    /// Tensors share their storage and their place in the gradient's history.
    fn clone(&self) -> Self {
        match self {
            Data::Num(t) => Data::Num(t.shallow_clone()),
            Data::Bool(t) => Data::Bool(t.shallow_clone()),
            Data::Text(v) => Data::Text(v.clone()),
            Data::Chat(v) => Data::Chat(v.clone()),
            Data::TextList(v) => Data::TextList(v.clone()),
        }
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Value {
            axes: self.axes.clone(),
            data: self.data.clone(),
        }
    }
}

impl Value {
    /// A number without axes.
    pub fn scalar(x: f64) -> Value {
        Value {
            axes: vec![],
            data: Data::Num(Tensor::from(x)),
        }
    }

    /// Numbers from a tensor of any float kind, in storage form. Gradient tracking is kept.
    pub fn num(axes: Vec<AxisId>, tensor: &Tensor) -> Value {
        Value {
            axes,
            data: Data::Num(tensor.to_kind(Kind::Double)),
        }
    }

    /// Booleans from a tensor in storage form.
    pub fn bool(axes: Vec<AxisId>, tensor: &Tensor) -> Value {
        Value {
            axes,
            data: Data::Bool(tensor.to_kind(Kind::Bool)),
        }
    }

    /// Numbers in storage order.
    pub fn from_f64(axes: Vec<AxisId>, numbers: &[f64], shapes: &Shapes) -> Result<Value> {
        let sizes = storage(&axes, shapes)?;
        let tensor = Tensor::f_from_slice(numbers)?.f_reshape(&sizes)?;
        Ok(Value {
            axes,
            data: Data::Num(tensor),
        })
    }

    /// Booleans in storage order.
    pub fn from_bool(axes: Vec<AxisId>, flags: &[bool], shapes: &Shapes) -> Result<Value> {
        let sizes = storage(&axes, shapes)?;
        let tensor = Tensor::f_from_slice(flags)?.f_reshape(&sizes)?;
        Ok(Value {
            axes,
            data: Data::Bool(tensor),
        })
    }

    /// Texts in storage order.
    pub fn from_text(axes: Vec<AxisId>, texts: Vec<Option<Arc<str>>>) -> Value {
        Value {
            axes,
            data: Data::Text(texts),
        }
    }

    /// The tensor of a number or a boolean, booleans as 0 and 1.
    pub fn tensor(&self) -> Result<Tensor> {
        match &self.data {
            Data::Num(t) => Ok(t.shallow_clone()),
            Data::Bool(t) => Ok(t.f_to_kind(Kind::Double)?),
            other => Err(Fault::new(format!(
                "expected numbers, found {}",
                other.kind()
            ))),
        }
    }

    /// The tensor of a boolean.
    pub fn flags(&self) -> Result<&Tensor> {
        match &self.data {
            Data::Bool(t) => Ok(t),
            other => Err(Fault::new(format!(
                "expected booleans, found {}",
                other.kind()
            ))),
        }
    }

    /// The texts.
    pub fn texts(&self) -> Result<&[Option<Arc<str>>]> {
        match &self.data {
            Data::Text(texts) => Ok(texts),
            other => Err(Fault::new(format!("expected text, found {}", other.kind()))),
        }
    }

    /// The conversations.
    pub fn chats(&self) -> Result<&[Arc<[Message]>]> {
        match &self.data {
            Data::Chat(chats) => Ok(chats),
            other => Err(Fault::new(format!("expected chat, found {}", other.kind()))),
        }
    }

    /// Numbers or booleans in storage order, booleans as 0 and 1.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        to_f64s(&self.tensor()?)
    }

    /// The number of a value without axes; a boolean as 0 or 1.
    pub fn as_f64(&self) -> Result<f64> {
        match self.numbers()?.as_slice() {
            [x] if self.axes.is_empty() => Ok(*x),
            _ => Err(Fault::new("expected one number, found a value with axes")),
        }
    }
}

impl Data {
    /// What the elements are called in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Data::Num(_) => "numbers",
            Data::Bool(_) => "booleans",
            Data::Text(_) => "text",
            Data::Chat(_) => "chat",
            Data::TextList(_) => "lists of text",
        }
    }

    /// The elements at `index`, which holds positions in storage order; tensors take its shape.
    pub(crate) fn take(&self, index: &Tensor) -> Result<Data> {
        Ok(match self {
            Data::Num(t) => Data::Num(take_tensor(t, index)?),
            Data::Bool(t) => Data::Bool(take_tensor(t, index)?),
            Data::Text(v) => Data::Text(take_vec(v, index)?),
            Data::Chat(v) => Data::Chat(take_vec(v, index)?),
            Data::TextList(v) => Data::TextList(take_vec(v, index)?),
        })
    }
}

fn take_tensor(t: &Tensor, index: &Tensor) -> Result<Tensor> {
    let flat = t
        .f_reshape([-1i64].as_slice())?
        .f_index_select(0, &index.f_reshape([-1i64].as_slice())?)?;
    Ok(flat.f_reshape(index.size())?)
}

fn take_vec<T: Clone>(v: &[T], index: &Tensor) -> Result<Vec<T>> {
    Ok(to_i64s(index)?
        .into_iter()
        .map(|i| v[i as usize].clone())
        .collect())
}

pub(crate) fn to_f64s(t: &Tensor) -> Result<Vec<f64>> {
    let flat = t
        .f_detach()?
        .f_to_kind(Kind::Double)?
        .f_contiguous()?
        .f_reshape([-1i64].as_slice())?;
    let mut out = vec![0.0; flat.numel()];
    flat.f_copy_data(&mut out, flat.numel())?;
    Ok(out)
}

pub(crate) fn to_i64s(t: &Tensor) -> Result<Vec<i64>> {
    let flat = t.f_contiguous()?.f_reshape([-1i64].as_slice())?;
    let mut out = vec![0i64; flat.numel()];
    flat.f_copy_data(&mut out, flat.numel())?;
    Ok(out)
}

pub(crate) fn to_bools(t: &Tensor) -> Result<Vec<bool>> {
    Ok(to_i64s(&t.f_to_kind(Kind::Int64)?)?
        .into_iter()
        .map(|x| x != 0)
        .collect())
}
