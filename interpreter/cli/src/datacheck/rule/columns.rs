//! D301 and D302: the columns of the rows against the columns of the program.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Column, Data, Elem};
use serde_json::Value;

use super::rows::{Row, Rows};

/// The first problem of each column.
pub fn check(data: &Data, rows: &Rows) -> Vec<Diagnostic> {
    let problems = data.columns.iter().filter_map(|column| {
        rows.rows
            .iter()
            .find_map(|row| match row.object.get(&column.source) {
                None => Some(missing(data, column, row)),
                Some(value) => wrong(column.elem, value).map(|is| mistyped(data, column, row, is)),
            })
    });
    problems.collect()
}

fn missing(data: &Data, column: &Column, row: &Row) -> Diagnostic {
    let names: Vec<String> = row.object.keys().map(|k| format!("`{k}`")).collect();
    let has = match names.is_empty() {
        true => "nothing".to_string(),
        false => names.join(", "),
    };
    let message = format!(
        "`{}` has no column `{}` ({} has {has})",
        data.path,
        column.source,
        place(row)
    );
    let d = Diagnostic::error("D301", column.span, message);
    let near = row
        .object
        .keys()
        .map(|k| (strsim::jaro_winkler(k, &column.source), k))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(score, _)| *score > 0.75);
    match near {
        Some((_, k)) => d.help(format!(
            "a similar one: `{k}`; a column is renamed by `{}: text from \"{k}\"`",
            column.name
        )),
        None => d,
    }
}

fn mistyped(data: &Data, column: &Column, row: &Row, is: &str) -> Diagnostic {
    let message = format!(
        "{} of `{}`: `{}` is {is}, the program declares `{}`",
        place(row),
        data.path,
        column.source,
        word(column.elem)
    );
    Diagnostic::error("D302", column.span, message)
}

/// The row, and its line where blank lines make that another number.
fn place(row: &Row) -> String {
    match row.line {
        Some(line) if line != row.number => format!("row {} (line {line})", row.number),
        _ => format!("row {}", row.number),
    }
}

/// What `value` is, when it is not an `elem`. `null` is none for text and numbers.
fn wrong(elem: Elem, value: &Value) -> Option<&'static str> {
    let fits = match elem {
        Elem::Text => value.is_null() || value.is_string(),
        Elem::Bool => value.is_boolean(),
        Elem::Float => value.is_null() || value.is_number(),
        Elem::Int => value.is_null() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        Elem::TextList => list(value, Value::is_string),
        Elem::Chat => list(value, |m| m["role"].is_string() && m["content"].is_string()),
    };
    (!fits).then(|| kind(value))
}

fn list(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(n) if n.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn word(elem: Elem) -> &'static str {
    match elem {
        Elem::Float => "float",
        Elem::Int => "int",
        Elem::Bool => "bool",
        Elem::Text => "text",
        Elem::Chat => "chat",
        Elem::TextList => "text[]",
    }
}
