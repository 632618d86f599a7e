//! Which rows an iteration reads, and their cells as values.

mod order;

use rlhf_lang::graph::AxisId;
use rlhf_text::rows::{Column, Table};
use tch::{Kind, Tensor};

use crate::fault::{Fault, Result};
use crate::value::{Data, Value};

pub use order::{Order, batch_rows, batches, permutation};

/// Some rows of some columns, as values over `axis`. Indices come from [`batch_rows`] or are below
/// [`Table::rows`].
pub fn values(
    table: &Table,
    columns: &[usize],
    axis: AxisId,
    rows: &[usize],
) -> Result<Vec<Value>> {
    if let Some(column) = columns.iter().find(|c| **c >= table.width()) {
        return Err(Fault::new(format!("the data set has no column {column}")));
    }
    let cells = table.take(columns, rows)?;
    let value = |cells: Column| {
        let data = match cells {
            Column::Float(v) | Column::Int(v) => Data::Num(Tensor::f_from_slice(&v)?),
            Column::Bool(v) => Data::Bool(Tensor::f_from_slice(&v)?.f_to_kind(Kind::Bool)?),
            Column::Text(v) => Data::Text(v),
            Column::Chat(v) => Data::Chat(v),
            Column::TextList(v) => Data::TextList(v),
        };
        Ok(Value {
            axes: vec![axis],
            data,
        })
    };
    cells.into_iter().map(value).collect()
}
