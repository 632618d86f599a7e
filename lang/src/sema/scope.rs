//! What names mean where: locals, columns, the file's items, the prelude.

use crate::ast::{ItemKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{Const, Elem, ExprRef, NodeKind, Op, Scope, Type};
use crate::source::Span;

use super::{Def, Sema, Val, builtin, nearest};

/// What kind of local a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `name = value`
    Binding,
    /// A function's argument.
    Argument,
    /// `[T: ..64]`
    Axis,
}

/// A local name.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub name: String,
    pub span: Span,
    pub val: Val,
    pub kind: Kind,
    pub used: bool,
}

/// The names in scope, innermost last, and the file whose items are visible.
#[derive(Debug, Default)]
pub(crate) struct Env {
    pub module: usize,
    pub locals: Vec<Local>,
    /// A step's or evaluation's body, where the columns of its data are names.
    pub columns: bool,
    /// Names bound further down, for a better message: name and where.
    pub later: Vec<(String, Span)>,
    /// A statement that did not parse may have bound any name.
    pub lost_names: bool,
    /// A value that did not parse may have introduced axes.
    pub lost_axes: bool,
}

impl Env {
    /// The items of a file and no locals.
    pub(crate) fn of(module: usize) -> Self {
        Env {
            module,
            ..Env::default()
        }
    }

    pub(crate) fn push(&mut self, name: &Name, val: Val, kind: Kind) {
        self.locals.push(Local {
            name: name.text.clone(),
            span: name.span,
            val,
            kind,
            used: false,
        });
    }

    pub(crate) fn find(&mut self, name: &str) -> Option<&mut Local> {
        self.locals.iter_mut().rev().find(|l| l.name == name)
    }
}

