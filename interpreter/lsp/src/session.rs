//! What one editor has open, and how it counts.

use std::path::Path;

use lsp_types::{InitializeParams, PositionEncodingKind, Uri};
use rlhf_lang::ide::Document;
use rlhf_lang::source::{Encoding, Source};

use crate::convert::Places;
use crate::texts::{Text, Texts};
use crate::{Options, library, paths};

/// The state of a session.
pub struct Session<'a> {
    pub options: &'a Options<'a>,
    pub encoding: Encoding,
    pub texts: Texts,
}

impl<'a> Session<'a> {
    pub fn new(options: &'a Options<'a>, encoding: Encoding) -> Self {
        Session {
            options,
            encoding,
            texts: Texts::default(),
        }
    }

    pub fn places<'d>(&self, document: &'d Document) -> Places<'d> {
        Places {
            source: document.source(),
            encoding: self.encoding,
        }
    }

    /// The address of a text that a program was compiled with: a file beside it, or a module of the
    /// standard library, which is written to a file first.
    pub fn uri_of_source(&self, text: &Text, source: &Source) -> Option<Uri> {
        let standard = source.name.starts_with("std.") && !source.name.ends_with(".rlhf");
        if standard {
            let path = library::write(&self.options.library, &source.name, &source.text);
            return paths::uri_of(&path.ok()?);
        }
        let path = paths::tidy(&text.folder().join(Path::new(&source.name)));
        paths::uri_of(&path)
    }
}

/// UTF-8 where the editor offers it, UTF-16 as every editor can.
pub fn encoding(params: &InitializeParams) -> Encoding {
    let general = params.capabilities.general.as_ref();
    let offered = general.and_then(|g| g.position_encodings.as_deref());
    match offered
        .unwrap_or_default()
        .contains(&PositionEncodingKind::UTF8)
    {
        true => Encoding::Utf8,
        false => Encoding::Utf16,
    }
}
