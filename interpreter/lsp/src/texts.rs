//! The open texts and what they compile to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_types::{TextDocumentContentChangeEvent, Uri};
use rlhf_lang::compile::{Request, compile};
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::ide::Document;
use rlhf_lang::source::{Encoding, Source, Sources};

use crate::convert::Places;
use crate::{Extra, paths};

/// One open text.
pub struct Text {
    pub uri: Uri,
    /// Its file, when it has one.
    pub path: Option<PathBuf>,
    pub version: i32,
    source: Source,
    /// What it compiles to; `None` after a change of it or of what it imports.
    document: Option<Document>,
    /// What `extra` found in the text as it was last opened or saved, while it is that text.
    extra: Option<(Sources, Vec<Diagnostic>)>,
    /// Its diagnostics are to be sent.
    pub unsent: bool,
}

impl Text {
    /// The folder that paths in the program are seen from.
    pub fn folder(&self) -> PathBuf {
        let parent = self.path.as_deref().and_then(Path::parent);
        parent.map_or(PathBuf::new(), Path::to_path_buf)
    }

    /// What is compiled.
    pub fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// What `extra` found.
    pub fn extra(&self) -> Option<&(Sources, Vec<Diagnostic>)> {
        self.extra.as_ref()
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    fn stale(&mut self) {
        self.document = None;
        self.unsent = true;
    }

    fn imports(&self, file: &Path) -> bool {
        let folder = self.folder();
        let imports = self.document.iter().flat_map(|d| &d.compiled().imports);
        imports
            .map(|i| paths::tidy(&folder.join(i)))
            .any(|i| i == file)
    }
}

/// All open texts, by address.
#[derive(Default)]
pub struct Texts {
    open: BTreeMap<String, Text>,
}

impl Texts {
    pub fn open(&mut self, uri: Uri, version: i32, text: String) {
        let path = paths::path_of(&uri);
        let source = Source::new(name(path.as_deref()), text);
        let text = Text {
            path: path.clone(),
            version,
            source,
            document: None,
            extra: None,
            unsent: true,
            uri: uri.clone(),
        };
        self.open.insert(uri.as_str().to_string(), text);
        self.changed(path.as_deref());
    }

    pub fn close(&mut self, uri: &Uri) {
        let closed = self.open.remove(uri.as_str());
        // What imports it reads the file on disk from now on.
        self.changed(closed.and_then(|t| t.path).as_deref());
    }

    /// Applies an editor's changes in order.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) {
        let Some(text) = self.open.get_mut(uri.as_str()) else {
            return;
        };
        for change in changes {
            let new = match change.range {
                None => change.text,
                Some(range) => {
                    let source = &text.source;
                    let span = Places { source, encoding }.span(range);
                    let mut new = source.text.clone();
                    new.replace_range(span.range(), &change.text);
                    new
                }
            };
            text.source = Source::new(text.source.name.clone(), new);
        }
        text.version = version;
        text.extra = None;
        text.stale();
        let path = text.path.clone();
        self.changed(path.as_deref());
    }

    /// A file is not what it was: what imports it is compiled again.
    pub fn changed(&mut self, file: Option<&Path>) {
        let Some(file) = file else {
            return;
        };
        for text in self.open.values_mut() {
            if text.imports(file) {
                text.stale();
            }
        }
    }

    pub fn get(&self, uri: &Uri) -> Option<&Text> {
        self.open.get(uri.as_str())
    }

    /// The text with its document, compiled when it has to be.
    pub fn compiled(&mut self, uri: &Uri) -> Option<&Text> {
        let text = self.open.get(uri.as_str())?;
        if text.document.is_none() {
            let document = self.compile(text);
            if let Some(text) = self.open.get_mut(uri.as_str()) {
                text.document = Some(document);
            }
        }
        self.open.get(uri.as_str())
    }

    fn compile(&self, text: &Text) -> Document {
        let folder = text.folder();
        Document::new(compile(&Request {
            name: &text.source.name,
            text: &text.source.text,
            overrides: &[],
            load: &|path| self.load(&paths::tidy(&folder.join(path))),
        }))
    }

    /// A file as it is open, else as it is on disk.
    fn load(&self, path: &Path) -> Option<String> {
        let open = self.open.values();
        let mut open = open.filter(|t| t.path.as_deref() == Some(path));
        match open.next() {
            Some(text) => Some(text.source.text.clone()),
            None => std::fs::read_to_string(path).ok(),
        }
    }

    /// Asks `extra` about a text, which has just been opened or saved.
    pub fn examine(&mut self, uri: &Uri, extra: &Extra) {
        let Some(text) = self.compiled(uri) else {
            return;
        };
        let (Some(document), Some(_)) = (text.document(), &text.path) else {
            return;
        };
        let found = extra(&text.folder(), document.compiled());
        if let Some(text) = self.open.get_mut(uri.as_str()) {
            text.extra = Some(found);
            text.unsent = true;
        }
    }

    /// Addresses whose diagnostics are to be sent; they count as sent from now on.
    pub fn unsent(&mut self) -> Vec<Uri> {
        let texts = self.open.values_mut().filter(|t| t.unsent);
        texts
            .map(|t| {
                t.unsent = false;
                t.uri.clone()
            })
            .collect()
    }

    pub fn is_unsent(&self) -> bool {
        self.open.values().any(|t| t.unsent)
    }
}

/// What diagnostics call a file.
fn name(path: Option<&Path>) -> String {
    let name = path.and_then(Path::file_name);
    name.map_or("untitled.rlhf".into(), |n| n.to_string_lossy().into_owned())
}
