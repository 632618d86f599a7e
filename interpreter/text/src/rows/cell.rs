//! Cells against the declared types: D301 and D302.

use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Column as Declared, Data, Elem};
use serde_json::{Map, Value as Json};

use super::table::Column;
use super::{Row, describe};
use crate::files::alike;
use crate::{Message, Result};

/// So many column names of a file are listed.
const LISTED: usize = 8;

/// What is wrong with a row's cell of a column: D301 when it is not there, D302 when it has another
/// type.
pub fn problem(data: &Data, column: &Declared, row: &Row) -> Option<Diagnostic> {
    match row.object.get(&column.source) {
        None => Some(missing(data, column, row)),
        Some(cell) => {
            let misfit = push(&mut empty(column.elem), cell).err()?;
            Some(mistyped(data, column, row, cell, misfit))
        }
    }
}

/// Adds a row's cell of a column to those before it.
pub(super) fn put(data: &Data, column: &Declared, row: &Row, cells: &mut Column) -> Result<()> {
    let Some(cell) = row.object.get(&column.source) else {
        return Err(Box::new(missing(data, column, row)));
    };
    push(cells, cell).map_err(|misfit| Box::new(mistyped(data, column, row, cell, misfit)))
}

fn missing(data: &Data, column: &Declared, row: &Row) -> Diagnostic {
    let message = format!(
        "`{}` has no column `{}` ({} has {})",
        row.file(&data.path),
        column.source,
        row.place(),
        listed(&row.object)
    );
    let d = Diagnostic::error("D301", column.span, message);
    let (name, elem) = (&column.name, column.elem.name());
    match alike(&column.source, row.object.keys().map(String::as_str)) {
        Some(near) => d.help(format!(
            "a similar one: `{near}`; another name in the file is read by \
             `{name}: {elem} from \"{near}\"`"
        )),
        None => d.help(format!(
            "another name in the file is read by `{name}: {elem} from \"its name\"`"
        )),
    }
}

fn listed(object: &Map<String, Json>) -> String {
    let mut names: Vec<String> = object
        .keys()
        .take(LISTED)
        .map(|k| format!("`{k}`"))
        .collect();
    if object.len() > LISTED {
        names.push(format!("{} more", object.len() - LISTED));
    }
    match names.is_empty() {
        true => "nothing".into(),
        false => names.join(", "),
    }
}

/// Why a cell does not fit.
enum Misfit {
    /// It is of another kind.
    Kind,
    /// A part of a list does not fit: what is said of it.
    Part(String),
}

fn mistyped(data: &Data, column: &Declared, row: &Row, cell: &Json, misfit: Misfit) -> Diagnostic {
    let (source, elem) = (&column.source, column.elem.name());
    let said = match misfit {
        Misfit::Kind => format!(
            "`{source}` is {}, the program declares `{elem}`",
            describe(cell)
        ),
        Misfit::Part(said) => said,
    };
    let message = format!("{} of `{}`: {said}", row.place(), row.file(&data.path));
    let d = Diagnostic::error("D302", column.span, message);
    let name = &column.name;
    match (column.elem, cell) {
        (Elem::Chat, Json::String(_)) => d.help(format!(
            "declare `{name}: text` and write `chat({name})`: the text becomes the user's message"
        )),
        (Elem::Chat, _) => d.help("a chat is a list of {\"role\": \"user\", \"content\": \"…\"}"),
        (Elem::TextList, _) => d.help("a `text[]` is a list of texts"),
        (Elem::Text, Json::Number(_)) => d.help(format!(
            "declare `{name}: float`, or write the value in quotes in the file"
        )),
        (Elem::Text, Json::Array(items)) if items.iter().all(is_message) => {
            d.help(format!("a list of messages is declared `{name}: chat`"))
        }
        (Elem::Int, Json::Number(_)) => d.help(format!("declare `{name}: float`")),
        (Elem::Int | Elem::Float, Json::String(_)) => {
            d.help(format!("declare `{name}: text` and use `number({name})`"))
        }
        _ => d.help(format!("declare `{name}` as what the file has")),
    }
}

fn is_message(json: &Json) -> bool {
    json.get("role").is_some() && json.get("content").is_some()
}

/// No cells of a type.
pub(super) fn empty(elem: Elem) -> Column {
    match elem {
        Elem::Float => Column::Float(vec![]),
        Elem::Int => Column::Int(vec![]),
        Elem::Bool => Column::Bool(vec![]),
        Elem::Text => Column::Text(vec![]),
        Elem::Chat => Column::Chat(vec![]),
        Elem::TextList => Column::TextList(vec![]),
    }
}

fn push(column: &mut Column, cell: &Json) -> std::result::Result<(), Misfit> {
    match (column, cell) {
        (Column::Float(v) | Column::Int(v), Json::Null) => v.push(f64::NAN),
        (Column::Float(v), Json::Number(n)) => v.push(n.as_f64().unwrap_or(f64::NAN)),
        (Column::Int(v), Json::Number(n)) => match n.as_f64() {
            Some(x) if x.fract() == 0.0 => v.push(x),
            _ => return Err(Misfit::Kind),
        },
        (Column::Bool(v), Json::Bool(b)) => v.push(*b),
        (Column::Text(v), Json::Null) => v.push(None),
        (Column::Text(v), Json::String(s)) => v.push(Some(s.as_str().into())),
        (Column::Chat(v), Json::Array(items)) => v.push(conversation(items)?),
        (Column::TextList(v), Json::Array(items)) => {
            let texts = items.iter().enumerate().map(|(i, item)| {
                let said = || format!("item {} of the list is {}, not text", i + 1, describe(item));
                let text = item.as_str().ok_or_else(|| Misfit::Part(said()))?;
                Ok(Arc::from(text))
            });
            v.push(texts.collect::<std::result::Result<_, Misfit>>()?);
        }
        _ => return Err(Misfit::Kind),
    }
    Ok(())
}

/// The messages of a cell.
fn conversation(items: &[Json]) -> std::result::Result<Arc<[Message]>, Misfit> {
    let messages = items.iter().enumerate().map(|(i, item)| {
        let number = i + 1;
        let Json::Object(object) = item else {
            let said = format!("message {number} is {}, not an object", describe(item));
            return Err(Misfit::Part(said));
        };
        let part = |key: &str| match object.get(key) {
            Some(Json::String(text)) => Ok(text.clone()),
            Some(other) => Err(Misfit::Part(format!(
                "`{key}` of message {number} is {}, not text",
                describe(other)
            ))),
            None => Err(Misfit::Part(format!(
                "message {number} has no `{key}` (it has {})",
                listed(object)
            ))),
        };
        Ok(Message {
            role: part("role")?,
            content: part("content")?,
        })
    });
    messages.collect()
}