impl Sema<'_> {
    /// What a name stands for as a value.
    pub(crate) fn resolve(&mut self, name: &str, span: Span, env: &mut Env) -> Option<Val> {
        if let Some(local) = env.find(name) {
            local.used = true;
            let (val, def) = (local.val.clone(), local.span);
            self.note_val(span, Some(def), &val);
            return match val {
                Val::Poison => None,
                val => Some(val),
            };
        }
        if env.columns
            && let Some(column) = self.column(name)
        {
            let def = self.graph.expr(column).span;
            self.note_val(span, Some(def), &Val::Expr(column));
            return Some(Val::Expr(column));
        }
        if let Some((def, at)) = self.item_at(name, env.module) {
            self.note_def(span, at, &def);
            return self.item_value(&def, name, span);
        }
        let counter = match name {
            "iteration" => Op::Iteration,
            "iterations" => Op::Iterations,
            _ => return self.unknown(name, span, env),
        };
        let val = Val::Expr(self.counter(counter, span));
        self.note_val(span, None, &val);
        Some(val)
    }

    /// An item of the file, or of the prelude.
    pub(crate) fn item(&self, name: &str, module: usize) -> Option<Def> {
        self.item_at(name, module).map(|(def, _)| def)
    }

    /// An item, and where it is defined.
    pub(crate) fn item_at(&self, name: &str, module: usize) -> Option<(Def, Span)> {
        let own = self.modules.get(module)?.names.get(name);
        let prelude = || self.modules.get(1)?.names.get(name);
        own.or_else(prelude).cloned()
    }

    fn item_value(&mut self, def: &Def, name: &str, span: Span) -> Option<Val> {
        match def {
            Def::Param(i) => {
                self.used.insert(('p', *i));
                if self.unset.contains(i) {
                    return None;
                }
                let value = self.graph.params.get(*i)?.value.clone();
                Some(Val::Expr(self.constant(&value, span)))
            }
            Def::Model(m) => Some(Val::Model(*m)),
            Def::State(s) => {
                self.used.insert(('s', s.0 as usize));
                let elem = self.graph.states.get(s.0 as usize)?.elem;
                Some(Val::Expr(self.emit(
                    Op::State(*s),
                    vec![],
                    Type::scalar(elem),
                    span,
                )))
            }
            Def::Data(_) => self.fail(
                Diagnostic::error("E017", span, format!("`{name}` is a data set, not a value"))
                    .help("inside `step over` and `eval … over` its columns are names"),
            ),
            Def::Reward(_) | Def::Fn { .. } => self.fail(
                Diagnostic::error(
                    "E017",
                    span,
                    format!("`{name}` is a function and needs its arguments"),
                )
                .help(format!("as in `{name}(…)`")),
            ),
            Def::Poison => None,
        }
    }

    /// A constant of the graph.
    pub(crate) fn constant(&mut self, value: &Const, span: Span) -> ExprRef {
        match value {
            Const::Bool(b) => self.emit(Op::Bool(*b), vec![], Type::scalar(Elem::Bool), span),
            Const::Int(i) => self.number(*i as f64, true, span),
            Const::Float(f) => self.number(*f, false, span),
            Const::Text(t) => {
                self.emit(Op::Text(t.clone()), vec![], Type::scalar(Elem::Text), span)
            }
        }
    }

    fn counter(&mut self, op: Op, span: Span) -> ExprRef {
        self.emit(op, vec![], Type::scalar(Elem::Int), span)
    }

    /// A column of the body's data, loaded from now on.
    fn column(&mut self, name: &str) -> Option<ExprRef> {
        let body = self.body.as_ref()?;
        let (data, rows, load) = (body.data, body.rows, body.load);
        let columns = &self.graph.data.get(data.0 as usize)?.columns;
        let index = columns.iter().position(|c| c.name == name)?;
        if let Some(known) = self.columns.get(&(load, index)) {
            return Some(*known);
        }
        let (elem, span) = (columns[index].elem, columns[index].span);
        let ty = Type {
            elem,
            axes: vec![rows],
        };
        let value = self.value(name, ty.clone(), span);
        if let NodeKind::Load { columns, .. } = &mut self.nodes[load].kind {
            columns.push((index, value));
        }
        let e = self.emit(Op::Value(value), vec![], ty, span);
        self.columns.insert((load, index), e);
        Some(e)
    }

    /// Whether an unknown name may come from text that did not parse, which has its message already.
    pub(crate) fn is_lost(&self, name: &str, env: &Env) -> bool {
        let axis = name.starts_with(char::is_uppercase);
        let lost = env.lost_names || (axis && env.lost_axes) || self.lost_items(env.module);
        lost && self.failed()
    }

    /// Whether an item of a file did not parse.
    pub(crate) fn lost_items(&self, module: usize) -> bool {
        let items = self.modules.get(module).map(|m| &m.file.items);
        items.is_some_and(|i| i.iter().any(|i| matches!(i.kind, ItemKind::Bad(None))))
    }

    /// Reports an unknown name, with what is near or where it is bound.
    pub(crate) fn unknown<T>(&mut self, name: &str, span: Span, env: &Env) -> Option<T> {
        if self.is_lost(name, env) || !self.missing.insert((env.module, name.to_string())) {
            return None;
        }
        let place = self.place();
        let mut d = Diagnostic::error("E010", span, format!("no `{name}` in {place}"));
        if let Some((_, later)) = env.later.iter().find(|(n, _)| n == name) {
            d = Diagnostic::error("E010", span, format!("`{name}` is used before it is bound"))
                .label(*later, "bound here")
                .help("a binding can be read only below it");
        } else if let Some(near) = self.near_column(name, env) {
            d = Diagnostic::error("E010", span, format!("no column `{name}` in this data set"))
                .help(format!("a similar one: `{near}`"))
                .guess(format!("use `{near}`"), vec![(span, near)]);
        } else if builtin::builtin(name).is_some() {
            d = Diagnostic::error(
                "E017",
                span,
                format!("`{name}` is a function and needs its arguments"),
            )
            .help(format!("as in `{name}(…)`"));
        } else {
            let names = self.names_in_scope(env);
            if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
                d = d
                    .help(format!("a similar name is in scope: `{near}`"))
                    .guess(format!("use `{near}`"), vec![(span, near.to_string())]);
            } else if let Some(columns) = self.column_list(env) {
                d = d.help(columns);
            }
        }
        self.fail(d)
    }

    /// A column that a built-in name may have been meant as.
    fn near_column(&self, name: &str, env: &Env) -> Option<String> {
        builtin::builtin(name).filter(|_| env.columns)?;
        let data = &self.graph.data[self.body.as_ref()?.data.0 as usize];
        let names = data.columns.iter().map(|c| c.name.as_str());
        nearest(name, names).map(str::to_string)
    }

    fn column_list(&self, env: &Env) -> Option<String> {
        let data = &self.graph.data[self.body.as_ref()?.data.0 as usize];
        if !env.columns || data.columns.is_empty() {
            return None;
        }
        let names: Vec<String> = data
            .columns
            .iter()
            .map(|c| format!("`{}`", c.name))
            .collect();
        Some(format!(
            "`{}` has the columns {}",
            data.name,
            names.join(", ")
        ))
    }

    fn names_in_scope(&self, env: &Env) -> Vec<String> {
        let mut names: Vec<String> = env.locals.iter().map(|l| l.name.clone()).collect();
        if env.columns
            && let Some(body) = &self.body
        {
            let data = &self.graph.data[body.data.0 as usize];
            names.extend(data.columns.iter().map(|c| c.name.clone()));
        }
        for m in [env.module, 1] {
            if let Some(m) = self.modules.get(m) {
                names.extend(m.names.keys().cloned());
            }
        }
        names.extend(["iteration".to_string(), "iterations".to_string()]);
        names.extend(builtin::NAMES.iter().map(|n| n.to_string()));
        names.sort();
        names
    }

    /// Words for where the walk is.
    pub(crate) fn place(&self) -> &'static str {
        if !self.stack.is_empty() {
            return "this function";
        }
        if self.live.is_some() {
            return "this `train` block";
        }
        match self.body.as_ref().map(|b| b.scope) {
            Some(Scope::Step) => "this step",
            Some(Scope::Eval(_)) => "this evaluation",
            None if self.bare => "this expression",
            None => "this file",
        }
    }
}
