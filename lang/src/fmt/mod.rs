//! The one layout of a program. No options.
//!
//! Layout is a function of the tokens, of where comments stand, and of blank lines between items and
//! statements; so formatting twice is formatting once. What does not parse is printed as it is.

mod line;
mod print;

use crate::diag::Diagnostic;
use crate::source::FileId;
use crate::syntax::parse::{Parsed, parse_with_layout};
use crate::syntax::tokens::Tokens;

/// Lines longer than this are broken where a bracket allows it.
const WIDTH: usize = 100;

/// A program in the one layout.
#[derive(Clone, Debug)]
pub struct Formatted {
    /// The text.
    pub text: String,
    /// What did not parse; those pieces are unchanged. Spans are of file 0 and of the text given.
    pub diagnostics: Vec<Diagnostic>,
}

/// Lays a program out. Nothing but white space, `;` and commas at the end of a bracket changes.
pub fn format(text: &str) -> Formatted {
    let parsed = parse_with_layout(FileId(0), text);
    let mut out = print::program(&parsed);
    let broken = !parsed.diagnostics.is_empty();
    // New indentation around a broken piece can change how far it reaches; such a text stays as it is.
    if !same_words(&parsed, &out) || (broken && !settled(&out)) {
        out = text.to_string();
    }
    Formatted {
        text: out,
        diagnostics: parsed.diagnostics,
    }
}

fn settled(text: &str) -> bool {
    let again = parse_with_layout(FileId(0), text);
    let printed = print::program(&again);
    printed == text && same_words(&again, &printed)
}

/// Whether the printed text holds every token and comment of the parsed one, in order.
fn same_words(parsed: &Parsed<'_>, out: &str) -> bool {
    fn words<'a>(tokens: &'a Tokens<'_>) -> impl Iterator<Item = &'a str> {
        (0..tokens.code.len())
            .map(|i| tokens.at(i))
            .filter(|t| !matches!(*t, "," | ";"))
    }
    let printed = Tokens::scan(FileId(0), out);
    let comments = |tokens: &Tokens<'_>| -> Vec<String> {
        tokens.comments.iter().map(|c| c.text.clone()).collect()
    };
    words(&parsed.tokens).eq(words(&printed)) && comments(&parsed.tokens) == comments(&printed)
}
