//! Matching arguments to what a call takes, and options that must be constants.

use crate::ast::{Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::Const;
use crate::source::Span;

use super::{Env, Sema, nearest};

/// One thing a call takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'s> {
    pub name: &'s str,
    pub need: Need,
}

/// How it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// By position or label, and must be.
    Must,
    /// By position or label, or left out.
    May,
    /// Only by label, or left out.
    Label,
}

pub(crate) fn must(name: &str) -> Slot<'_> {
    Slot {
        name,
        need: Need::Must,
    }
}

pub(crate) fn may(name: &str) -> Slot<'_> {
    Slot {
        name,
        need: Need::May,
    }
}

pub(crate) fn label(name: &str) -> Slot<'_> {
    Slot {
        name,
        need: Need::Label,
    }
}

impl Sema<'_> {
    /// The arguments in the order of the slots. `code` is E016 for functions, E034 for rewards.
    pub(crate) fn arguments<'e>(
        &mut self,
        code: &str,
        callee: &Name,
        args: &'e [Arg],
        slots: &[Slot],
    ) -> Option<Vec<Option<&'e Expr>>> {
        let mut found: Vec<Option<&'e Expr>> = vec![None; slots.len()];
        for arg in args {
            let index = match &arg.label {
                None => found
                    .iter()
                    .zip(slots)
                    .position(|(f, s)| f.is_none() && s.need != Need::Label),
                Some(l) => slots.iter().position(|s| s.name == l.text),
            };
            let Some(index) = index else {
                return match &arg.label {
                    Some(l) => self.no_such_label(code, callee, l, slots),
                    None => self.signature(code, callee, args, slots, arg.value.span),
                };
            };
            if found[index].is_some() {
                let name = slots[index].name;
                return self.fail(Diagnostic::error(
                    code,
                    arg.value.span,
                    format!("`{}` is given `{name}` twice", callee.text),
                ));
            }
            found[index] = Some(&arg.value);
        }
        let complete = found
            .iter()
            .zip(slots)
            .all(|(f, s)| f.is_some() || s.need != Need::Must);
        if !complete {
            return self.signature(code, callee, args, slots, callee.span);
        }
        Some(found)
    }

    fn no_such_label<T>(
        &mut self,
        code: &str,
        callee: &Name,
        l: &Name,
        slots: &[Slot],
    ) -> Option<T> {
        let mut d = Diagnostic::error(
            code,
            l.span,
            format!("`{}` has no argument `{}`", callee.text, l.text),
        );
        d = match nearest(&l.text, slots.iter().map(|s| s.name)) {
            Some(near) => d
                .help(format!("a similar one: `{near}:`"))
                .fix(format!("use `{near}`"), vec![(l.span, near.to_string())]),
            None => d.help(format!("it takes {}", list(slots))),
        };
        self.fail(d)
    }

    fn signature<T>(
        &mut self,
        code: &str,
        callee: &Name,
        args: &[Arg],
        slots: &[Slot],
        span: Span,
    ) -> Option<T> {
        let given = match args.len() {
            0 => "none is given".to_string(),
            1 => "1 argument is given".to_string(),
            n => format!("{n} arguments are given"),
        };
        self.fail(Diagnostic::error(
            code,
            span,
            format!("`{}` takes {}; {given}", callee.text, list(slots)),
        ))
    }

    /// An option's value, known before the run.
    pub(crate) fn constant_of(&mut self, e: &Expr, env: &mut Env, what: &str) -> Option<Const> {
        let x = self.expr(e, env)?;
        match self.as_const(x) {
            Some(c) => Some(c),
            None => {
                let text = self.quote(e.span);
                self.fail(
                    Diagnostic::error(
                        "E018",
                        e.span,
                        format!(
                            "`{what}` must be known before the run, and {text} is computed in it"
                        ),
                    )
                    .help("constants, params and arithmetic on them are known"),
                )
            }
        }
    }

    /// A constant number within `lo..=hi`.
    pub(crate) fn real(
        &mut self,
        e: &Expr,
        env: &mut Env,
        what: &str,
        (lo, hi): (f64, f64),
    ) -> Option<f64> {
        let v = match self.constant_of(e, env, what)? {
            Const::Int(i) => i as f64,
            Const::Float(f) => f,
            _ => return self.bad_option(e, what, "a number"),
        };
        if v >= lo && v <= hi {
            return Some(v);
        }
        let range = match (lo.is_finite(), hi.is_finite()) {
            (true, true) => format!("{lo}..{hi}"),
            (true, false) => format!("{lo}.."),
            _ => format!("..{hi}"),
        };
        self.fail(Diagnostic::error(
            "E018",
            e.span,
            format!("`{what}: {v}` is outside `{range}`"),
        ))
    }

    /// A constant whole number, at least `lo`.
    pub(crate) fn whole(
        &mut self,
        e: &Expr,
        env: &mut Env,
        what: &str,
        lo: usize,
    ) -> Option<usize> {
        let v = self.real(e, env, what, (lo as f64, 1e15))?;
        if v.fract() == 0.0 {
            return Some(v as usize);
        }
        self.bad_option(e, what, "a whole number")
    }

    /// A constant text.
    pub(crate) fn text_of(&mut self, e: &Expr, env: &mut Env, what: &str) -> Option<String> {
        match self.constant_of(e, env, what)? {
            Const::Text(t) => Some(t),
            _ => self.bad_option(e, what, "text"),
        }
    }

    /// A constant truth value.
    pub(crate) fn truth_of(&mut self, e: &Expr, env: &mut Env, what: &str) -> Option<bool> {
        match self.constant_of(e, env, what)? {
            Const::Bool(b) => Some(b),
            _ => self.bad_option(e, what, "`true` or `false`"),
        }
    }

    /// A constant text or a list of them.
    pub(crate) fn texts_of(&mut self, e: &Expr, env: &mut Env, what: &str) -> Option<Vec<String>> {
        match &e.kind {
            ExprKind::List(entries) => entries.iter().map(|x| self.text_of(x, env, what)).collect(),
            _ => self.text_of(e, env, what).map(|t| vec![t]),
        }
    }

    pub(crate) fn bad_option<T>(&mut self, e: &Expr, what: &str, wants: &str) -> Option<T> {
        let text = self.quote(e.span);
        self.fail(Diagnostic::error(
            "E018",
            e.span,
            format!("`{what}` takes {wants}, and {text} is not"),
        ))
    }
}

fn list(slots: &[Slot]) -> String {
    if slots.is_empty() {
        return "no arguments".into();
    }
    let names: Vec<String> = slots
        .iter()
        .map(|s| match s.need {
            Need::Must => s.name.to_string(),
            Need::May => format!("{}?", s.name),
            Need::Label => format!("{}:", s.name),
        })
        .collect();
    format!("`({})`", names.join(", "))
}
