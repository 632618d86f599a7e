//! Calls of external rewards.

use crate::ast::{Arg, Name};
use crate::diag::Diagnostic;
use crate::graph::{Elem, ExprRef, Node, NodeKind, Op, RewardId, Type};
use crate::source::Span;

use super::args::must;
use super::{Env, Sema, describe};

impl Sema<'_> {
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
            let fits = is == *wants
                // A text is a message of a chat.
                || matches!((is, *wants), (Elem::Int, Elem::Float) | (Elem::Text, Elem::Chat));
            if !fits {
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
        let axes = self.join(&mut operands, span)?;
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
}
