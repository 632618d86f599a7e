//! `pick` and `top`: some responses of a group.

use crate::ast::{Arg, Expr, Name};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisId, AxisSize, Const, Elem, ExprRef, Node, NodeKind, Op, Reduce, Rollout, RolloutId,
    Selection, Type,
};
use crate::source::Span;

use super::args::{GROUP, label, must};
use super::builtin::Builtin;
use super::{Env, Origin, Sema, Val};

/// Which responses, as the call says.
struct Choice {
    axis: AxisId,
    /// The index of `pick`, the number that `top` orders by, and where it stands.
    by: ExprRef,
    at: Span,
    /// The axis of those that `top` keeps.
    into: Option<AxisId>,
    /// Equal choices have equal keys.
    key: String,
}

impl Sema<'_> {
    /// `pick(x, G, index)` and `top(x, G, by: s, k: n)`, of a value or of a rollout.
    pub(crate) fn select_along(
        &mut self,
        b: Builtin,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
        name: Option<&Name>,
    ) -> Option<Val> {
        let slots = match b {
            Builtin::Top => vec![must("x"), must("axis"), label("by"), label("k")],
            _ => vec![must("x"), must("axis"), must("index")],
        };
        let found = self.arguments("E016", callee, args, &slots)?;
        let at = found[0]?.span;
        match self.val(found[0]?, env)? {
            Val::Expr(x) => {
                let choice = self.choice(b, callee, &found, (x, at), env)?;
                Some(Val::Expr(self.selected(x, choice, at, span)?))
            }
            Val::Rollout(r) => {
                let tokens = self.graph.rollout(r).tokens;
                let index = self.index(tokens, at);
                let choice = self.choice(b, callee, &found, (index, at), env)?;
                self.selected_rollout(r, choice, callee, span, name)
                    .map(Val::Rollout)
            }
            Val::Poison => None,
            other => {
                let (text, is) = (self.quote(at), self.what(&other));
                let verb = &callee.text;
                self.fail(Diagnostic::error(
                    "E017",
                    at,
                    format!("`{verb}` selects from a rollout or a value, and {text} is {is}"),
                ))
            }
        }
    }

    fn choice(
        &mut self,
        b: Builtin,
        callee: &Name,
        found: &[Option<&Expr>],
        of: (ExprRef, Span),
        env: &mut Env,
    ) -> Option<Choice> {
        let name = callee.text.as_str();
        let along = match b {
            Builtin::Top => "selected along",
            _ => "picked along",
        };
        let named = self.axes_argument(found[1]?, env, Some(of), along)?;
        let axes: Vec<AxisId> = named.iter().map(|(a, _)| *a).collect();
        let size = self.one_fixed(name, &axes, found[1]?.span)?;
        let axis = axes[0];
        if b != Builtin::Top {
            let (by, at) = self.operand(found[2], env)?;
            self.need_number(name, by, at)?;
            self.outside(by, at, axis, name)?;
            self.is_index(by, at, axis, size)?;
            return Some(Choice {
                axis,
                by,
                at,
                into: None,
                key: format!("pick {} {}", axis.0, by.0),
            });
        }
        let (Some(by), Some(k)) = (found[2], found[3]) else {
            return self.fail(
                Diagnostic::error("E016", callee.span, "`top` needs `by:` and `k:`")
                    .help("as in `top(roll, G, by: r, k: 4)`"),
            );
        };
        let (by, at) = self.operand(Some(by), env)?;
        self.need_number(name, by, at)?;
        if self.axis_in(by, axis).is_none() {
            let (text, g) = (self.quote(at), self.axis_name(axis).to_string());
            return self.fail(Diagnostic::error(
                "E030",
                at,
                format!("{text} has no axis `{g}`, so it cannot order the responses along it"),
            ));
        }
        let count = self.whole(k, env, "k", (1, GROUP))?;
        if count > size {
            let g = self.axis_name(axis).to_string();
            let introduced = self.graph.axis(axis).span;
            return self.fail(
                Diagnostic::error(
                    "E018",
                    k.span,
                    format!("`k: {count}` is more than the {size} entries of `{g}`"),
                )
                .label(introduced, format!("{size} entries"))
                .help(format!("`k` may be 1 to {size}")),
            );
        }
        let key = format!("top {} {} {count}", axis.0, by.0);
        let into = self.derived(axis, &key, axis, None);
        self.graph.axes[into.0 as usize].size = AxisSize::Fixed(count);
        Some(Choice {
            axis,
            by,
            at,
            into: Some(into),
            key,
        })
    }

    /// An index is a number for each of the other axes.
    fn outside(&mut self, x: ExprRef, at: Span, axis: AxisId, name: &str) -> Option<()> {
        let axes = self.ty(x).axes.clone();
        let bad = axes
            .iter()
            .copied()
            .find(|a| *a == axis || self.is_ragged(*a));
        let Some(bad) = bad else {
            return Some(());
        };
        let (text, bad) = (self.quote(at), self.axis_name(bad).to_string());
        let along = self.axis_name(axis).to_string();
        self.fail(
            Diagnostic::error(
                "E030",
                at,
                format!("`{name}` along `{along}` takes one index, and {text} still has the axis `{bad}`"),
            )
            .help(format!(
                "`argmax({}, {bad})` is the index of the largest",
                text.trim_matches('`')
            )),
        )
    }

    /// E018 for what is no index of an axis: a reward where its place was meant, or one past the end.
    fn is_index(&mut self, x: ExprRef, at: Span, axis: AxisId, size: usize) -> Option<()> {
        let (text, g) = (self.quote(at), self.axis_name(axis).to_string());
        if let Op::Reduce { op, axes, .. } = &self.graph.expr(x).op
            && *op != Reduce::Argmax
            && axes.iter().any(|a| self.same_axis(*a, axis))
        {
            return self.fail(
                Diagnostic::error(
                    "E018",
                    at,
                    format!("{text} is a number over `{g}`, not an index"),
                )
                .help(format!("`argmax(x, {g})` gives the index of the largest")),
            );
        }
        if self.elem(x) == Elem::Float {
            return self.fail(
                Diagnostic::error(
                    "E017",
                    at,
                    format!("an index is a whole number, and {text} is real"),
                )
                .help(format!("`argmax(x, {g})`, or `floor(…)` of a number")),
            );
        }
        match self.as_const(x) {
            Some(Const::Int(i)) if i < 0 || i as usize >= size => self.fail(
                Diagnostic::error("E018", at, format!("`{g}` has no entry {i}")).help(format!(
                    "it has {size}, from 0 to {}",
                    size.saturating_sub(1)
                )),
            ),
            _ => Some(()),
        }
    }

    /// The axes of `old` after a choice.
    fn chosen_axes(&mut self, old: &[AxisId], choice: &Choice) -> Vec<AxisId> {
        let mut axes = vec![];
        for a in old.iter().copied() {
            if a == choice.axis {
                axes.extend(choice.into);
            } else if self.graph.axis(a).parents.contains(&choice.axis) {
                axes.push(self.derived(a, &choice.key, choice.axis, choice.into));
            } else {
                axes.push(a);
            }
        }
        self.ordered(axes)
    }

    fn selected(&mut self, x: ExprRef, choice: Choice, at: Span, span: Span) -> Option<ExprRef> {
        // A number that orders the responses of every row selects in every row.
        let mut operands = [(x, at), (choice.by, choice.at)];
        let joined = self.join(&mut operands, span)?;
        let x = operands[0].0;
        let old = self.ty(x).axes.clone();
        let mut axes = self.chosen_axes(&old, &choice);
        for a in joined {
            if a != choice.axis && !old.contains(&a) {
                axes.push(a);
            }
        }
        let ty = Type {
            elem: self.elem(x),
            axes: self.ordered(axes),
        };
        let op = match choice.into {
            Some(into) => Op::Top {
                axis: choice.axis,
                into,
            },
            None => Op::Pick(choice.axis),
        };
        Some(self.emit(op, vec![operands[0].0, operands[1].0], ty, span))
    }

    fn selected_rollout(
        &mut self,
        r: RolloutId,
        choice: Choice,
        callee: &Name,
        span: Span,
        name: Option<&Name>,
    ) -> Option<RolloutId> {
        let scope = self.in_body(span, &callee.text)?;
        if self.live.is_some() {
            return self.fail(
                Diagnostic::error(
                    "E025",
                    span,
                    format!(
                        "`{}` of a rollout cannot stand in a `train` block",
                        callee.text
                    ),
                )
                .help("select above `train`"),
            );
        }
        let of = self.graph.rollout(r).clone();
        let allowed: Vec<AxisId> = [Some(of.rows), of.over, of.group]
            .into_iter()
            .flatten()
            .collect();
        let stray = self
            .ty(choice.by)
            .axes
            .iter()
            .copied()
            .find(|a| !allowed.contains(a));
        if let Some(stray) = stray {
            let (s, n) = (self.axis_name(stray).to_string(), of.name.clone());
            return self.fail(Diagnostic::error(
                "E030",
                span,
                format!("`{n}` has no axis `{s}`, and what selects its responses has"),
            ));
        }
        let shown = match name {
            Some(n) => n.text.clone(),
            None => format!("{}({})", callee.text, of.name),
        };
        let tokens = self.derived(of.tokens, &choice.key, choice.axis, choice.into);
        let kept = |a: Option<AxisId>| match a == Some(choice.axis) {
            true => choice.into,
            false => a,
        };
        let rollout = RolloutId(self.graph.rollouts.len() as u32);
        self.graph.rollouts.push(Rollout {
            name: shown.clone(),
            rows: of.rows,
            over: kept(of.over),
            group: kept(of.group),
            tokens,
        });
        let origin = Origin {
            node: self.nodes.len(),
            temperature: self.origins[r.0 as usize].temperature,
        };
        self.origins.push(origin);
        let by = match choice.into {
            Some(into) => Selection::Top {
                axis: choice.axis,
                by: choice.by,
                into,
            },
            None => Selection::Pick {
                axis: choice.axis,
                index: choice.by,
            },
        };
        self.nodes.push(Node {
            name: shown,
            scope,
            kind: NodeKind::Select {
                from: r,
                by,
                rollout,
                members: vec![],
            },
            span,
        });
        Some(rollout)
    }
}
