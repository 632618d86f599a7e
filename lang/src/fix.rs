//! Applies the safe changes that diagnostics carry.
//!
//! A change is kept only when the text is no worse for it: what it was for is gone, nothing is wrong in the
//! place it wrote, and no kind of error has grown. Errors of a later kind may come to light, since what does
//! not parse has no types, and what has no types is not held against the rules of learning. Another name is
//! written only where the one that stands there is a slip of it: `rr` may be `lr` or `r`.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Certainty, Diagnostic, Fix, Level};
pub use crate::edit::{Applied, apply};
use crate::source::{FileId, Span};
use crate::syntax;

/// Changes tried on one text. Every kept change takes a diagnostic away, so few texts come near it.
const LIMIT: usize = 400;

/// A text that was mended as far as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The text; the one given when nothing could be mended.
    pub text: String,
    /// Diagnostics whose change was applied.
    pub count: usize,
}

/// Applies changes until none is left that leaves the text better. `check` gives the diagnostics of a text,
/// whose own file has the id 0.
pub fn mend(text: &str, check: &dyn Fn(&str) -> Vec<Diagnostic>) -> Mended {
    let mut mended = Mended {
        text: text.into(),
        count: 0,
    };
    let mut refused: BTreeSet<String> = BTreeSet::new();
    let mut state = State::new(text, check(text));
    for _ in 0..LIMIT {
        let mut open = state.diagnostics.clone();
        open.retain(|d| {
            let fix = d.fix.as_ref();
            fix.is_some_and(|f| f.certainty == Certainty::Sure && !refused.contains(&key(d, f)))
        });
        // All at once is right nearly always; otherwise one at a time finds the one that is not.
        let mut better = step(&state, &open, check);
        if better.is_none() {
            for d in &open {
                better = step(&state, std::slice::from_ref(d), check);
                if better.is_some() {
                    break;
                }
                refused.extend(d.fix.as_ref().map(|f| key(d, f)));
            }
        }
        let Some((next, count)) = better else { break };
        mended.count += count;
        mended.text.clone_from(&next.text);
        state = next;
    }
    mended
}

/// A text with what is wrong with it.
struct State {
    text: String,
    diagnostics: Vec<Diagnostic>,
    /// Messages of the parser alone: they say what the text is before it means anything.
    syntax: BTreeSet<String>,
}

impl State {
    fn new(text: &str, diagnostics: Vec<Diagnostic>) -> Self {
        let (_, parsed) = syntax::parse(FileId(0), text);
        State {
            text: text.into(),
            diagnostics,
            syntax: parsed.into_iter().map(|d| d.message).collect(),
        }
    }

    /// Which stage finds the diagnostic: a stage is silent while an earlier one fails.
    fn stage(&self, d: &Diagnostic) -> usize {
        match d.code.chars().next() {
            Some('E') if self.syntax.contains(&d.message) => 0,
            Some('E') => 1,
            Some('L' | 'M') => 2,
            _ => 3,
        }
    }

    /// The number of errors of each stage.
    fn errors(&self) -> BTreeMap<usize, usize> {
        let mut count = BTreeMap::new();
        for d in self.diagnostics.iter().filter(|d| d.level == Level::Error) {
            *count.entry(self.stage(d)).or_default() += 1;
        }
        count
    }
}

/// The text with the changes of `open`, if it is better.
fn step(
    state: &State,
    open: &[Diagnostic],
    check: &dyn Fn(&str) -> Vec<Diagnostic>,
) -> Option<(State, usize)> {
    let applied = apply(&state.text, FileId(0), open)?;
    let next = State::new(&applied.text, check(&applied.text));
    let stage = open.iter().map(|d| state.stage(d)).max()?;
    let (before, after) = (state.errors(), next.errors());
    let grown = after
        .iter()
        .any(|(s, n)| *s <= stage && *n > before.get(s).copied().unwrap_or(0));
    let wanted = |d: &&Diagnostic| open.iter().any(|o| same(o, d));
    let left = next.diagnostics.iter().filter(wanted).count();
    let gone = left + applied.count <= state.diagnostics.iter().filter(wanted).count();
    let spoiled = next.diagnostics.iter().any(|d| {
        d.level == Level::Error
            && next.stage(d) <= stage
            && !state.diagnostics.iter().any(|b| same(b, d))
            && d.span()
                .is_some_and(|s| applied.places.iter().any(|p| touches(s, *p)))
    });
    (!grown && gone && !spoiled).then_some((next, applied.count))
}

fn same(a: &Diagnostic, b: &Diagnostic) -> bool {
    (&a.code, &a.message) == (&b.code, &b.message)
}

fn touches(a: Span, b: Span) -> bool {
    a.file == b.file && a.lo <= b.hi && b.lo <= a.hi
}

/// Names a change without its place, which moves as the text changes.
fn key(d: &Diagnostic, fix: &Fix) -> String {
    let new: Vec<&str> = fix.edits.iter().map(|(_, new)| new.as_str()).collect();
    format!("{} {} {new:?}", d.code, d.message)
}
