//! The expression arena: equal expressions are one, constants are folded.

use crate::diag::Diagnostic;
use crate::graph::{Const, Elem, Expr, ExprRef, Op, Type};
use crate::source::{FileId, Span};

use super::fold::fold;
use super::{Sema, VISITS};

impl Sema<'_> {
    /// Adds an expression, or finds the equal one.
    pub(crate) fn emit(&mut self, op: Op, args: Vec<ExprRef>, ty: Type, span: Span) -> ExprRef {
        if !args.is_empty() && ty.axes.is_empty() {
            let constants: Option<Vec<Const>> = args.iter().map(|a| self.as_const(*a)).collect();
            if let Some(folded) = constants.and_then(|c| fold(&op, &c)) {
                return match (folded, ty.elem) {
                    (Op::Number(v), elem) => self.number(v, elem == Elem::Int, span),
                    (op, _) => self.emit(op, vec![], ty, span),
                };
            }
        }
        if op == Op::Clamp && self.is_unlimited(&args) {
            return args[0];
        }
        // Inside an imported function the program's text is its call.
        let span = match self.sites.iter().find(|s| s.span.file == FileId(0)) {
            Some(site) if span.file != FileId(0) => site.span,
            _ => span,
        };
        let key = format!("{op:?}{args:?}{:?}", ty.elem);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let e = ExprRef(self.graph.exprs.len() as u32);
        self.graph.exprs.push(Expr { op, args, ty, span });
        self.known.insert(key, e);
        e
    }

    /// Limits of ±1e30 and more limit nothing; functions have them as defaults.
    fn is_unlimited(&self, args: &[ExprRef]) -> bool {
        let bound = |i: usize| match args.get(i).and_then(|a| self.as_const(*a)) {
            Some(Const::Float(f)) => f,
            _ => 0.0,
        };
        bound(1) <= -1e30 && bound(2) >= 1e30
    }

    /// A constant number.
    pub(crate) fn number(&mut self, v: f64, int: bool, span: Span) -> ExprRef {
        let elem = if int { Elem::Int } else { Elem::Float };
        self.emit(Op::Number(v), vec![], Type::scalar(elem), span)
    }

    /// The constant an expression is, if it is one.
    pub(crate) fn as_const(&self, e: ExprRef) -> Option<Const> {
        let e = self.graph.expr(e);
        match &e.op {
            Op::Number(v) if e.ty.elem == Elem::Int => Some(Const::Int(*v as i64)),
            Op::Number(v) => Some(Const::Float(*v)),
            Op::Bool(b) => Some(Const::Bool(*b)),
            Op::Text(t) => Some(Const::Text(t.clone())),
            _ => None,
        }
    }

    /// Counts a visited tree node; false, with one message, when there are too many.
    pub(crate) fn visit(&mut self, span: Span) -> bool {
        self.visits += 1;
        if self.visits == VISITS + 1 {
            self.report(
                Diagnostic::error("E015", span, "the functions of this program expand without end")
                    .help("a function that calls another twice, which calls another twice, …, doubles each time; bind the result once"),
            );
        }
        self.visits <= VISITS
    }
}
