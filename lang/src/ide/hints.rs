//! Types beside the names that have none written.

use crate::facts::What;
use crate::source::Span;

use super::Document;
use super::names::DefKind;

/// A few words shown in the text that are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte before which it stands.
    pub offset: u32,
    /// The words.
    pub text: String,
}

impl Document {
    /// The types of bindings and of functions' arguments within a range of the text.
    pub fn hints(&self, range: Span) -> Vec<Hint> {
        let defs = self.names.defs.iter();
        let mut hints: Vec<Hint> = defs
            .filter(|d| range.lo <= d.span.lo && d.span.hi <= range.hi)
            .filter_map(|def| {
                let what = self.meaning(def.span)?;
                match (def.kind, what) {
                    (DefKind::Binding, What::Value(_) | What::Rollout(_) | What::Prompt) => {
                        Some(Hint {
                            offset: def.span.hi,
                            text: format!(": {}", self.show(what)?),
                        })
                    }
                    (DefKind::Argument, _) => {
                        let declared = def.ty?;
                        let shown = self.show(what)?;
                        // A type that says it all needs no second one.
                        (self.text(declared) != shown).then(|| Hint {
                            offset: declared.hi,
                            text: format!(" as {shown}"),
                        })
                    }
                    _ => None,
                }
            })
            .collect();
        hints.sort_by_key(|h| h.offset);
        hints
    }
}
