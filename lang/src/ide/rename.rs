//! Renaming: every mention in the file, or a reason why not.

use crate::reference::{self, Chapter};
use crate::source::Span;
use crate::syntax::ast::ItemKind;
use crate::syntax::tokens::is_hard;

use super::names::{Def, DefId, DefKind, Target};
use super::{Document, library};

impl Document {
    /// The name at a byte, if it can have another.
    pub fn renamable(&self, offset: u32) -> Result<Span, String> {
        self.subject(offset).map(|(span, _)| span)
    }

    /// The edits that give the name at a byte another. A column keeps the name it has in its file.
    pub fn rename(&self, offset: u32, to: &str) -> Result<Vec<(Span, String)>, String> {
        let (_, id) = self.subject(offset)?;
        let def = self.names.def(id);
        if to == def.name {
            return Ok(vec![]);
        }
        self.free(def, to)?;
        self.all_readable(def)?;
        let mentions = self.names.mentions_of(id);
        let mut edits: Vec<(Span, String)> = mentions.map(|m| (m.span, to.to_string())).collect();
        edits.extend(self.source_name(def));
        Ok(edits)
    }

    fn subject(&self, offset: u32) -> Result<(Span, DefId), String> {
        let nothing = || "there is no name here".to_string();
        if self.in_comment(offset) {
            return Err(nothing());
        }
        let mention = self.names.at(offset).ok_or_else(nothing)?;
        let name = self.text(mention.span);
        match mention.target {
            Target::Def(id) if self.names.def(id).kind == DefKind::Import => {
                let def = self.names.def(id);
                Err(match self.imported(def) {
                    Some(at) => {
                        let file = &self.compiled.sources.get(at.file).name;
                        format!("`{name}` is defined in `{file}`; it is renamed there")
                    }
                    None => format!("`{name}` is an import without its function"),
                })
            }
            Target::Def(id) => Ok((mention.span, id)),
            Target::Word(_) => Err(format!("`{name}` is a word of the language")),
            Target::Label(head) => Err(match self.called(head) {
                Some((_, f)) => {
                    let file = &self.compiled.sources.get(f.name.span.file).name;
                    format!("`{name}` is an argument of `{}` in `{file}`", f.name.text)
                }
                None => format!("`{name}` is a word of the language"),
            }),
            Target::Open => Err(match self.defined(mention) {
                Some(at) => {
                    let file = &self.compiled.sources.get(at.file).name;
                    format!("`{name}` is defined in `{file}`")
                }
                None => format!("`{name}` is not defined in this file"),
            }),
        }
    }

    /// Whether another name means nothing yet wherever the definition can be read.
    fn free(&self, def: &Def, to: &str) -> Result<(), String> {
        let mut chars = to.chars();
        let starts = chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`{to}` is not a name: letters, digits and `_`, not a digit first"
            ));
        }
        if is_hard(to) {
            return Err(format!("`{to}` is a keyword"));
        }
        let built_in = reference::builtin(to)
            .is_some_and(|e| matches!(e.chapter, Chapter::Operator | Chapter::Verb));
        if built_in || matches!(to, "iteration" | "iterations") {
            return Err(format!("`{to}` is built in"));
        }
        let mut prelude = library::functions().iter();
        if prelude.any(|f| f.module == library::PRELUDE && f.name == to) {
            return Err(format!("`{to}` is a function of `{}`", library::PRELUDE));
        }
        let meets = |other: &&Def| {
            let items = other.visible.is_none() || def.visible.is_none();
            other.name == to && (items || other.item == def.item)
        };
        match self.names.defs.iter().find(meets) {
            Some(other) => {
                let line = self.source().line_column(other.span.lo).0;
                Err(format!("`{to}` is already a name, on line {line}"))
            }
            None => Ok(()),
        }
    }

    /// Mentions in text that does not parse are not known, so such a text keeps its name.
    fn all_readable(&self, def: &Def) -> Result<(), String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for bad in &self.names.bad {
            let mut words = self.text(*bad).split(|c| !is_word(c));
            if words.any(|w| w == def.name) {
                let line = self.source().line_column(bad.lo).0;
                return Err(format!(
                    "line {line} does not parse, and it may mean this `{}`",
                    def.name
                ));
            }
        }
        Ok(())
    }

    /// `question: text` becomes `q: text from "question"`.
    fn source_name(&self, def: &Def) -> Option<(Span, String)> {
        let ItemKind::Data(data) = &self.compiled.file.items.get(def.item)?.kind else {
            return None;
        };
        let column = data.columns.iter().find(|c| c.name.span == def.span)?;
        let at = Span {
            lo: column.ty.span.hi,
            ..column.ty.span
        };
        column
            .from
            .is_none()
            .then(|| (at, format!(" from \"{}\"", def.name)))
    }
}
