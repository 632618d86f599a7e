//! A data set in memory.

use std::sync::Arc;

use rlhf_lang::graph::AxisId;
use tch::{Kind, Tensor};

use crate::fault::{Fault, Result};
use crate::text::Message;
use crate::value::{Data, Value};

/// The cells of one column, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// NaN is none.
    Float(Vec<f64>),
    /// Whole numbers; NaN is none.
    Int(Vec<f64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Texts; `None` is none.
    Text(Vec<Option<Arc<str>>>),
    /// Conversations.
    Chat(Vec<Arc<[Message]>>),
    /// Lists of texts.
    TextList(Vec<Arc<[Arc<str>]>>),
}

/// All rows of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    rows: usize,
    columns: Vec<Column>,
}

impl Table {
    /// Every column has `rows` cells.
    pub(super) fn new(rows: usize, columns: Vec<Column>) -> Table {
        Table { rows, columns }
    }

    /// The number of rows; at least 1.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in the order of the declaration.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Some rows of a column, as a value over `axis`. Indices come from [`super::batch_rows`] or are
    /// below [`Table::rows`].
    pub fn value(&self, column: usize, axis: AxisId, rows: &[usize]) -> Result<Value> {
        let cells = self
            .columns
            .get(column)
            .ok_or_else(|| Fault::new(format!("the data set has no column {column}")))?;
        if let Some(row) = rows.iter().find(|r| **r >= self.rows) {
            return Err(Fault::new(format!(
                "row {row} of {} does not exist",
                self.rows
            )));
        }
        let data = match cells {
            Column::Float(v) | Column::Int(v) => Data::Num(Tensor::f_from_slice(&take(v, rows))?),
            Column::Bool(v) => {
                Data::Bool(Tensor::f_from_slice(&take(v, rows))?.f_to_kind(Kind::Bool)?)
            }
            Column::Text(v) => Data::Text(take(v, rows)),
            Column::Chat(v) => Data::Chat(take(v, rows)),
            Column::TextList(v) => Data::TextList(take(v, rows)),
        };
        Ok(Value {
            axes: vec![axis],
            data,
        })
    }
}

fn take<T: Clone>(cells: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|r| cells[*r].clone()).collect()
}
