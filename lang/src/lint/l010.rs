//! L010: a number in a loss that a param could sweep.

use crate::ast::{Arg, Expr, ExprKind, File, ItemKind, Stmt, StmtKind};
use crate::diag::{Diagnostic, Level};
use crate::source::{Sources, Span};

/// Reads the tree: in the graph a param and a number are alike.
pub(crate) fn check(file: &File, sources: &Sources) -> Vec<Diagnostic> {
    let mut found = vec![];
    for item in &file.items {
        if let ItemKind::Step(step) = &item.kind {
            for stmt in &step.body {
                if let StmtKind::Train { body, .. } = &stmt.kind {
                    let mut numbers = vec![];
                    body.iter().for_each(|s| statement(s, &mut numbers));
                    found.extend(told(&numbers, sources));
                }
            }
        }
    }
    found
}

/// One message for the numbers of a loss.
fn told(numbers: &[Span], sources: &Sources) -> Option<Diagnostic> {
    let (first, others) = numbers.split_first()?;
    let text = |s: &Span| format!("`{}`", sources.get(s.file).slice(*s));
    let all: Vec<String> = numbers.iter().map(text).collect();
    let message = match &all[..] {
        [one] => format!("{one} in a loss; as a `param` it could be swept"),
        [many @ .., last] => format!(
            "{} and {last} in a loss; as a `param` each could be swept",
            many.join(", ")
        ),
        [] => return None,
    };
    let mut d = Diagnostic::warning("L010", *first, message).help(format!(
        "as in `param clip: float in 0.. = {}`",
        text(first).trim_matches('`')
    ));
    for other in others {
        d = d.label(*other, "");
    }
    d.level = Level::Hint;
    Some(d)
}

fn statement(s: &Stmt, found: &mut Vec<Span>) {
    match &s.kind {
        StmtKind::Bind { value, .. } | StmtKind::Minimize(value) => expression(value, found),
        _ => {}
    }
}

fn expression(e: &Expr, found: &mut Vec<Span>) {
    let args = |args: &[Arg], found: &mut Vec<Span>| {
        args.iter().for_each(|a| expression(&a.value, found));
    };
    match &e.kind {
        ExprKind::Number { value, int: false } if is_choice(*value) => found.push(e.span),
        ExprKind::Call { args: a, .. } | ExprKind::Record(a) => args(a, found),
        ExprKind::Member { base: x, .. }
        | ExprKind::Unary { operand: x, .. }
        | ExprKind::Paren(x) => expression(x, found),
        ExprKind::Binary { left, right, .. } => {
            expression(left, found);
            expression(right, found);
        }
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => [cond, then, otherwise]
            .into_iter()
            .for_each(|x| expression(x, found)),
        ExprKind::List(entries) => entries.iter().for_each(|x| expression(x, found)),
        _ => {}
    }
}

/// Halves, and constants that only keep a division from failing, are not swept.
fn is_choice(v: f64) -> bool {
    v.fract() != 0.0 && v != 0.5 && v > 1e-3
}
