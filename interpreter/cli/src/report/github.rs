//! Diagnostics as workflow commands, which a code host shows beside the lines of a change.

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;

use crate::pages;

/// `::error file=a.rlhf,line=2,…,title=E010 unknown-name::message`, one line.
pub fn command(sources: &Sources, d: &Diagnostic) -> String {
    let level = match d.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Hint => "notice",
    };
    let mut properties: Vec<(&str, String)> = vec![];
    if let Some(span) = d.span() {
        let source = sources.get(span.file);
        let (line, column) = source.line_column(span.lo);
        let (end_line, end_column) = source.line_column(span.hi);
        properties.push(("file", source.name.clone()));
        properties.push(("line", line.to_string()));
        properties.push(("col", column.to_string()));
        properties.push(("endLine", end_line.to_string()));
        properties.push(("endColumn", end_column.to_string()));
    }
    let title = match (d.code.as_str(), pages::title(&d.code)) {
        ("", _) => "rlhf".into(),
        (code, Some(title)) => format!("{code} {title}"),
        (code, None) => code.into(),
    };
    properties.push(("title", title));
    let properties: Vec<String> = properties
        .iter()
        .map(|(name, value)| format!("{name}={}", property(value)))
        .collect();
    let text = match &d.help {
        Some(help) => format!("{}\n{help}", d.message),
        None => d.message.clone(),
    };
    format!("::{level} {}::{}\n", properties.join(","), message(&text))
}

fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::source::{Source, Span};

    #[test]
    fn what_has_a_meaning_in_a_command_is_escaped() {
        let mut sources = Sources::default();
        let id = sources.add(Source::new("a,b:c.rlhf", "step {\n  x = yy\n}\n"));
        let d = Diagnostic::warning("E010", Span::new(id, 13, 15), "50 % of: a, b");
        assert_eq!(
            command(&sources, &d.help("one\ntwo")),
            "::warning file=a%2Cb%3Ac.rlhf,line=2,col=7,endLine=2,endColumn=9,title=E010 unknown-name\
             ::50 %25 of: a, b%0Aone%0Atwo\n"
        );
        assert_eq!(
            command(&sources, &Diagnostic::bare("", "no such device")),
            "::error title=rlhf::no such device\n"
        );
    }
}
