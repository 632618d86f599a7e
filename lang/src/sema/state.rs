//! `state` and `next`: what an iteration hands to the one after it.

use crate::ast::{self, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{Const, Elem, ModelId, ModelKind, Node, NodeKind, Scope, State, StateId};
use crate::source::Span;

use super::args::must;
use super::{Def, Env, Sema, Val};

impl Sema<'_> {
    /// `state beta: float = 0.1`
    pub(crate) fn state(&mut self, s: &ast::State) -> Option<State> {
        let elem = self.element(&s.ty)?;
        if !matches!(elem, Elem::Float | Elem::Int | Elem::Bool) {
            let text = self.quote(s.ty.span);
            return self.fail(
                Diagnostic::error(
                    "E017",
                    s.ty.span,
                    format!("a state is a number, not {text}"),
                )
                .help("`float`, `int` and `bool` can be carried between iterations"),
            );
        }
        let value = self.constant_of(&s.init, &mut Env::of(0), &s.name.text)?;
        let init = match (elem, value) {
            (Elem::Float, Const::Int(i)) => Const::Float(i as f64),
            (Elem::Float, v @ Const::Float(_))
            | (Elem::Int, v @ Const::Int(_))
            | (Elem::Bool, v @ Const::Bool(_)) => v,
            _ => {
                let (text, name) = (self.quote(s.init.span), elem.name());
                return self.fail(
                    Diagnostic::error(
                        "E017",
                        s.init.span,
                        format!(
                            "`{}` is `{name}`, and its first value {text} is not",
                            s.name.text
                        ),
                    )
                    .label(s.ty.span, "declared here"),
                );
            }
        };
        Some(State {
            name: s.name.text.clone(),
            elem,
            init,
            span: s.name.span,
        })
    }

    /// `next beta = …`, `next anchor = lerp(anchor, policy, 0.01)`
    pub(crate) fn next(&mut self, name: &Name, value: &Expr, span: Span, env: &mut Env) {
        if self.live.is_some() || self.body.as_ref().map(|b| b.scope) != Some(Scope::Step) {
            let place = self.place();
            self.report(
                Diagnostic::error("E025", name.span, format!("`next` cannot stand in {place}"))
                    .help("it stands in `step`, outside `train`"),
            );
            return;
        }
        if let Some((_, first)) = self.nexts.iter().find(|(n, _)| *n == name.text) {
            let first = *first;
            let line = self.line(first);
            self.report(
                Diagnostic::error(
                    "E011",
                    name.span,
                    format!("`{}` has its next value already on line {line}", name.text),
                )
                .label(first, "set here")
                .help("choose between values with `if c then a else b`"),
            );
            return;
        }
        self.nexts.push((name.text.clone(), name.span));
        let found = self.item_at(&name.text, 0);
        if let Some((def, at)) = &found {
            self.note_def(name.span, *at, def);
        }
        let done = match found.map(|(def, _)| def) {
            Some(Def::State(s)) => self.next_state(s, name, value, span, env),
            Some(Def::Model(m)) => self.next_model(m, name, value, span, env),
            Some(Def::Poison) => None,
            None if self.is_lost(&name.text, env) => None,
            other => self.not_a_state(name, other.is_some(), env),
        };
        if done.is_none() {
            // A second `next` of what failed is no second one.
            self.nexts.retain(|(n, _)| *n != name.text);
        }
    }

    fn not_a_state(&mut self, name: &Name, item: bool, env: &mut Env) -> Option<()> {
        let bound = env.find(&name.text).map(|l| l.span);
        let what = match (item, bound) {
            (false, None) => format!("no state or model `{}` in this file", name.text),
            _ => format!("`{}` is no state, so it has no next value", name.text),
        };
        let mut d = Diagnostic::error("E010", name.span, what);
        if let Some(at) = bound {
            d = d.label(at, "bound here, for one iteration");
        }
        let mut names: Vec<String> = self.graph.states.iter().map(|s| s.name.clone()).collect();
        names.extend(self.graph.models.iter().map(|m| m.name.clone()));
        d = match super::nearest(&name.text, names.iter().map(String::as_str)) {
            Some(near) => d
                .help(format!("a similar one: `{near}`"))
                .guess(format!("use `{near}`"), vec![(name.span, near.into())]),
            None => d.help(format!(
                "declare it above `step`: `state {}: float = 0`",
                name.text
            )),
        };
        self.fail(d)
    }

    fn next_state(
        &mut self,
        s: StateId,
        name: &Name,
        value: &Expr,
        span: Span,
        env: &mut Env,
    ) -> Option<()> {
        let x = self.expr(value, env)?;
        let state = self.graph.states[s.0 as usize].clone();
        let is = self.elem(x);
        let fits = match state.elem {
            Elem::Float => self.is_number(x),
            elem => is == elem,
        };
        if !fits {
            let (text, is) = (self.quote(value.span), is.name());
            return self.fail(
                Diagnostic::error(
                    "E017",
                    value.span,
                    format!(
                        "`{}` is `{}`, and {text} is `{is}`",
                        name.text,
                        state.elem.name()
                    ),
                )
                .label(state.span, "declared here"),
            );
        }
        self.one_number(x, value.span, &format!("`next {}`", name.text))?;
        self.nodes.push(Node {
            name: format!("next {}", name.text),
            scope: Scope::Step,
            kind: NodeKind::Next { state: s, expr: x },
            span,
        });
        Some(())
    }

    /// A frozen model moves towards another of the same shape.
    fn next_model(
        &mut self,
        m: ModelId,
        name: &Name,
        value: &Expr,
        span: Span,
        env: &mut Env,
    ) -> Option<()> {
        let declared = self.graph.model(m).span;
        if !matches!(self.graph.model(m).kind, ModelKind::Frozen(_)) {
            return self.fail(
                Diagnostic::error(
                    "E021",
                    name.span,
                    format!(
                        "`{}` is not frozen: its next version comes from `train`",
                        name.text
                    ),
                )
                .label(declared, "declared here")
                .help("`next` moves a `frozen` model towards a trained one"),
            );
        }
        let (toward, at, rate) = self.blend(name, value, env)?;
        if matches!(self.graph.model(toward).kind, ModelKind::Frozen(_)) {
            let b = self.graph.model(toward).name.clone();
            return self.fail(
                Diagnostic::error(
                    "E033",
                    at,
                    format!("`{b}` is frozen, so nothing moves towards it"),
                )
                .help("`next` moves a frozen model towards one that is trained"),
            );
        }
        if self.origin_of(m) != toward {
            let (a, b) = (name.text.clone(), self.graph.model(toward).name.clone());
            return self.fail(
                Diagnostic::error(
                    "E033",
                    at,
                    format!("`{a}` and `{b}` come from different models and cannot be blended"),
                )
                .label(declared, "declared here")
                .help(format!(
                    "`model {a} = frozen({b})` starts from the same weights"
                )),
            );
        }
        self.used.insert(('m', m.0 as usize));
        self.used.insert(('m', toward.0 as usize));
        self.nodes.push(Node {
            name: format!("next {}", name.text),
            scope: Scope::Step,
            kind: NodeKind::Blend {
                model: m,
                toward,
                rate,
            },
            span,
        });
        Some(())
    }

    fn origin_of(&self, m: ModelId) -> ModelId {
        match self.graph.model(m).kind {
            ModelKind::Frozen(of) => of,
            _ => m,
        }
    }

    /// `policy`, or `lerp(anchor, policy, rate)`: where to and how far.
    fn blend(
        &mut self,
        name: &Name,
        value: &Expr,
        env: &mut Env,
    ) -> Option<(ModelId, Span, crate::graph::ExprRef)> {
        let own = &name.text;
        match &value.kind {
            ExprKind::Paren(inner) => return self.blend(name, inner, env),
            ExprKind::Name(n) => {
                if let Val::Model(m) = self.resolve(n, value.span, env)? {
                    let rate = self.number(1.0, false, value.span);
                    return Some((m, value.span, rate));
                }
            }
            ExprKind::Call { callee, args, axes } if callee.text == "lerp" && axes.is_empty() => {
                self.note_callee(callee, 0);
                let slots = [must("from"), must("to"), must("rate")];
                let found = self.arguments("E016", callee, args, &slots)?;
                let from = found[0]?;
                let Val::Model(first) = self.val(from, env)? else {
                    return self.no_blend(own, from.span);
                };
                if self.graph.model(first).name != *own {
                    let other = self.graph.model(first).name.clone();
                    return self.fail(
                        Diagnostic::error(
                            "E033",
                            from.span,
                            format!("the next `{own}` starts from `{own}`, not from `{other}`"),
                        )
                        .help(format!("as in `next {own} = lerp({own}, {other}, 0.01)`")),
                    );
                }
                let to = found[1]?;
                let Val::Model(toward) = self.val(to, env)? else {
                    return self.no_blend(own, to.span);
                };
                let at = found[2]?;
                let rate = self.expr(at, env)?;
                self.need_number("lerp", rate, at.span)?;
                self.one_number(rate, at.span, "`lerp`")?;
                self.rate_in_range(rate, at)?;
                return Some((toward, to.span, rate));
            }
            ExprKind::Bad => return None,
            _ => {}
        }
        self.no_blend(own, value.span)
    }

    fn rate_in_range(&mut self, rate: crate::graph::ExprRef, at: &Expr) -> Option<()> {
        let v = match self.as_const(rate) {
            Some(Const::Float(v)) => v,
            Some(Const::Int(v)) => v as f64,
            _ => return Some(()),
        };
        if (0.0..=1.0).contains(&v) {
            return Some(());
        }
        self.fail(
            Diagnostic::error("E018", at.span, format!("`rate` cannot be {v}"))
                .help("0 keeps the model, 1 takes the other's weights"),
        )
    }

    fn no_blend<T>(&mut self, own: &str, at: Span) -> Option<T> {
        let text = self.quote(at);
        self.fail(
            Diagnostic::error(
                "E033",
                at,
                format!("{text} is no model that `{own}` can move to"),
            )
            .help(format!("as in `next {own} = lerp({own}, policy, 0.01)`")),
        )
    }
}
