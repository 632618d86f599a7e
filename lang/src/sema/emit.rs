//! The expression arena: equal expressions are one, constants are folded.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

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
        let key = fingerprint(&op, &args, ty.elem);
        let same = |e: &ExprRef| {
            let known = self.graph.expr(*e);
            known.op == op && known.args == args && known.ty.elem == ty.elem
        };
        if let Some(known) = self
            .known
            .get(&key)
            .and_then(|all| all.iter().find(|e| same(e)))
        {
            return *known;
        }
        let e = ExprRef(self.graph.exprs.len() as u32);
        self.graph.exprs.push(Expr { op, args, ty, span });
        self.known.entry(key).or_default().push(e);
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

/// Equal operations on equal operands have equal numbers.
fn fingerprint(op: &Op, args: &[ExprRef], elem: Elem) -> u64 {
    let mut hash = DefaultHasher::new();
    discriminant(op).hash(&mut hash);
    match op {
        Op::Number(v) => v.to_bits().hash(&mut hash),
        Op::Bool(b) => b.hash(&mut hash),
        Op::Text(t) => t.hash(&mut hash),
        Op::Value(v) => v.hash(&mut hash),
        Op::State(s) => s.hash(&mut hash),
        Op::Unary(u) => discriminant(u).hash(&mut hash),
        Op::Binary(b) => discriminant(b).hash(&mut hash),
        Op::Reduce { op, axes, biased } => (discriminant(op), axes, biased).hash(&mut hash),
        Op::Shift { axis, by } => (axis, by).hash(&mut hash),
        Op::Top { axis, into } => (axis, into).hash(&mut hash),
        Op::First(a)
        | Op::Last(a)
        | Op::AtLast(a)
        | Op::SuffixSum(a)
        | Op::PrefixSum(a)
        | Op::Len(a)
        | Op::Index(a)
        | Op::Pick(a)
        | Op::Restrict(a) => a.hash(&mut hash),
        Op::OnText(t) => discriminant(t).hash(&mut hash),
        Op::Iteration | Op::Iterations | Op::Select | Op::Clamp | Op::Stop => {}
    }
    (args, elem).hash(&mut hash);
    hash.finish()
}
