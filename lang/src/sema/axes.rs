//! Axes: broadcasting by name, and what brackets refer to.

use crate::ast::{Expr, ExprKind};
use crate::diag::Diagnostic;
use crate::graph::{Axis, AxisId, AxisSize, ExprRef};
use crate::source::Span;

use super::{Env, Sema, Val};

/// The most tokens that one call may sample or read, all responses together.
const ELEMENTS: usize = 1_000_000_000_000;

impl Sema<'_> {
    /// Refuses a rollout whose sizes multiply to more than any machine holds.
    pub(crate) fn fits_one_call(
        &mut self,
        axes: &[Option<AxisId>],
        max: usize,
        span: Span,
    ) -> Option<()> {
        let responses = axes
            .iter()
            .flatten()
            .filter_map(|a| self.fixed_size(*a))
            .fold(1, usize::saturating_mul);
        if responses.saturating_mul(max) <= ELEMENTS {
            return Some(());
        }
        self.fail(
            Diagnostic::error(
                "E018",
                span,
                format!("{responses} responses of up to {max} tokens are too many for one call"),
            )
            .help(format!("all together may have {ELEMENTS} tokens")),
        )
    }

    pub(crate) fn new_axis(
        &mut self,
        name: &str,
        size: AxisSize,
        parents: Vec<AxisId>,
        span: Span,
    ) -> AxisId {
        self.graph.axes.push(Axis {
            name: name.into(),
            size,
            parents,
            of: None,
            span,
        });
        AxisId(self.graph.axes.len() as u32 - 1)
    }

    pub(crate) fn is_ragged(&self, a: AxisId) -> bool {
        matches!(self.graph.axis(a).size, AxisSize::Ragged(_))
    }

    /// Axes in the order every type has them: by introduction, a ragged one last. A selection stands
    /// where the axis it is of would.
    pub(crate) fn ordered(&self, mut axes: Vec<AxisId>) -> Vec<AxisId> {
        axes.sort_by_key(|a| (self.is_ragged(*a), self.graph.origin(*a), *a));
        axes.dedup();
        axes
    }

    /// The axes of an element-wise operation on `operands`, each with the text to point at. Operands
    /// over all rows are narrowed to the part that another one has.
    pub(crate) fn join(
        &mut self,
        operands: &mut [(ExprRef, Span)],
        span: Span,
    ) -> Option<Vec<AxisId>> {
        self.narrow(operands);
        let mut axes: Vec<AxisId> = vec![];
        let mut ragged: Option<(AxisId, Span)> = None;
        for (e, at) in operands.iter() {
            for a in self.ty(*e).axes.clone() {
                if axes.contains(&a) {
                    continue;
                }
                let other = axes
                    .iter()
                    .copied()
                    .find(|b| self.graph.origin(*b) == self.graph.origin(a));
                axes.push(a);
                if !self.is_ragged(a) {
                    if let Some(b) = other {
                        return self.parts_differ(b, a, span);
                    }
                    continue;
                }
                if let Some((first, first_at)) = ragged {
                    return self.ragged_mismatch(first, first_at, a, *at, span);
                }
                ragged = Some((a, *at));
            }
        }
        if let Some((t, at)) = ragged {
            let parents = self.graph.axis(t).parents.clone();
            let stray = axes.iter().find(|a| **a != t && !parents.contains(a));
            if let Some(stray) = stray.copied() {
                return self.stray_axis(t, at, stray, span);
            }
        }
        Some(self.ordered(axes))
    }

    /// Two selections of one axis.
    fn parts_differ<T>(&mut self, a: AxisId, b: AxisId, span: Span) -> Option<T> {
        let (an, bn) = (self.axis_name(a).to_string(), self.axis_name(b).to_string());
        let of = self.axis_name(self.graph.origin(a)).to_string();
        let what = match an == bn {
            true => format!("these are two different selections of `{of}`"),
            false => format!("`{an}` and `{bn}` are different selections of `{of}`"),
        };
        self.fail(
            Diagnostic::error(
                "E031",
                span,
                format!("{what} and cannot be combined element by element"),
            )
            .help("reduce each first"),
        )
    }

    fn ragged_mismatch<T>(
        &mut self,
        a: AxisId,
        a_at: Span,
        b: AxisId,
        b_at: Span,
        span: Span,
    ) -> Option<T> {
        let (an, bn) = (self.axis_name(a).to_string(), self.axis_name(b).to_string());
        let what = if an == bn {
            format!(
                "two different response axes, both named `{an}`, cannot be combined element by element"
            )
        } else {
            format!(
                "`{an}` and `{bn}` are different response axes and cannot be combined element by element"
            )
        };
        let help = format!(
            "reduce each first: `sum({}, {an})`, `sum({}, {bn})`",
            self.quote(a_at).trim_matches('`'),
            self.quote(b_at).trim_matches('`'),
        );
        self.fail(
            Diagnostic::error("E031", span, what)
                .label(a_at, format!("over `{an}`"))
                .label(b_at, format!("over `{bn}`"))
                .help(help),
        )
    }

    fn stray_axis<T>(&mut self, t: AxisId, at: Span, stray: AxisId, span: Span) -> Option<T> {
        let over = self.graph.axis(t).parents.clone();
        let (tn, sn) = (
            self.axis_name(t).to_string(),
            self.axis_name(stray).to_string(),
        );
        let message = format!(
            "the response axis `{tn}` has its own length for each of `{}`, so it cannot be combined with `{sn}`",
            self.show_axes(&over)
        );
        self.fail(
            Diagnostic::error("E031", span, message)
                .label(at, format!("over `{tn}`"))
                .help(format!("reduce over `{tn}` or `{sn}` first")),
        )
    }

    /// The axes an argument such as `T` or `[B, G]` names; `of` is what they are to be taken from.
    pub(crate) fn axes_argument(
        &mut self,
        arg: &Expr,
        env: &mut Env,
        of: Option<(ExprRef, Span)>,
        verb: &str,
    ) -> Option<Vec<(AxisId, Span)>> {
        match &arg.kind {
            ExprKind::Paren(inner) => self.axes_argument(inner, env, of, verb),
            ExprKind::List(entries) => {
                let mut axes: Vec<(AxisId, Span)> = vec![];
                for entry in entries {
                    for (axis, at) in self.axes_argument(entry, env, of, verb)? {
                        if let Some((_, first)) = axes.iter().find(|(a, _)| *a == axis) {
                            let name = self.axis_name(axis).to_string();
                            return self.fail(
                                Diagnostic::error("E036", at, format!("`{name}` is named twice"))
                                    .label(*first, "named here first")
                                    .help("an axis goes once; name each one time"),
                            );
                        }
                        axes.push((axis, at));
                    }
                }
                Some(axes)
            }
            ExprKind::Name(name) => {
                let local = env.find(name).map(|l| {
                    l.used = true;
                    (l.val.clone(), l.span)
                });
                if let Some((val, def)) = &local {
                    self.note_val(arg.span, Some(*def), val);
                }
                match local.map(|(val, _)| val) {
                    Some(Val::Axis(a)) => self.of(vec![(a, arg.span)], of, verb),
                    Some(Val::Axes(axes)) => {
                        self.of(axes.into_iter().map(|a| (a, arg.span)).collect(), of, verb)
                    }
                    Some(Val::Poison) => None,
                    Some(_) => self.not_an_axis(arg, of),
                    None => match of {
                        Some(x) if self.resolves(name, env) => self.not_an_axis(arg, Some(x)),
                        Some(_) if self.is_lost(name, env) => None,
                        Some(x) => self.no_such_axis(name, arg.span, x, verb),
                        None => self.unknown(name, arg.span, env),
                    },
                }
            }
            ExprKind::Bad => None,
            _ => self.not_an_axis(arg, of),
        }
    }

    fn resolves(&self, name: &str, env: &Env) -> bool {
        self.item(name, env.module).is_some()
    }

    fn of(
        &mut self,
        mut axes: Vec<(AxisId, Span)>,
        of: Option<(ExprRef, Span)>,
        verb: &str,
    ) -> Option<Vec<(AxisId, Span)>> {
        if let Some(x) = of {
            for (a, span) in &mut axes {
                match self.axis_in(x.0, *a) {
                    Some(own) => *a = own,
                    None => {
                        let name = self.axis_name(*a).to_string();
                        return self.no_such_axis(&name, *span, x, verb);
                    }
                }
            }
        }
        Some(axes)
    }

    pub(crate) fn no_such_axis<T>(
        &mut self,
        name: &str,
        span: Span,
        (x, at): (ExprRef, Span),
        verb: &str,
    ) -> Option<T> {
        let axes = self.ty(x).axes.clone();
        let what = self.quote(at);
        let message = if axes.is_empty() {
            format!("{what} is one number without axes, so it cannot be {verb} `{name}`")
        } else {
            format!(
                "{what} has axes `{}`, so it cannot be {verb} `{name}`",
                self.show_axes(&axes)
            )
        };
        let shown = self.show_axes(&axes);
        let mut d = Diagnostic::error("E030", span, message).label(at, format!("axes `{shown}`"));
        let part = axes.iter().find(|a| {
            self.graph
                .axis(**a)
                .of
                .is_some_and(|of| self.axis_name(of) == name)
        });
        if let Some(part) = part {
            d = d.help(format!(
                "`{}` is the part of `{name}` that is left",
                self.axis_name(*part)
            ));
        } else if !axes.is_empty() {
            let names: Vec<&str> = axes.iter().map(|a| self.axis_name(*a)).collect();
            d = d.help(format!("it can be {verb} `{}`", names.join("` or `")));
        }
        self.fail(d)
    }

    fn not_an_axis<T>(&mut self, arg: &Expr, of: Option<(ExprRef, Span)>) -> Option<T> {
        let what = self.quote(arg.span);
        let mut d = Diagnostic::error("E030", arg.span, format!("{what} is not an axis"));
        if let Some((x, _)) = of {
            let axes = self.ty(x).axes.clone();
            d = d.help(format!("the axes here are `{}`", self.show_axes(&axes)));
        }
        self.fail(d)
    }

    /// A ragged axis cannot lose the axes it is ragged over.
    pub(crate) fn keeps_parents(
        &mut self,
        removed: &[AxisId],
        kept: &[AxisId],
        at: Span,
        span: Span,
    ) -> Option<()> {
        let Some(ragged) = kept.iter().copied().find(|a| self.is_ragged(*a)) else {
            return Some(());
        };
        let parents = &self.graph.axis(ragged).parents;
        let Some(lost) = removed.iter().copied().find(|a| parents.contains(a)) else {
            return Some(());
        };
        let (t, b) = (
            self.axis_name(ragged).to_string(),
            self.axis_name(lost).to_string(),
        );
        let what = self.quote(at);
        self.fail(
            Diagnostic::error(
                "E035",
                span,
                format!("{what} cannot be reduced over `{b}` while `{t}` remains: responses differ in length"),
            )
            .help(format!("reduce over `{t}` first, or over both: `[{b}, {t}]`")),
        )
    }

    pub(crate) fn one_fixed(&mut self, name: &str, axes: &[AxisId], span: Span) -> Option<usize> {
        if let [a] = axes
            && !self.is_ragged(*a)
        {
            return Some(self.fixed_size(*a).unwrap_or(usize::MAX));
        }
        let named: Vec<&str> = axes.iter().map(|a| self.axis_name(*a)).collect();
        let found = match axes {
            [] => "none is there".to_string(),
            [_] => format!("`{}` has a length for each response", named[0]),
            _ => format!("`{}` are {}", named.join("`, `"), axes.len()),
        };
        self.fail(
            Diagnostic::error(
                "E036",
                span,
                format!("`{name}` works along one axis of fixed size, and {found}"),
            )
            .help(format!("as in `{name}(x, G)`")),
        )
    }

    /// One ragged axis for a sequence operator; `of` must have it unless it is `None`.
    pub(crate) fn sequence_axis(
        &mut self,
        arg: &Expr,
        env: &mut Env,
        of: Option<(ExprRef, Span)>,
        operator: &str,
    ) -> Option<AxisId> {
        let axes = self.axes_argument(arg, env, of, "taken along")?;
        let [(axis, _)] = axes[..] else {
            return self.fail(Diagnostic::error(
                "E036",
                arg.span,
                format!(
                    "`{operator}` works along one axis, and {} are named",
                    axes.len()
                ),
            ));
        };
        if self.is_ragged(axis) {
            return Some(axis);
        }
        if self.bare {
            // Lowered again with this axis as a sequence.
            self.sequences.insert(axis);
            return Some(axis);
        }
        let name = self.axis_name(axis).to_string();
        self.fail(
            Diagnostic::error(
                "E036",
                arg.span,
                format!("`{operator}` works along a response axis, and `{name}` is not one"),
            )
            .help("response axes are those written `..n`, as in `[T: ..64]`"),
        )
    }
}
