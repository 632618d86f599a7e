//! What a body's tree says before it is read: names, mentions, and pieces that did not parse.

use crate::ast::{self, AxisBinder, Expr, ExprKind, Stmt, StmtKind};
use crate::source::Span;

use super::{Env, Kind, Val};

pub(crate) fn bound_names(body: &[Stmt]) -> Vec<(String, Span)> {
    body.iter()
        .filter_map(|s| match &s.kind {
            StmtKind::Bind { name, .. } => Some((name.text.clone(), name.span)),
            _ => None,
        })
        .collect()
}

/// After a failed call, the axes that it would have introduced are names without a value.
pub(super) fn lose(axes: &[AxisBinder], env: &mut Env) -> Option<Val> {
    // Without a bracket, what axes it would have introduced is not known.
    env.lost_axes |= axes.is_empty();
    for a in axes {
        if env.find(&a.name.text).is_none() {
            env.push(&a.name, Val::Poison, Kind::Axis);
        }
    }
    None
}

/// Whether an expression did not parse.
pub(super) fn is_bad(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Bad => true,
        ExprKind::Paren(x) => is_bad(x),
        ExprKind::Call { args, .. } => args.iter().any(|a| is_bad(&a.value)),
        _ => false,
    }
}

/// Whether an expression reads a name.
pub(super) fn mentions(e: &Expr, name: &str) -> bool {
    let any = |args: &[ast::Arg]| args.iter().any(|a| mentions(&a.value, name));
    match &e.kind {
        ExprKind::Name(n) => n == name,
        ExprKind::Call { args, .. } | ExprKind::Record(args) => any(args),
        ExprKind::Member { base, .. } => mentions(base, name),
        ExprKind::Unary { operand, .. } => mentions(operand, name),
        ExprKind::Binary { left, right, .. } => mentions(left, name) || mentions(right, name),
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => mentions(cond, name) || mentions(then, name) || mentions(otherwise, name),
        ExprKind::List(entries) => entries.iter().any(|x| mentions(x, name)),
        ExprKind::Paren(x) => mentions(x, name),
        _ => false,
    }
}
