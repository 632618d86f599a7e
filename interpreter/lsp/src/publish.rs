//! Diagnostics as the protocol has them.

use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticTag, Location, NumberOrString,
    PublishDiagnosticsParams, Range,
};
use rlhf_lang::diag;
use rlhf_lang::ide::Document;
use rlhf_lang::source::{Sources, Span};
use rlhf_lang::syntax::ast::{ItemKind, UsePath};

use crate::convert::{Places, severity};
use crate::session::Session;
use crate::texts::Text;

impl Session<'_> {
    /// Everything known about a text.
    pub fn diagnostics(&self, text: &Text) -> PublishDiagnosticsParams {
        let mut diagnostics = vec![];
        if let Some(document) = text.document() {
            let compiled = document.compiled();
            for d in &compiled.diagnostics {
                diagnostics.push(self.diagnostic(text, document, &compiled.sources, d));
            }
            if let Some((sources, extra)) = text.extra() {
                for d in extra {
                    diagnostics.push(self.diagnostic(text, document, sources, d));
                }
            }
        }
        PublishDiagnosticsParams {
            uri: text.uri.clone(),
            diagnostics,
            version: Some(text.version),
        }
    }

    pub(crate) fn diagnostic(
        &self,
        text: &Text,
        document: &Document,
        sources: &Sources,
        d: &diag::Diagnostic,
    ) -> Diagnostic {
        let places = self.places(document);
        let own = document.compiled().file.id;
        let inside = d.span().filter(|s| s.file == own);
        // A problem of an imported file is shown where it is imported.
        let span = inside
            .or_else(|| import_of(document, sources, d.span()?))
            // One of a data file, where the program speaks of the file.
            .or_else(|| d.labels.iter().map(|l| l.span).find(|s| s.file == own));
        let range = span.map_or(Range::default(), |s| places.range(s));
        let mut message = d.message.clone();
        for note in [first_label(d), d.help.as_deref()].into_iter().flatten() {
            message.push('\n');
            message.push_str(note);
        }
        let others = d.labels.iter().skip(usize::from(inside.is_some()));
        let related: Vec<DiagnosticRelatedInformation> = others
            .filter_map(|label| {
                let location = self.location(text, document, sources, label.span)?;
                let message = match label.text.is_empty() {
                    true => d.message.clone(),
                    false => label.text.clone(),
                };
                Some(DiagnosticRelatedInformation { location, message })
            })
            .collect();
        let fix = d
            .fix
            .as_ref()
            .filter(|f| f.edits.iter().all(|(s, _)| s.file == own));
        let data =
            fix.map(|f| serde_json::json!({ "title": f.title, "edits": places.edits(&f.edits) }));
        let unused = matches!(d.code.as_str(), "L001" | "L002" | "L003");
        Diagnostic {
            range,
            severity: Some(severity(d.level)),
            code: (!d.code.is_empty()).then(|| NumberOrString::String(d.code.clone())),
            code_description: None,
            source: Some("rlhf".into()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            tags: unused.then(|| vec![DiagnosticTag::UNNECESSARY]),
            data,
        }
    }

    /// A place in any of the texts that a compilation read.
    pub(crate) fn location(
        &self,
        text: &Text,
        document: &Document,
        sources: &Sources,
        span: Span,
    ) -> Option<Location> {
        // `extra` may speak of texts that it did not hand over.
        let (_, source) = sources.iter().find(|(id, _)| *id == span.file)?;
        let uri = match span.file == document.compiled().file.id {
            true => text.uri.clone(),
            false => self.uri_of_source(text, source)?,
        };
        let places = Places {
            source,
            encoding: self.encoding,
        };
        Some(Location {
            uri,
            range: places.range(span),
        })
    }
}

fn first_label(d: &diag::Diagnostic) -> Option<&str> {
    let text = d.labels.first()?.text.as_str();
    (!text.is_empty()).then_some(text)
}

/// The path in the `use` that brought in the file of a span.
fn import_of(document: &Document, sources: &Sources, span: Span) -> Option<Span> {
    let (_, source) = sources.iter().find(|(id, _)| *id == span.file)?;
    let items = document.compiled().file.items.iter();
    let mut uses = items.filter_map(|i| match &i.kind {
        ItemKind::Use(u) => Some(&u.path),
        _ => None,
    });
    uses.find_map(|path| match path {
        UsePath::File(name, span) => (*name == source.name).then_some(*span),
        UsePath::Dotted(_) => None,
    })
}
