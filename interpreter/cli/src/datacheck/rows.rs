//! Rows of a jsonl or json file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use rlhf_lang::source::{Source, Sources, Span};
use serde_json::{Map, Value};

use super::Extent;

const HEAD: usize = 256;
/// A byte-order mark is no part of the first row.
const MARK: char = '\u{feff}';
/// A longer line is not drawn; its number is in the message.
const DRAWN: usize = 300;

/// One row of a file.
pub struct Row {
    /// The row, from 1; blank lines do not count.
    pub number: usize,
    /// The line of a jsonl file, from 1.
    pub line: Option<usize>,
    /// Its cells.
    pub object: Map<String, Value>,
}

/// The first rows of a file.
pub struct Rows {
    /// In the order of the file.
    pub rows: Vec<Row>,
    /// The whole file was read.
    pub complete: bool,
}

/// Reads rows; the error is the first that does not parse.
pub fn read(
    path: &Path,
    data: &Data,
    extent: Extent,
    sources: &mut Sources,
) -> Result<Rows, Box<Diagnostic>> {
    let limit = match extent {
        Extent::Head => HEAD,
        Extent::All => usize::MAX,
    };
    let unreadable = |error: std::io::Error| {
        let message = format!("`{}` cannot be read: {error}", path.display());
        Box::new(Diagnostic::error("", data.path_span, message))
    };
    if data.format == "json" {
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        return array(path, data, text.strip_prefix(MARK).unwrap_or(&text), limit);
    }
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?);
    let (mut head, mut line, mut rows) = (String::new(), String::new(), vec![]);
    for number in 1.. {
        line.clear();
        if lines.read_line(&mut line).map_err(unreadable)? == 0 {
            break;
        }
        if number == 1 && line.starts_with(MARK) {
            line.drain(..MARK.len_utf8());
        }
        if rows.len() == limit {
            return Ok(Rows {
                rows,
                complete: false,
            });
        }
        if !line.trim().is_empty() {
            match serde_json::from_str(&line) {
                Ok(object) => rows.push(Row {
                    number: rows.len() + 1,
                    line: Some(number),
                    object,
                }),
                Err(error) => {
                    return Err(malformed(path, data, &head, &line, number, &error, sources));
                }
            }
        }
        // Only the first rows can be drawn; no text of a large file is kept.
        if number <= HEAD {
            head.push_str(&line);
        }
    }
    Ok(Rows {
        rows,
        complete: true,
    })
}

fn array(path: &Path, data: &Data, text: &str, limit: usize) -> Result<Rows, Box<Diagnostic>> {
    let fail = |what: String| {
        let message = format!("{}: {what}", path.display());
        Box::new(
            Diagnostic::error("", data.path_span, message)
                .help("a json data set is an array of objects"),
        )
    };
    let values: Vec<Value> = serde_json::from_str(text).map_err(|e| fail(e.to_string()))?;
    let complete = values.len() <= limit;
    let mut rows = vec![];
    for (i, value) in values.into_iter().take(limit).enumerate() {
        match value {
            Value::Object(object) => rows.push(Row {
                number: i + 1,
                line: None,
                object,
            }),
            _ => return Err(fail(format!("row {} is not an object", i + 1))),
        }
    }
    Ok(Rows { rows, complete })
}

fn malformed(
    path: &Path,
    data: &Data,
    head: &str,
    line: &str,
    number: usize,
    error: &serde_json::Error,
    sources: &mut Sources,
) -> Box<Diagnostic> {
    let shown = path.display();
    let reason = error.to_string();
    // serde_json counts lines within the row; the file's line is what helps.
    let reason = reason.split(" at line ").next().unwrap_or("not JSON");
    let message = format!("{shown}:{number}: the row is not a JSON object: {reason}");
    let drawn = line.trim_end().len() <= DRAWN && number <= HEAD;
    let d = if drawn {
        let id = sources.add(Source::new(shown.to_string(), format!("{head}{line}")));
        let end = line.trim_end().len();
        let at = error.column().saturating_sub(1).min(end.saturating_sub(1));
        let at = (0..=at)
            .rev()
            .find(|i| line.is_char_boundary(*i))
            .unwrap_or(0);
        let width = line[at..].chars().next().map_or(0, char::len_utf8);
        let lo = head.len() + at;
        Diagnostic::error("", Span::new(id, lo, lo + width), message)
            .here("here")
            .label(data.path_span, "declared here")
    } else {
        Diagnostic::error("", data.path_span, message)
    };
    Box::new(
        d.help("one JSON object a line, such as {\"question\": \"2 + 3 =\", \"answer\": \"5\"}"),
    )
}
