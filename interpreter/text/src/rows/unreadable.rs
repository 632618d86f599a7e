//! D300: data that cannot be read, with the place in the file.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use rlhf_lang::source::{Source, Sources, Span};

/// A longer line is not shown; its number is in the message.
const SHOWN: usize = 300;
/// No text of a large file is kept.
const KEPT: usize = 1 << 20;

/// Why a file was not read to its end.
#[derive(Clone, Debug)]
pub struct Unreadable {
    diagnostic: Box<Diagnostic>,
    excerpt: Option<Excerpt>,
}

/// The place in the file.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// The file's text to the end of the line.
    text: String,
    /// Where the line starts.
    line: usize,
    /// The byte of the text at which reading stopped.
    at: usize,
}

impl Excerpt {
    /// `before` is the text before `line`, `at` a byte of `line`. None for text too long to show.
    pub(super) fn new(before: &str, line: &str, at: usize) -> Option<Excerpt> {
        let line = line.trim_end();
        if line.is_empty() || line.len() > SHOWN || before.len() > KEPT {
            return None;
        }
        let at = at.min(line.len() - 1);
        let at = (0..=at).rev().find(|i| line.is_char_boundary(*i))?;
        Some(Excerpt {
            text: format!("{before}{line}"),
            line: before.len(),
            at: before.len() + at,
        })
    }
}

impl Unreadable {
    /// D300 at the declaration.
    pub(super) fn new(
        data: &Data,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Box<Unreadable> {
        Unreadable::at(data, message, help, None)
    }

    /// D300 at a place in the file.
    pub(super) fn at(
        data: &Data,
        message: impl Into<String>,
        help: impl Into<String>,
        excerpt: Option<Excerpt>,
    ) -> Box<Unreadable> {
        let d = Diagnostic::error("D300", data.path_span, message).help(help);
        Box::new(Unreadable {
            diagnostic: Box::new(d),
            excerpt,
        })
    }

    /// The diagnostic over the program, with the line in words.
    pub fn told(self) -> Box<Diagnostic> {
        let mut d = self.diagnostic;
        if let Some(excerpt) = self.excerpt {
            let line = &excerpt.text[excerpt.line..];
            let way_out = d.help.take().unwrap_or_default();
            d.help = Some(format!("the line is `{line}`; {way_out}"));
        }
        d
    }

    /// The diagnostic over the data file, whose beginning joins `sources`; over the program where the
    /// place is too far down to show.
    pub fn drawn(self, data: &Data, sources: &mut Sources) -> Box<Diagnostic> {
        let mut d = self.diagnostic;
        if let Some(excerpt) = self.excerpt {
            let width = excerpt.text[excerpt.at..].chars().next();
            let hi = excerpt.at + width.map_or(0, char::len_utf8);
            let file = sources.add(Source::new(data.path.clone(), excerpt.text));
            d.labels.clear();
            *d = d
                .label(Span::new(file, excerpt.at, hi), "here")
                .label(data.path_span, "declared here");
        }
        d
    }
}
