//! Verbs that read rollouts: the calls that cost model time without sampling.

use crate::ast::{Arg, Expr, Name};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisId, Elem, ExprRef, Forward, ForwardOutput, ModelId, ModelKind, Node, NodeKind, Op, Per,
    RolloutId, Scope, Type, ValueId,
};
use crate::source::Span;

use super::args::{label, must};
use super::{Env, Sema, Val};

impl Sema<'_> {
    pub(crate) fn in_body(&mut self, span: Span, verb: &str) -> Option<Scope> {
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

    /// E033 unless a model has the head that an output needs.
    fn gives(&mut self, m: ModelId, output: ForwardOutput, verb: &str, at: Span) -> Option<()> {
        let per = match output {
            ForwardOutput::Logp | ForwardOutput::Entropy => {
                return self.reads_tokens(m, verb, at);
            }
            ForwardOutput::Value | ForwardOutput::End => Per::Token,
            ForwardOutput::Score => Per::Response,
        };
        let is = match self.graph.head(m) {
            ModelKind::Scalar { per: has, .. } if *has == per => return Some(()),
            ModelKind::Scalar { per, .. } => format!("`scalar(per: {})`", per.name()),
            _ => "a language model".to_string(),
        };
        if !self.unfit.insert(m) {
            // Told where the model was first read: one cause, one message.
            return None;
        }
        let (name, declared) = (self.graph.model(m).name.clone(), self.graph.model(m).span);
        let reads = match per {
            Per::Token => "a per-token scalar head",
            Per::Response => "a per-response scalar head",
        };
        self.fail(
            Diagnostic::error(
                "E033",
                at,
                format!("`{verb}` reads {reads}, but `{name}` is {is}"),
            )
            .label(declared, "declared here")
            .help(format!(
                "as in `model {name} = scalar(checkpoint, per: {})`",
                per.name()
            )),
        )
    }

    /// E033 unless a model gives distributions over tokens.
    pub(crate) fn reads_tokens(&mut self, m: ModelId, verb: &str, at: Span) -> Option<()> {
        let ModelKind::Scalar { per, .. } = self.graph.head(m) else {
            return Some(());
        };
        let verb_for = match per {
            Per::Token => "value",
            Per::Response => "score",
        };
        if !self.unfit.insert(m) {
            return None;
        }
        let (per, name) = (per.name(), self.graph.model(m).name.clone());
        let declared = self.graph.model(m).span;
        self.fail(
            Diagnostic::error(
                "E033",
                at,
                format!("`{verb}` reads a language model, but `{name}` is `scalar(per: {per})`"),
            )
            .label(declared, "declared here")
            .help(format!(
                "`{verb_for}({name}, …)` reads it; a language model is `causal(…)`"
            )),
        )
    }

    /// What an output of a pass over a rollout is.
    fn output_type(&self, rollout: RolloutId, output: ForwardOutput) -> Type {
        let r = self.graph.rollout(rollout);
        let mut axes: Vec<AxisId> = [Some(r.rows), r.over, r.group]
            .into_iter()
            .flatten()
            .collect();
        if !matches!(output, ForwardOutput::End | ForwardOutput::Score) {
            axes.push(r.tokens);
        }
        Type {
            elem: Elem::Float,
            axes,
        }
    }

    /// `v.end` of what `value` gave: the value of the state after the last token.
    pub(crate) fn value_end(&mut self, v: ValueId, span: Span) -> Option<ExprRef> {
        let gives = |f: &Forward| f.outputs.contains(&(ForwardOutput::Value, v));
        let live = self.live.as_ref();
        let live = live.and_then(|l| l.forwards.iter().position(gives));
        let node = self
            .nodes
            .iter()
            .position(|n| matches!(&n.kind, NodeKind::Forward(f) if gives(f)));
        let pass = match (live, node) {
            (Some(i), _) => self.live.as_ref()?.forwards.get(i)?.clone(),
            (None, Some(i)) => match &self.nodes[i].kind {
                NodeKind::Forward(f) => f.clone(),
                _ => return None,
            },
            (None, None) => return None,
        };
        let ty = self.output_type(pass.rollout, ForwardOutput::End);
        let known = output_of(&pass, ForwardOutput::End);
        let value = match known {
            Some(end) => end,
            None => {
                let of = self.graph.value(v).clone();
                let end = self.value(&format!("{}.end", of.name), ty.clone(), of.span);
                let output = (ForwardOutput::End, end);
                match (live, node) {
                    (Some(i), _) => self
                        .live
                        .as_mut()?
                        .forwards
                        .get_mut(i)?
                        .outputs
                        .push(output),
                    (None, Some(i)) => {
                        if let NodeKind::Forward(f) = &mut self.nodes[i].kind {
                            f.outputs.push(output);
                        }
                    }
                    (None, None) => {}
                }
                end
            }
        };
        Some(self.emit(Op::Value(value), vec![], ty, span))
    }

    /// `logp(m, roll)`, `entropy(m, roll)`, `value(m, roll)`, `score(m, roll)`: outputs of one pass.
    pub(crate) fn score(
        &mut self,
        output: ForwardOutput,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
        name: Option<&Name>,
    ) -> Option<Val> {
        let distribution = matches!(output, ForwardOutput::Logp | ForwardOutput::Entropy);
        let mut slots = vec![must("model"), must("rollout")];
        if distribution {
            slots.push(label("temperature"));
        }
        let found = self.arguments("E016", callee, args, &slots)?;
        let scope = self.in_body(span, &callee.text)?;
        let model = self.model_argument(found[0]?, &callee.text, env)?;
        self.gives(model, output, &callee.text, found[0]?.span)?;
        let rollout = match self.val(found[1]?, env)? {
            Val::Rollout(r) => r,
            Val::Poison => return None,
            _ => {
                let text = self.quote(found[1]?.span);
                return self.fail(
                    Diagnostic::error(
                        "E017",
                        found[1]?.span,
                        format!("`{}` reads a rollout, and {text} is none", callee.text),
                    )
                    .help("a rollout is what `generate` or `answer` gives"),
                );
            }
        };
        let sampled_at = self.origins[rollout.0 as usize].temperature;
        let temperature = match found.get(2).copied().flatten() {
            Some(e) => self.real(e, env, "temperature", (1e-6, 100.0))?,
            None if !distribution => 1.0,
            // A greedy rollout is scored at temperature 1.
            None => sampled_at.filter(|t| *t > 0.0).unwrap_or(1.0),
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
            let other = self.graph.model(model).name.clone();
            let outside = match output {
                ForwardOutput::Value | ForwardOutput::End => format!(
                    "`{other}` is trained in a block of its own: `train {other} {{ minimize … }}`; bound above `train` it is a constant"
                ),
                _ => "bind it above `train`: `name = …`".to_string(),
            };
            return self.fail(
                Diagnostic::error(
                    "E020",
                    span,
                    format!("{text} is a model call and needs a name of its own"),
                )
                .help(outside),
            );
        }
        let known = self.pass(&pass, live, scope);
        if let Some(v) = known.and_then(|f| output_of(f, output)) {
            let ty = self.graph.value(v).ty.clone();
            return Some(Val::Expr(self.emit(Op::Value(v), vec![], ty, span)));
        }
        let ty = self.output_type(rollout, output);
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
}

fn output_of(f: &Forward, output: ForwardOutput) -> Option<ValueId> {
    f.outputs
        .iter()
        .find(|(o, _)| *o == output)
        .map(|(_, v)| *v)
}
