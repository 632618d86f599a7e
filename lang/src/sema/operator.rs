//! Infix operators and `if`.

use crate::ast::BinaryOp;
use crate::diag::Diagnostic;
use crate::graph::{Binary, Elem, ExprRef, Op, TextOp, Type};
use crate::source::Span;

use super::{Sema, describe};

type Operand = (ExprRef, Span);

impl Sema<'_> {
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: Operand,
        b: Operand,
        span: Span,
    ) -> Option<ExprRef> {
        let (op, sign) = graph_operator(op);
        match op {
            Binary::And | Binary::Or => {
                for x in [a, b] {
                    if self.elem(x.0) != Elem::Bool {
                        return self.wrong_type(&format!("`{sign}`"), "a truth value", x.0, x.1);
                    }
                }
                self.pair(op, a, b, Elem::Bool, span)
            }
            Binary::Eq | Binary::Ne => {
                let (x, y) = (family(self.elem(a.0)), family(self.elem(b.0)));
                if x != y || matches!(x, Elem::Chat | Elem::TextList) {
                    return self.different(sign, a, b, span);
                }
                self.pair(op, a, b, Elem::Bool, span)
            }
            Binary::Add if self.elem(a.0) == Elem::Text && self.elem(b.0) == Elem::Text => {
                let mut operands = [a, b];
                let axes = self.join(&mut operands, span)?;
                let ty = Type {
                    elem: Elem::Text,
                    axes,
                };
                let args = operands.map(|(x, _)| x).to_vec();
                Some(self.emit(Op::OnText(TextOp::Concat), args, ty, span))
            }
            _ => {
                for x in [a, b] {
                    if !self.is_number(x.0) {
                        return self.wrong_type(&format!("`{sign}`"), "a number", x.0, x.1);
                    }
                }
                let elem = match op {
                    Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => Elem::Bool,
                    Binary::Div | Binary::Pow => Elem::Float,
                    _ => self.wider(a.0, b.0),
                };
                self.pair(op, a, b, elem, span)
            }
        }
    }

    /// An element-wise operation whose operands' elements are checked.
    pub(crate) fn pair(
        &mut self,
        op: Binary,
        a: Operand,
        b: Operand,
        elem: Elem,
        span: Span,
    ) -> Option<ExprRef> {
        let mut operands = [a, b];
        let axes = self.join(&mut operands, span)?;
        let args = operands.map(|(x, _)| x).to_vec();
        Some(self.emit(Op::Binary(op), args, Type { elem, axes }, span))
    }

    /// Int when both are.
    pub(crate) fn wider(&self, a: ExprRef, b: ExprRef) -> Elem {
        match (self.elem(a), self.elem(b)) {
            (Elem::Int, Elem::Int) => Elem::Int,
            _ => Elem::Float,
        }
    }

    pub(crate) fn select(
        &mut self,
        c: Operand,
        a: Operand,
        b: Operand,
        span: Span,
    ) -> Option<ExprRef> {
        if self.elem(c.0) != Elem::Bool {
            return self.wrong_type("`if`", "a truth value", c.0, c.1);
        }
        let (x, y) = (self.elem(a.0), self.elem(b.0));
        if family(x) != family(y) {
            return self.different("if", a, b, span);
        }
        let elem = if x == y { x } else { Elem::Float };
        let mut operands = [c, a, b];
        let axes = self.join(&mut operands, span)?;
        let args = operands.map(|(x, _)| x).to_vec();
        Some(self.emit(Op::Select, args, Type { elem, axes }, span))
    }

    fn different<T>(&mut self, sign: &str, a: Operand, b: Operand, span: Span) -> Option<T> {
        let (x, y) = (describe(self.elem(a.0)), describe(self.elem(b.0)));
        let message = match (sign, x == y) {
            ("if", _) => format!("the two branches of `if` differ: one is {x}, the other {y}"),
            (_, true) => format!("`{sign}` does not compare {x} with {y}"),
            (_, false) => format!("`{sign}` compares {x} with {y}"),
        };
        let mut d = Diagnostic::error("E017", span, message)
            .label(a.1, x)
            .label(b.1, y);
        if [x, y].contains(&"text") && [x, y].contains(&"a number") {
            d = d.help("`number(…)` and `last_number(…)` read a number from text");
        }
        self.fail(d)
    }
}

/// What may stand beside each other.
fn family(e: Elem) -> Elem {
    match e {
        Elem::Int => Elem::Float,
        e => e,
    }
}

fn graph_operator(op: BinaryOp) -> (Binary, &'static str) {
    match op {
        BinaryOp::Or => (Binary::Or, "or"),
        BinaryOp::And => (Binary::And, "and"),
        BinaryOp::Eq => (Binary::Eq, "=="),
        BinaryOp::Ne => (Binary::Ne, "!="),
        BinaryOp::Lt => (Binary::Lt, "<"),
        BinaryOp::Le => (Binary::Le, "<="),
        BinaryOp::Gt => (Binary::Gt, ">"),
        BinaryOp::Ge => (Binary::Ge, ">="),
        BinaryOp::Add => (Binary::Add, "+"),
        BinaryOp::Sub => (Binary::Sub, "-"),
        BinaryOp::Mul => (Binary::Mul, "*"),
        BinaryOp::Div => (Binary::Div, "/"),
        BinaryOp::Rem => (Binary::Rem, "%"),
        BinaryOp::Pow => (Binary::Pow, "^"),
    }
}
