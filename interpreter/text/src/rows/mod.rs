//! Rows of data files: one reading for `rlhf check`, which looks at the first rows, and for the ranks,
//! which take all of them.
//!
//! | source | in the file |
//! |---|---|
//! | `jsonl` | one object a line; blank lines are skipped |
//! | `json` | a list of objects |
//! | `csv` | a line of column names, then one row a line; numbers and lists are read as declared |
//! | `parquet` | its declared columns |
//! | `hf` | the files of one split in a directory as the Hugging Face hub lays it out |
//!
//! A byte-order mark is skipped, and a file that gzip compressed is unpacked. `null`, and a number that is
//! left out of a csv file, is none.

mod cell;
mod csv;
mod input;
mod json;
mod jsonl;
pub mod layout;
mod parquet;
mod parts;
mod table;
mod unreadable;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use serde_json::{Map, Value as Json};

use crate::Result;
use table::Opening;

pub use cell::problem;
pub use parquet::DECODER;
pub use parts::{Part, parts};
pub use table::{Column, Table};
pub use unreadable::{Excerpt, Unreadable};

/// How many rows are the head.
pub const HEAD: usize = 256;

/// No row is longer, in bytes, and no head.
const LONGEST: u64 = 64 << 20;

/// The formats of files; the source `hf` is a directory of them.
pub const FORMATS: [&str; 4] = ["jsonl", "json", "csv", "parquet"];

/// How much of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The first [`HEAD`] rows.
    Head,
    /// Every row.
    All,
}

impl Extent {
    fn rows(self) -> usize {
        match self {
            Extent::Head => HEAD,
            Extent::All => usize::MAX,
        }
    }

    /// How much of a file is taken where rows are not told apart by lines.
    fn bytes(self) -> u64 {
        match self {
            Extent::Head => LONGEST,
            Extent::All => u64::MAX,
        }
    }
}

/// One row of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The row, from 1; blank lines do not count.
    pub number: usize,
    /// The line it starts on, from 1, where the format has one row a line.
    pub line: Option<usize>,
    /// The file, where a data set has several.
    pub file: Option<Arc<str>>,
    /// Its cells by the names of the file.
    pub object: Map<String, Json>,
}

impl Row {
    /// The row, and its line where that is another number: `row 2 (line 3)`.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) if line != self.number => format!("row {} (line {line})", self.number),
            _ => format!("row {}", self.number),
        }
    }

    /// The file it is in, given that of the data set.
    pub fn file<'a>(&'a self, data: &'a str) -> &'a str {
        self.file.as_deref().unwrap_or(data)
    }
}

/// The first rows of a file, or all.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// In the order of the file.
    pub rows: Vec<Row>,
    /// The file has no others.
    pub complete: bool,
}

/// What becomes of rows while a file is read.
trait Sink {
    /// No further row is wanted.
    fn full(&self) -> bool;
    /// Takes a row; where it is a line of the file as it is on the disk, with the byte it begins at.
    fn take(&mut self, row: Row, line: Option<(u64, &str)>);
}

/// Reads rows of one file as they are, without looking at the types of their cells.
///
/// D300 for the first place that cannot be read.
pub fn read(
    data: &Data,
    path: &Path,
    extent: Extent,
) -> std::result::Result<Rows, Box<Unreadable>> {
    let mut head = Kept {
        rows: vec![],
        limit: extent.rows(),
        file: None,
    };
    let complete = give(data, path, extent, &mut head)?;
    Ok(Rows {
        rows: head.rows,
        complete,
    })
}

/// Reads rows of all files of a data set, one after the other, as [`read`] does. A row of several files
/// says which one it is of, and an error which file it is about.
pub fn read_parts(
    parts: &[Part],
    extent: Extent,
) -> std::result::Result<Rows, Box<(Data, Unreadable)>> {
    let mut kept = Kept {
        rows: vec![],
        limit: extent.rows(),
        file: None,
    };
    let mut complete = true;
    for part in parts {
        kept.file = (parts.len() > 1).then(|| part.data.path.as_str().into());
        let read = give(&part.data, &part.path, extent, &mut kept);
        complete &= read.map_err(|u| Box::new((part.data.clone(), *u)))?;
        if !complete {
            break;
        }
    }
    Ok(Rows {
        rows: kept.rows,
        complete,
    })
}

/// Gives the rows of a file to a sink until it is full; true where there are no others.
fn give(
    data: &Data,
    path: &Path,
    extent: Extent,
    sink: &mut (dyn Sink + Send),
) -> std::result::Result<bool, Box<Unreadable>> {
    match data.format.as_str() {
        "jsonl" => jsonl::read(data, path, sink),
        "json" => json::read(data, path, extent, sink),
        "csv" => csv::read(data, path, extent, sink),
        "parquet" => parquet::read(data, path, sink),
        other => Err(Unreadable::new(
            data,
            format!("no data source `{other}` is read"),
            format!("one of: {}, hf", FORMATS.join(", ")),
        )),
    }
}

/// Rows in memory.
struct Kept {
    rows: Vec<Row>,
    limit: usize,
    file: Option<Arc<str>>,
}

impl Sink for Kept {
    fn full(&self) -> bool {
        self.rows.len() == self.limit
    }

    fn take(&mut self, mut row: Row, _: Option<(u64, &str)>) {
        row.file = self.file.clone();
        self.rows.push(row);
    }
}

/// Every row of a data set, its declared columns with their types. The rows stay on the disk; those of
/// other formats than jsonl are written to a scratch file in `scratch`.
///
/// D300 for a file that cannot be read, D301 for a column that is not there, D302 for a cell of
/// another type, D314 for files without rows.
pub fn load(data: &Data, folder: &Path, scratch: &Path) -> Result<Table> {
    let mut opened = vec![];
    for part in parts(data, folder)? {
        let fail = |e: std::io::Error| jsonl::not_opened(&part.data, &e).told();
        let file = File::open(&part.path).map_err(fail)?;
        let mut rows = Opening::new(&part.data, file, scratch);
        give(&part.data, &part.path, Extent::All, &mut rows).map_err(|u| u.told())?;
        opened.push(rows.finish()?);
    }
    let table = Table::new(data, opened);
    match table.rows() {
        0 => Err(Box::new(no_rows(data))),
        _ => Ok(table),
    }
}

/// D314: a file without rows.
pub fn no_rows(data: &Data) -> Diagnostic {
    let message = format!("`{}` has no rows", data.path);
    let help = match data.format.as_str() {
        "csv" => "write the column names on the first line and one row a line after it",
        "json" => "write a list of objects that have the declared columns",
        "parquet" | "hf" => "a data set has at least one row",
        _ => "write one JSON object a line, with the declared columns",
    };
    Diagnostic::error("D314", data.path_span, message).help(help)
}

/// `1 row`, `2 rows`
pub fn count(rows: usize) -> String {
    match rows {
        1 => "1 row".into(),
        n => format!("{n} rows"),
    }
}

/// What a JSON value is, in words.
fn describe(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(n) if n.is_f64() => "a number with a fraction",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
