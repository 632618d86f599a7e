//! L012: comparing a param of fixed cases with a text that is none of them.

use crate::ast::{BinaryOp, Expr, ExprKind, ItemKind, TypeKind};
use crate::diag::Diagnostic;
use crate::source::Span;

use super::{Def, Env, Sema, nearest};

impl Sema<'_> {
    /// Warns when `param == "text"` can never be true. A param is a constant by the time the two are
    /// compared, so this reads the tree.
    pub(crate) fn impossible_case(&mut self, op: BinaryOp, sides: (&Expr, &Expr), env: &mut Env) {
        if !matches!(op, BinaryOp::Eq | BinaryOp::Ne) || env.module != 0 {
            return;
        }
        let (name, text, at) = match (&sides.0.kind, &sides.1.kind) {
            (ExprKind::Name(n), ExprKind::Text(t)) => (n, t, sides.1.span),
            (ExprKind::Text(t), ExprKind::Name(n)) => (n, t, sides.0.span),
            _ => return,
        };
        if env.find(name).is_some() || !matches!(self.item(name, 0), Some(Def::Param(_))) {
            return;
        }
        let Some((cases, declared)) = self.cases(name) else {
            return;
        };
        if cases.contains(text) {
            return;
        }
        let always = match op {
            BinaryOp::Eq => "false",
            _ => "true",
        };
        let quoted: Vec<String> = cases.iter().map(|c| format!("\"{c}\"")).collect();
        let d = Diagnostic::warning(
            "L012",
            at,
            format!("`{name}` is never \"{text}\", so this comparison is always {always}"),
        )
        .label(declared, "its cases")
        .help(format!("it is one of {}", quoted.join(", ")));
        self.report(match nearest(text, cases.iter().map(String::as_str)) {
            // Another text would need escapes.
            Some(near) if !near.contains(|c: char| c.is_control() || "\\\"".contains(c)) => {
                d.guess(format!("use \"{near}\""), vec![(at, format!("\"{near}\""))])
            }
            _ => d,
        });
    }

    /// The cases of a param and where they are declared.
    fn cases(&self, name: &str) -> Option<(Vec<String>, Span)> {
        self.modules[0]
            .file
            .items
            .iter()
            .find_map(|i| match &i.kind {
                ItemKind::Param(p) if p.name.text == name => match &p.ty.kind {
                    TypeKind::Enum(cases) => {
                        Some((cases.iter().map(|(c, _)| c.clone()).collect(), p.ty.span))
                    }
                    _ => None,
                },
                _ => None,
            })
    }
}
