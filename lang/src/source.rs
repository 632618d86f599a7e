//! Source text and positions in it.
//!
//! A [`Span`] is three integers, so it can travel from the tree through the graph into a rank's
//! instructions: a failure at run time points at the line of the program that asked for it.

use serde::{Deserialize, Serialize};

/// Which of the compiled texts a span lies in: an index into [`Sources`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct FileId(pub u32);

/// A half-open byte range `lo..hi` of one file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
}

impl Span {
    /// The bytes `lo..hi` of `file`.
    pub fn new(file: FileId, lo: usize, hi: usize) -> Self {
        Span {
            file,
            lo: lo as u32,
            hi: hi as u32,
        }
    }

    /// The smallest span that covers both; they must lie in one file, else `self` is returned.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span {
            file: self.file,
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    /// The range as `usize`, for slicing the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.lo as usize..self.hi as usize
    }
}

/// One text with its name and line table.
#[derive(Clone, Debug)]
pub struct Source {
    /// What diagnostics print: a path as the user gave it, or `std.kl`.
    pub name: String,
    /// The text.
    pub text: String,
    lines: Vec<u32>,
}

impl Source {
    /// Indexes the lines of `text`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let starts = text
            .bytes()
            .enumerate()
            // A line ends in `\n`, in `\r\n`, or in `\r` alone.
            .filter(|(i, b)| {
                *b == b'\n' || (*b == b'\r' && text.as_bytes().get(i + 1) != Some(&b'\n'))
            })
            .map(|(i, _)| i as u32 + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Source {
            name: name.into(),
            text,
            lines,
        }
    }

    /// The 1-based line and the 1-based column, in characters, of a byte offset.
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let offset = offset.min(self.text.len() as u32);
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines[line - 1] as usize;
        let column = self
            .text
            .get(start..offset as usize)
            .map_or(0, |t| t.chars().count());
        (line, column + 1)
    }

    /// A line by its 1-based number, with its end.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.lines.get(number.checked_sub(1)?)? as usize;
        let end = self
            .lines
            .get(number)
            .map_or(self.text.len(), |e| *e as usize);
        self.text.get(start..end)
    }

    /// The text of a span of this file; empty when the span does not fit.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }
}

/// Every text of one compilation: the program first, then what it imports.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a text and gives it its id.
    pub fn add(&mut self, source: Source) -> FileId {
        self.files.push(source);
        FileId(self.files.len() as u32 - 1)
    }

    /// The text of an id. Ids come only from [`Sources::add`] of the same value.
    pub fn get(&self, id: FileId) -> &Source {
        &self.files[id.0 as usize]
    }

    /// All texts in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.files
            .iter()
            .enumerate()
            .map(|(i, s)| (FileId(i as u32), s))
    }
}
