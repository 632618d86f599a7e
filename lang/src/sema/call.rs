//! Calls: functions are inlined, rewards become nodes, the rest is built in.

use crate::ast::{Arg, AxisBinder, AxisPattern, Expr, Fn, Name, TypeKind};
use crate::diag::Diagnostic;
use crate::graph::{AxisId, Elem, ExprRef};
use crate::source::Span;

use super::args::{may, must};
use super::builtin::{Builtin, builtin};
use super::{Def, Env, Kind, Sema, Site, Val, describe, nearest};

/// Names of a signature's axes and what they stand for in this call.
type Axes = Vec<(String, AxisId)>;

impl Sema<'_> {
    pub(crate) fn call(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        axes: &[AxisBinder],
        env: &mut Env,
    ) -> Option<Val> {
        let name = callee.text.as_str();
        let item = self.item(name, env.module);
        let verb = match (&item, builtin(name)) {
            (None, Some(b)) => Some(b),
            _ => None,
        };
        self.note_callee(callee, env.module);
        if let Some(first) = axes.first()
            && !matches!(verb, Some(Builtin::Generate | Builtin::Answer))
        {
            return self.fail(
                Diagnostic::error("E037", first.span, format!("`{name}` introduces no axis"))
                    .help("`generate` and `answer` do"),
            );
        }
        match (item, verb) {
            (Some(Def::Fn { module, item }), _) => {
                self.inline(module, item, span, callee, args, env)
            }
            (Some(Def::Reward(r)), _) => {
                self.reward_call(r, span, callee, args, env).map(Val::Expr)
            }
            (Some(Def::Poison), _) => None,
            (Some(_), _) => self.fail(Diagnostic::error(
                "E017",
                callee.span,
                format!("`{name}` is not a function"),
            )),
            (None, Some(Builtin::Chat)) => self.prompt(span, callee, args, env),
            (None, Some(Builtin::Pass(output))) if self.live.is_some() => {
                self.score(output, span, callee, args, env, None)
            }
            (None, Some(Builtin::Generate | Builtin::Answer | Builtin::Pass(_))) => {
                self.unnamed_call(span, name)
            }
            (None, Some(b @ (Builtin::Pick | Builtin::Top))) => {
                self.select_along(b, span, callee, args, env, None)
            }
            (None, Some(b)) => self.operator(b, span, callee, args, env).map(Val::Expr),
            (None, None) => self.unknown_function(callee, env),
        }
    }

    fn unnamed_call<T>(&mut self, span: Span, name: &str) -> Option<T> {
        let text = self.quote(span);
        let what = if text == "this" {
            format!("`{name}(…)`")
        } else {
            text
        };
        self.fail(
            Diagnostic::error(
                "E020",
                span,
                format!("{what} is a model call and needs a name of its own"),
            )
            .help("bind it on a line of its own in the body of `step` or `eval`: `name = …`"),
        )
    }

    pub(crate) fn unknown_function<T>(&mut self, callee: &Name, env: &mut Env) -> Option<T> {
        let name = callee.text.as_str();
        if env.find(name).is_some() {
            return self.fail(Diagnostic::error(
                "E017",
                callee.span,
                format!("`{name}` is not a function"),
            ));
        }
        if self.lost_items(env.module) || !self.missing.insert((env.module, name.to_string())) {
            return None;
        }
        let mut names: Vec<String> = super::builtin::NAMES
            .iter()
            .map(|n| n.to_string())
            .collect();
        for m in [env.module, 1] {
            if let Some(m) = self.modules.get(m) {
                names.extend(m.names.keys().cloned());
            }
        }
        names.sort();
        let mut d = Diagnostic::error(
            "E010",
            callee.span,
            format!("no function `{name}` in this file"),
        );
        if let Some(module) = rlhf_stdlib::modules()
            .iter()
            .find(|m| rlhf_stdlib::module(m).is_some_and(|t| t.contains(&format!("fn {name}("))))
        {
            d = d.help(format!("import it: `use {module} {{ {name} }}`"));
        } else if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
            d = d
                .help(format!("a similar name is in scope: `{near}`"))
                .guess(
                    format!("use `{near}`"),
                    vec![(callee.span, near.to_string())],
                );
        }
        self.fail(d)
    }

    /// A function with its arguments put in.
    fn inline(
        &mut self,
        module: usize,
        item: usize,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<Val> {
        let f = &*self.function(module, item)?;
        self.inlined.insert((module, item));
        self.no_recursion(module, item, callee)?;
        let slots: Vec<_> = f
            .params
            .iter()
            .map(|p| match p.default {
                Some(_) => may(&p.name.text),
                None => must(&p.name.text),
            })
            .collect();
        let found = self.arguments("E016", callee, args, &slots)?;
        self.note_import(module, &f.name.text);
        let mut inner = Env::of(module);
        let mut axes: Axes = vec![];
        // Axes first: the names in the other arguments' types may be among them.
        for wanted in [true, false] {
            for (p, given) in f.params.iter().zip(&found) {
                if is_axis(&p.ty.kind) != wanted {
                    continue;
                }
                let val = match (given, &p.default) {
                    (Some(e), _) => self.argument(&p.ty, e, env, wanted)?,
                    (None, Some(d)) => {
                        self.stack.push((module, item));
                        let val = self.argument(&p.ty, d, &mut inner, wanted);
                        self.stack.pop();
                        val?
                    }
                    (None, None) => return None,
                };
                if let Val::Axis(a) = val {
                    axes.push((p.name.text.clone(), a));
                }
                let at = given.map_or(callee.span, |e| e.span);
                self.argument_type(f, p, &val, at, &mut axes)?;
                self.note_val(p.name.span, Some(p.name.span), &val);
                inner.push(&p.name, val, Kind::Argument);
            }
        }
        for (name, a) in &axes {
            if inner.find(name).is_none() {
                let name = Name {
                    text: name.clone(),
                    span: f.name.span,
                };
                inner.push(&name, Val::Axis(*a), Kind::Axis);
            }
        }
        self.stack.push((module, item));
        let given = f.params.iter().zip(&found);
        let given = given.filter_map(|(p, e)| Some((p.name.text.clone(), e.as_ref()?.span)));
        let args = given.collect();
        self.sites.push(Site { span, args });
        let val = self.function_body(f, &mut inner);
        let val = val.filter(|val| self.function_result(f, val, &axes).is_some());
        self.sites.pop();
        self.stack.pop();
        val
    }

    fn no_recursion(&mut self, module: usize, item: usize, callee: &Name) -> Option<()> {
        let Some(start) = self.stack.iter().position(|s| *s == (module, item)) else {
            return Some(());
        };
        let mut path: Vec<String> = self.stack[start..]
            .iter()
            .filter_map(|(m, i)| Some(format!("`{}`", self.function_name(*m, *i)?.text)))
            .collect();
        path.push(format!("`{}`", callee.text));
        self.fail(
            Diagnostic::error(
                "E014",
                callee.span,
                format!("`{}` calls itself: {}", callee.text, path.join(" → ")),
            )
            .help("functions are put in where they are called, so none may reach itself"),
        )
    }

    fn note_import(&mut self, module: usize, name: &str) {
        if module > 1 {
            let name = format!("{}.{name}", self.modules[module].name);
            if !self.graph.imports.contains(&name) {
                self.graph.imports.push(name);
            }
        }
    }

    fn argument(
        &mut self,
        ty: &crate::ast::Type,
        e: &Expr,
        env: &mut Env,
        axis: bool,
    ) -> Option<Val> {
        if !axis {
            return self.val(e, env);
        }
        let named = self.axes_argument(e, env, None, "taken over")?;
        let axes: Vec<AxisId> = named.into_iter().map(|(a, _)| a).collect();
        match (&ty.kind, &axes[..]) {
            (_, [one]) => Some(Val::Axis(*one)),
            (TypeKind::Name(n), _) if n == "axes" => Some(Val::Axes(axes)),
            _ => self.fail(Diagnostic::error(
                "E017",
                e.span,
                format!("one axis is expected here, and {} are named", axes.len()),
            )),
        }
    }

    /// Holds an argument against its declared type; names of axes not met before are bound.
    fn argument_type(
        &mut self,
        f: &Fn,
        p: &crate::ast::FnParam,
        val: &Val,
        at: Span,
        axes: &mut Axes,
    ) -> Option<()> {
        let what = format!("`{}` of `{}`", p.name.text, f.name.text);
        let TypeKind::Name(ty) = &p.ty.kind else {
            let ty = self.quote(p.ty.span);
            return self.fail(
                Diagnostic::error("E017", p.ty.span, format!("no argument of a function is {ty}"))
                    .help("arguments are `float`, `int`, `bool`, `text`, `chat`, `axis`, `axes`, `model` or `rollout`"),
            );
        };
        let ok = match (ty.as_str(), val) {
            ("axis" | "axes", _) => return Some(()),
            ("model", Val::Model(_)) | ("rollout", Val::Rollout(_)) => return Some(()),
            ("model" | "rollout", _) => false,
            (_, Val::Expr(x)) => match (ty.as_str(), self.elem(*x)) {
                ("float", Elem::Float | Elem::Int)
                | ("int", Elem::Int)
                | ("bool", Elem::Bool)
                | ("text", Elem::Text)
                | ("chat", Elem::Chat) => true,
                ("float" | "int" | "bool" | "text" | "chat", _) => false,
                _ => {
                    return self.fail(
                        Diagnostic::error("E017", p.ty.span, format!("no type `{ty}`"))
                            .help("arguments are `float`, `int`, `bool`, `text`, `chat`, `axis`, `axes`, `model` or `rollout`"),
                    );
                }
            },
            _ => false,
        };
        if !ok {
            let got = self.quote(at);
            let is = self.what(val);
            return self.fail(
                Diagnostic::error(
                    "E017",
                    at,
                    format!("{what} takes `{ty}`, and {got} is {is}"),
                )
                .label(p.name.span, "declared here"),
            );
        }
        let Val::Expr(x) = val else { return Some(()) };
        self.match_axes(&what, p.ty.axes.as_deref(), *x, at, axes)
    }

    pub(crate) fn what(&self, val: &Val) -> &'static str {
        match val {
            Val::Expr(x) => match self.elem(*x) {
                Elem::Float => "a real number",
                other => describe(other),
            },
            Val::Axis(_) | Val::Axes(_) => "an axis",
            Val::Model(_) => "a model",
            Val::Rollout(_) => "a rollout",
            Val::Prompt(_) => "a prompt",
            Val::Poison => "unknown",
        }
    }

    fn match_axes(
        &mut self,
        what: &str,
        patterns: Option<&[AxisPattern]>,
        x: ExprRef,
        at: Span,
        axes: &mut Axes,
    ) -> Option<()> {
        let have = self.ty(x).axes.clone();
        let patterns = patterns.unwrap_or(&[]);
        let rest = patterns.iter().any(|p| matches!(p, AxisPattern::Rest(_)));
        let names: Vec<&Name> = patterns
            .iter()
            .filter_map(|p| match p {
                AxisPattern::Name(n) => Some(n),
                AxisPattern::Rest(_) => None,
            })
            .collect();
        let mut free: Vec<AxisId> = have.clone();
        let mut open = vec![];
        let mut fits = rest || names.len() == have.len();
        for n in &names {
            match axes.iter().find(|(name, _)| *name == n.text) {
                Some((_, a)) => {
                    let own = free.iter().copied().find(|f| self.same_axis(*f, *a));
                    fits &= own.is_some();
                    free.retain(|f| Some(*f) != own);
                }
                None => open.push(n.text.clone()),
            }
        }
        fits &= open.len() <= free.len();
        if fits {
            let tail = free.split_off(free.len() - open.len());
            axes.extend(open.into_iter().zip(tail));
            return Some(());
        }
        let got = self.quote(at);
        let wants = patterns_text(patterns);
        let shown = if have.is_empty() {
            "is one number".to_string()
        } else {
            format!("has axes `{}`", self.show_axes(&have))
        };
        let mut d = if patterns.is_empty() {
            Diagnostic::error(
                "E032",
                at,
                format!("{what} is one number, and {got} {shown}"),
            )
        } else {
            Diagnostic::error(
                "E030",
                at,
                format!("{what} has axes `{wants}`, and {got} {shown}"),
            )
        };
        let bound: Vec<String> = names
            .iter()
            .filter_map(|n| axes.iter().find(|(name, _)| *name == n.text))
            .filter(|(name, a)| name != self.axis_name(*a))
            .map(|(name, a)| format!("`{name}` is `{}` here", self.axis_name(*a)))
            .collect();
        if !bound.is_empty() {
            d = d.help(bound.join(", "));
        }
        self.fail(d)
    }

    fn function_body(&mut self, f: &Fn, env: &mut Env) -> Option<Val> {
        for stmt in &f.bindings {
            match &stmt.kind {
                crate::ast::StmtKind::Bind { name, value } => {
                    if let Some(first) = env.find(&name.text).map(|l| l.span) {
                        self.duplicate(name, first);
                        continue;
                    }
                    let val = self.val(value, env).unwrap_or(Val::Poison);
                    self.note_val(name.span, Some(name.span), &val);
                    env.push(name, val, Kind::Binding);
                }
                crate::ast::StmtKind::Bad => return None,
                _ => {
                    return self.fail(Diagnostic::error(
                        "E025",
                        stmt.span,
                        "a function holds only bindings and `return`",
                    ));
                }
            }
        }
        self.val(&f.value, env)
    }

    fn function_result(&mut self, f: &Fn, val: &Val, axes: &Axes) -> Option<()> {
        let (Some(ty), Val::Expr(x)) = (&f.result, val) else {
            return Some(());
        };
        let have = self.ty(*x).axes.clone();
        let elem_fits = match (&ty.kind, self.elem(*x)) {
            (TypeKind::Name(n), Elem::Float | Elem::Int) if n == "float" => true,
            (TypeKind::Name(n), elem) => n == elem.name(),
            _ => true,
        };
        let patterns = ty.axes.as_deref().unwrap_or(&[]);
        let rest = patterns.iter().any(|p| matches!(p, AxisPattern::Rest(_)));
        let named: Vec<&Name> = patterns
            .iter()
            .filter_map(|p| match p {
                AxisPattern::Name(n) => Some(n),
                AxisPattern::Rest(_) => None,
            })
            .collect();
        let contained = named.iter().all(|n| {
            axes.iter()
                .any(|(name, a)| *name == n.text && have.iter().any(|h| self.same_axis(*h, *a)))
        });
        if elem_fits && contained && (rest || named.len() == have.len()) {
            return Some(());
        }
        let declared = self.quote(ty.span);
        let got = self.graph.show_type(self.ty(*x));
        self.fail(
            Diagnostic::error(
                "E017",
                f.value.span,
                format!(
                    "`{}` declares {declared} and gives `{got}` here",
                    f.name.text
                ),
            )
            .label(ty.span, "declared here"),
        )
    }
}

fn is_axis(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Name(n) if n == "axis" || n == "axes")
}

fn patterns_text(patterns: &[AxisPattern]) -> String {
    let names: Vec<&str> = patterns
        .iter()
        .map(|p| match p {
            AxisPattern::Rest(_) => "..",
            AxisPattern::Name(n) => n.text.as_str(),
        })
        .collect();
    format!("[{}]", names.join(", "))
}
