//! Answers to requests.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CompletionItem,
    CompletionParams, CompletionResponse, CompletionTextEdit, DocumentFormattingParams,
    DocumentSymbol, DocumentSymbolParams, DocumentSymbolResponse, Documentation,
    GotoDefinitionParams, GotoDefinitionResponse, Hover, HoverContents, HoverParams, InlayHint,
    InlayHintKind, InlayHintLabel, InlayHintParams, Location, MarkupContent, MarkupKind,
    PrepareRenameResponse, ReferenceParams, RenameParams, TextDocumentPositionParams, TextEdit,
    Uri, WorkspaceEdit,
};
use rlhf_lang::ide::{self, Document};

use crate::convert::{Places, completion_kind, symbol_kind};
use crate::session::Session;

/// An answer, or a sentence that says why there is none.
pub type Answer<T> = Result<Option<T>, String>;

impl Session<'_> {
    /// The document of a position with its byte there.
    fn at(&mut self, place: &TextDocumentPositionParams) -> Option<(&Document, u32)> {
        let encoding = self.encoding;
        let text = self.texts.compiled(&place.text_document.uri)?;
        let document = text.document()?;
        let places = Places {
            source: document.source(),
            encoding,
        };
        Some((document, places.offset(place.position)))
    }

    fn document(&mut self, uri: &Uri) -> Option<&Document> {
        self.texts.compiled(uri)?.document()
    }

    pub fn hover(&mut self, params: HoverParams) -> Answer<Hover> {
        let encoding = self.encoding;
        let Some((document, offset)) = self.at(&params.text_document_position_params) else {
            return Ok(None);
        };
        let source = document.source();
        Ok(document.hover(offset).map(|hover| Hover {
            contents: HoverContents::Markup(markdown(hover.markdown())),
            range: Some(Places { source, encoding }.range(hover.span)),
        }))
    }

    pub fn hints(&mut self, params: InlayHintParams) -> Answer<Vec<InlayHint>> {
        let encoding = self.encoding;
        let Some(document) = self.document(&params.text_document.uri) else {
            return Ok(None);
        };
        let source = document.source();
        let places = Places { source, encoding };
        let hints = document.hints(places.span(params.range)).into_iter();
        let hints = hints.map(|h| InlayHint {
            position: places.position(h.offset),
            label: InlayHintLabel::String(h.text),
            kind: Some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: None,
            padding_left: None,
            padding_right: None,
            data: None,
        });
        Ok(Some(hints.collect()))
    }

    pub fn complete(&mut self, params: CompletionParams) -> Answer<CompletionResponse> {
        let encoding = self.encoding;
        let Some((document, offset)) = self.at(&params.text_document_position) else {
            return Ok(None);
        };
        let source = document.source();
        let places = Places { source, encoding };
        let items = document.complete(offset).into_iter();
        let items = items.enumerate().map(|(order, c)| CompletionItem {
            kind: Some(completion_kind(c.kind)),
            detail: (!c.detail.is_empty()).then_some(c.detail),
            documentation: (!c.doc.is_empty())
                .then(|| Documentation::MarkupContent(markdown(c.doc))),
            sort_text: Some(format!("{order:04}")),
            filter_text: Some(c.label.clone()),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit {
                range: places.range(c.replace),
                new_text: c.insert,
            })),
            additional_text_edits: (!c.also.is_empty()).then(|| places.edits(&c.also)),
            label: c.label,
            ..CompletionItem::default()
        });
        Ok(Some(CompletionResponse::Array(items.collect())))
    }

    pub fn definition(&mut self, params: GotoDefinitionParams) -> Answer<GotoDefinitionResponse> {
        let place = params.text_document_position_params;
        let Some((document, offset)) = self.at(&place) else {
            return Ok(None);
        };
        let Some(span) = document.definition(offset) else {
            return Ok(None);
        };
        let Some(text) = self.texts.get(&place.text_document.uri) else {
            return Ok(None);
        };
        let Some(document) = text.document() else {
            return Ok(None);
        };
        let location = self.location(text, document, &document.compiled().sources, span);
        Ok(location.map(GotoDefinitionResponse::Scalar))
    }

    pub fn references(&mut self, params: ReferenceParams) -> Answer<Vec<Location>> {
        let encoding = self.encoding;
        let place = params.text_document_position;
        let uri = place.text_document.uri.clone();
        let Some((document, offset)) = self.at(&place) else {
            return Ok(None);
        };
        let source = document.source();
        let places = Places { source, encoding };
        let definition = document.definition(offset);
        let spans = document.references(offset).into_iter();
        let spans = spans.filter(|s| params.context.include_declaration || Some(*s) != definition);
        let locations = spans.map(|s| Location {
            uri: uri.clone(),
            range: places.range(s),
        });
        Ok(Some(locations.collect()))
    }

    pub fn renamable(
        &mut self,
        params: TextDocumentPositionParams,
    ) -> Answer<PrepareRenameResponse> {
        let encoding = self.encoding;
        let Some((document, offset)) = self.at(&params) else {
            return Ok(None);
        };
        let source = document.source();
        let span = document.renamable(offset)?;
        Ok(Some(PrepareRenameResponse::RangeWithPlaceholder {
            range: Places { source, encoding }.range(span),
            placeholder: source.slice(span).to_string(),
        }))
    }

    pub fn rename(&mut self, params: RenameParams) -> Answer<WorkspaceEdit> {
        let encoding = self.encoding;
        let place = params.text_document_position;
        let uri = place.text_document.uri.clone();
        let Some((document, offset)) = self.at(&place) else {
            return Ok(None);
        };
        let source = document.source();
        let edits = document.rename(offset, &params.new_name)?;
        Ok(Some(changes(
            uri,
            Places { source, encoding }.edits(&edits),
        )))
    }

    pub fn format(&mut self, params: DocumentFormattingParams) -> Answer<Vec<TextEdit>> {
        let Some(text) = self.texts.get(&params.text_document.uri) else {
            return Ok(None);
        };
        let places = Places {
            source: text.source(),
            encoding: self.encoding,
        };
        let edit = ide::format(&text.source().text);
        Ok(Some(places.edits(&edit.into_iter().collect::<Vec<_>>())))
    }

    pub fn symbols(&mut self, params: DocumentSymbolParams) -> Answer<DocumentSymbolResponse> {
        let encoding = self.encoding;
        let Some(document) = self.document(&params.text_document.uri) else {
            return Ok(None);
        };
        let source = document.source();
        let places = Places { source, encoding };
        let symbols = document.symbols().into_iter();
        let symbols = symbols.map(|s| symbol(s, &places)).collect();
        Ok(Some(DocumentSymbolResponse::Nested(symbols)))
    }

    pub fn actions(&mut self, params: CodeActionParams) -> Answer<Vec<CodeActionOrCommand>> {
        let uri = params.text_document.uri;
        if self.texts.compiled(&uri).is_none() {
            return Ok(None);
        }
        let Some(text) = self.texts.get(&uri) else {
            return Ok(None);
        };
        let Some(document) = text.document() else {
            return Ok(None);
        };
        let places = self.places(document);
        let compiled = document.compiled();
        let actions = document.actions(places.span(params.range)).into_iter();
        let actions = actions.map(|action| {
            let mended = compiled.diagnostics.get(action.diagnostic);
            let mended = mended.map(|d| self.diagnostic(text, document, &compiled.sources, d));
            CodeActionOrCommand::CodeAction(CodeAction {
                title: action.title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: mended.map(|d| vec![d]),
                edit: Some(changes(uri.clone(), places.edits(&action.edits))),
                is_preferred: Some(true),
                ..CodeAction::default()
            })
        });
        Ok(Some(actions.collect()))
    }
}

// The key is an address; its cache of parts does not take part in equality.
#[allow(clippy::mutable_key_type)]
fn changes(uri: Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit {
        changes: Some(HashMap::from([(uri, edits)])),
        ..WorkspaceEdit::default()
    }
}

fn markdown(value: String) -> MarkupContent {
    MarkupContent {
        kind: MarkupKind::Markdown,
        value,
    }
}

fn symbol(s: ide::Symbol, places: &Places) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = s
        .children
        .into_iter()
        .map(|child| symbol(child, places))
        .collect();
    #[allow(deprecated)] // the field has no default and no builder
    DocumentSymbol {
        name: s.name,
        detail: (!s.detail.is_empty()).then_some(s.detail),
        kind: symbol_kind(s.kind),
        tags: None,
        deprecated: None,
        range: places.range(s.span),
        selection_range: places.range(s.selection),
        children: (!children.is_empty()).then_some(children),
    }
}
