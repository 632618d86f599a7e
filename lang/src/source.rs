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

/// How an editor counts characters within a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, of which a character outside the basic plane has two.
    Utf16,
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
            .filter(|(_, b)| *b == b'\n')
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

    /// The 0-based line, and how many units of the encoding precede a byte in it.
    pub fn position(&self, offset: u32, encoding: Encoding) -> (u32, u32) {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|l| *l as usize <= offset).max(1) - 1;
        let before = &self.text[self.lines[line] as usize..offset];
        let units = match encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        (line as u32, units as u32)
    }

    /// The byte of a 0-based line and a count of units in it. What lies behind the end of a line is its
    /// end, and what lies within a character is its front.
    pub fn offset(&self, line: u32, units: u32, encoding: Encoding) -> u32 {
        let Some(start) = self.lines.get(line as usize) else {
            return self.text.len() as u32;
        };
        let rest = &self.text[*start as usize..];
        let text = rest.split('\n').next().unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut left = units as usize;
        for (at, c) in text.char_indices() {
            let width = match encoding {
                Encoding::Utf8 => c.len_utf8(),
                Encoding::Utf16 => c.len_utf16(),
            };
            if left < width {
                return start + at as u32;
            }
            left -= width;
        }
        start + text.len() as u32
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_offsets_are_inverse_in_both_encodings() {
        let text = "a = \"ä😀\"\r\n\nb = 1";
        let source = Source::new("x", text);
        let ends = text.char_indices().map(|(i, _)| i).chain([text.len()]);
        for at in ends.filter(|i| text.get(i.saturating_sub(1)..*i) != Some("\r")) {
            for encoding in [Encoding::Utf8, Encoding::Utf16] {
                let (line, units) = source.position(at as u32, encoding);
                assert_eq!(source.offset(line, units, encoding), at as u32, "{at}");
            }
        }
        assert_eq!(source.position(11, Encoding::Utf16), (0, 8));
        assert_eq!(source.position(11, Encoding::Utf8), (0, 11));
    }

    #[test]
    fn a_position_outside_of_the_text_is_the_nearest_inside() {
        let source = Source::new("x", "ä😀\nb");
        assert_eq!(source.offset(0, 99, Encoding::Utf16), 6);
        assert_eq!(source.offset(9, 0, Encoding::Utf16), 8);
        assert_eq!(source.offset(0, 2, Encoding::Utf16), 2);
    }
}
