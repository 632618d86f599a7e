//! L009: a param without a doc line.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::diag::Level;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let bare = facts
        .graph
        .params
        .iter()
        .filter(|p| p.doc.trim().is_empty());
    bare.map(|p| {
        let mut d = Diagnostic::warning(
            "L009",
            p.span,
            format!("`{}` has no doc line; `--help` will show none", p.name),
        )
        .help("a line `/// …` above it says what it is");
        d.level = Level::Hint;
        d
    })
    .collect()
}
