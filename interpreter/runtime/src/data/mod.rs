//! Data sets: typed columns from files, and which rows a batch takes.

mod order;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlhf_lang::graph::{Data, Elem};
use serde_json::{Map, Value as Json};

use crate::fault::{Fault, Result};
use crate::text::Message;

pub use order::{batch_rows, batches, permutation};
pub use table::{Column, Table};

const FORMATS: [&str; 2] = ["jsonl", "json"];

/// Reads the declared columns of a data set. `base` is the program's folder.
///
/// `jsonl` is one object a line, blank lines skipped; `json` is one list of objects. A byte-order mark
/// is skipped. `null` is none for text and numbers.
pub fn load(data: &Data, base: &Path) -> Result<Table> {
    let path = locate(&data.path, base).ok_or_else(|| missing(data, base))?;
    let name = short(&path);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Fault::new(format!("`{name}` cannot be read: {e}")).at(data.path_span))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let rows = match data.format.as_str() {
        "jsonl" => lines(text, &name),
        "json" => list(text, &name),
        other => Err(Fault::new(format!("no data source `{other}`"))
            .help(format!("one of: {}", FORMATS.join(", ")))),
    };
    let rows = rows.map_err(|f| f.at(data.path_span))?;
    if rows.is_empty() {
        return Err(Fault::new(format!("`{name}` has no rows")).at(data.path_span));
    }
    let columns =
        data.columns
            .iter()
            .map(|column| {
                let mut cells = Cells::new(column.elem);
                for row in &rows {
                    let cell = match row.object.get(&column.source) {
                        Some(cell) => cell,
                        None => return Err(no_column(&name, &column.source, row).at(column.span)),
                    };
                    if !cells.push(cell) {
                        return Err(wrong_type(&name, &column.source, column.elem, row, cell)
                            .at(column.span));
                    }
                }
                Ok(cells.0)
            })
            .collect::<Result<Vec<_>>>()?;
    Ok(Table::new(rows.len(), columns))
}

/// A path as written in a program: absolute, else in the program's folder, else in the working
/// directory.
pub fn locate(path: &str, base: &Path) -> Option<PathBuf> {
    [base.join(path), PathBuf::from(path)]
        .into_iter()
        .find(|p| p.is_file())
}

/// The candidate most like `wanted`, if one is alike at all.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .map(|c| (strsim::jaro_winkler(wanted, c), c))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// One row of a file.
struct Row {
    object: Map<String, Json>,
    /// From 1, blank lines not counted.
    row: usize,
    /// From 1.
    line: Option<usize>,
}

fn lines(text: &str, name: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let bad = |what: String| {
            Fault::new(format!("line {} of `{name}` {what}", i + 1))
                .help(format!("the line is `{}`", excerpt(line.trim())))
        };
        match serde_json::from_str(line) {
            Ok(Json::Object(object)) => rows.push(Row {
                object,
                row: rows.len() + 1,
                line: Some(i + 1),
            }),
            Ok(other) => return Err(bad(format!("is {}; expected an object", describe(&other)))),
            Err(e) => return Err(bad(format!("is not JSON: {}", reason(&e)))),
        }
    }
    Ok(rows)
}

fn list(text: &str, name: &str) -> Result<Vec<Row>> {
    let json: Json = serde_json::from_str(text).map_err(|e| {
        let what = reason(&e);
        Fault::new(format!("line {} of `{name}` is not JSON: {what}", e.line()))
    })?;
    let Json::Array(items) = json else {
        let found = describe(&json);
        return Err(
            Fault::new(format!("`{name}` is {found}; expected a list of objects"))
                .help("one object a line is `jsonl`"),
        );
    };
    let mut rows = Vec::new();
    for (i, item) in items.into_iter().enumerate() {
        let Json::Object(object) = item else {
            let found = describe(&item);
            return Err(Fault::new(format!(
                "row {} of `{name}` is {found}; expected an object",
                i + 1
            )));
        };
        rows.push(Row {
            object,
            row: i + 1,
            line: None,
        });
    }
    Ok(rows)
}

