//! Completion: what may stand at the cursor, best first.

use crate::source::Span;

use super::Document;
use super::context::{Context, Cursor};

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words of the language
pub enum CompletionKind {
    Keyword,
    Operator,
    Verb,
    Function,
    Module,
    Param,
    Data,
    Column,
    Model,
    Reward,
    State,
    Argument,
    Axis,
    Binding,
    Label,
    Member,
    Type,
    Choice,
}

/// Something that may be written at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As it is listed.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// A type or signature; may be empty.
    pub detail: String,
    /// Sentences, as Markdown; may be empty.
    pub doc: String,
    /// The text to insert.
    pub insert: String,
    /// The text it takes the place of.
    pub replace: Span,
    /// 0 is likeliest.
    pub rank: u8,
    /// Changes elsewhere that it needs, such as an import.
    pub also: Vec<(Span, String)>,
}

impl Document {
    /// What may stand at a byte, likeliest first; an editor filters by what is written already.
    pub fn complete(&self, offset: u32) -> Vec<Completion> {
        let source = self.source();
        let mut offset = offset.min(source.text.len() as u32);
        while !source.text.is_char_boundary(offset as usize) {
            offset -= 1;
        }
        let cursor = Cursor::at(&source.text, offset);
        let replace = Span {
            file: self.compiled.file.id,
            lo: cursor.word.0,
            hi: cursor.word.1,
        };
        let mut offers = super::offer::Offers::new(self, replace);
        match &cursor.context {
            Context::Nothing => {}
            Context::Member(dot) => offers.members(*dot),
            Context::Module => offers.modules(),
            Context::Import(path) => offers.functions_of(path),
            Context::Item => offers.item_keywords(),
            Context::Statement(body) => offers.statement(body),
            Context::Type => offers.types(),
            Context::TypeAxes => offers.axes(),
            Context::Data => offers.named(&[CompletionKind::Data]),
            Context::Model => offers.named(&[CompletionKind::Model]),
            Context::Next => offers.named(&[CompletionKind::State, CompletionKind::Model]),
            Context::Kind(item) => offers.kinds(item),
            Context::Choice => offers.choices(),
            Context::Words(words) => offers.words(words),
            Context::Plan => offers.plan(),
            Context::Value(call) => {
                if let Some(call) = call {
                    offers.arguments(call);
                }
                let only_axes = call.as_ref().is_some_and(|c| c.list.is_some());
                if !(only_axes && offers.has_axes()) {
                    offers.values();
                }
            }
        }
        offers.sorted()
    }
}
