//! D300: data that cannot be read, with the place in the file.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use rlhf_lang::source::{Source, Sources, Span};

/// A longer line is not shown; its number is in the message.
const SHOWN: usize = 300;
/// So many bytes of a file are kept to draw a line of it.
const KEPT: usize = 1 << 20;

/// Why a file was not read to its end.
#[derive(Clone, Debug)]
pub struct Unreadable {
    diagnostic: Box<Diagnostic>,
    excerpt: Option<Excerpt>,
}

/// The beginning of a file as it is read, up to what is worth keeping.
#[derive(Debug, Default)]
pub(super) struct Before {
    text: String,
    cut: bool,
}

impl Before {
    /// All text before a line.
    pub(super) fn of(text: &str) -> Before {
        let mut before = Before::default();
        before.push(text);
        before
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, text: &str) {
        self.cut |= self.text.len() + text.len() > KEPT;
        match self.cut {
            true => self.text = String::new(),
            false => self.text.push_str(text),
        }
    }
}

/// The place in the file.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// The file's text before the line, unless it is long.
    before: Option<String>,
    line: String,
    /// The byte of the line at which reading stopped.
    at: usize,
}

impl Excerpt {
    /// `at` is a byte of `line`. None for a line too long to show.
    pub(super) fn new(before: &Before, line: &str, at: usize) -> Option<Excerpt> {
        let line = line.trim_end();
        if line.is_empty() || line.len() > SHOWN {
            return None;
        }
        let at = at.min(line.len() - 1);
        let at = (0..=at).rev().find(|i| line.is_char_boundary(*i))?;
        Some(Excerpt {
            before: (!before.cut).then(|| before.text.clone()),
            line: line.into(),
            at,
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
            let way_out = d.help.take().unwrap_or_default();
            d.help = Some(format!("the line is `{}`; {way_out}", excerpt.line));
        }
        d
    }

    /// The diagnostic over the data file, whose beginning joins `sources`; over the program where the
    /// place is too far down to show.
    pub fn drawn(self, data: &Data, sources: &mut Sources) -> Box<Diagnostic> {
        let Some(Excerpt {
            before: Some(before),
            line,
            at,
        }) = &self.excerpt
        else {
            return self.told();
        };
        let width = line[*at..].chars().next().map_or(0, char::len_utf8);
        let lo = before.len() + at;
        let file = sources.add(Source::new(data.path.clone(), format!("{before}{line}")));
        let mut d = self.diagnostic;
        d.labels.clear();
        *d = d
            .label(Span::new(file, lo, lo + width), "here")
            .label(data.path_span, "declared here");
        d
    }
}
