//! D301 and D302: the columns of the rows against the columns of the program.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use rlhf_text::rows::{self, Rows};

/// The first problem of each column.
pub fn check(data: &Data, rows: &Rows) -> Vec<Diagnostic> {
    let columns = data.columns.iter();
    columns
        .filter_map(|column| {
            let mut rows = rows.rows.iter();
            rows.find_map(|row| rows::problem(data, column, row))
        })
        .collect()
}
