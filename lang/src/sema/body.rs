//! Bodies of `step` and `eval`, statement by statement.

use crate::ast::{self, AxisBinder, Expr, ExprKind, Name, Stmt, StmtKind};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisSize, DataId, Eval, ExprRef, Metric, Node, NodeKind, Op, RowOrder, Schedule, Scope,
};
use crate::source::Span;

use super::args::{ROWS, label};
use super::builtin::{Builtin, builtin};
use super::train::Gathered;
use super::tree::{bound_names, is_bad, lose, mentions};
use super::{Body, Def, Env, Kind, Sema, Val, nearest};

impl Sema<'_> {
    pub(crate) fn step(&mut self, step: &ast::Step, span: Span) {
        self.schedule(&step.options, step.over.span);
        let size = match &step.axes[..] {
            [
                AxisBinder {
                    size: Some(ast::AxisSize::Fixed(n)),
                    ..
                },
            ] => self.whole(n, &mut Env::of(0), "batch", (1, ROWS)),
            _ => {
                let at = step.axes.first().map_or(step.over.span, |a| a.span);
                self.fail(
                    Diagnostic::error(
                        "E037",
                        at,
                        "`step` takes its rows along one axis of fixed size",
                    )
                    .help(format!("as in `step over {}[B: 8]`", step.over.text)),
                )
            }
        };
        let Some(data) = self.data_set(&step.over) else {
            return;
        };
        // A wrong size is reported; the body is still read.
        let size = AxisSize::Fixed(size.unwrap_or(1));
        let name = step.axes.first().map(|a| &a.name);
        let mut env = self.open(Scope::Step, data, name, size, span, &step.body);
        env.lost_axes |= name.is_none();
        let mut metrics = vec![];
        self.statements(&step.body, &mut env, &mut metrics, None);
        self.graph.metrics = metrics;
        self.close(env);
    }

    pub(crate) fn evaluation(&mut self, eval: &ast::Eval, span: Span) {
        let index = self.graph.evals.len() as u32;
        let every = self.whole(&eval.every, &mut Env::of(0), "every", (1, ROWS));
        let Some(data) = self.data_set(&eval.over) else {
            return;
        };
        let size = match &eval.axes[..] {
            [] => AxisSize::Rows(data),
            [AxisBinder { size: None, .. }] => AxisSize::Rows(data),
            [
                AxisBinder {
                    size: Some(ast::AxisSize::Fixed(n)),
                    ..
                },
            ] => AxisSize::Fixed(
                self.whole(n, &mut Env::of(0), "rows", (1, ROWS))
                    .unwrap_or(1),
            ),
            [a, ..] => {
                self.report(Diagnostic::error(
                    "E037",
                    a.span,
                    "`eval` takes its rows along one axis of fixed size, or all of them",
                ));
                AxisSize::Rows(data)
            }
        };
        let name = eval.axes.first().map(|a| &a.name);
        let mut env = self.open(Scope::Eval(index), data, name, size, span, &eval.body);
        let mut metrics = vec![];
        self.statements(&eval.body, &mut env, &mut metrics, None);
        self.graph.evals.push(Eval {
            every: every.unwrap_or(1),
            metrics,
            span,
        });
        self.close(env);
    }

    fn schedule(&mut self, options: &[ast::Arg], at: Span) {
        let callee = Name {
            text: "step".into(),
            span: at,
        };
        let slots = [label("iterations"), label("epochs"), label("shuffle")];
        let Some(found) = self.arguments("E016", &callee, options, &slots) else {
            return;
        };
        if let Some(e) = found[2]
            && self.truth_of(e, &mut Env::of(0), "shuffle") == Some(false)
        {
            self.graph.order = RowOrder::Data;
        }
        let schedule = match found[..2] {
            [Some(n), None] => self
                .whole(n, &mut Env::of(0), "iterations", (1, ROWS))
                .map(Schedule::Iterations),
            [None, Some(n)] => self
                .whole(n, &mut Env::of(0), "epochs", (1, ROWS))
                .map(Schedule::Epochs),
            [Some(n), Some(e)] => self.fail(
                Diagnostic::error(
                    "E016",
                    e.span,
                    "`step` has both `iterations:` and `epochs:`; either says how long it runs",
                )
                .label(n.span, "the iterations")
                .help("`iterations:` counts batches, `epochs:` passes over the data; keep one"),
            ),
            _ => self.fail(
                Diagnostic::error("E016", at, "`step` needs `iterations:` or `epochs:`")
                    .help("as in `step over d[B: 8], iterations: 60`"),
            ),
        };
        if let Some(schedule) = schedule {
            self.graph.schedule = schedule;
        }
    }

    fn data_set(&mut self, over: &Name) -> Option<DataId> {
        if let Some((def, at)) = self.modules[0].names.get(&over.text).cloned() {
            self.note_def(over.span, at, &def);
        }
        match self.modules[0].names.get(&over.text) {
            Some((Def::Data(d), _)) => Some(*d),
            Some((Def::Poison, _)) => None,
            None if self.lost_items(0) => None,
            other => {
                let is = if other.is_some() {
                    "is no data set"
                } else {
                    "is not declared"
                };
                let mut d = Diagnostic::error("E010", over.span, format!("`{}` {is}", over.text));
                let names: Vec<String> = self.graph.data.iter().map(|d| d.name.clone()).collect();
                d = match nearest(&over.text, names.iter().map(String::as_str)) {
                    Some(near) => d
                        .help(format!("a similar one: `{near}`"))
                        .guess(format!("use `{near}`"), vec![(over.span, near.to_string())]),
                    None if names.is_empty() => d.help("this program declares no `data`"),
                    None => d.help(format!("the data sets are `{}`", names.join("`, `"))),
                };
                self.fail(d)
            }
        }
    }

    fn open(
        &mut self,
        scope: Scope,
        data: DataId,
        axis: Option<&Name>,
        size: AxisSize,
        span: Span,
        body: &[Stmt],
    ) -> Env {
        let (name, at) = axis.map_or(("", span), |a| (a.text.as_str(), a.span));
        let rows = self.new_axis(name, size, vec![], at);
        let load = self.nodes.len();
        self.nodes.push(Node {
            name: self.graph.data[data.0 as usize].name.clone(),
            scope,
            kind: NodeKind::Load {
                data,
                axis: rows,
                columns: vec![],
            },
            span: at,
        });
        self.body = Some(Body {
            scope,
            data,
            rows,
            load,
        });
        let mut env = Env::of(0);
        env.columns = true;
        env.later = bound_names(body);
        if let Some(a) = axis {
            self.free_name(a, &mut env);
            self.note_val(a.span, Some(a.span), &Val::Axis(rows));
            env.push(a, Val::Axis(rows), Kind::Axis);
        }
        env
    }

    fn close(&mut self, env: Env) {
        self.warn_unused(&env, 0);
        self.body = None;
    }

    /// L001 for the bindings from `start` on.
    pub(crate) fn warn_unused(&mut self, env: &Env, start: usize) {
        for local in &env.locals[start..] {
            let part = match local.val {
                Val::Axis(a) => matches!(self.graph.axis(a).size, AxisSize::Subset(_)),
                _ => false,
            };
            let named = local.kind == Kind::Binding || part;
            if named && !local.used && !local.name.starts_with('_') {
                let d = Diagnostic::warning(
                    "L001",
                    local.span,
                    format!("`{}` is never used", local.name),
                )
                .help("remove it, or begin its name with `_` to keep it");
                self.report(d);
            }
        }
    }

    /// A name of the step, seen from its `train` block.
    fn shadows(&self, first: Option<Span>) -> bool {
        match (&self.live, first) {
            (Some(live), Some(first)) => !live.block.range().contains(&(first.lo as usize)),
            _ => false,
        }
    }

    /// E011 unless the name is free here.
    pub(crate) fn free_name(&mut self, name: &Name, env: &mut Env) -> bool {
        let column = self.body.as_ref().and_then(|b| {
            let data = &self.graph.data[b.data.0 as usize];
            data.columns.iter().find(|c| c.name == name.text)
        });
        let local = env.find(&name.text).map(|l| (l.span, l.kind));
        if let (Some((first, Kind::Binding)), true) = (local, self.shadows(local.map(|(s, _)| s))) {
            let line = self.line(first);
            self.report(
                Diagnostic::warning(
                    "L004",
                    name.span,
                    format!(
                        "`{0}` inside `train` hides `{0}` from line {line}",
                        name.text
                    ),
                )
                .label(first, "hidden here")
                .help("take another name; the outer value cannot be read in the block"),
            );
            return true;
        }
        let first = local
            .map(|(span, _)| span)
            .or(column.map(|c| c.span))
            .or_else(|| self.modules[0].names.get(&name.text).map(|(_, s)| *s));
        match first {
            Some(first) => {
                if let Some(Def::State(_)) = self.item(&name.text, 0) {
                    return self.state_bound(name, first);
                }
                self.duplicate(name, first);
                false
            }
            None => true,
        }
    }

    /// A state is not bound again; its next value is another statement.
    fn state_bound(&mut self, name: &Name, first: Span) -> bool {
        let n = &name.text;
        let before = Span {
            lo: 0,
            hi: name.span.lo,
            ..name.span
        };
        let found = Diagnostic::error(
            "E011",
            name.span,
            format!("`{n}` is a state; `{n} = …` binds a new name"),
        )
        .label(first, "declared here")
        .help(format!(
            "`next {n} = …` gives it its value for the next iteration"
        ));
        // After something else on its line it is no statement of its own.
        let line = self.sources.get(name.span.file).slice(before);
        let alone = line.trim_end_matches([' ', '\t']).ends_with(['\n', '{']);
        self.report(match alone {
            true => found.fix(
                "write `next`",
                vec![(
                    Span {
                        hi: name.span.lo,
                        ..name.span
                    },
                    "next ".into(),
                )],
            ),
            false => found,
        });
        false
    }

    pub(crate) fn statements(
        &mut self,
        body: &[Stmt],
        env: &mut Env,
        metrics: &mut Vec<Metric>,
        mut train: Option<&mut Gathered>,
    ) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Bad => env.lost_names = true,
                StmtKind::Bind { value, .. } if is_bad(value) => env.lost_axes = true,
                _ => {}
            }
        }
        for stmt in body {
            match &stmt.kind {
                StmtKind::Bind { name, value } => self.bind(name, value, env),
                StmtKind::Log(entries) => {
                    let into = match &mut train {
                        Some(t) => &mut t.metrics,
                        None => &mut *metrics,
                    };
                    for (name, e) in entries {
                        self.metric(name, e, env, into);
                    }
                }
                StmtKind::Minimize(e) => match &mut train {
                    Some(t) => self.minimize(e, stmt.span, env, t),
                    None => self.report(
                        Diagnostic::error("E025", stmt.span, "`minimize` stands outside `train`")
                            .help("only `train m { … minimize e … }` changes a model"),
                    ),
                },
                StmtKind::Train {
                    model,
                    options,
                    body,
                } => match (&train, self.body.as_ref().map(|b| b.scope)) {
                    (None, Some(Scope::Step)) => {
                        self.train(model, options, body, stmt.span, env);
                    }
                    _ => {
                        let place = self.place();
                        self.report(
                            Diagnostic::error(
                                "E025",
                                model.span,
                                format!("`train {}` cannot stand in {place}", model.text),
                            )
                            .help("`train` stands in `step`"),
                        );
                    }
                },
                StmtKind::Rows {
                    name,
                    of,
                    cond,
                    options,
                } => self.rows(name, of, cond, options, env),
                StmtKind::Next { name, value } => self.next(name, value, stmt.span, env),
                StmtKind::Bad => {}
            }
        }
    }

    fn metric(&mut self, name: &Name, e: &Expr, env: &mut Env, into: &mut Vec<Metric>) {
        let eval = matches!(self.body.as_ref().map(|b| b.scope), Some(Scope::Eval(_)));
        let first = self
            .logged
            .iter()
            .find(|(e, n, _)| *e == eval && *n == name.text);
        if let Some((_, _, first)) = first {
            let first = *first;
            let line = self.line(first);
            self.report(
                Diagnostic::error(
                    "E011",
                    name.span,
                    format!("`{}` is already logged on line {line}", name.text),
                )
                .label(first, "logged here")
                .help(if eval {
                    "the metrics of all evaluations stand side by side; take another name"
                } else {
                    "the metrics of `step` and of its `train` blocks stand side by side; take another name"
                }),
            );
            return;
        }
        self.logged.push((eval, name.text.clone(), name.span));
        let expr = self.scalar(e, env, &format!("`log {}`", name.text));
        if let Some(expr) = expr {
            into.push(Metric {
                name: name.text.clone(),
                expr,
                span: name.span,
            });
        }
    }

    /// One number, or E032 with the two usual ways to get one.
    pub(crate) fn scalar(&mut self, e: &Expr, env: &mut Env, who: &str) -> Option<ExprRef> {
        let x = self.expr(e, env)?;
        let axes = self.ty(x).axes.clone();
        if !self.is_number(x) && !axes.is_empty() {
            // The missing reduction would also make a number of a truth value.
            self.wrong_type::<()>(who, "one number", x, e.span);
            return None;
        }
        if !self.is_number(x) {
            return self.wrong_type(who, "a number", x, e.span);
        }
        self.one_number(x, e.span, who)?;
        Some(x)
    }

    /// E032 for a number that still has axes.
    pub(crate) fn one_number(&mut self, x: ExprRef, at: Span, who: &str) -> Option<()> {
        let axes = self.ty(x).axes.clone();
        if axes.is_empty() {
            return Some(());
        }
        let shown = self.show_axes(&axes);
        let text = self.quote(at).trim_matches('`').to_string();
        let x = if text == "this" { "x" } else { &text };
        let ragged = axes.iter().copied().find(|a| self.is_ragged(*a));
        let help = match ragged {
            Some(t) => {
                let rest: Vec<_> = axes.iter().copied().filter(|a| *a != t).collect();
                let (t, rest) = (self.axis_name(t), self.show_axes(&rest));
                format!(
                    "per token: `mean({x}, {shown})`; per response: `mean(mean({x}, {t}), {rest})`"
                )
            }
            None => format!("`mean({x}, {shown})`"),
        };
        self.fail(
            Diagnostic::error(
                "E032",
                at,
                format!("{who} needs one number; this still has axes `{shown}`"),
            )
            .help(help),
        )
    }

    fn bind(&mut self, name: &Name, value: &Expr, env: &mut Env) {
        if !self.free_name(name, env) {
            // Its value is still read, for its own errors. Which of the two a later line means is open.
            let _ = self.bound_value(name, value, env);
            if let Some(local) = env.find(&name.text) {
                (local.val, local.used) = (Val::Poison, true);
            }
            return;
        }
        let position = env
            .later
            .iter()
            .position(|(n, s)| *n == name.text && *s == name.span);
        let own = position.map(|i| env.later.remove(i));
        if own.is_some() && mentions(value, &name.text) && self.item(&name.text, 0).is_none() {
            self.report(
                Diagnostic::error(
                    "E014",
                    name.span,
                    format!("`{0}` depends on itself: `{0}` → `{0}`", name.text),
                )
                .help("names are bound once; take another name for the new value"),
            );
            env.push(name, Val::Poison, Kind::Binding);
            if let Some(l) = env.find(&name.text) {
                l.used = true;
            }
            return;
        }
        let val = self.bound_value(name, value, env).unwrap_or(Val::Poison);
        self.note_val(name.span, Some(name.span), &val);
        env.push(name, val, Kind::Binding);
    }

    fn bound_value(&mut self, name: &Name, value: &Expr, env: &mut Env) -> Option<Val> {
        let mut inner = value;
        while let ExprKind::Paren(e) = &inner.kind {
            inner = e;
        }
        let val = match &inner.kind {
            ExprKind::Call { callee, args, axes } => {
                let item = self.item(&callee.text, 0);
                self.note_callee(callee, 0);
                match (item, builtin(&callee.text)) {
                    (None, Some(Builtin::Generate)) => {
                        let val = self.generate(inner.span, callee, args, axes, env, name);
                        return val.or_else(|| lose(axes, env));
                    }
                    (None, Some(Builtin::Answer)) => {
                        let val = self.answer(inner.span, callee, args, axes, env, name);
                        return val.or_else(|| lose(axes, env));
                    }
                    (None, Some(Builtin::Pass(output))) if axes.is_empty() => {
                        return self.score(output, inner.span, callee, args, env, Some(name));
                    }
                    (None, Some(b @ (Builtin::Pick | Builtin::Top))) if axes.is_empty() => {
                        self.select_along(b, inner.span, callee, args, env, Some(name))?
                    }
                    (Some(Def::Reward(r)), _) => {
                        return self
                            .reward_named(r, inner.span, callee, args, env, Some(name))
                            .map(Val::Expr);
                    }
                    _ => self.val(value, env)?,
                }
            }
            _ => self.val(value, env)?,
        };
        match val {
            Val::Expr(x) if self.live.is_none() && self.is_computed(x) => {
                Some(Val::Expr(self.map(name, x, value.span)))
            }
            Val::Model(_) | Val::Axis(_) | Val::Axes(_) => self.second_name(name, val, value.span),
            val => Some(val),
        }
    }

    /// E017: models and axes have the one name that introduces them.
    fn second_name(&mut self, name: &Name, val: Val, at: Span) -> Option<Val> {
        let (text, is) = (self.quote(at), self.what(&val));
        let help = match val {
            Val::Model(_) => format!(
                "a model has one name; `model {} = frozen({})` keeps its first weights",
                name.text,
                text.trim_matches('`')
            ),
            _ => "an axis is named where it is used, as in `mean(x, T)`".to_string(),
        };
        self.fail(
            Diagnostic::error(
                "E017",
                at,
                format!("{text} is {is}, and a binding holds a value"),
            )
            .help(help),
        )
    }

    /// A node of its own for a bound expression.
    pub(crate) fn map(&mut self, name: &Name, x: ExprRef, span: Span) -> ExprRef {
        let ty = self.ty(x).clone();
        let value = self.value(&name.text, ty.clone(), name.span);
        let scope = self.body.as_ref().map_or(Scope::Step, |b| b.scope);
        self.nodes.push(Node {
            name: name.text.clone(),
            scope,
            kind: NodeKind::Map { expr: x, value },
            span,
        });
        self.emit(Op::Value(value), vec![], ty, name.span)
    }

    /// Neither a value that exists nor a constant of the run.
    fn is_computed(&self, x: ExprRef) -> bool {
        let mut open = vec![x];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(e) = open.pop() {
            let expr = self.graph.expr(e);
            if matches!(
                expr.op,
                Op::Value(_) | Op::Index(_) | Op::AtLast(_) | Op::State(_)
            ) {
                return !matches!(self.graph.expr(x).op, Op::Value(_));
            }
            open.extend(expr.args.iter().copied().filter(|a| seen.insert(*a)));
        }
        false
    }
}
