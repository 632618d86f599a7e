//! Diagnostics as JSON objects, for editors and scripts: one object a problem, one problem a line.
//!
//! | key | value |
//! |---|---|
//! | `format_version` | 1; grows when a key changes its meaning or goes away |
//! | `code` | `"E031"`, the page that `rlhf explain` prints; `""` for what has no page |
//! | `level` | `"error"`, `"warning"` or `"hint"` |
//! | `message` | one line |
//! | `file`, `line`, `column`, `end_line`, `end_column` | the text to change first, or nulls; lines and columns count from 1, columns in characters, and the end is one past the last character |
//! | `help` | what would work, or null |
//! | `labels` | a list of places, each with its `text`; the first is the one above |
//! | `fix` | null, or an object of a `title` and of `edits`: places, each with the `text` to put there |

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::{Sources, Span};
use serde_json::{Map, Value, json};

/// Grows when a field changes its meaning or goes away.
const FORMAT_VERSION: u32 = 1;

/// A diagnostic with 1-based lines and columns (in characters). The places of a diagnostic that blames
/// no text are null.
pub fn object(sources: &Sources, d: &Diagnostic) -> Value {
    let mut object = Map::new();
    object.insert("format_version".into(), FORMAT_VERSION.into());
    object.insert("code".into(), d.code.clone().into());
    object.insert("level".into(), super::level(d.level).into());
    object.insert("message".into(), d.message.clone().into());
    match d.span() {
        Some(span) => place(sources, span, &mut object),
        None => {
            for key in ["file", "line", "column", "end_line", "end_column"] {
                object.insert(key.into(), Value::Null);
            }
        }
    }
    object.insert("help".into(), json!(d.help));
    let labels = d.labels.iter().map(|l| text(sources, l.span, &l.text));
    object.insert("labels".into(), labels.collect());
    let fix = d.fix.as_ref().map(|fix| {
        let edits = fix.edits.iter().map(|(span, t)| text(sources, *span, t));
        json!({ "title": fix.title, "edits": edits.collect::<Vec<_>>() })
    });
    object.insert("fix".into(), json!(fix));
    Value::Object(object)
}

fn text(sources: &Sources, span: Span, text: &str) -> Value {
    let mut object = Map::new();
    place(sources, span, &mut object);
    object.insert("text".into(), text.into());
    Value::Object(object)
}

fn place(sources: &Sources, span: Span, object: &mut Map<String, Value>) {
    let source = sources.get(span.file);
    let (line, column) = source.line_column(span.lo);
    let (end_line, end_column) = source.line_column(span.hi);
    object.insert("file".into(), source.name.clone().into());
    object.insert("line".into(), line.into());
    object.insert("column".into(), column.into());
    object.insert("end_line".into(), end_line.into());
    object.insert("end_column".into(), end_column.into());
}
