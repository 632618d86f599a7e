//! `rows D = B where c`: a part of the rows, and how values over all of them meet it.

use crate::ast::{Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{AxisId, AxisSize, Elem, ExprRef, Op, Type};
use crate::source::Span;

use super::args::{ROWS, label};
use super::{Env, Kind, Sema, Val};

impl Sema<'_> {
    pub(crate) fn rows(
        &mut self,
        name: &Name,
        of: &Name,
        cond: &Expr,
        options: &[Arg],
        env: &mut Env,
    ) {
        let free = self.free_name(name, env);
        let val = match self.subset(name, of, cond, options, env) {
            Some(axis) => Val::Axis(axis),
            None => Val::Poison,
        };
        if free {
            self.note_val(name.span, Some(name.span), &val);
            env.push(name, val, Kind::Axis);
        }
    }

    fn subset(
        &mut self,
        name: &Name,
        of: &Name,
        cond: &Expr,
        options: &[Arg],
        env: &mut Env,
    ) -> Option<AxisId> {
        if self.live.is_some() {
            return self.fail(
                Diagnostic::error("E025", name.span, "`rows` cannot stand in a `train` block")
                    .help("choose the rows above `train`; values over them can be used in it"),
            );
        }
        let parent = self.row_axis(of, env)?;
        let callee = Name {
            text: "rows".into(),
            span: name.span,
        };
        let found = self.arguments("E016", &callee, options, &[label("limit")])?;
        let limit = match found[0] {
            Some(e) => Some(self.whole(e, env, "limit", (1, ROWS))?),
            None => None,
        };
        if let (Some(n), Some(e), Some(size)) = (limit, found[0], self.fixed_size(parent))
            && n > size
        {
            let (p, introduced) = (
                self.axis_name(parent).to_string(),
                self.graph.axis(parent).span,
            );
            return self.fail(
                Diagnostic::error(
                    "E018",
                    e.span,
                    format!("`limit: {n}` is more than the {size} rows of `{p}`, so it limits nothing"),
                )
                .label(introduced, format!("{size} rows"))
                .help(format!("a part of the rows has at most {size}; a larger `{p}` gives more to choose from")),
            );
        }
        let x = self.expr(cond, env)?;
        if self.elem(x) != Elem::Bool {
            return self.wrong_type("`where`", "a truth value", x, cond.span);
        }
        let x = self.narrow_to(x, parent);
        let axes = self.ty(x).axes.clone();
        if axes != [parent] {
            let (shown, p) = (self.show_axes(&axes), self.axis_name(parent).to_string());
            let is = match axes.is_empty() {
                true => "is one truth value".to_string(),
                false => format!("has axes `{shown}`"),
            };
            return self.fail(
                Diagnostic::error(
                    "E032",
                    cond.span,
                    format!("`where` needs one truth value for each of `{p}`; this {is}"),
                )
                .help(format!("as in `where std(r, G) > 0`: reduced to `[{p}]`")),
            );
        }
        let x = self.map(name, x, cond.span);
        let axis = self.new_axis(&name.text, AxisSize::Subset(limit), vec![], name.span);
        self.graph.axes[axis.0 as usize].of = Some(parent);
        self.conditions.insert(axis, x);
        Some(axis)
    }

    /// The axis of rows, or a part of it.
    fn row_axis(&mut self, of: &Name, env: &mut Env) -> Option<AxisId> {
        let rows = self.body.as_ref()?.rows;
        let local = env.find(&of.text).map(|l| {
            l.used = true;
            (l.val.clone(), l.span)
        });
        if let Some((val, def)) = &local {
            self.note_val(of.span, Some(*def), val);
        }
        match local.map(|(val, _)| val) {
            Some(Val::Axis(a)) if self.graph.origin(a) == rows && !self.is_ragged(a) => Some(a),
            Some(Val::Poison) => None,
            None if self.is_lost(&of.text, env) => None,
            _ => {
                let row = self.axis_name(rows).to_string();
                self.fail(
                    Diagnostic::error(
                        "E030",
                        of.span,
                        format!("`{}` is not the axis of rows", of.text),
                    )
                    .help(format!(
                        "rows are chosen from `{row}`: `rows D = {row} where …`"
                    )),
                )
            }
        }
    }

    /// Narrows operands to the part of the rows that another operand has.
    pub(crate) fn narrow(&mut self, operands: &mut [(ExprRef, Span)]) {
        let mut parts: Vec<AxisId> = operands
            .iter()
            .flat_map(|(x, _)| self.ty(*x).axes.clone())
            .filter(|a| matches!(self.graph.axis(*a).size, AxisSize::Subset(_)))
            .collect();
        // A part of a part comes after it.
        parts.sort_unstable();
        parts.dedup();
        for part in parts {
            let Some(of) = self.graph.axis(part).of else {
                continue;
            };
            for operand in operands.iter_mut() {
                if self.ty(operand.0).axes.contains(&of) {
                    operand.0 = self.restrict(operand.0, of, part);
                }
            }
        }
    }

    /// A reduction over a part of the rows takes in that part: `mean(x, [D, G])` of `x` over `[B, G]`.
    pub(crate) fn narrow_to_named(&mut self, x: ExprRef, e: &Expr, env: &mut Env) -> ExprRef {
        let names: Vec<&str> = match &e.kind {
            ExprKind::Name(n) => vec![n],
            ExprKind::Paren(inner) => return self.narrow_to_named(x, inner, env),
            ExprKind::List(entries) => entries
                .iter()
                .filter_map(|e| match &e.kind {
                    ExprKind::Name(n) => Some(n.as_str()),
                    _ => None,
                })
                .collect(),
            _ => vec![],
        };
        let mut x = x;
        for name in names {
            let axes = match env.find(name).map(|l| &l.val) {
                Some(Val::Axis(a)) => vec![*a],
                Some(Val::Axes(axes)) => axes.clone(),
                _ => vec![],
            };
            for axis in axes {
                x = self.narrow_to(x, axis);
            }
        }
        x
    }

    fn narrow_to(&mut self, x: ExprRef, part: AxisId) -> ExprRef {
        let AxisSize::Subset(_) = self.graph.axis(part).size else {
            return x;
        };
        let Some(of) = self.graph.axis(part).of else {
            return x;
        };
        if self.ty(x).axes.contains(&part) {
            return x;
        }
        let x = self.narrow_to(x, of);
        match self.ty(x).axes.contains(&of) {
            true => self.restrict(x, of, part),
            false => x,
        }
    }

    fn restrict(&mut self, x: ExprRef, of: AxisId, part: AxisId) -> ExprRef {
        let Some(condition) = self.conditions.get(&part).copied() else {
            return x;
        };
        let ty = self.ty(x).clone();
        let mut axes = vec![];
        for a in ty.axes {
            axes.push(match self.graph.axis(a).parents.contains(&of) {
                _ if a == of => part,
                true => self.derived(a, &format!("rows {}", part.0), of, Some(part)),
                false => a,
            });
        }
        let ty = Type {
            elem: ty.elem,
            axes: self.ordered(axes),
        };
        let span = self.graph.expr(x).span;
        self.emit(Op::Restrict(part), vec![x, condition], ty, span)
    }

    /// The axis `a` after a selection along one of the axes it is ragged over: `by` becomes `into`, or
    /// goes. The same selection gives the same axis.
    pub(crate) fn derived(
        &mut self,
        a: AxisId,
        key: &str,
        by: AxisId,
        into: Option<AxisId>,
    ) -> AxisId {
        let key = (a, key.to_string());
        if let Some(known) = self.derived.get(&key) {
            return *known;
        }
        let old = self.graph.axis(a).clone();
        let parents = old.parents.iter().filter_map(|p| match *p == by {
            true => into,
            false => Some(*p),
        });
        let parents = parents.collect();
        let axis = self.new_axis(&old.name, old.size, parents, old.span);
        self.graph.axes[axis.0 as usize].of = Some(a);
        self.derived.insert(key, axis);
        axis
    }

    /// The axis of `x` that a name stands for: itself, or the selection of it that `x` has.
    pub(crate) fn axis_in(&self, x: ExprRef, a: AxisId) -> Option<AxisId> {
        let axes = &self.ty(x).axes;
        let found = axes.iter().copied().find(|b| *b == a);
        found.or_else(|| axes.iter().copied().find(|b| self.same_axis(*b, a)))
    }

    /// Whether two axes are one, selections of its responses aside.
    pub(crate) fn same_axis(&self, a: AxisId, b: AxisId) -> bool {
        let name = |x: AxisId| &self.graph.axis(x).name;
        a == b || (self.graph.origin(a) == self.graph.origin(b) && name(a) == name(b))
    }
}
