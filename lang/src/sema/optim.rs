//! Optimizers of models.

use crate::ast::{Expr, ExprKind};
use crate::diag::Diagnostic;
use crate::graph::{Const, ExprRef, Optim};

use super::args::{label, must};
use super::{Env, Sema};

/// What [`is_decay`] holds of, in words.
const DECAY: &str = "at least 0 and below 1";

fn is_decay(v: f64) -> bool {
    (0.0..1.0).contains(&v)
}

impl Sema<'_> {
    /// `adamw(lr: 1e-5, …)`
    pub(crate) fn optim(&mut self, e: &Expr) -> Option<Optim> {
        let (callee, args) = self.source_call(e)?;
        if callee.text != "adamw" {
            return self.fail(
                Diagnostic::error(
                    "E010",
                    callee.span,
                    format!("no optimizer `{}`", callee.text),
                )
                .help("`adamw(lr: 1e-5)` is one"),
            );
        }
        let slots = [
            must("lr"),
            label("beta1"),
            label("beta2"),
            label("betas"),
            label("eps"),
            label("weight_decay"),
            label("clip"),
        ];
        let found = self.arguments("E016", callee, args, &slots)?;
        let lr_at = found[0]?;
        let lr = self.rate(lr_at)?;
        let mut env = Env::of(0);
        let mut option = |i: usize, default: f64, fits, range| match found[i] {
            Some(e) => self.real_where(e, &mut env, slots[i].name, fits, range),
            None => Some(default),
        };
        let mut beta1 = option(1, 0.9, is_decay, DECAY)?;
        let mut beta2 = option(2, 0.999, is_decay, DECAY)?;
        let eps = option(4, 1e-8, |v| v > 0.0 && v <= 1.0, "above 0 and at most 1")?;
        let from_zero = |v: f64| v >= 0.0 && v.is_finite();
        let weight_decay = option(5, 0.0, from_zero, "at least 0")?;
        let clip = option(6, 1.0, from_zero, "at least 0")?;
        if let Some(e) = found[3] {
            let ExprKind::List(pair) = &e.kind else {
                return self.bad_option(e, "betas", "two numbers such as `[0.9, 0.999]`");
            };
            let [a, b] = &pair[..] else {
                return self.bad_option(e, "betas", "two numbers such as `[0.9, 0.999]`");
            };
            beta1 = self.real_where(a, &mut env, "betas", is_decay, DECAY)?;
            beta2 = self.real_where(b, &mut env, "betas", is_decay, DECAY)?;
        }
        Some(Optim {
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            clip_norm: (clip > 0.0).then_some(clip),
        })
    }

    fn rate(&mut self, e: &Expr) -> Option<ExprRef> {
        let x = self.expr(e, &mut Env::of(0))?;
        self.need_number("lr", x, e.span)?;
        let negative = match self.as_const(x) {
            Some(Const::Float(v)) => v < 0.0,
            Some(Const::Int(v)) => v < 0,
            _ => false,
        };
        if negative {
            let text = self.quote(e.span);
            return self.fail(
                Diagnostic::error("E018", e.span, format!("`lr` cannot be {text}"))
                    .help("it is at least 0"),
            );
        }
        Some(x)
    }
}
