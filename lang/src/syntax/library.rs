//! A library whose functions are parsed when they are asked for.
//!
//! The standard library is larger than most programs and a program uses little of it.

use super::ast::{File, Fn, Item, ItemKind, Name};
use super::parse::Reader;
use super::split::item_boundaries;
use super::tokens::Tokens;
use crate::source::FileId;

/// A scanned text of functions and imports.
pub(crate) struct Library<'t> {
    tokens: Tokens<'t>,
    functions: Vec<Unread>,
    /// The items that are no functions.
    pub rest: File,
}

/// A function that is not parsed yet: its name and its tokens.
struct Unread {
    name: Name,
    a: usize,
    limit: usize,
}

impl<'t> Library<'t> {
    /// Finds the functions of a text that is known to parse.
    pub fn scan(file: FileId, text: &'t str) -> Self {
        let tokens = Tokens::scan(file, text);
        let mut starts = item_boundaries(&tokens);
        starts.push(tokens.code.len());
        let (mut functions, mut items) = (vec![], vec![]);
        for (a, limit) in starts.iter().copied().zip(starts.iter().copied().skip(1)) {
            if tokens.at(a) == "fn" {
                functions.push(Unread {
                    name: Name {
                        text: tokens.at(a + 1).to_string(),
                        span: tokens.span(a + 1, a + 2),
                    },
                    a,
                    limit,
                });
            } else {
                let (kind, node) = Reader::new(&tokens).item(a, limit);
                items.push(Item {
                    span: tokens.span(a, node.end()),
                    doc: None,
                    kind,
                });
            }
        }
        Library {
            tokens,
            functions,
            rest: File {
                id: file,
                doc: String::new(),
                items,
                comments: vec![],
                exprs: 0,
            },
        }
    }

    /// The names of its functions, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.functions.iter().map(|f| &f.name)
    }

    /// The name of a function.
    pub fn name(&self, i: usize) -> Option<&Name> {
        self.functions.get(i).map(|f| &f.name)
    }

    /// A function, parsed.
    pub fn function(&self, i: usize) -> Option<Fn> {
        let f = self.functions.get(i)?;
        match Reader::new(&self.tokens).item(f.a, f.limit).0 {
            ItemKind::Fn(f) => Some(f),
            _ => None,
        }
    }
}
