//! How a text is made from a row: what can be told of an expression without a model.

use std::cell::Cell;
use std::collections::HashMap;

use rlhf_lang::graph::{Column, Elem, ExprRef, Graph, NodeKind, Op, TextOp, ValueId};
use rlhf_text::Message;
use rlhf_text::rows::Row;
use serde::Serialize;
use serde_json::Value as Json;

/// Larger expressions are left alone: a text joined with itself doubles with every line.
const PARTS: usize = 64;

/// An expression over the columns of one data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Recipe {
    /// The same for every row.
    Constant(String),
    /// A column.
    Column {
        /// The data set.
        data: usize,
        /// The name in the program.
        name: String,
        /// The name in the file.
        source: String,
        /// A conversation rather than a text.
        chat: bool,
    },
    /// One text after the other.
    Join(Box<Recipe>, Box<Recipe>),
    /// Without surrounding white space.
    Trim(Box<Recipe>),
    /// Lower case.
    Lower(Box<Recipe>),
    /// Upper case.
    Upper(Box<Recipe>),
}

/// What a recipe gives for a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// A text.
    Text(String),
    /// A conversation.
    Chat(Vec<Message>),
}

/// Values that stand for a column or for an expression.
pub struct Names<'g> {
    graph: &'g Graph,
    columns: HashMap<ValueId, (usize, usize)>,
    maps: HashMap<ValueId, ExprRef>,
}

impl<'g> Names<'g> {
    /// The columns and the plain expressions of a graph.
    pub fn of(graph: &'g Graph) -> Names<'g> {
        let (mut columns, mut maps) = (HashMap::new(), HashMap::new());
        for id in graph.dag.order() {
            match &graph.dag.node(id).kind {
                NodeKind::Load {
                    data,
                    columns: taken,
                    ..
                } => columns.extend(taken.iter().map(|(c, v)| (*v, (data.0 as usize, *c)))),
                NodeKind::Map { expr, value } => {
                    maps.insert(*value, *expr);
                }
                _ => {}
            }
        }
        Names {
            graph,
            columns,
            maps,
        }
    }

    /// The data set and the column that an expression is.
    pub fn plain(&self, e: ExprRef) -> Option<(usize, &'g Column)> {
        let Op::Value(value) = &self.graph.expr(e).op else {
            return None;
        };
        let (data, column) = *self.columns.get(value)?;
        Some((data, self.graph.data.get(data)?.columns.get(column)?))
    }

    /// The recipe of an expression, where it has one.
    pub fn recipe(&self, e: ExprRef) -> Option<Recipe> {
        self.at(e, &Cell::new(PARTS))
    }

    fn at(&self, e: ExprRef, left: &Cell<usize>) -> Option<Recipe> {
        left.set(left.get().checked_sub(1)?);
        let expr = self.graph.expr(e);
        let part = |i: usize| {
            let recipe = self.at(*expr.args.get(i)?, left)?;
            Some(Box::new(recipe))
        };
        match &expr.op {
            Op::Text(text) => Some(Recipe::Constant(text.clone())),
            Op::Value(value) => match self.columns.get(value) {
                Some((data, column)) => self.column(*data, *column),
                None => self.at(*self.maps.get(value)?, left),
            },
            Op::OnText(TextOp::Concat) => {
                let (left, right) = (part(0)?, part(1)?);
                let one = match (left.data(), right.data()) {
                    (Some(a), Some(b)) => a == b,
                    _ => true,
                };
                one.then_some(Recipe::Join(left, right))
            }
            Op::OnText(TextOp::Trim) => Some(Recipe::Trim(part(0)?)),
            Op::OnText(TextOp::Lower) => Some(Recipe::Lower(part(0)?)),
            Op::OnText(TextOp::Upper) => Some(Recipe::Upper(part(0)?)),
            _ => None,
        }
    }

    fn column(&self, data: usize, column: usize) -> Option<Recipe> {
        let declared = self.graph.data.get(data)?.columns.get(column)?;
        matches!(declared.elem, Elem::Text | Elem::Chat).then(|| Recipe::Column {
            data,
            name: declared.name.clone(),
            source: declared.source.clone(),
            chat: declared.elem == Elem::Chat,
        })
    }
}

impl Recipe {
    /// The data set it reads, if any.
    pub fn data(&self) -> Option<usize> {
        match self {
            Recipe::Constant(_) => None,
            Recipe::Column { data, .. } => Some(*data),
            Recipe::Join(a, b) => a.data().or_else(|| b.data()),
            Recipe::Trim(a) | Recipe::Lower(a) | Recipe::Upper(a) => a.data(),
        }
    }

    /// What messages call it: the column, or `what`.
    pub fn named(&self, what: &str) -> String {
        match self {
            Recipe::Column { name, .. } => format!("`{name}`"),
            Recipe::Trim(a) | Recipe::Lower(a) | Recipe::Upper(a) => a.named(what),
            Recipe::Constant(_) | Recipe::Join(..) => what.into(),
        }
    }

    /// The text or the conversation of a row; nothing for a cell that is none or has another type.
    pub fn make(&self, row: &Row) -> Option<Made> {
        let text = |part: &Recipe| match part.make(row) {
            Some(Made::Text(text)) => Some(text),
            _ => None,
        };
        Some(match self {
            Recipe::Constant(text) => Made::Text(text.clone()),
            Recipe::Column { source, chat, .. } => match (row.object.get(source)?, chat) {
                (Json::String(text), false) => Made::Text(text.clone()),
                (cell @ Json::Array(_), true) => {
                    Made::Chat(serde_json::from_value(cell.clone()).ok()?)
                }
                _ => return None,
            },
            Recipe::Join(a, b) => Made::Text(text(a)? + &text(b)?),
            Recipe::Trim(a) => Made::Text(text(a)?.trim().into()),
            Recipe::Lower(a) => Made::Text(text(a)?.to_lowercase()),
            Recipe::Upper(a) => Made::Text(text(a)?.to_uppercase()),
        })
    }

    /// The text of a row; empty for a cell that is none, as a rank reads it. Nothing for a cell that is
    /// missing or of another type.
    pub fn text(&self, row: &Row) -> Option<String> {
        match self.make(row) {
            Some(Made::Text(text)) => Some(text),
            Some(Made::Chat(_)) => None,
            None => self.is_none(row).then(String::new),
        }
    }

    fn is_none(&self, row: &Row) -> bool {
        match self {
            Recipe::Constant(_) => false,
            Recipe::Column { source, .. } => row.object.get(source).is_some_and(Json::is_null),
            Recipe::Join(a, b) => a.is_none(row) || b.is_none(row),
            Recipe::Trim(a) | Recipe::Lower(a) | Recipe::Upper(a) => a.is_none(row),
        }
    }

    /// The columns of the file that it reads.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Recipe::Constant(_) => vec![],
            Recipe::Column { source, .. } => vec![source],
            Recipe::Join(a, b) => [a.columns(), b.columns()].concat(),
            Recipe::Trim(a) | Recipe::Lower(a) | Recipe::Upper(a) => a.columns(),
        }
    }
}
