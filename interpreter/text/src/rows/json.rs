//! A list of JSON objects.

use std::fmt;
use std::io::Read;
use std::path::Path;

use rlhf_lang::graph::Data;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::unreadable::{Before, Excerpt, Unreadable};
use super::{Extent, Row, Sink, describe, input, jsonl};

/// Gives the rows to `sink` until it is full; what follows them is not parsed. True where the file has no
/// others. The text is held while it is read.
pub(super) fn read(
    data: &Data,
    path: &Path,
    extent: Extent,
    sink: &mut dyn Sink,
) -> Result<bool, Box<Unreadable>> {
    let mut bytes = vec![];
    let source = input::open(path);
    let read = source.and_then(|s| s.bytes.take(extent.bytes()).read_to_end(&mut bytes));
    let read = read.map_err(|e| jsonl::not_opened(data, &e))?;
    let cut = read as u64 == extent.bytes();
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // The cut may go through a character.
        Err(e) if cut && e.error_len().is_none() => {
            std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(e) => {
            let (good, rest) = bytes.split_at(e.valid_up_to());
            let line = good.iter().filter(|b| **b == b'\n').count() + 1;
            let start = good.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            return Err(jsonl::not_utf8(data, line, rest, good.len() - start));
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() && !cut {
        return Ok(true);
    }
    let mut list = List {
        sink,
        count: 0,
        odd: None,
        full: false,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let end = parser
        .deserialize_any(&mut list)
        .and_then(|()| parser.end());
    if let Some((number, found)) = list.odd {
        let message = match number {
            0 => format!(
                "`{}` is {found}, and a data set is a list of objects",
                data.path
            ),
            n => format!("row {n} of `{}` is {found}, not an object", data.path),
        };
        let help = "a list of objects, such as [{\"question\": \"2 + 3 =\", \"answer\": \"5\"}]";
        return Err(Unreadable::new(data, message, help));
    }
    match end {
        // The row that goes through the cut is left.
        Err(error) if cut && error.is_eof() => match list.count {
            0 => Err(jsonl::no_whole_row(data)),
            _ => Ok(false),
        },
        Err(error) if !list.full => Err(malformed(data, text, &error)),
        _ => Ok(!list.full),
    }
}

fn malformed(data: &Data, text: &str, error: &serde_json::Error) -> Box<Unreadable> {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or(&reason);
    let (line, column) = (error.line(), error.column());
    let message = format!(
        "line {line} of `{}` is not JSON: {reason} at column {column}",
        data.path
    );
    let help = match reason {
        "trailing characters" => "a file with one object a line is read by `jsonl(…)`",
        _ => "a data set is a list of objects: [{…}, {…}]",
    };
    let starts = text.match_indices('\n').map(|(i, _)| i + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let start = starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
    let end = starts.get(line).copied().unwrap_or(text.len());
    let excerpt = Excerpt::new(
        &Before::of(&text[..start]),
        &text[start..end],
        column.saturating_sub(1),
    );
    Unreadable::at(data, message, help, excerpt)
}

/// Takes rows until there are enough; stopping early looks like an error to the parser.
struct List<'a> {
    sink: &'a mut dyn Sink,
    count: usize,
    /// What is no object, with the number of the row; 0 is the whole file.
    odd: Option<(usize, &'static str)>,
    full: bool,
}

impl<'de> Visitor<'de> for &mut List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Json>()? {
            let number = self.count + 1;
            if self.sink.full() {
                self.full = true;
                return Err(A::Error::custom("enough"));
            }
            let Json::Object(object) = item else {
                self.odd = Some((number, describe(&item)));
                return Err(A::Error::custom("not an object"));
            };
            self.count = number;
            let row = Row {
                number,
                line: None,
                file: None,
                object,
            };
            self.sink.take(row, None);
        }
        Ok(())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        // To its end, so that one object a line is told apart by what follows the first.
        while items.next_entry::<String, Json>()?.is_some() {}
        self.odd = Some((0, "an object"));
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.odd = Some((0, "text"));
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.odd = Some((0, "a number"));
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.visit_f64(0.0)
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.visit_f64(0.0)
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.odd = Some((0, "true or false"));
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.odd = Some((0, "null"));
        Ok(())
    }
}
