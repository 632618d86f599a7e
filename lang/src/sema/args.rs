//! Matching arguments to what a call takes, and options that must be constants.

use crate::ast::{Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::Const;
use crate::source::Span;

use super::{Env, Sema, nearest};

/// The largest count of iterations, epochs or rows.
pub(crate) const ROWS: usize = 1_000_000_000;
/// The largest fixed axis beside the rows.
pub(crate) const GROUP: usize = 1_000_000;
/// The most tokens of one response.
pub(crate) const TOKENS: usize = 10_000_000;
/// The most worker processes of a reward.
pub(crate) const WORKERS: usize = 1024;

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
                .guess(format!("use `{near}`"), vec![(l.span, near.to_string())]),
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
        let message = format!("`{}` takes {}; {given}", callee.text, list(slots));
        let d = Diagnostic::error(code, span, message);
        let mut by_place = args.iter().filter(|a| a.label.is_none()).count();
        let labelled = |name: &str| {
            let mut labels = args.iter().filter_map(|a| a.label.as_ref());
            labels.any(|l| l.text == name)
        };
        let mut missing = vec![];
        for slot in slots.iter().filter(|s| !labelled(s.name)) {
            if by_place > 0 && slot.need != Need::Label {
                by_place -= 1;
            } else if slot.need == Need::Must {
                missing.push(format!("`{}`", slot.name));
            }
        }
        self.fail(match missing.is_empty() {
            true => d.help("leave out what is too many, or give it by its label"),
            false => d.help(format!("missing: {}", missing.join(", "))),
        })
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

    fn number_of(&mut self, e: &Expr, env: &mut Env, what: &str) -> Option<f64> {
        match self.constant_of(e, env, what)? {
            Const::Int(i) => Some(i as f64),
            Const::Float(f) => Some(f),
            _ => self.bad_option(e, what, "a number"),
        }
    }

    /// A constant number that `fits`; `range` says which do.
    pub(crate) fn real_where(
        &mut self,
        e: &Expr,
        env: &mut Env,
        what: &str,
        fits: fn(f64) -> bool,
        range: &str,
    ) -> Option<f64> {
        let v = self.number_of(e, env, what)?;
        if fits(v) {
            return Some(v);
        }
        self.fail(
            Diagnostic::error("E018", e.span, format!("`{what}` cannot be {v}"))
                .help(format!("it is {range}")),
        )
    }

    /// A constant number within `lo..=hi`.
    pub(crate) fn real(
        &mut self,
        e: &Expr,
        env: &mut Env,
        what: &str,
        (lo, hi): (f64, f64),
    ) -> Option<f64> {
        let v = self.number_of(e, env, what)?;
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

    /// A constant whole number within `lo..=hi`.
    pub(crate) fn whole(
        &mut self,
        e: &Expr,
        env: &mut Env,
        what: &str,
        (lo, hi): (usize, usize),
    ) -> Option<usize> {
        let v = self.real(e, env, what, (lo as f64, hi as f64))?;
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

    /// Texts that end a response; an empty one would end every response at once.
    pub(crate) fn stop_texts(&mut self, e: &Expr, env: &mut Env) -> Option<Vec<String>> {
        let texts = self.texts_of(e, env, "stop")?;
        if texts.iter().any(String::is_empty) {
            return self.fail(
                Diagnostic::error("E018", e.span, "`stop` has an empty text")
                    .help("every response contains it; leave it out"),
            );
        }
        Some(texts)
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
