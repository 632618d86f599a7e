//! The outline of a file.

use crate::source::Span;
use crate::syntax::ast::{ItemKind, Name, Stmt, StmtKind};

use super::Document;
use super::library::one_line;

/// What an entry of the outline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words of the language
pub enum SymbolKind {
    Param,
    Data,
    Column,
    Model,
    Reward,
    State,
    Function,
    Step,
    Eval,
    Place,
    Train,
    Binding,
}

/// An entry of the outline.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// A type or what it ranges over; may be empty.
    pub detail: String,
    /// All of it.
    pub span: Span,
    /// The text to put the cursor on, within `span`.
    pub selection: Span,
    /// What is inside.
    pub children: Vec<Symbol>,
}

impl Document {
    /// The items of the file with what they bind.
    pub fn symbols(&self) -> Vec<Symbol> {
        let items = self.compiled.file.items.iter();
        items.filter_map(|i| self.symbol(&i.kind, i.span)).collect()
    }

    fn symbol(&self, kind: &ItemKind, span: Span) -> Option<Symbol> {
        let named = |kind, name: &Name, detail: String| Symbol {
            name: name.text.clone(),
            kind,
            detail,
            span,
            selection: name.span,
            children: vec![],
        };
        let slice = |s: Span| one_line(self.text(s));
        let mut symbol = match kind {
            ItemKind::Param(p) => named(SymbolKind::Param, &p.name, slice(p.ty.span)),
            ItemKind::Model(m) => named(SymbolKind::Model, &m.name, slice(m.value.span)),
            ItemKind::State(s) => named(SymbolKind::State, &s.name, slice(s.ty.span)),
            ItemKind::Reward(r) => named(SymbolKind::Reward, &r.name, slice(r.result.span)),
            ItemKind::Fn(f) => {
                let result = f.result.as_ref().map_or(String::new(), |r| slice(r.span));
                named(SymbolKind::Function, &f.name, result)
            }
            ItemKind::Data(d) => {
                let mut data = named(SymbolKind::Data, &d.name, slice(d.source.span));
                for c in &d.columns {
                    data.children.push(Symbol {
                        span: c.name.span.to(c.ty.span),
                        ..named(SymbolKind::Column, &c.name, slice(c.ty.span))
                    });
                }
                data
            }
            ItemKind::Step(s) => {
                let mut step = named(SymbolKind::Step, &s.over, String::new());
                step.name = format!("step over {}", s.over.text);
                step.children = self.statements(&s.body);
                step
            }
            ItemKind::Eval(e) => {
                let mut eval = named(SymbolKind::Eval, &e.over, String::new());
                eval.name = format!("eval over {}", e.over.text);
                eval.children = self.statements(&e.body);
                eval
            }
            ItemKind::Place(p) => {
                let mut place = named(SymbolKind::Place, &p.program, slice(p.cluster.span));
                place.name = format!("place {}", p.program.text);
                place
            }
            ItemKind::Use(_) | ItemKind::Bad => return None,
        };
        // A name that was made up for a broken item may lie outside of it.
        let inside = symbol.span.lo <= symbol.selection.lo && symbol.selection.hi <= symbol.span.hi;
        if !inside {
            symbol.selection = symbol.span;
        }
        Some(symbol)
    }

    fn statements(&self, body: &[Stmt]) -> Vec<Symbol> {
        let mut symbols = vec![];
        for s in body {
            let (name, kind, selection, children) = match &s.kind {
                StmtKind::Bind { name, .. } => {
                    (name.text.clone(), SymbolKind::Binding, name.span, vec![])
                }
                StmtKind::Rows { name, .. } => {
                    (name.text.clone(), SymbolKind::Binding, name.span, vec![])
                }
                StmtKind::Train { model, body, .. } => {
                    let children = self.statements(body);
                    let name = format!("train {}", model.text);
                    (name, SymbolKind::Train, model.span, children)
                }
                _ => continue,
            };
            let what = self.meaning(selection);
            symbols.push(Symbol {
                name,
                kind,
                detail: match kind {
                    SymbolKind::Binding => what.and_then(|w| self.show(w)).unwrap_or_default(),
                    _ => String::new(),
                },
                span: s.span,
                selection,
                children,
            });
        }
        symbols
    }
}
