//! Moving a part of a tree to another place of a text.

use super::ast::*;
use crate::source::{FileId, Span};

/// How far, and into which text.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub file: FileId,
    pub bytes: i64,
    pub ids: i64,
}

/// Changes every place and number in a part of a tree.
pub(crate) trait Shift {
    fn shift(&mut self, to: Move);
}

impl Shift for Span {
    fn shift(&mut self, to: Move) {
        self.file = to.file;
        self.lo = (i64::from(self.lo) + to.bytes) as u32;
        self.hi = (i64::from(self.hi) + to.bytes) as u32;
    }
}

impl<T: Shift> Shift for Vec<T> {
    fn shift(&mut self, to: Move) {
        self.iter_mut().for_each(|x| x.shift(to));
    }
}

impl<T: Shift> Shift for Option<T> {
    fn shift(&mut self, to: Move) {
        self.iter_mut().for_each(|x| x.shift(to));
    }
}

impl<T: Shift> Shift for Box<T> {
    fn shift(&mut self, to: Move) {
        (**self).shift(to);
    }
}

impl<A: Shift, B: Shift> Shift for (A, B) {
    fn shift(&mut self, to: Move) {
        self.0.shift(to);
        self.1.shift(to);
    }
}

impl Shift for String {
    fn shift(&mut self, _: Move) {}
}

/// Every named field has places of its own or is left alone.
macro_rules! fields {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl Shift for $name {
            fn shift(&mut self, to: Move) {
                $(self.$field.shift(to);)*
            }
        })*
    };
}

fields! {
    Name { span }
    Use { path, names }
    Param { name, ty, range, default }
    Data { name, source, columns }
    Column { name, ty, from }
    Model { name, value }
    Reward { name, params, result, source }
    State { name, ty, init }
    Fn { name, params, result, bindings, value }
    FnParam { name, ty, default }
    Step { over, axes, options, body }
    Eval { every, over, axes, body }
    Place { program, cluster, calls }
    PlaceCall { span, name, devices, options }
    Type { span, kind, axes }
    AxisBinder { span, name, size }
    Stmt { span, kind }
    Arg { label, value }
}

impl Shift for Expr {
    fn shift(&mut self, to: Move) {
        self.id.0 = (i64::from(self.id.0) + to.ids) as u32;
        self.span.shift(to);
        self.kind.shift(to);
    }
}

impl Shift for ItemKind {
    fn shift(&mut self, to: Move) {
        match self {
            ItemKind::Use(x) => x.shift(to),
            ItemKind::Param(x) => x.shift(to),
            ItemKind::Data(x) => x.shift(to),
            ItemKind::Model(x) => x.shift(to),
            ItemKind::Reward(x) => x.shift(to),
            ItemKind::State(x) => x.shift(to),
            ItemKind::Fn(x) => x.shift(to),
            ItemKind::Step(x) => x.shift(to),
            ItemKind::Eval(x) => x.shift(to),
            ItemKind::Place(x) => x.shift(to),
            ItemKind::Bad(name) => {
                if let Some(name) = name {
                    name.shift(to);
                }
            }
        }
    }
}

impl Shift for UsePath {
    fn shift(&mut self, to: Move) {
        match self {
            UsePath::Dotted(names) => names.shift(to),
            UsePath::File(_, span) => span.shift(to),
        }
    }
}

impl Shift for TypeKind {
    fn shift(&mut self, to: Move) {
        if let TypeKind::Enum(cases) = self {
            cases.shift(to);
        }
    }
}

impl Shift for AxisPattern {
    fn shift(&mut self, to: Move) {
        match self {
            AxisPattern::Rest(span) => span.shift(to),
            AxisPattern::Name(name) => name.shift(to),
        }
    }
}

impl Shift for AxisSize {
    fn shift(&mut self, to: Move) {
        match self {
            AxisSize::Fixed(e) | AxisSize::Ragged(e) => e.shift(to),
        }
    }
}

impl Shift for StmtKind {
    fn shift(&mut self, to: Move) {
        match self {
            StmtKind::Bind { name, value } | StmtKind::Next { name, value } => {
                name.shift(to);
                value.shift(to);
            }
            StmtKind::Rows {
                name,
                of,
                cond,
                options,
            } => {
                name.shift(to);
                of.shift(to);
                cond.shift(to);
                options.shift(to);
            }
            StmtKind::Train {
                model,
                options,
                body,
            } => {
                model.shift(to);
                options.shift(to);
                body.shift(to);
            }
            StmtKind::Minimize(e) => e.shift(to),
            StmtKind::Log(entries) => entries.shift(to),
            StmtKind::Bad => {}
        }
    }
}

impl Shift for ExprKind {
    fn shift(&mut self, to: Move) {
        match self {
            ExprKind::Number { .. } | ExprKind::Text(_) | ExprKind::Bool(_) => {}
            ExprKind::Name(_) | ExprKind::Bad => {}
            ExprKind::Call { callee, args, axes } => {
                callee.shift(to);
                args.shift(to);
                axes.shift(to);
            }
            ExprKind::Member { base, member } => {
                base.shift(to);
                member.shift(to);
            }
            ExprKind::Unary { operand, .. } => operand.shift(to),
            ExprKind::Binary {
                op_span,
                left,
                right,
                ..
            } => {
                op_span.shift(to);
                left.shift(to);
                right.shift(to);
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                cond.shift(to);
                then.shift(to);
                otherwise.shift(to);
            }
            ExprKind::List(entries) => entries.shift(to),
            ExprKind::Record(args) => args.shift(to),
            ExprKind::Range { lo, hi } => {
                lo.shift(to);
                hi.shift(to);
            }
            ExprKind::Paren(e) => e.shift(to),
        }
    }
}
