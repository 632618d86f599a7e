//! Rows of data files: one reading for `rlhf check`, which looks at the first rows, and for the ranks,
//! which take all of them.
//!
//! | source | in the file |
//! |---|---|
//! | `jsonl` | one object a line; blank lines are skipped |
//! | `json` | a list of objects |
//! | `csv` | a line of column names, then one row a line; numbers and lists are read as declared |
//!
//! A byte-order mark is skipped. `null`, and a number that is left out of a csv file, is none.

mod cell;
mod csv;
mod json;
mod jsonl;
mod table;
mod unreadable;

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use serde_json::{Map, Value as Json};

use crate::{Result, files};

pub use cell::problem;
pub use table::{Column, Table};
pub use unreadable::{Excerpt, Unreadable};

/// How many rows are the head.
pub const HEAD: usize = 256;

/// No row is longer, in bytes, and no head.
const LONGEST: u64 = 64 << 20;

/// The sources that are read.
pub const FORMATS: [&str; 3] = ["jsonl", "json", "csv"];

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
}

/// The first rows of a file, or all.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// In the order of the file.
    pub rows: Vec<Row>,
    /// The file has no others.
    pub complete: bool,
}

/// The file of a data set, looked for in the program's folder and in the working directory.
///
/// D300 when there is none, or when it is a folder or a device.
pub fn locate(data: &Data, folder: &Path) -> Result<PathBuf> {
    let fail = |message: String, help: String| {
        Box::new(Diagnostic::error("D300", data.path_span, message).help(help))
    };
    let Some(path) = files::find(folder, &data.path) else {
        let message = format!("there is no file `{}`", data.path);
        return Err(fail(message, files::elsewhere(folder, &data.path)));
    };
    if path.is_dir() {
        let message = format!("`{}` is a folder, not a file", data.path);
        let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let mut names: Vec<String> = inside
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|name| FORMATS.iter().any(|f| name.ends_with(&format!(".{f}"))))
            .collect();
        names.sort();
        let help = match names.first() {
            Some(name) => {
                let file = Path::new(&data.path).join(name);
                format!("a data set is one file, such as `{}`", file.display())
            }
            None => "a data set is one file".into(),
        };
        return Err(fail(message, help));
    }
    // A pipe or a device may never come to its end.
    if !path.is_file() {
        let message = format!("`{}` is not a regular file", data.path);
        let help = "a data set is a file on a disk, not a pipe or a device";
        return Err(fail(message, help.into()));
    }
    Ok(path)
}

/// Reads rows as they are, without looking at the types of their cells.
///
/// D300 for the first place that cannot be read.
pub fn read(
    data: &Data,
    path: &Path,
    extent: Extent,
) -> std::result::Result<Rows, Box<Unreadable>> {
    match data.format.as_str() {
        "jsonl" => jsonl::read(data, path, extent.rows()),
        "json" => json::read(data, path, extent),
        "csv" => csv::read(data, path, extent),
        other => Err(Unreadable::new(
            data,
            format!("no data source `{other}` is read"),
            format!("one of: {}", FORMATS.join(", ")),
        )),
    }
}

/// Every row of a data set, its declared columns with their types.
///
/// D300 for a file that cannot be read, D301 for a column that is not there, D302 for a cell of
/// another type, D314 for a file without rows.
pub fn load(data: &Data, folder: &Path) -> Result<Table> {
    let path = locate(data, folder)?;
    let rows = read(data, &path, Extent::All).map_err(|u| u.told())?;
    if rows.rows.is_empty() {
        return Err(Box::new(no_rows(data)));
    }
    let columns = data
        .columns
        .iter()
        .map(|column| cell::column(data, column, &rows.rows))
        .collect::<Result<Vec<_>>>()?;
    Ok(Table::new(rows.rows.len(), columns))
}

/// D314: a file without rows.
pub fn no_rows(data: &Data) -> Diagnostic {
    let message = format!("`{}` has no rows", data.path);
    let help = match data.format.as_str() {
        "csv" => "write the column names on the first line and one row a line after it",
        "json" => "write a list of objects that have the declared columns",
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
