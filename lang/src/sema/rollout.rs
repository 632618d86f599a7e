//! `generate` and `answer`: prompts with responses, and the axes they introduce.

use crate::ast::{Arg, AxisBinder, AxisSize as Size, Expr, Name};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisId, AxisSize, Elem, ExprRef, Member, ModelId, Node, NodeKind, Rollout, RolloutId, Sampling,
    TextOp, ValueId,
};
use crate::source::Span;

use super::args::{GROUP, ROWS, TOKENS, label, may, must};
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
        self.reads_tokens(model, "generate", found[0]?.span)?;
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
        let stale = match found[7] {
            Some(e) => self.whole(e, env, "stale", (0, ROWS))?,
            None => 0,
        };
        let over = self.ty(prompt).axes.clone();
        let (rollout, max) = self.rollout(name, callee, axes, env, &over)?;
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
                stale,
                rollout,
                members: vec![],
            },
            span,
        });
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
        Some(Val::Rollout(rollout))
    }

    /// `answer(prompt, text)[W: ..max]`; `answer(messages)[W: ..max]` of a whole conversation.
    pub(crate) fn answer(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        axes: &[AxisBinder],
        env: &mut Env,
        name: &Name,
    ) -> Option<Val> {
        let found = self.arguments("E016", callee, args, &[must("prompt"), may("text")])?;
        let scope = self.in_body(span, "answer")?;
        if self.graph.models.is_empty() {
            return self.fail(Diagnostic::error(
                "E033",
                span,
                "`answer` needs a model whose tokenizer reads the text, and this program declares none",
            ));
        }
        let first = found[0]?;
        let (prompt, chat) = self.prompt_argument(first, env)?;
        let (prompt, text) = match found[1] {
            Some(second) => (prompt, self.response_text(prompt, first.span, second, env)?),
            None => self.conversation(prompt, first.span)?,
        };
        let mut over = self.ty(prompt).axes.clone();
        over.extend(self.ty(text).axes.clone());
        let over = self.ordered(over);
        if axes.len() != 1 {
            return self.response_axis(callee, axes);
        }
        let (rollout, _) = self.rollout(name, callee, axes, env, &over)?;
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

    /// The response: a text, or the messages that continue a chat.
    fn response_text(
        &mut self,
        prompt: ExprRef,
        of: Span,
        e: &Expr,
        env: &mut Env,
    ) -> Option<ExprRef> {
        let (text, at) = self.operand(Some(e), env)?;
        match (self.elem(prompt), self.elem(text)) {
            (_, Elem::Text) | (Elem::Chat, Elem::Chat) => {}
            (_, Elem::Chat) => {
                let (what, prompt) = (self.quote(at), self.quote(of));
                let message = format!("{what} is a chat, and the prompt {prompt} is text");
                let d = Diagnostic::error("E017", at, message).label(of, "the prompt");
                return self.fail(d.help(
                    "messages answer a chat: a column of type `chat`, or its `common_prefix`",
                ));
            }
            _ => return self.wrong_type("`answer`", "text or a chat", text, at),
        }
        self.over_rows(text, at)?;
        Some(text)
    }

    /// A conversation as the messages before the assistant's first, and the rest.
    fn conversation(&mut self, whole: ExprRef, at: Span) -> Option<(ExprRef, ExprRef)> {
        if self.elem(whole) != Elem::Chat {
            let what = self.quote(at);
            let message =
                format!("`answer` takes a prompt and a response, or one chat; {what} is text");
            return self.fail(
                Diagnostic::error("E016", at, message).help("as in `answer(question, answer)`"),
            );
        }
        let prompt = self.on_chat(TextOp::Opening, vec![whole], at);
        let rest = self.on_chat(TextOp::RemovePrefix, vec![whole, prompt], at);
        Some((prompt, rest))
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
        self.over_rows(x, e.span)?;
        Some((x, chat))
    }

    /// One for each row of the step, or for each of a fixed axis beside it, or one for all.
    fn over_rows(&mut self, x: ExprRef, at: Span) -> Option<()> {
        let axes = self.ty(x).axes.clone();
        let ragged = axes.iter().copied().find(|a| self.is_ragged(*a));
        let shown = self.show_axes(&axes);
        let what = self.quote(at);
        if let Some(t) = ragged {
            let t = self.axis_name(t).to_string();
            return self.fail(Diagnostic::error(
                "E037",
                at,
                format!(
                    "{what} is text for each token of `{t}`; a prompt or an answer is one text"
                ),
            ));
        }
        if axes.len() <= 2 {
            return Some(());
        }
        self.fail(
            Diagnostic::error("E037", at, format!("{what} has axes `{shown}`"))
                .help("prompts and answers stand over the rows and at most one axis beside them"),
        )
    }

    /// The axes a bracket introduces, and the rollout over them.
    fn rollout(
        &mut self,
        name: &Name,
        callee: &Name,
        binders: &[AxisBinder],
        env: &mut Env,
        prompts: &[AxisId],
    ) -> Option<(RolloutId, usize)> {
        let (rows, over) = self.prompt_axes(prompts)?;
        let (group, tokens) = match binders {
            [t] => (None, t),
            [g, t] => (Some(g), t),
            _ => return self.response_axis(callee, binders),
        };
        let Some(Size::Ragged(max)) = &tokens.size else {
            return self.response_axis(callee, binders);
        };
        let group = match group {
            Some(g) => Some(self.group(g, callee, binders, env)?),
            None => None,
        };
        let max = self.whole(max, env, &tokens.name.text, (1, TOKENS))?;
        self.fits_one_call(&[Some(rows), over, group], max, tokens.span)?;
        if !self.free_name(&tokens.name, env) {
            return None;
        }
        let parents: Vec<AxisId> = [Some(rows), over, group].into_iter().flatten().collect();
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
            over,
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
            Some(Size::Ragged(_)) => self.response_axis(callee, binders),
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

    /// The row axis of prompts, and the one beside it.
    fn prompt_axes(&mut self, prompts: &[AxisId]) -> Option<(AxisId, Option<AxisId>)> {
        let rows = self.body.as_ref()?.rows;
        let own = prompts
            .iter()
            .copied()
            .find(|a| self.graph.origin(*a) == rows);
        let beside = prompts.iter().copied().find(|a| Some(*a) != own);
        Some((own.unwrap_or(rows), beside))
    }

    fn response_axis<T>(&mut self, callee: &Name, binders: &[AxisBinder]) -> Option<T> {
        let at = match (binders.first(), binders.last()) {
            (Some(a), Some(b)) => a.span.to(b.span),
            _ => callee.span,
        };
        let help = if callee.text == "generate" {
            "`[T: ..64]` gives one response a row, `[G: 8, T: ..64]` eight"
        } else {
            "as in `[T: ..64]`"
        };
        let name = &callee.text;
        let Some(last) = binders.last() else {
            let message = format!("`{name}` needs a response axis with its limit in `[ … ]`");
            return self.fail(Diagnostic::error("E037", at, message).help(help));
        };
        if let Some(Size::Fixed(n)) = &last.size {
            // The limit of a response, written as a length.
            let (axis, size) = (&last.name.text, self.quote(n.span));
            let size = size.trim_matches('`').to_string();
            let message = format!(
                "`{axis}: {size}` fixes a length, and `{name}` needs the limit of its responses last"
            );
            let point = Span {
                hi: n.span.lo,
                ..n.span
            };
            let d = Diagnostic::error("E037", last.span, message);
            return self.fail(match binders {
                [_] | [_, _] => d
                    .help(format!("`{axis}: ..{size}` is at most {size} tokens"))
                    .fix(
                        format!("write `{axis}: ..{size}`"),
                        vec![(point, "..".into())],
                    ),
                _ => d.help(help),
            });
        }
        let needs = match name.as_str() {
            "generate" => "a response axis with its limit, and at most one axis before it",
            _ => "one response axis with its limit",
        };
        self.fail(Diagnostic::error("E037", at, format!("`{name}` needs {needs}")).help(help))
    }

    /// Whether the responses are messages of the data.
    pub(crate) fn of_messages(&self, r: RolloutId) -> bool {
        let node = &self.nodes[self.origins[r.0 as usize].node];
        matches!(&node.kind, NodeKind::Answer { text, .. } if self.elem(*text) == Elem::Chat)
    }

    /// The members in use of the node that makes a rollout.
    pub(crate) fn members(&self, node: usize) -> &[(Member, ValueId)] {
        match &self.nodes[node].kind {
            NodeKind::Generate { members, .. }
            | NodeKind::Answer { members, .. }
            | NodeKind::Select { members, .. } => members,
            _ => &[],
        }
    }

    pub(crate) fn add_member(&mut self, node: usize, member: Member, value: ValueId) {
        if let NodeKind::Generate { members, .. }
        | NodeKind::Answer { members, .. }
        | NodeKind::Select { members, .. } = &mut self.nodes[node].kind
        {
            members.push((member, value));
        }
    }
}
