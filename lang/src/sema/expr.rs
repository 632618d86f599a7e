//! Expressions of the tree to expressions of the graph.

use crate::ast::{Expr, ExprKind, Name, UnaryOp};
use crate::diag::Diagnostic;
use crate::graph::{
    Elem, ExprRef, Forward, ForwardOutput, Member, NodeKind, Op, RolloutId, Type, Unary,
};

use super::{DEPTH, Env, Sema, Val, describe, nearest};

impl Sema<'_> {
    /// An expression that must be a value.
    pub(crate) fn expr(&mut self, e: &Expr, env: &mut Env) -> Option<ExprRef> {
        let val = self.val(e, env)?;
        self.as_expr(val, e)
    }

    fn as_expr(&mut self, val: Val, e: &Expr) -> Option<ExprRef> {
        let (what, help) = match val {
            Val::Expr(x) => return Some(x),
            Val::Poison => return None,
            Val::Axis(_) | Val::Axes(_) => (
                "an axis",
                "an axis can only be named to an operator, as in `mean(x, T)`",
            ),
            Val::Model(_) => ("a model", "`generate`, `logp` and `entropy` read models"),
            Val::Rollout(_) => (
                "a rollout",
                "its members are `.text`, `.logp` and `.finished`",
            ),
            Val::Prompt(_) => ("a prompt", "a prompt goes to `generate` or `answer`"),
        };
        let text = self.quote(e.span);
        self.fail(
            Diagnostic::error("E017", e.span, format!("{text} is {what}, not a value")).help(help),
        )
    }

    /// Whatever an expression stands for.
    pub(crate) fn val(&mut self, e: &Expr, env: &mut Env) -> Option<Val> {
        if !self.visit(e.span) {
            return None;
        }
        if self.depth >= DEPTH {
            return self.fail(
                Diagnostic::error("E015", e.span, "this expression nests too deeply")
                    .help("bind parts of it to names"),
            );
        }
        self.depth += 1;
        let val = self.kind(e, env);
        self.depth -= 1;
        self.note_value(e, &val);
        val
    }

    fn kind(&mut self, e: &Expr, env: &mut Env) -> Option<Val> {
        let value = match &e.kind {
            ExprKind::Number { value, .. } if !value.is_finite() => {
                return self.fail(Diagnostic::error(
                    "E017",
                    e.span,
                    "this number is larger than any that can be computed with",
                ));
            }
            ExprKind::Number { value, int } => self.number(*value, *int, e.span),
            ExprKind::Text(t) => self.emit(
                Op::Text(t.clone()),
                vec![],
                Type::scalar(Elem::Text),
                e.span,
            ),
            ExprKind::Bool(b) => self.emit(Op::Bool(*b), vec![], Type::scalar(Elem::Bool), e.span),
            ExprKind::Name(name) => return self.resolve(name, e.span, env),
            ExprKind::Paren(inner) => return self.val(inner, env),
            ExprKind::Call { callee, args, axes } => {
                return self.call(e.span, callee, args, axes, env);
            }
            ExprKind::Member { base, member } => {
                return match self.val(base, env)? {
                    Val::Rollout(r) => {
                        let x = self.member(r, &member.text, member.span)?;
                        self.note_val(member.span, None, &Val::Expr(x));
                        Some(Val::Expr(x))
                    }
                    Val::Expr(x) if self.is_value_of_states(x) => {
                        let end = self.state_member(x, member)?;
                        self.note_val(member.span, None, &Val::Expr(end));
                        Some(Val::Expr(end))
                    }
                    Val::Poison => None,
                    _ => {
                        let what = self.quote(base.span);
                        self.fail(Diagnostic::error(
                            "E010",
                            member.span,
                            format!(
                                "{what} has no member `{}`; only rollouts have members",
                                member.text
                            ),
                        ))
                    }
                };
            }
            ExprKind::Unary { op, operand } => {
                let x = self.expr(operand, env)?;
                self.unary(*op, x, operand, e)?
            }
            ExprKind::Binary {
                op, left, right, ..
            } => {
                self.impossible_case(*op, (left, right), env);
                // Both sides are read before giving up, so that both report.
                let a = self.expr(left, env);
                let b = self.expr(right, env);
                self.binary(*op, (a?, left.span), (b?, right.span), e.span)?
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                let c = self.expr(cond, env);
                let a = self.expr(then, env);
                let b = self.expr(otherwise, env);
                self.select(
                    (c?, cond.span),
                    (a?, then.span),
                    (b?, otherwise.span),
                    e.span,
                )?
            }
            ExprKind::List(_) => {
                return self
                    .axes_argument(e, env, None, "taken over")
                    .map(|axes| Val::Axes(axes.into_iter().map(|(a, _)| a).collect()));
            }
            ExprKind::Record(_) => {
                return self.fail(Diagnostic::error(
                    "E017",
                    e.span,
                    "a record is not a value here",
                ));
            }
            ExprKind::Range { .. } => {
                return self.fail(
                    Diagnostic::error("E017", e.span, "a range is not a value").help(
                        "ranges stand behind `in` of a `param` and in brackets such as `[T: ..64]`",
                    ),
                );
            }
            ExprKind::Bad => return None,
        };
        Some(Val::Expr(value))
    }

    /// Whether an expression is what `value` gave.
    fn is_value_of_states(&self, x: ExprRef) -> bool {
        let Op::Value(v) = self.graph.expr(x).op else {
            return false;
        };
        let gives = |f: &Forward| f.outputs.contains(&(ForwardOutput::Value, v));
        let live = self
            .live
            .as_ref()
            .is_some_and(|l| l.forwards.iter().any(gives));
        live || self
            .nodes
            .iter()
            .any(|n| matches!(&n.kind, NodeKind::Forward(f) if gives(f)))
    }

    /// `v.end`
    fn state_member(&mut self, x: ExprRef, member: &Name) -> Option<ExprRef> {
        let Op::Value(v) = self.graph.expr(x).op else {
            return None;
        };
        if member.text == "end" {
            return self.value_end(v, member.span);
        }
        let message = format!("what `value` gives has no member `{}`", member.text);
        self.fail(
            Diagnostic::error("E010", member.span, message)
                .help("its member `.end` is the value after the last token")
                .fix("use `end`", vec![(member.span, "end".into())]),
        )
    }

    fn unary(&mut self, op: UnaryOp, x: ExprRef, operand: &Expr, e: &Expr) -> Option<ExprRef> {
        let (op, ok, wants) = match op {
            UnaryOp::Neg => (Unary::Neg, self.is_number(x), "a number"),
            UnaryOp::Not => (Unary::Not, self.elem(x) == Elem::Bool, "a truth value"),
        };
        if !ok {
            let sign = if op == Unary::Neg { "-" } else { "not" };
            return self.wrong_type(&format!("`{sign}`"), wants, x, operand.span);
        }
        let ty = self.ty(x).clone();
        Some(self.emit(Op::Unary(op), vec![x], ty, e.span))
    }

    pub(crate) fn is_number(&self, x: ExprRef) -> bool {
        matches!(self.elem(x), Elem::Float | Elem::Int)
    }

    /// `exp` takes numbers; `roll.text` is text.
    pub(crate) fn wrong_type<T>(
        &mut self,
        operator: &str,
        wants: &str,
        got: ExprRef,
        span: crate::source::Span,
    ) -> Option<T> {
        let what = self.quote(span);
        let is = describe(self.elem(got));
        let mut d = Diagnostic::error(
            "E017",
            span,
            format!("{operator} takes {wants}, and {what} is {is}"),
        );
        d = match (self.elem(got), wants) {
            (Elem::Bool, "a number") => {
                d.help("a truth value becomes 0 or 1 only through `if … then 1 else 0`, `mean`, `sum` or `count`")
            }
            (Elem::Text, "a number") => {
                d.help("`number(…)` and `last_number(…)` read a number from text")
            }
            (Elem::Float | Elem::Int | Elem::Chat, "text" | "text or a chat") => {
                d.help("a column that holds text is declared `text`")
            }
            _ => d,
        };
        self.fail(d)
    }

    pub(crate) fn need_number(
        &mut self,
        operator: &str,
        x: ExprRef,
        span: crate::source::Span,
    ) -> Option<()> {
        if self.is_number(x) {
            return Some(());
        }
        self.wrong_type(&format!("`{operator}`"), "a number", x, span)
    }

    /// `roll.text`, produced from now on.
    pub(crate) fn member(
        &mut self,
        r: RolloutId,
        name: &str,
        span: crate::source::Span,
    ) -> Option<ExprRef> {
        let rollout = self.graph.rollout(r).clone();
        let sampled = self.origins[r.0 as usize].temperature.is_some();
        let fixed = [Some(rollout.rows), rollout.over, rollout.group];
        let mut axes: Vec<_> = fixed.into_iter().flatten().collect();
        let (member, elem) = match name {
            "text" => (Member::Text, Elem::Text),
            "finished" => (Member::Finished, Elem::Bool),
            "assistant" if self.of_messages(r) => {
                axes.push(rollout.tokens);
                (Member::Assistant, Elem::Bool)
            }
            "assistant" => {
                let message = format!("the responses of `{}` are no messages", rollout.name);
                return self.fail(Diagnostic::error("E010", span, message).help(
                    "`answer(messages)` of a chat tells the assistant's tokens from the others",
                ));
            }
            "logp" if sampled => {
                axes.push(rollout.tokens);
                (Member::Logp, Elem::Float)
            }
            "logp" => {
                return self.fail(
                    Diagnostic::error(
                        "E010",
                        span,
                        format!("`{}` was not sampled, so it has no `logp`", rollout.name),
                    )
                    .help(format!(
                        "`logp(m, {})` scores it with a model",
                        rollout.name
                    )),
                );
            }
            _ => {
                let mut d =
                    Diagnostic::error("E010", span, format!("a rollout has no member `{name}`"));
                let members = ["text", "logp", "finished", "assistant"];
                d = match nearest(name, members.into_iter()) {
                    Some(near) => d
                        .help(format!("a similar one: `{near}`"))
                        .guess(format!("use `{near}`"), vec![(span, near.to_string())]),
                    None => d.help("the members are `text`, `logp`, `finished` and `assistant`"),
                };
                return self.fail(d);
            }
        };
        let ty = Type { elem, axes };
        let node = self.origins[r.0 as usize].node;
        let known = self.members(node).iter().find(|(m, _)| *m == member);
        let value = match known {
            Some((_, v)) => *v,
            None => {
                let at = self.nodes[node].span;
                let v = self.value(&format!("{}.{name}", rollout.name), ty.clone(), at);
                self.add_member(node, member, v);
                v
            }
        };
        Some(self.emit(Op::Value(value), vec![], ty, span))
    }
}
