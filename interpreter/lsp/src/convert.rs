//! Spans to ranges and back; the language's words for things to the protocol's.

use lsp_types::{CompletionItemKind, DiagnosticSeverity, Position, Range, SymbolKind, TextEdit};
use rlhf_lang::diag::Level;
use rlhf_lang::ide;
use rlhf_lang::source::{Encoding, FileId, Source, Span};

/// Positions in one text, counted as the editor counts.
#[derive(Clone, Copy)]
pub struct Places<'s> {
    pub source: &'s Source,
    pub encoding: Encoding,
}

impl Places<'_> {
    pub fn position(&self, offset: u32) -> Position {
        let (line, character) = self.source.position(offset, self.encoding);
        Position { line, character }
    }

    pub fn range(&self, span: Span) -> Range {
        Range {
            start: self.position(span.lo),
            end: self.position(span.hi),
        }
    }

    pub fn offset(&self, at: Position) -> u32 {
        self.source.offset(at.line, at.character, self.encoding)
    }

    /// The bytes of a range; its ends in either order.
    pub fn span(&self, range: Range) -> Span {
        let (a, b) = (self.offset(range.start), self.offset(range.end));
        Span {
            file: FileId(0),
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    pub fn edits(&self, edits: &[(Span, String)]) -> Vec<TextEdit> {
        let edits = edits.iter().map(|(span, text)| TextEdit {
            range: self.range(*span),
            new_text: text.clone(),
        });
        edits.collect()
    }
}

pub fn severity(level: Level) -> DiagnosticSeverity {
    match level {
        Level::Error => DiagnosticSeverity::ERROR,
        Level::Warning => DiagnosticSeverity::WARNING,
        Level::Hint => DiagnosticSeverity::HINT,
    }
}

pub fn completion_kind(kind: ide::CompletionKind) -> CompletionItemKind {
    use ide::CompletionKind as K;
    match kind {
        K::Keyword => CompletionItemKind::KEYWORD,
        K::Operator | K::Verb | K::Function | K::Reward => CompletionItemKind::FUNCTION,
        K::Module => CompletionItemKind::MODULE,
        K::Param => CompletionItemKind::CONSTANT,
        K::Data => CompletionItemKind::STRUCT,
        K::Column | K::Member => CompletionItemKind::FIELD,
        K::Model => CompletionItemKind::CLASS,
        K::State | K::Binding | K::Argument => CompletionItemKind::VARIABLE,
        K::Axis | K::Type => CompletionItemKind::TYPE_PARAMETER,
        K::Label => CompletionItemKind::PROPERTY,
        K::Choice => CompletionItemKind::ENUM_MEMBER,
    }
}

pub fn symbol_kind(kind: ide::SymbolKind) -> SymbolKind {
    use ide::SymbolKind as K;
    match kind {
        K::Param => SymbolKind::CONSTANT,
        K::Data => SymbolKind::STRUCT,
        K::Column => SymbolKind::FIELD,
        K::Model => SymbolKind::CLASS,
        K::Reward | K::Function => SymbolKind::FUNCTION,
        K::State | K::Binding => SymbolKind::VARIABLE,
        K::Step | K::Eval => SymbolKind::METHOD,
        K::Train => SymbolKind::EVENT,
        K::Place => SymbolKind::NAMESPACE,
    }
}
