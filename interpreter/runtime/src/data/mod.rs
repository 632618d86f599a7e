//! Which rows an iteration reads, and their cells as values.

mod order;

use rlhf_lang::graph::AxisId;
use rlhf_text::rows::{Column, Table};
use tch::{Kind, Tensor};

use crate::fault::{Fault, Result};
use crate::value::{Data, Value};

pub use order::{Order, batch_rows, batches, permutation};

/// Some rows of a column, as a value over `axis`. Indices come from [`batch_rows`] or are below
/// [`Table::rows`].
pub fn value(table: &Table, column: usize, axis: AxisId, rows: &[usize]) -> Result<Value> {
    let cells = table
        .columns()
        .get(column)
        .ok_or_else(|| Fault::new(format!("the data set has no column {column}")))?;
    if let Some(row) = rows.iter().find(|r| **r >= table.rows()) {
        return Err(Fault::new(format!(
            "row {row} of {} does not exist",
            table.rows()
        )));
    }
    let data = match cells {
        Column::Float(v) | Column::Int(v) => Data::Num(Tensor::f_from_slice(&take(v, rows))?),
        Column::Bool(v) => Data::Bool(Tensor::f_from_slice(&take(v, rows))?.f_to_kind(Kind::Bool)?),
        Column::Text(v) => Data::Text(take(v, rows)),
        Column::Chat(v) => Data::Chat(take(v, rows)),
        Column::TextList(v) => Data::TextList(take(v, rows)),
    };
    Ok(Value {
        axes: vec![axis],
        data,
    })
}

fn take<T: Clone>(cells: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|r| cells[*r].clone()).collect()
}
