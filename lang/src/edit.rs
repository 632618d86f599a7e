//! Writes the changes that diagnostics carry into a text, whatever becomes of it.

use crate::diag::Diagnostic;
use crate::source::{FileId, Span};

/// A text with changes applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The text.
    pub text: String,
    /// How many diagnostics had their change applied.
    pub count: usize,
    /// What was written, in the new text.
    pub places: Vec<Span>,
}

/// Applies the changes to `file` that `diagnostics` carry, in one go; `None` when there are none.
///
/// Of changes that overlap, the first is applied. One that reaches into another file or does not fit the
/// text is left out.
pub fn apply(text: &str, file: FileId, diagnostics: &[Diagnostic]) -> Option<Applied> {
    let mut edits: Vec<(Span, &str)> = vec![];
    let mut count = 0;
    for fix in diagnostics.iter().filter_map(|d| d.fix.as_ref()) {
        let mut own: Vec<(Span, &str)> = vec![];
        let fits = fix.edits.iter().all(|(span, new)| {
            let free = |(other, _): &(Span, &str)| !overlap(*span, *other);
            let fits = span.file == file
                && text.get(span.range()).is_some_and(|old| old != new)
                && edits.iter().all(free)
                && own.iter().all(free);
            own.push((*span, new));
            fits
        });
        if fits && !own.is_empty() {
            edits.append(&mut own);
            count += 1;
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(span, _)| span.lo);
    let (mut out, mut places, mut at) = (String::new(), vec![], 0);
    for (span, new) in edits {
        out.push_str(&text[at..span.range().start]);
        let lo = out.len();
        out.push_str(new);
        places.push(Span::new(file, lo, out.len()));
        at = span.range().end;
    }
    out.push_str(&text[at..]);
    Some(Applied {
        text: out,
        count,
        places,
    })
}

/// Two replacements that cannot both be made: they share a byte or start at the same one.
fn overlap(a: Span, b: Span) -> bool {
    (a.lo < b.hi && b.lo < a.hi) || a.lo == b.lo
}
