//! Formatting and fixes as edits.

use crate::source::{FileId, Span};

use super::Document;

/// A fix that is offered at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does.
    pub title: String,
    /// Index of the diagnostic it mends.
    pub diagnostic: usize,
    /// Replacements in this document, none overlapping another.
    pub edits: Vec<(Span, String)>,
}

/// The edit that puts a text in the standard layout; `None` when it is.
pub fn format(text: &str) -> Option<(Span, String)> {
    let new = crate::fmt::format(text).text;
    if new == text {
        return None;
    }
    let same = |(a, b): &(char, char)| a == b;
    let width = |(c, _): (char, char)| c.len_utf8();
    let front: usize = text
        .chars()
        .zip(new.chars())
        .take_while(same)
        .map(width)
        .sum();
    let (old_rest, new_rest) = (&text[front..], &new[front..]);
    let backwards = old_rest.chars().rev().zip(new_rest.chars().rev());
    let back: usize = backwards.take_while(same).map(width).sum();
    let span = Span::new(FileId(0), front, text.len() - back);
    Some((span, new_rest[..new_rest.len() - back].to_string()))
}

impl Document {
    /// The fixes of diagnostics that touch a range of this text.
    pub fn actions(&self, range: Span) -> Vec<Action> {
        let own = self.compiled.file.id;
        let diagnostics = self.compiled.diagnostics.iter().enumerate();
        diagnostics
            .filter_map(|(i, d)| {
                let at = d.span()?;
                let fix = d.fix.as_ref()?;
                let touches = at.file == own && at.lo <= range.hi && range.lo <= at.hi;
                let here = fix.edits.iter().all(|(s, _)| s.file == own);
                (touches && here).then(|| Action {
                    title: fix.title.clone(),
                    diagnostic: i,
                    edits: fix.edits.clone(),
                })
            })
            .collect()
    }
}
