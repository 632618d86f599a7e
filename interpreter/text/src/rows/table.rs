//! A data set in memory.

use std::sync::Arc;

use crate::Message;

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
}
