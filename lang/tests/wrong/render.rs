//! A diagnostic as plain text: its line of source above its message.

use std::fmt::Write;

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::{FileId, Sources, Span};

fn level(d: &Diagnostic) -> &'static str {
    match d.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Hint => "hint",
    }
}

/// `4:7: error[M103]: …`, behind the file where it is not the program.
pub fn concise(sources: &Sources, d: &Diagnostic) -> String {
    let place = d.span().map_or(String::new(), |s| {
        let (line, column) = sources.get(s.file).line_column(s.lo);
        format!("{}{line}:{column}: ", file(sources, s))
    });
    format!("{place}{}[{}]: {}\n", level(d), d.code, d.message)
}

/// The lines of source with what is marked in them, the message, its help and its fix.
pub fn whole(sources: &Sources, d: &Diagnostic) -> String {
    let mut text = String::new();
    for label in &d.labels {
        marked(sources, label.span, &label.text, &mut text);
    }
    text += &concise(sources, d);
    if let Some(help) = &d.help {
        writeln!(text, "  help: {help}").expect("a string takes all");
    }
    if let Some(fix) = &d.fix {
        let edits: Vec<String> = fix
            .edits
            .iter()
            .map(|(_, new)| format!("{new:?}"))
            .collect();
        writeln!(text, "  fix: {} ({})", fix.title, edits.join(", ")).expect("a string takes all");
    }
    text.push('\n');
    text
}

fn file(sources: &Sources, span: Span) -> String {
    match span.file {
        FileId(0) => String::new(),
        other => format!("{}:", sources.get(other).name),
    }
}

fn marked(sources: &Sources, span: Span, words: &str, text: &mut String) {
    let source = sources.get(span.file);
    let (line, column) = source.line_column(span.lo);
    let shown = source.text.lines().nth(line - 1).unwrap_or_default();
    let slice = source.slice(span);
    let first = slice.lines().next().unwrap_or_default();
    let more = if slice.contains('\n') { "…" } else { "" };
    let carets = "^".repeat(first.chars().count().max(1));
    if span.file != FileId(0) {
        writeln!(text, "  in {}", source.name).expect("a string takes all");
    }
    writeln!(text, "{line:>4} | {shown}").expect("a string takes all");
    let pad = " ".repeat(column - 1);
    let end = format!("{more} {words}");
    writeln!(text, "     | {pad}{carets}{}", end.trim_end()).expect("a string takes all");
}
