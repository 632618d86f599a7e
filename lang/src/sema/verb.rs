//! Verbs: the calls that cost model time, and calls of external rewards.

use crate::ast::{Arg, AxisBinder, AxisSize as Size, Expr, Name};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisId, AxisSize, Elem, ExprRef, Forward, ForwardOutput, Member, ModelId, Node, NodeKind, Op,
    RewardId, Rollout, RolloutId, Sampling, Scope, Type, ValueId,
};
use crate::source::Span;

use super::args::{GROUP, ROWS, TOKENS, label, must};
use super::{Env, Kind, Origin, Sema, Val, describe};

impl Sema<'_> {
    /// `generate(m, prompt, temperature: 1, …)[G: n, T: ..max]`
    pub(crate) fn generate(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        axes: &[AxisBinder],
        env: &mut Env,
        name: &Name,
    ) -> Option<Val> {
        let slots = [
            must("model"),
            must("prompt"),
            label("temperature"),
            label("top_p"),
            label("top_k"),
            label("min_tokens"),
            label("stop"),
            label("stale"),
        ];
        let found = self.arguments("E016", callee, args, &slots)?;
        let scope = self.in_body(span, "generate")?;
        if self.live.is_some() {
            return self.fail(
                Diagnostic::error("E025", span, "`generate` cannot stand in a `train` block").help(
                    "responses are sampled before `train`, by the version at the start of the step",
                ),
            );
        }
        let model = self.model_argument(found[0]?, "generate", env)?;
        let (prompt, chat) = self.prompt_argument(found[1]?, env)?;
        let temperature = match found[2] {
            Some(e) => self.real(e, env, "temperature", (0.0, 100.0))?,
            None => 1.0,
        };
        let top_p = match found[3] {
            Some(e) => Some(self.real(e, env, "top_p", (1e-6, 1.0))?),
            None => None,
        };
        let top_k = match found[4] {
            Some(e) => Some(self.whole(e, env, "top_k", (1, ROWS))?),
            None => None,
        };
        let min_tokens = match found[5] {
            Some(e) => self.whole(e, env, "min_tokens", (0, TOKENS))?,
            None => 0,
        };
        let stop = match found[6] {
            Some(e) => self.stop_texts(e, env)?,
            None => vec![],
        };
        if let Some(e) = found[7] {
            return self.later("stale:", e.span, "every rollout uses the current version");
        }
        let (rollout, max) = self.rollout(name, callee, axes, env, true)?;
        if min_tokens > max {
            let at = found[5].map_or(span, |e| e.span);
            return self.fail(Diagnostic::error(
                "E018",
                at,
                format!(
                    "`min_tokens: {min_tokens}` is more than the {max} tokens a response may have"
                ),
            ));
        }
        self.origins.push(Origin {
            node: self.nodes.len(),
            temperature: Some(temperature),
        });
        self.nodes.push(Node {
            name: name.text.clone(),
            scope,
            kind: NodeKind::Generate {
                model,
                prompt,
                chat,
                sampling: Sampling {
                    temperature,
                    top_p,
                    top_k,
                    min_tokens,
                    stop,
                },
                rollout,
                members: vec![],
            },
            span,
        });
        Some(Val::Rollout(rollout))
    }

    /// `answer(prompt, text)[W: ..max]`
    pub(crate) fn answer(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        axes: &[AxisBinder],
        env: &mut Env,
        name: &Name,
    ) -> Option<Val> {
        let found = self.arguments("E016", callee, args, &[must("prompt"), must("text")])?;
        let scope = self.in_body(span, "answer")?;
        if self.graph.models.is_empty() {
            return self.fail(Diagnostic::error(
                "E033",
                span,
                "`answer` needs a model whose tokenizer reads the text, and this program declares none",
            ));
        }
        let (prompt, chat) = self.prompt_argument(found[0]?, env)?;
        let (text, at) = self.operand(found[1], env)?;
        if self.elem(text) != Elem::Text {
            return self.wrong_type("`answer`", "text", text, at);
        }
        self.over_rows(text, at, "`answer`")?;
        let (rollout, _) = self.rollout(name, callee, axes, env, false)?;
        self.origins.push(Origin {
            node: self.nodes.len(),
            temperature: None,
        });
        self.nodes.push(Node {
            name: name.text.clone(),
            scope,
            kind: NodeKind::Answer {
                // Any model until the one that scores it is known.
                model: ModelId(0),
                prompt,
                chat,
                text,
                rollout,
                members: vec![],
            },
            span,
        });
        Some(Val::Rollout(rollout))
    }

    fn in_body(&mut self, span: Span, verb: &str) -> Option<Scope> {
        match &self.body {
            Some(body) => Some(body.scope),
            None => self.fail(
                Diagnostic::error("E025", span, format!("`{verb}` cannot stand here"))
                    .help("verbs stand in `step` and `eval`"),
            ),
        }
    }

    pub(crate) fn model_argument(
        &mut self,
        e: &Expr,
        verb: &str,
        env: &mut Env,
    ) -> Option<ModelId> {
        match self.val(e, env)? {
            Val::Model(m) => {
                self.used.insert(('m', m.0 as usize));
                self.not_after_training(m, e.span)?;
                Some(m)
            }
            Val::Poison => None,
            _ => {
                let text = self.quote(e.span);
                self.fail(Diagnostic::error(
                    "E033",
                    e.span,
                    format!("`{verb}` reads a model first, and {text} is none"),
                ))
            }
        }
    }

    /// E023: after its training in the same step a model is read no more.
    fn not_after_training(&mut self, m: ModelId, span: Span) -> Option<()> {
        let in_step = self.body.as_ref().is_some_and(|b| b.scope == Scope::Step);
        let Some((_, first)) = self.trained.iter().find(|(t, _)| *t == m) else {
            return Some(());
        };
        if !in_step {
            return Some(());
        }
        let first = *first;
        let name = self.graph.model(m).name.clone();
        let line = self.line(first);
        self.fail(
            Diagnostic::error(
                "E023",
                span,
                format!("`{name}` is read after its training on line {line}: before or after the update?"),
            )
            .label(first, "trained here")
            .help("above `train` the step reads the version it started with; the next iteration reads the new one"),
        )
    }

    fn prompt_argument(&mut self, e: &Expr, env: &mut Env) -> Option<(ExprRef, bool)> {
        let (x, chat) = match self.val(e, env)? {
            Val::Prompt(x) => (x, true),
            Val::Expr(x) if self.elem(x) == Elem::Chat => (x, true),
            Val::Expr(x) if self.elem(x) == Elem::Text => (x, false),
            Val::Expr(x) => {
                let text = self.quote(e.span);
                let is = describe(self.elem(x));
                return self.fail(Diagnostic::error(
                    "E017",
                    e.span,
                    format!("a prompt is text or a chat, and {text} is {is}"),
                ));
            }
            _ => {
                let text = self.quote(e.span);
                return self.fail(Diagnostic::error(
                    "E017",
                    e.span,
                    format!("a prompt is text or a chat, and {text} is neither"),
                ));
            }
        };
        self.over_rows(x, e.span, "a prompt")?;
        Some((x, chat))
    }

    /// One for each row of the step, or one for all.
    fn over_rows(&mut self, x: ExprRef, at: Span, who: &str) -> Option<()> {
        let rows = self.body.as_ref()?.rows;
        if self.ty(x).axes.iter().all(|a| *a == rows) {
            return Some(());
        }
        let axes = self.ty(x).axes.clone();
        let what = format!("{who} over `{}`", self.show_axes(&axes));
        let row = self.axis_name(rows).to_string();
        self.fail(
            Diagnostic::error("E090", at, format!("{what} is not implemented yet"))
                .help(format!("text over `{row}`, such as a column, works")),
        )
    }

    /// The axes a bracket introduces, and the rollout over them.
    fn rollout(
        &mut self,
        name: &Name,
        callee: &Name,
        binders: &[AxisBinder],
        env: &mut Env,
        sampled: bool,
    ) -> Option<(RolloutId, usize)> {
        let rows = self.body.as_ref()?.rows;
        let (group, tokens) = match binders {
            [t] => (None, t),
            [g, t] if sampled => (Some(g), t),
            _ => return self.response_axis(callee, binders, sampled),
        };
        let Some(Size::Ragged(max)) = &tokens.size else {
            return self.response_axis(callee, binders, sampled);
        };
        let group = match group {
            Some(g) => Some(self.group(g, callee, binders, env)?),
            None => None,
        };
        let max = self.whole(max, env, &tokens.name.text, (1, TOKENS))?;
        self.fits_one_call(rows, group, max, tokens.span)?;
        if !self.free_name(&tokens.name, env) {
            return None;
        }
        let mut parents = vec![rows];
        parents.extend(group);
        let axis = self.new_axis(
            &tokens.name.text,
            AxisSize::Ragged(max),
            parents,
            tokens.span,
        );
        let at = tokens.name.span;
        self.note_val(at, Some(at), &Val::Axis(axis));
        env.push(&tokens.name, Val::Axis(axis), Kind::Axis);
        self.graph.rollouts.push(Rollout {
            name: name.text.clone(),
            rows,
            group,
            tokens: axis,
        });
        Some((RolloutId(self.graph.rollouts.len() as u32 - 1), max))
    }

    /// `G: n` introduces an axis, `G` alone takes the one that exists.
    fn group(
        &mut self,
        g: &AxisBinder,
        callee: &Name,
        binders: &[AxisBinder],
        env: &mut Env,
    ) -> Option<AxisId> {
        match &g.size {
            Some(Size::Fixed(n)) => {
                let n = self.whole(n, env, &g.name.text, (1, GROUP))?;
                if !self.free_name(&g.name, env) {
                    return None;
                }
                let axis = self.new_axis(&g.name.text, AxisSize::Fixed(n), vec![], g.span);
                self.note_val(g.name.span, Some(g.name.span), &Val::Axis(axis));
                env.push(&g.name, Val::Axis(axis), Kind::Axis);
                Some(axis)
            }
            Some(Size::Ragged(_)) => self.response_axis(callee, binders, true),
            None => match env.find(&g.name.text).map(|l| l.val.clone()) {
                Some(Val::Axis(a)) if self.fixed_size(a).is_some() => Some(a),
                Some(Val::Poison) => None,
                None if self.is_lost(&g.name.text, env) => None,
                _ => self.fail(
                    Diagnostic::error(
                        "E037",
                        g.span,
                        format!("no axis `{}` of fixed size exists here", g.name.text),
                    )
                    .help(format!("`{}: 8` introduces one", g.name.text)),
                ),
            },
        }
    }

    fn response_axis<T>(
        &mut self,
        callee: &Name,
        binders: &[AxisBinder],
        sampled: bool,
    ) -> Option<T> {
        let at = match (binders.first(), binders.last()) {
            (Some(a), Some(b)) => a.span.to(b.span),
            _ => callee.span,
        };
        let help = if sampled {
            "`[T: ..64]` gives one response a row, `[G: 8, T: ..64]` eight"
        } else {
            "as in `[T: ..64]`"
        };
        let name = &callee.text;
        self.fail(
            Diagnostic::error(
                "E037",
                at,
                format!(
                    "`{name}` needs a response axis with its limit, and at most one axis before it"
                ),
            )
            .help(help),
        )
    }

    /// `logp(m, roll)` and `entropy(m, roll)`: outputs of one pass.
    pub(crate) fn score(
        &mut self,
        entropy: bool,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
        name: Option<&Name>,
    ) -> Option<Val> {
        let slots = [must("model"), must("rollout"), label("temperature")];
        let found = self.arguments("E016", callee, args, &slots)?;
        let scope = self.in_body(span, &callee.text)?;
        let model = self.model_argument(found[0]?, &callee.text, env)?;
        let rollout = match self.val(found[1]?, env)? {
            Val::Rollout(r) => r,
            Val::Poison => return None,
            _ => {
                let text = self.quote(found[1]?.span);
                return self.fail(
                    Diagnostic::error(
                        "E017",
                        found[1]?.span,
                        format!("`{}` scores a rollout, and {text} is none", callee.text),
                    )
                    .help("a rollout is what `generate` or `answer` gives"),
                );
            }
        };
        let sampled_at = self.origins[rollout.0 as usize].temperature;
        let temperature = match found[2] {
            Some(e) => self.real(e, env, "temperature", (1e-6, 100.0))?,
            // A greedy rollout is scored at temperature 1.
            None => sampled_at.filter(|t| *t > 0.0).unwrap_or(1.0),
        };
        let output = if entropy {
            ForwardOutput::Entropy
        } else {
            ForwardOutput::Logp
        };
        let shown = match name {
            Some(n) => n.text.clone(),
            None => format!(
                "{}({}, {})",
                callee.text,
                self.graph.model(model).name,
                self.graph.rollout(rollout).name
            ),
        };
        let at = name.map_or(span, |n| n.span);
        let pass = Forward {
            model,
            rollout,
            outputs: vec![],
            temperature,
            span,
        };
        let live = self.live.as_ref().is_some_and(|l| l.model == model);
        if !live && name.is_none() {
            let text = self.quote(span);
            return self.fail(
                Diagnostic::error(
                    "E020",
                    span,
                    format!("{text} is a model call and needs a name of its own"),
                )
                .help("bind it above `train`: `name = …`"),
            );
        }
        let known = self.pass(&pass, live, scope);
        if let Some(v) = known.and_then(|f| output_of(f, output)) {
            let ty = self.graph.value(v).ty.clone();
            return Some(Val::Expr(self.emit(Op::Value(v), vec![], ty, span)));
        }
        let r = self.graph.rollout(rollout).clone();
        let mut axes = vec![r.rows];
        axes.extend(r.group);
        axes.push(r.tokens);
        let ty = Type {
            elem: Elem::Float,
            axes,
        };
        let value = self.value(&shown, ty.clone(), at);
        match self.pass(&pass, live, scope) {
            Some(f) => f.outputs.push((output, value)),
            None => {
                let pass = Forward {
                    outputs: vec![(output, value)],
                    ..pass
                };
                match &mut self.live {
                    Some(l) if live => l.forwards.push(pass),
                    _ => self.nodes.push(Node {
                        name: shown,
                        scope,
                        kind: NodeKind::Forward(pass),
                        span,
                    }),
                }
            }
        }
        Some(Val::Expr(self.emit(Op::Value(value), vec![], ty, span)))
    }

    /// The pass of the same model, rollout and temperature, if there is one.
    fn pass(&mut self, wanted: &Forward, live: bool, scope: Scope) -> Option<&mut Forward> {
        let same = |f: &Forward| {
            f.model == wanted.model
                && f.rollout == wanted.rollout
                && f.temperature == wanted.temperature
        };
        if live {
            return self.live.as_mut()?.forwards.iter_mut().find(|f| same(f));
        }
        self.nodes.iter_mut().find_map(|n| match &mut n.kind {
            NodeKind::Forward(f) if n.scope == scope && same(f) => Some(f),
            _ => None,
        })
    }

    pub(crate) fn reward_call(
        &mut self,
        r: RewardId,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        self.reward_named(r, span, callee, args, env, None)
    }

    /// `exact(roll.text, answer)`: a node, named by its binding or else by the reward.
    pub(crate) fn reward_named(
        &mut self,
        r: RewardId,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
        name: Option<&Name>,
    ) -> Option<ExprRef> {
        let scope = self.in_body(span, &callee.text)?;
        self.used.insert(('r', r.0 as usize));
        if self.live.is_some() {
            return self.fail(
                Diagnostic::error(
                    "E025",
                    span,
                    format!("`{}` cannot stand in a `train` block", callee.text),
                )
                .help("rewards are computed above `train`, once for all of its updates"),
            );
        }
        let params = self.graph.rewards[r.0 as usize].params.clone();
        let declared = self.graph.rewards[r.0 as usize].span;
        let slots: Vec<_> = params.iter().map(|(n, _)| must(n)).collect();
        let found = self.arguments("E034", callee, args, &slots)?;
        let mut operands = vec![];
        for ((param, wants), e) in params.iter().zip(found) {
            let (x, at) = self.operand(e, env)?;
            let is = self.elem(x);
            if is != *wants && (is, *wants) != (Elem::Int, Elem::Float) {
                let (text, is, wants) = (self.quote(at), describe(is), wants.name());
                return self.fail(
                    Diagnostic::error(
                        "E034",
                        at,
                        format!(
                            "`{param}` of `{}` takes `{wants}`, and {text} is {is}",
                            callee.text
                        ),
                    )
                    .label(declared, "declared here"),
                );
            }
            operands.push((x, at));
        }
        let axes = self.join(&operands, span)?;
        if let Some(t) = axes.iter().copied().find(|a| self.is_ragged(*a)) {
            let t = self.axis_name(t).to_string();
            return self.fail(
                Diagnostic::error(
                    "E034",
                    span,
                    format!(
                        "`{}` is called once a response, and this has the token axis `{t}`",
                        callee.text
                    ),
                )
                .help(format!("reduce over `{t}` first")),
            );
        }
        let args: Vec<ExprRef> = operands.iter().map(|(x, _)| *x).collect();
        let ty = Type {
            elem: self.graph.rewards[r.0 as usize].result,
            axes,
        };
        let (shown, at) = name.map_or((&callee.text, span), |n| (&n.text, n.span));
        let value = self.value(shown, ty.clone(), at);
        self.nodes.push(Node {
            name: shown.clone(),
            scope,
            kind: NodeKind::Reward {
                reward: r,
                args,
                value,
            },
            span,
        });
        Some(self.emit(Op::Value(value), vec![], ty, span))
    }

    /// The members in use of the node that makes a rollout.
    pub(crate) fn members(&self, node: usize) -> &[(Member, ValueId)] {
        match &self.nodes[node].kind {
            NodeKind::Generate { members, .. } | NodeKind::Answer { members, .. } => members,
            _ => &[],
        }
    }

    pub(crate) fn add_member(&mut self, node: usize, member: Member, value: ValueId) {
        if let NodeKind::Generate { members, .. } | NodeKind::Answer { members, .. } =
            &mut self.nodes[node].kind
        {
            members.push((member, value));
        }
    }
}

fn output_of(f: &Forward, output: ForwardOutput) -> Option<ValueId> {
    f.outputs
        .iter()
        .find(|(o, _)| *o == output)
        .map(|(_, v)| *v)
}
