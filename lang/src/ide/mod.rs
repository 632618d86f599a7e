//! What an editor shows: offsets in, plain structs out.
//!
//! A [`Document`] is a compiled text with its names looked up once; every question to it is answered in
//! much less than a millisecond. Every text has answers, broken ones included. Offsets are bytes of the
//! document's own text; spans in answers may lie in the standard library or in an imported file.

mod arguments;
mod complete;
mod context;
mod edits;
mod hints;
mod hover;
mod library;
mod names;
mod navigate;
mod offer;
mod rename;
mod symbols;
mod walk;

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::compile::Compiled;
use crate::facts::What;
use crate::graph::Type;
use crate::source::{FileId, Source, Span};
use crate::syntax::ast;

pub use complete::{Completion, CompletionKind};
pub use edits::{Action, format};
pub use hints::Hint;
pub use hover::Hover;
pub use names::DefKind;
pub use symbols::{Symbol, SymbolKind};

use names::{Def, Mention, Names, Target};

/// A compiled text, ready for questions.
pub struct Document {
    compiled: Compiled,
    names: Names,
    /// Indices into the facts, by the text they are of.
    meanings: HashMap<Span, usize>,
    values: HashMap<Span, usize>,
    /// The standard library's modules, whole, each once it is asked about; compiling reads only
    /// what is called.
    standard: Vec<(FileId, OnceCell<ast::File>)>,
}

impl Document {
    /// Looks up the names of a compiled text.
    pub fn new(compiled: Compiled) -> Self {
        let text = &compiled.sources.get(compiled.file.id).text;
        let names = Names::of(&compiled.file, text);
        let mut meanings: HashMap<Span, usize> = HashMap::new();
        for (i, o) in compiled.facts.names.iter().enumerate() {
            let known = meanings.entry(o.span).or_insert(i);
            // A function's text is read at every call; the first that says something counts.
            if compiled.facts.names[*known].what == What::Unknown {
                *known = i;
            }
        }
        let mut values = HashMap::new();
        for (i, (span, _)) in compiled.facts.values.iter().enumerate() {
            values.entry(*span).or_insert(i);
        }
        let sources = compiled.sources.iter();
        let standard = sources.filter(|(_, s)| rlhf_stdlib::module(&s.name).is_some());
        let standard = standard.map(|(id, _)| (id, OnceCell::new())).collect();
        Document {
            compiled,
            names,
            meanings,
            values,
            standard,
        }
    }

    /// What the text was compiled to.
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The text itself.
    pub fn source(&self) -> &Source {
        self.compiled.sources.get(self.compiled.file.id)
    }

    fn text(&self, span: Span) -> &str {
        self.compiled.sources.get(span.file).slice(span)
    }

    /// What a name stands for, where the program could be read.
    fn meaning(&self, span: Span) -> Option<&What> {
        let index = *self.meanings.get(&span)?;
        let what = &self.compiled.facts.names[index].what;
        (*what != What::Unknown).then_some(what)
    }

    /// The type of the expression at exactly this place.
    fn value(&self, span: Span) -> Option<&Type> {
        let index = *self.values.get(&span)?;
        Some(&self.compiled.facts.values[index].1)
    }

    /// The tree of a file.
    fn tree(&self, file: FileId) -> Option<&ast::File> {
        if file == self.compiled.file.id {
            return Some(&self.compiled.file);
        }
        if let Some((id, module)) = self.standard.iter().find(|(id, _)| *id == file) {
            let text = &self.compiled.sources.get(*id).text;
            return Some(module.get_or_init(|| crate::syntax::parse(*id, text).0));
        }
        self.compiled.libraries.iter().find(|f| f.id == file)
    }

    /// The function whose name stands at a place of any file.
    fn function(&self, at: Span) -> Option<(&ast::Item, &ast::Fn)> {
        let items = self.tree(at.file)?.items.iter();
        let mut functions = items.filter_map(|item| match &item.kind {
            ast::ItemKind::Fn(f) => Some((item, f)),
            _ => None,
        });
        functions.find(|(_, f)| f.name.span == at)
    }

    /// Where a mention's name is defined, in whichever file.
    fn defined(&self, mention: &Mention) -> Option<Span> {
        let noted = || {
            let index = *self.meanings.get(&mention.span)?;
            self.compiled.facts.names[index].def
        };
        match mention.target {
            Target::Def(id) => {
                let def = self.names.def(id);
                match def.kind {
                    DefKind::Import => self.imported(def),
                    _ => Some(def.span),
                }
            }
            Target::Open => noted().or_else(|| self.prelude(self.text(mention.span))),
            Target::Word(_) | Target::Label(_) => None,
        }
    }

    /// The function that an import names.
    fn imported(&self, import: &Def) -> Option<Span> {
        let index = *self.meanings.get(&import.span)?;
        let at = self.compiled.facts.names[index].def?;
        (at.file != import.span.file).then_some(at)
    }

    /// A function that is in scope everywhere.
    fn prelude(&self, name: &str) -> Option<Span> {
        let mut sources = self.compiled.sources.iter();
        let (file, _) = sources.find(|(_, s)| s.name == library::PRELUDE)?;
        let items = self.tree(file)?.items.iter();
        let names = items.filter_map(|item| match &item.kind {
            ast::ItemKind::Fn(f) => Some(&f.name),
            _ => None,
        });
        names.into_iter().find(|n| n.text == name).map(|n| n.span)
    }

    /// The function that is called by the word at the front of a text.
    fn called(&self, callee: Span) -> Option<(&ast::Item, &ast::Fn)> {
        let mention = self.names.at(callee.lo)?;
        self.function(self.defined(mention)?)
    }
}

/// The identifier that a text begins with.
fn first_word(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    &text[..end]
}