/// What serde found, with its column but without its line, which is always 1 for a line.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", e.column())
}

fn missing(data: &Data, base: &Path) -> Fault {
    let fault = Fault::new(format!("there is no file `{}`", data.path)).at(data.path_span);
    let path = Path::new(&data.path);
    let folder = base.join(path.parent().unwrap_or(Path::new("")));
    let names: Vec<String> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    let file = short(path);
    match nearest(&file, names.iter().map(String::as_str)) {
        Some(near) => fault.help(format!("`{}` has `{near}`", folder.display())),
        None => fault.help(format!(
            "a path is relative to the program's folder, `{}`, or to the working directory",
            base.display()
        )),
    }
}

fn no_column(name: &str, column: &str, row: &Row) -> Fault {
    let found: Vec<String> = row.object.keys().map(|k| format!("`{k}`")).collect();
    let found = match found.is_empty() {
        true => "no columns".to_string(),
        false => found.join(", "),
    };
    let fault = Fault::code(
        "D301",
        format!(
            "`{name}` has no column `{column}` (row {} has {found})",
            row.row
        ),
    );
    match nearest(column, row.object.keys().map(String::as_str)) {
        Some(near) => fault.help(format!("a similar one: `{near}`")),
        None => fault.help(format!(
            "`{column}: … from \"name in the file\"` reads a column under another name"
        )),
    }
}

fn wrong_type(name: &str, column: &str, elem: Elem, row: &Row, cell: &Json) -> Fault {
    let declared = match elem {
        Elem::Float => "float",
        Elem::Int => "int",
        Elem::Bool => "bool",
        Elem::Text => "text",
        Elem::Chat => "chat",
        Elem::TextList => "text[]",
    };
    let place = match row.line {
        Some(line) if line != row.row => format!("row {} (line {line})", row.row),
        _ => format!("row {}", row.row),
    };
    let fault = Fault::code(
        "D302",
        format!(
            "{place} of `{name}`: `{column}` is {}, the program declares `{declared}`",
            describe(cell)
        ),
    );
    match elem {
        Elem::Chat => fault.help("a chat is a list of {\"role\": …, \"content\": …}"),
        _ => fault,
    }
}

fn describe(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(n) if n.is_f64() => "a number with a fraction",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

fn excerpt(line: &str) -> String {
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}

fn short(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// A column under construction.
struct Cells(Column);

impl Cells {
    fn new(elem: Elem) -> Cells {
        Cells(match elem {
            Elem::Float => Column::Float(vec![]),
            Elem::Int => Column::Int(vec![]),
            Elem::Bool => Column::Bool(vec![]),
            Elem::Text => Column::Text(vec![]),
            Elem::Chat => Column::Chat(vec![]),
            Elem::TextList => Column::TextList(vec![]),
        })
    }

    /// False when the cell has another type.
    fn push(&mut self, cell: &Json) -> bool {
        match (&mut self.0, cell) {
            (Column::Float(v) | Column::Int(v), Json::Null) => v.push(f64::NAN),
            (Column::Float(v), Json::Number(n)) => v.push(n.as_f64().unwrap_or(f64::NAN)),
            (Column::Int(v), Json::Number(n)) => match n.as_f64() {
                Some(x) if x.fract() == 0.0 => v.push(x),
                _ => return false,
            },
            (Column::Bool(v), Json::Bool(b)) => v.push(*b),
            (Column::Text(v), Json::Null) => v.push(None),
            (Column::Text(v), Json::String(s)) => v.push(Some(s.as_str().into())),
            (Column::Chat(v), Json::Array(_)) => {
                match serde_json::from_value::<Vec<Message>>(cell.clone()) {
                    Ok(messages) => v.push(messages.into()),
                    Err(_) => return false,
                }
            }
            (Column::TextList(v), Json::Array(_)) => {
                match serde_json::from_value::<Vec<Arc<str>>>(cell.clone()) {
                    Ok(texts) => v.push(texts.into()),
                    Err(_) => return false,
                }
            }
            _ => return false,
        }
        true
    }
}
