//! One JSON object a line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use rlhf_lang::graph::Data;
use serde_json::Value as Json;

use super::unreadable::{Before, Excerpt, Unreadable};
use super::{LONGEST, Row, Sink, describe, input};

const MARK: &[u8] = "\u{feff}".as_bytes();
const EXAMPLE: &str =
    "one JSON object a line, such as {\"question\": \"2 + 3 =\", \"answer\": \"5\"}";

/// Gives the rows to `sink` until it is full; true where the file has no others.
pub(super) fn read(data: &Data, path: &Path, sink: &mut dyn Sink) -> Result<bool, Box<Unreadable>> {
    let unreadable = |e: std::io::Error| not_opened(data, &e);
    let source = input::open(path).map_err(unreadable)?;
    let plain = source.plain;
    let mut file = BufReader::new(source.bytes);
    let (mut before, mut bytes, mut count, mut at) = (Before::default(), vec![], 0, 0);
    for number in 1.. {
        bytes.clear();
        let mut rest = file.by_ref().take(LONGEST + 1);
        let read = rest.read_until(b'\n', &mut bytes).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        if bytes.len() as u64 > LONGEST {
            return Err(too_long(data, number));
        }
        if number == 1 && bytes.starts_with(MARK) {
            bytes.drain(..MARK.len());
        }
        let start = at + (read - bytes.len()) as u64;
        at += read as u64;
        let line = std::str::from_utf8(&bytes)
            .map_err(|e| not_utf8(data, number, &bytes[e.valid_up_to()..], e.valid_up_to()))?;
        if !line.trim().is_empty() {
            if sink.full() {
                return Ok(false);
            }
            let object = match serde_json::from_str(line) {
                Ok(Json::Object(object)) => object,
                Ok(other) => return Err(not_an_object(data, number, &before, line, &other)),
                Err(error) => return Err(malformed(data, number, &before, line, &error)),
            };
            count += 1;
            let row = Row {
                number: count,
                line: Some(number),
                file: None,
                object,
            };
            sink.take(row, plain.then_some((start, line)));
        }
        before.push(line);
    }
    Ok(true)
}

fn too_long(data: &Data, number: usize) -> Box<Unreadable> {
    let message = format!(
        "line {number} of `{}` is longer than {}",
        data.path,
        megabytes()
    );
    Unreadable::new(data, message, EXAMPLE)
}

/// The first row does not end within what is read of a file.
pub(super) fn no_whole_row(data: &Data) -> Box<Unreadable> {
    let message = format!(
        "the first row of `{}` is longer than {}",
        data.path,
        megabytes()
    );
    let help = match data.format.as_str() {
        "csv" => "a quote that is not closed takes what follows it into its cell",
        _ => "a data set is a list of objects: [{…}, {…}]",
    };
    Unreadable::new(data, message, help)
}

fn megabytes() -> String {
    format!("{} MB", LONGEST >> 20)
}

/// The file is there and does not open.
pub(super) fn not_opened(data: &Data, error: &std::io::Error) -> Box<Unreadable> {
    let why = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        _ => error.to_string(),
    };
    let message = format!("`{}` cannot be read: {why}", data.path);
    Unreadable::new(data, message, "a data set is a file that can be read")
}

/// `rest` starts with the byte that is no text.
pub(super) fn not_utf8(data: &Data, line: usize, rest: &[u8], column: usize) -> Box<Unreadable> {
    let byte = rest.first().copied().unwrap_or_default();
    let message = format!(
        "line {line} of `{}` is not text in UTF-8 (byte {byte:#04x} at column {})",
        data.path,
        column + 1
    );
    // What other programs save by default on some systems.
    let help = match byte {
        0xff | 0xfe => "it looks like UTF-16; `iconv -f UTF-16 -t UTF-8` converts it",
        _ => "save it as UTF-8; `iconv -f WINDOWS-1252 -t UTF-8` converts most older files",
    };
    Unreadable::new(data, message, help)
}

fn not_an_object(
    data: &Data,
    number: usize,
    before: &Before,
    line: &str,
    found: &Json,
) -> Box<Unreadable> {
    let message = format!(
        "line {number} of `{}` is {}, not a JSON object",
        data.path,
        describe(found)
    );
    let help = match found {
        Json::Array(_) if number == 1 => "a file that is one list of objects is read by `json(…)`",
        _ => EXAMPLE,
    };
    Unreadable::at(data, message, help, Excerpt::new(before, line, 0))
}

fn malformed(
    data: &Data,
    number: usize,
    before: &Before,
    line: &str,
    error: &serde_json::Error,
) -> Box<Unreadable> {
    // serde_json counts lines within the row; the file's line is what helps.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or(&reason);
    let message = format!(
        "line {number} of `{}` is not a JSON object: {reason} at column {}",
        data.path,
        error.column()
    );
    let help = match line.trim() {
        "[" if number == 1 => "a file that is one list of objects is read by `json(…)`",
        "{" => "an object stands on one line; a file that is one list is read by `json(…)`",
        _ => EXAMPLE,
    };
    let at = error.column().saturating_sub(1);
    Unreadable::at(data, message, help, Excerpt::new(before, line, at))
}
