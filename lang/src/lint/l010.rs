//! L010: a number in a loss that a param could sweep.

use crate::ast::{Arg, Expr, ExprKind, File, ItemKind, Stmt, StmtKind};
use crate::diag::{Diagnostic, Level};
use crate::source::Sources;

/// Reads the tree: in the graph a param and a number are alike.
pub(crate) fn check(file: &File, sources: &Sources) -> Vec<Diagnostic> {
    let mut found = vec![];
    for item in &file.items {
        if let ItemKind::Step(step) = &item.kind {
            for stmt in &step.body {
                if let StmtKind::Train { body, .. } = &stmt.kind {
                    body.iter().for_each(|s| statement(s, sources, &mut found));
                }
            }
        }
    }
    found
}

fn statement(s: &Stmt, sources: &Sources, found: &mut Vec<Diagnostic>) {
    match &s.kind {
        StmtKind::Bind { value, .. } | StmtKind::Minimize(value) => {
            expression(value, sources, found)
        }
        _ => {}
    }
}

fn expression(e: &Expr, sources: &Sources, found: &mut Vec<Diagnostic>) {
    let args = |args: &[Arg], found: &mut Vec<Diagnostic>| {
        args.iter()
            .for_each(|a| expression(&a.value, sources, found));
    };
    match &e.kind {
        ExprKind::Number { value, int: false } if is_choice(*value) => {
            let text = sources.get(e.span.file).slice(e.span);
            let mut d = Diagnostic::warning(
                "L010",
                e.span,
                format!("`{text}` in a loss; as a `param` it could be swept"),
            )
            .help(format!("as in `param clip: float in 0..1 = {text}`"));
            d.level = Level::Hint;
            found.push(d);
        }
        ExprKind::Call { args: a, .. } | ExprKind::Record(a) => args(a, found),
        ExprKind::Member { base: x, .. }
        | ExprKind::Unary { operand: x, .. }
        | ExprKind::Paren(x) => expression(x, sources, found),
        ExprKind::Binary { left, right, .. } => {
            expression(left, sources, found);
            expression(right, sources, found);
        }
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => [cond, then, otherwise]
            .into_iter()
            .for_each(|x| expression(x, sources, found)),
        ExprKind::List(entries) => entries.iter().for_each(|x| expression(x, sources, found)),
        _ => {}
    }
}

/// Halves, and constants that only keep a division from failing, are not swept.
fn is_choice(v: f64) -> bool {
    v.fract() != 0.0 && v != 0.5 && v > 1e-3
}
