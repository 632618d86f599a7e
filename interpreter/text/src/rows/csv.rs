//! Comma-separated values: a line of column names, then one row a line.

use std::io::Read;
use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, StringRecord};
use rlhf_lang::graph::{Data, Elem};
use serde_json::{Map, Number, Value as Json};

use super::unreadable::Unreadable;
use super::{Extent, Row, Sink, input, jsonl};

/// Gives the rows to `sink` until it is full; what follows them is not parsed. True where the file has no
/// others.
pub(super) fn read(
    data: &Data,
    path: &Path,
    extent: Extent,
    sink: &mut dyn Sink,
) -> Result<bool, Box<Unreadable>> {
    let source = input::open(path).map_err(|e| jsonl::not_opened(data, &e))?;
    let mut reader = ReaderBuilder::new().from_reader(source.bytes.take(extent.bytes()));
    let names = reader.headers().map_err(|e| failed(data, &e))?.clone();
    let elems: Vec<Option<Elem>> = names
        .iter()
        .map(|name| data.columns.iter().find(|c| c.source == *name))
        .map(|column| column.map(|c| c.elem))
        .collect();
    let (mut count, mut record) = (0, StringRecord::new());
    let complete = loop {
        let read = reader.read_record(&mut record);
        // The row that goes through the cut is left.
        if reader.position().byte() >= extent.bytes() {
            break false;
        }
        if !read.map_err(|e| failed(data, &e))? {
            break true;
        }
        if sink.full() {
            break false;
        }
        count += 1;
        let row = Row {
            number: count,
            line: record.position().map(|p| p.line() as usize),
            file: None,
            object: object(&names, &elems, &record),
        };
        sink.take(row, None);
    };
    match count == 0 && !complete {
        true => Err(jsonl::no_whole_row(data)),
        false => Ok(complete),
    }
}

fn object(
    names: &StringRecord,
    elems: &[Option<Elem>],
    record: &StringRecord,
) -> Map<String, Json> {
    let cells = names.iter().zip(elems).zip(record);
    cells
        .map(|((name, elem), cell)| (name.to_string(), value(*elem, cell)))
        .collect()
}

/// A cell as what the program declares; the text itself where it is not that.
fn value(elem: Option<Elem>, cell: &str) -> Json {
    let text = || Json::String(cell.into());
    let word = cell.trim();
    match elem {
        None | Some(Elem::Text) => text(),
        Some(Elem::Float | Elem::Int) if word.is_empty() => Json::Null,
        Some(Elem::Float | Elem::Int) => {
            let whole = word.parse::<i64>().ok().map(Number::from);
            let real = || word.parse::<f64>().ok().and_then(Number::from_f64);
            whole.or_else(real).map_or_else(text, Json::Number)
        }
        Some(Elem::Bool) => match word.to_ascii_lowercase().as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ => text(),
        },
        Some(Elem::Chat | Elem::TextList) => {
            let parsed = serde_json::from_str(word).ok();
            parsed.filter(Json::is_array).unwrap_or_else(text)
        }
    }
}

fn failed(data: &Data, error: &csv::Error) -> Box<Unreadable> {
    let name = &data.path;
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::Io(e) => jsonl::not_opened(data, e),
        ErrorKind::Utf8 { .. } => Unreadable::new(
            data,
            format!("line {line} of `{name}` is not text in UTF-8"),
            "save it as UTF-8; `iconv -f WINDOWS-1252 -t UTF-8` converts most older files",
        ),
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => Unreadable::new(
            data,
            format!(
                "line {line} of `{name}` has {}, and the first line names {expected_len}",
                match len {
                    1 => "1 cell".into(),
                    n => format!("{n} cells"),
                }
            ),
            match len < expected_len {
                true => {
                    "a cell may be empty and its comma stays; a quote that opens a cell closes it too"
                }
                false => "a comma inside a cell needs quotes around the cell: \"1,250 apples\"",
            },
        ),
        _ => Unreadable::new(
            data,
            format!("line {line} of `{name}` cannot be read: {error}"),
            "a csv file has the column names on its first line and one row a line after it",
        ),
    }
}
