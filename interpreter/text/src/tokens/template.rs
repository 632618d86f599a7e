//! Chat templates: Jinja as `transformers` runs it.

use std::ops::Range;
use std::path::Path;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, context};
use regex::Regex;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Map, Value as Json};

use super::{Message, Turn, clock};
use crate::{Result, failure};

/// How the bytes between `{% generation %}` marks are told apart while a conversation is rendered: characters
/// that Unicode keeps out of texts.
const OPENS: char = '\u{fdd0}';
const CLOSES: char = '\u{fdd1}';

/// A conversation as text.
#[derive(Debug, PartialEq)]
pub(super) struct Rendered {
    pub text: String,
    /// The bytes of it that the template marks as said by the assistant.
    pub said: Vec<Range<usize>>,
}

/// A compiled template.
#[derive(Debug)]
pub(super) struct Template {
    environment: Environment<'static>,
    text: String,
}

/// The template's text: `chat_template.jinja`, `chat_template.json`, or the tokenizer's configuration,
/// where several may be named and `default` is the one for conversations.
pub(super) fn source(dir: &Path, config: &Map<String, Json>) -> Result<Option<String>> {
    let file = dir.join("chat_template.jinja");
    if file.is_file() {
        let text = std::fs::read_to_string(&file)
            .map_err(|e| failure(format!("`{}` cannot be read: {e}", file.display())))?;
        return Ok(Some(text));
    }
    let separate = super::object(&dir.join("chat_template.json"))?;
    let entry = [&separate, config]
        .into_iter()
        .find_map(|c| c.get("chat_template"));
    Ok(match entry {
        Some(Json::String(text)) => Some(text.clone()),
        Some(Json::Array(named)) => {
            let default = named.iter().find(|t| t["name"] == "default");
            let chosen = default.or_else(|| named.first());
            chosen.and_then(|t| t["template"].as_str()).map(Into::into)
        }
        _ => None,
    })
}

impl Template {
    pub(super) fn new(source: String, special: &Map<String, Json>) -> Result<Template> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(python_form);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |message: String| -> std::result::Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_function("strftime_now", |format: String| clock::now(&format));
        environment.add_filter("tojson", to_json);
        environment.add_filter(SAID, |text: String| format!("{OPENS}{text}{CLOSES}"));
        for (name, token) in special {
            environment.add_global(name.clone(), Value::from_serialize(token));
        }
        let bad = |e: Error| failure(format!("the chat template does not parse: {}", line(&e)));
        environment
            .add_template_owned("chat", with_blocks(&source))
            .map_err(bad)?;
        Ok(Template {
            environment,
            text: source,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn render(&self, messages: &[Message], turn: Turn) -> Result<Rendered> {
        let bad = |e: Error| {
            failure(format!(
                "the chat template refused this conversation: {}",
                line(&e)
            ))
        };
        let template = self.environment.get_template("chat").map_err(bad)?;
        let text = template
            .render(context! {
                messages,
                tools => Value::from(()),
                documents => Value::from(()),
                add_generation_prompt => turn == Turn::Open,
            })
            .map_err(bad)?;
        Ok(Rendered::of(&text))
    }
}

impl Rendered {
    fn of(marked: &str) -> Rendered {
        let (mut text, mut said, mut start) = (String::with_capacity(marked.len()), vec![], 0);
        for c in marked.chars() {
            match c {
                OPENS => start = text.len(),
                CLOSES => said.push(start..text.len()),
                c => text.push(c),
            }
        }
        Rendered { text, said }
    }
}

/// The filter that stands in the place of `{% generation %}`.
const SAID: &str = "said_by_the_assistant";

/// `transformers` marks what the assistant says with a block of its own, which Jinja does not know.
fn with_blocks(source: &str) -> String {
    // The pattern is a constant that compiles.
    let marks = Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").expect("a valid pattern");
    marks
        .replace_all(source, |found: &regex::Captures| {
            let block = match found.get(2) {
                Some(_) => "endfilter".to_string(),
                None => format!("filter {SAID}"),
            };
            format!("{{%{} {block} {}%}}", &found[1], &found[3])
        })
        .into_owned()
}

fn line(e: &Error) -> String {
    let what = e.detail().map_or_else(|| e.kind().to_string(), Into::into);
    match e.line() {
        Some(line) => format!("{what} (line {line} of the template)"),
        None => what,
    }
}

/// Python writes `True`, `False` and `None`.
fn python_form(out: &mut Output, state: &State, value: &Value) -> std::result::Result<(), Error> {
    match value.kind() {
        ValueKind::Bool => {
            let word = if value.is_true() { "True" } else { "False" };
            out.write_str(word).map_err(Error::from)
        }
        ValueKind::None => out.write_str("None").map_err(Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// `json.dumps(x, ensure_ascii=False, indent=…)`; Jinja's own filter would escape for HTML.
fn to_json(value: Value, options: Kwargs) -> std::result::Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let bad = |e: serde_json::Error| Error::new(ErrorKind::BadSerialization, e.to_string());
    let mut out = Vec::new();
    match indent {
        Some(n) => {
            let spaces = " ".repeat(n);
            let pretty = PrettyFormatter::with_indent(spaces.as_bytes());
            let mut serializer = serde_json::Serializer::with_formatter(&mut out, pretty);
            value.serialize(&mut serializer).map_err(bad)?;
        }
        None => {
            let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spaced);
            value.serialize(&mut serializer).map_err(bad)?;
        }
    }
    String::from_utf8(out).map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))
}

/// `{"a": 1, "b": [2, 3]}`: a space after each separator, as Python writes it.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
