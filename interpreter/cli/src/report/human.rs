//! Diagnostics for people, drawn by miette over the text they blame.

use std::fmt;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, Severity, SourceCode, ThemeCharacters,
    ThemeStyles,
};
use rlhf_lang::diag::{Diagnostic, Label, Level};
use rlhf_lang::source::{FileId, Sources};

use super::excerpt::Excerpt;

/// What the drawing puts before a line, beside its number.
const GUTTER: usize = 6;

/// What the stream can show.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// With colours.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Style {
    /// Of standard error: colours only on a terminal and never with `NO_COLOR`.
    pub fn of_stderr() -> Self {
        let terminal = console::Term::stderr();
        let quiet = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Style {
            colour: terminal.is_term() && !quiet && console::colors_enabled_stderr(),
            width: terminal
                .size_checked()
                .map_or(100, |(_, columns)| usize::from(columns).clamp(40, 140)),
        }
    }
}

/// The diagnostic as lines of text, the last one empty.
pub fn render(sources: &Sources, d: &Diagnostic, style: Style) -> String {
    let theme = GraphicalTheme {
        characters: ThemeCharacters::unicode(),
        styles: if style.colour {
            ThemeStyles::ansi()
        } else {
            ThemeStyles::none()
        },
    };
    let drawer = GraphicalReportHandler::new_themed(theme)
        .with_width(style.width)
        .with_links(false)
        // A path is one word, and a `name=value` that is cut in two cannot be copied.
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_break_words(false);
    let mut text = String::new();
    match drawer.render_report(&mut text, &Drawn::new(sources, d, style.width)) {
        Ok(()) => text,
        Err(_) => format!("{}: {}\n", super::level(d.level), d.message),
    }
}

/// A diagnostic as miette wants it: one text with its labels. The labels in other texts follow as
/// diagnostics of their own.
#[derive(Debug)]
struct Drawn {
    message: String,
    code: Option<String>,
    severity: Severity,
    help: Option<String>,
    source: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
    elsewhere: Vec<Drawn>,
}

impl Drawn {
    fn new(sources: &Sources, d: &Diagnostic, width: usize) -> Self {
        let severity = match d.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Hint => Severity::Advice,
        };
        let first = d.span().map(|span| span.file);
        let mut elsewhere: Vec<FileId> = d.labels.iter().map(|l| l.span.file).collect();
        elsewhere.sort();
        elsewhere.dedup();
        elsewhere.retain(|file| Some(*file) != first);
        let help = d.help.clone();
        let drawn = first.map(|file| marked(sources, file, &d.labels, width));
        let (source, labels) = drawn.unzip();
        Drawn {
            message: d.message.clone(),
            code: Some(d.code.clone()).filter(|c| !c.is_empty()),
            severity,
            help: help.or_else(|| d.fix.as_ref().map(|fix| fix.title.clone())),
            source,
            labels: labels.unwrap_or_default(),
            elsewhere: elsewhere
                .into_iter()
                .map(|file| {
                    let (source, labels) = marked(sources, file, &d.labels, width);
                    Drawn {
                        message: format!("and in {}", sources.get(file).name),
                        code: None,
                        severity: Severity::Advice,
                        help: None,
                        source: Some(source),
                        labels,
                        elsewhere: vec![],
                    }
                })
                .collect(),
        }
    }
}

/// A text with what the labels mark in it.
fn marked(
    sources: &Sources,
    file: FileId,
    labels: &[Label],
    width: usize,
) -> (Excerpt, Vec<LabeledSpan>) {
    let source = sources.get(file);
    let length = source.text.len();
    let of_file = labels.iter().filter(|l| l.span.file == file && length > 0);
    let of_file: Vec<&Label> = of_file.collect();
    let boundary = |at: u32| {
        // A span past the end would make miette drop the whole picture.
        let at = (at as usize).min(length);
        (0..=at).rev().find(|i| source.text.is_char_boundary(*i))
    };
    let marks: Vec<_> = of_file
        .iter()
        .map(|label| {
            let lo = boundary(label.span.lo).unwrap_or(0);
            lo..boundary(label.span.hi).unwrap_or(lo).max(lo)
        })
        .collect();
    let lines = source.text.lines().count().to_string().len();
    let (excerpt, marks) = Excerpt::new(source, &marks, width.saturating_sub(GUTTER + lines));
    let spans = of_file.iter().zip(marks).enumerate();
    let spans = spans.map(|(i, (label, mark))| {
        let words = Some(label.text.clone()).filter(|t| !t.is_empty());
        match i {
            0 => LabeledSpan::new_primary_with_span(words, mark),
            _ => LabeledSpan::new_with_span(words, mark),
        }
    });
    let spans = spans.collect();
    (excerpt, spans)
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Drawn {}

impl miette::Diagnostic for Drawn {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.code.as_ref().map(|c| Box::new(c) as Box<_>)
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|h| Box::new(h) as Box<_>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        let elsewhere = self.elsewhere.iter();
        Some(Box::new(elsewhere.map(|d| d as &dyn miette::Diagnostic)))
    }
}
