//! Where a name is defined and where it is used.

use crate::source::Span;

use super::names::{Mention, Target};
use super::{Document, first_word};

impl Document {
    /// Where the name at a byte is defined: in this text, in an imported file or in the standard library.
    /// Of a module or file that a `use` names, it is its first line.
    pub fn definition(&self, offset: u32) -> Option<Span> {
        if self.in_comment(offset) {
            return None;
        }
        match self.names.at(offset) {
            Some(m) => self.defined(m).or_else(|| self.argument(m)),
            None => self.used_file(offset),
        }
    }

    /// Every mention of the name at a byte in this text, its definition included.
    pub fn references(&self, offset: u32) -> Vec<Span> {
        let Some(mention) = self.names.at(offset) else {
            return vec![];
        };
        match mention.target {
            Target::Def(id) => self.names.mentions_of(id).map(|m| m.span).collect(),
            Target::Label(_) => vec![],
            Target::Word(_) | Target::Open => {
                let word = self.text(mention.span);
                let same = |m: &&Mention| m.target == mention.target && self.text(m.span) == word;
                let mentions = self.names.mentions.iter();
                mentions.filter(same).map(|m| m.span).collect()
            }
        }
    }

    /// A label leads to the argument of a function in another file.
    fn argument(&self, m: &Mention) -> Option<Span> {
        let Target::Label(head) = m.target else {
            return None;
        };
        let (_, f) = self.called(head)?;
        let label = first_word(self.text(m.span));
        let p = f.params.iter().find(|p| p.name.text == label)?;
        Some(p.name.span)
    }

    /// The file that the path of a `use` at a byte names.
    fn used_file(&self, offset: u32) -> Option<Span> {
        use crate::syntax::ast::{ItemKind, UsePath};
        let items = self.compiled.file.items.iter();
        let mut uses = items.filter_map(|i| match &i.kind {
            ItemKind::Use(u) => Some(u),
            _ => None,
        });
        let (name, _) = uses.find_map(|u| {
            let (name, span) = match &u.path {
                UsePath::File(path, span) => (path.clone(), *span),
                UsePath::Dotted(names) => {
                    let span = names.first()?.span.to(names.last()?.span);
                    (self.text(span).to_string(), span)
                }
            };
            (span.lo <= offset && offset <= span.hi).then_some((name, span))
        })?;
        let mut sources = self.compiled.sources.iter();
        // The program itself is the first, and a file does not import its own name.
        let (file, _) = sources.find(|(f, s)| s.name == name && *f != self.compiled.file.id)?;
        Some(Span::new(file, 0, 0))
    }
}
