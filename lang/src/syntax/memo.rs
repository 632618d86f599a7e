//! Pieces that were parsed before.
//!
//! An edit changes one statement; the others of the file, and the standard library, are taken from
//! here. A piece is remembered by its text, with places and numbers counted from its beginning, so
//! the tree is the same as without. The memory is one a thread and bounded.

use std::cell::RefCell;
use std::collections::HashMap;

use super::ast::{ItemKind, StmtKind};
use super::explain::Piece;
use super::grammar::Rule;
use super::shift::{Move, Shift};
use crate::source::FileId;

/// Bytes of piece texts that are kept.
const LIMIT: usize = 1 << 20;

/// What a piece became.
#[derive(Clone)]
pub(crate) enum Known {
    Statement(StmtKind),
    Item(ItemKind),
}

struct Entry {
    known: Known,
    /// Numbers of expressions that it took.
    ids: u32,
}

#[derive(Default)]
struct Memo {
    entries: HashMap<(Piece, Box<str>), Entry>,
    /// How much of a text a rule matches from its beginning.
    fronts: HashMap<(Rule, Box<str>), Option<usize>>,
    bytes: usize,
}

impl Memo {
    /// Makes room for a text; a full memory begins anew.
    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > LIMIT {
            *self = Memo::default();
            self.bytes = bytes;
        }
    }
}

thread_local! {
    static MEMO: RefCell<Memo> = RefCell::default();
}

/// Where a piece stands and the first free number of an expression.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub file: FileId,
    pub lo: usize,
    pub id: u32,
}

/// The piece at its place, with how many numbers it takes.
pub(crate) fn recall(piece: Piece, text: &str, at: Place) -> Option<(Known, u32)> {
    MEMO.with_borrow(|memo| {
        let entry = memo.entries.get(&(piece, text) as &dyn Key)?;
        let mut known = entry.known.clone();
        let to = Move {
            file: at.file,
            bytes: at.lo as i64,
            ids: i64::from(at.id),
        };
        match &mut known {
            Known::Statement(s) => s.shift(to),
            Known::Item(i) => i.shift(to),
        }
        Some((known, entry.ids))
    })
}

/// Remembers a piece that parsed without a message.
pub(crate) fn remember(piece: Piece, text: &str, at: Place, ids: u32, mut known: Known) {
    let back = Move {
        file: FileId(0),
        bytes: -(at.lo as i64),
        ids: -i64::from(at.id),
    };
    match &mut known {
        Known::Statement(s) => s.shift(back),
        Known::Item(i) => i.shift(back),
    }
    MEMO.with_borrow_mut(|memo| {
        memo.grow(text.len());
        memo.entries
            .insert((piece, text.into()), Entry { known, ids });
    });
}

/// Where a rule that begins a text ends in it, found by `find` the first time.
pub(crate) fn front(rule: Rule, text: &str, find: impl FnOnce() -> Option<usize>) -> Option<usize> {
    let key = (rule, Box::from(text));
    if let Some(known) = MEMO.with_borrow(|memo| memo.fronts.get(&key).copied()) {
        return known;
    }
    let found = find();
    MEMO.with_borrow_mut(|memo| {
        memo.grow(text.len());
        memo.fronts.insert(key, found);
    });
    found
}

/// Forgets everything: the next parse is done from nothing.
pub fn forget() {
    MEMO.with_borrow_mut(|memo| *memo = Memo::default());
}

/// Looks a piece up without copying its text.
trait Key {
    fn parts(&self) -> (Piece, &str);
}

impl Key for (Piece, Box<str>) {
    fn parts(&self) -> (Piece, &str) {
        (self.0, &self.1)
    }
}

impl Key for (Piece, &str) {
    fn parts(&self) -> (Piece, &str) {
        *self
    }
}

impl<'a> std::borrow::Borrow<dyn Key + 'a> for (Piece, Box<str>) {
    fn borrow(&self) -> &(dyn Key + 'a) {
        self
    }
}

impl std::hash::Hash for dyn Key + '_ {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for dyn Key + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Key + '_ {}
