//! Functions that nothing calls: without arguments they have no types, but their names can be checked.

use crate::ast::{self, AxisPattern, Expr, ExprKind, Fn, ItemKind, Name, StmtKind};
use crate::diag::Diagnostic;

use super::builtin::builtin;
use super::{Env, Kind, Sema, Val};

impl Sema<'_> {
    /// L005 for functions named like a built-in one; checks the functions of the program's file that no
    /// call reached. In a program they are L001.
    pub(crate) fn uncalled_functions(&mut self, file: &ast::File, program: bool) {
        for (i, item) in file.items.iter().enumerate() {
            let ItemKind::Fn(f) = &item.kind else {
                continue;
            };
            if builtin(&f.name.text).is_some() {
                let message = format!("`{0}` hides the built-in `{0}` in this file", f.name.text);
                self.report(
                    Diagnostic::warning("L005", f.name.span, message).help("choose another name"),
                );
            }
            if self.inlined.contains(&(0, i)) {
                continue;
            }
            self.function_names(f, i);
            if program && !self.failed() && !f.name.text.starts_with('_') {
                self.report(
                    Diagnostic::warning(
                        "L001",
                        f.name.span,
                        format!("`{}` is never used", f.name.text),
                    )
                    .help("remove it, or begin its name with `_` to keep it"),
                );
            }
        }
    }

    fn function_names(&mut self, f: &Fn, item: usize) {
        let mut env = Env::of(0);
        let push = |env: &mut Env, name: &Name| env.push(name, Val::Poison, Kind::Argument);
        for p in &f.params {
            for axis in p.ty.axes.iter().flatten() {
                if let AxisPattern::Name(n) = axis {
                    push(&mut env, n);
                }
            }
            push(&mut env, &p.name);
        }
        // So that messages speak of a function.
        self.stack.push((0, item));
        for p in &f.params {
            if let Some(d) = &p.default {
                self.expression_names(d, &mut env);
            }
        }
        for s in &f.bindings {
            if let StmtKind::Bind { name, value } = &s.kind {
                self.expression_names(value, &mut env);
                push(&mut env, name);
            }
        }
        self.expression_names(&f.value, &mut env);
        self.stack.pop();
    }

    fn expression_names(&mut self, e: &Expr, env: &mut Env) {
        if self.depth >= super::DEPTH || !self.visit(e.span) {
            return;
        }
        self.depth += 1;
        match &e.kind {
            ExprKind::Name(name) => {
                let known = env.find(name).is_some()
                    || self.item(name, 0).is_some()
                    || matches!(name.as_str(), "iteration" | "iterations");
                if !known {
                    self.unknown::<()>(name, e.span, env);
                }
            }
            ExprKind::Call { callee, args, .. } => {
                if self.item(&callee.text, 0).is_none() && builtin(&callee.text).is_none() {
                    self.unknown_function::<()>(callee, env);
                }
                for a in args {
                    self.expression_names(&a.value, env);
                }
            }
            ExprKind::Record(args) => {
                for a in args {
                    self.expression_names(&a.value, env);
                }
            }
            ExprKind::List(entries) => {
                for x in entries {
                    self.expression_names(x, env);
                }
            }
            ExprKind::Member { base: x, .. }
            | ExprKind::Unary { operand: x, .. }
            | ExprKind::Paren(x) => self.expression_names(x, env),
            ExprKind::Binary { left, right, .. } => {
                self.expression_names(left, env);
                self.expression_names(right, env);
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expression_names(cond, env);
                self.expression_names(then, env);
                self.expression_names(otherwise, env);
            }
            _ => {}
        }
        self.depth -= 1;
    }
}
