//! Definitions and mentions of names, by the tree alone.
//!
//! The facts say what a name stands for, but only where the program could be read; this says which name
//! is meant also in functions that nothing calls and beside text that does not parse.

use crate::source::Span;
use crate::syntax::ast::{File, ItemKind, Name};

use super::walk::Walk;

/// Index into [`Names::defs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub usize);

/// What defines a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the words of the language
pub enum DefKind {
    Import,
    Param,
    Data,
    Column,
    Model,
    Reward,
    State,
    Function,
    Argument,
    Axis,
    Binding,
}

/// Where a name is introduced.
#[derive(Clone, Debug)]
pub struct Def {
    /// The name.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: DefKind,
    /// The item it is part of: index into the file's items.
    pub item: usize,
    /// The text in which it can be read; `None`: all of the file.
    pub visible: Option<Span>,
    /// For an argument of a function, its type as written.
    pub ty: Option<Span>,
}

/// What a mention means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A name of this file, or the import of one.
    Def(DefId),
    /// A word of the language, in a chapter of the reference.
    Word(crate::reference::Chapter),
    /// The label of an argument of what this text begins with: a call's name or a keyword.
    Label(Span),
    /// Nothing that the tree alone knows: the prelude's, or unknown.
    Open,
}

/// Which version of a model is read where a mention stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the items.
    Items,
    /// In a function.
    Function,
    /// In the step: the version it started with.
    Step,
    /// In a `train` block of this model.
    Train(Option<DefId>),
    /// In an evaluation: the version that the step left.
    Eval,
}

/// A name where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Mention {
    /// Where.
    pub span: Span,
    /// What it means.
    pub target: Target,
    /// Where in the program.
    pub place: Place,
}

/// A `step`, an `eval` or a function: the text in which its locals are names.
#[derive(Clone, Debug)]
pub struct Block {
    /// From its keyword to its end.
    pub span: Span,
    /// Where in the program.
    pub place: Place,
    /// The data set whose columns are names in it.
    pub data: Option<DefId>,
}

/// The names of one file.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Where names are introduced.
    pub defs: Vec<Def>,
    /// Every mention, definitions included, in the order of the text.
    pub mentions: Vec<Mention>,
    /// Bodies, outer ones first.
    pub blocks: Vec<Block>,
    /// What does not parse.
    pub bad: Vec<Span>,
}

impl Names {
    /// Reads a tree. `text` is the text it was parsed from.
    pub fn of(file: &File, text: &str) -> Names {
        let mut walk = Walk::new(file, text);
        walk.declare();
        for (index, item) in file.items.iter().enumerate() {
            walk.item(index, item);
        }
        let mut names = walk.names;
        names.mentions.sort_by_key(|m| (m.span.lo, m.span.hi));
        names.mentions.dedup_by_key(|m| m.span);
        names
    }

    /// A definition.
    pub fn def(&self, id: DefId) -> &Def {
        &self.defs[id.0]
    }

    /// The mention that covers a byte, or ends at it.
    pub fn at(&self, offset: u32) -> Option<&Mention> {
        let after = self.mentions.partition_point(|m| m.span.lo <= offset);
        let near = self.mentions[..after].last()?;
        (offset <= near.span.hi).then_some(near)
    }

    /// Every mention of a definition, itself included.
    pub fn mentions_of(&self, id: DefId) -> impl Iterator<Item = &Mention> {
        self.mentions
            .iter()
            .filter(move |m| m.target == Target::Def(id))
    }

    /// The innermost body that covers a byte.
    pub fn block(&self, offset: u32) -> Option<&Block> {
        let covers = |b: &&Block| b.span.lo <= offset && offset <= b.span.hi;
        self.blocks.iter().rev().find(covers)
    }

    /// What can be read at a byte; of two with one name the inner one alone.
    pub fn visible(&self, offset: u32) -> Vec<DefId> {
        let columns = self.blocks.iter();
        let columns = columns
            .filter(|b| b.span.lo <= offset && offset <= b.span.hi)
            .find_map(|b| b.data)
            .map(|d| self.def(d).item);
        let readable = |d: &Def| match (d.kind, d.visible) {
            (DefKind::Column, _) => Some(d.item) == columns,
            (_, None) => true,
            (_, Some(span)) => span.lo < offset && offset <= span.hi,
        };
        let mut found: Vec<DefId> = vec![];
        // Locals are introduced after what they hide.
        for (i, def) in self.defs.iter().enumerate().rev() {
            let hidden = found.iter().any(|f| self.def(*f).name == def.name);
            if !hidden && readable(def) {
                found.push(DefId(i));
            }
        }
        found
    }

    /// The definition of an item's name.
    pub fn item(&self, name: &str) -> Option<DefId> {
        let own =
            |d: &Def| d.name == name && d.visible.is_none() && !matches!(d.kind, DefKind::Column);
        self.defs.iter().position(own).map(DefId)
    }
}

/// The name that an item introduces, and what it is.
pub(super) fn item_name(kind: &ItemKind) -> Option<(&Name, DefKind)> {
    Some(match kind {
        ItemKind::Param(p) => (&p.name, DefKind::Param),
        ItemKind::Data(d) => (&d.name, DefKind::Data),
        ItemKind::Model(m) => (&m.name, DefKind::Model),
        ItemKind::Reward(r) => (&r.name, DefKind::Reward),
        ItemKind::State(s) => (&s.name, DefKind::State),
        ItemKind::Fn(f) => (&f.name, DefKind::Function),
        ItemKind::Use(_)
        | ItemKind::Step(_)
        | ItemKind::Eval(_)
        | ItemKind::Place(_)
        | ItemKind::Bad => return None,
    })
}
