//! Operators on text and on conversations.

use crate::ast::{Arg, Name};
use crate::diag::Diagnostic;
use crate::graph::{Const, Elem, ExprRef, Op, TextOp, Type};
use crate::source::Span;

use super::args::{label, must};
use super::{Env, Sema, Val, describe};

impl Sema<'_> {
    /// `contains(x, part)` and its like.
    pub(crate) fn text_operator(
        &mut self,
        op: TextOp,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let name = callee.text.as_str();
        let (second, elem) = signature(op);
        let mut slots = vec![must("x")];
        slots.extend(second.map(must));
        let found = self.arguments("E016", callee, args, &slots)?;
        let mut operands = vec![];
        for f in &found {
            let (x, at) = self.operand(*f, env)?;
            if self.elem(x) != Elem::Text {
                return self.wrong_type(&format!("`{name}`"), "text", x, at);
            }
            operands.push((x, at));
        }
        if matches!(op, TextOp::Matches | TextOp::Extract) {
            let (x, at) = operands[1];
            let Some(Const::Text(pattern)) = self.as_const(x) else {
                let what = self.quote(at);
                return self.fail(Diagnostic::error(
                    "E018",
                    at,
                    format!("the regular expression of `{name}` must be known before the run, and {what} is computed in it"),
                ));
            };
            if let Err(error) = regex::Regex::new(&pattern) {
                let why = reason(&error);
                return self.fail(
                    Diagnostic::error(
                        "E041",
                        at,
                        format!("this regular expression does not parse: {why}"),
                    )
                    .help(
                        "a character with a meaning stands for itself behind `\\\\`, as in `\\\\(`",
                    ),
                );
            }
        }
        let axes = self.join(&mut operands, span)?;
        let args = operands.iter().map(|(x, _)| *x).collect();
        Some(self.emit(Op::OnText(op), args, Type { elem, axes }, span))
    }
}

impl Sema<'_> {
    /// `common_prefix(chosen, rejected)`, `remove_prefix(chosen, prompt)`: of two texts, or of two
    /// conversations.
    pub(crate) fn prefix_operator(
        &mut self,
        op: TextOp,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let name = format!("`{}`", callee.text);
        let second = match op {
            TextOp::RemovePrefix => "prefix",
            _ => "y",
        };
        let found = self.arguments("E016", callee, args, &[must("x"), must(second)])?;
        let (x, at) = self.operand(found[0], env)?;
        let (y, other) = self.operand(found[1], env)?;
        let elem = self.elem(x);
        if !matches!(elem, Elem::Text | Elem::Chat) {
            return self.wrong_type(&name, "text or a chat", x, at);
        }
        if self.elem(y) != elem {
            let second = match elem {
                Elem::Chat => "a second chat",
                _ => "a second text",
            };
            return self.wrong_type(&name, second, y, other);
        }
        let mut operands = vec![(x, at), (y, other)];
        let axes = self.join(&mut operands, span)?;
        let args = operands.iter().map(|(x, _)| *x).collect();
        Some(self.emit(Op::OnText(op), args, Type { elem, axes }, span))
    }

    /// `opening(messages)`
    pub(crate) fn opening(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let found = self.arguments("E016", callee, args, &[must("x")])?;
        let (x, at) = self.operand(found[0], env)?;
        if self.elem(x) != Elem::Chat {
            return self.wrong_type("`opening`", "a chat", x, at);
        }
        Some(self.on_chat(TextOp::Opening, vec![x], span))
    }

    /// `chat(question)`, `chat(question, system: "…")`
    pub(crate) fn prompt(
        &mut self,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<Val> {
        let slots = [must("message"), label("system")];
        let found = self.arguments("E016", callee, args, &slots)?;
        let (x, at) = self.operand(found[0], env)?;
        match (self.elem(x), found[1]) {
            (Elem::Text | Elem::Chat, None) => Some(Val::Prompt(x)),
            (Elem::Text | Elem::Chat, Some(system)) => {
                let (s, place) = self.operand(Some(system), env)?;
                if self.elem(s) != Elem::Text {
                    return self.wrong_type("`system` of `chat`", "text", s, place);
                }
                let mut operands = vec![(s, place), (x, at)];
                let axes = self.join(&mut operands, span)?;
                let args = operands.iter().map(|(x, _)| *x).collect();
                let elem = Elem::Chat;
                let op = Op::OnText(TextOp::System);
                Some(Val::Prompt(self.emit(op, args, Type { elem, axes }, span)))
            }
            (other, _) => {
                let what = self.quote(at);
                let is = describe(other);
                self.fail(Diagnostic::error(
                    "E017",
                    at,
                    format!("`chat` takes text or a chat, and {what} is {is}"),
                ))
            }
        }
    }

    /// An operation that makes a conversation over the axes of its first operand.
    pub(crate) fn on_chat(&mut self, op: TextOp, args: Vec<ExprRef>, span: Span) -> ExprRef {
        let ty = Type {
            elem: Elem::Chat,
            axes: self.ty(args[0]).axes.clone(),
        };
        self.emit(Op::OnText(op), args, ty, span)
    }
}

/// The second argument's name, if there is one, and what comes out.
fn signature(op: TextOp) -> (Option<&'static str>, Elem) {
    match op {
        TextOp::Contains => (Some("part"), Elem::Bool),
        TextOp::StartsWith => (Some("prefix"), Elem::Bool),
        TextOp::EndsWith => (Some("suffix"), Elem::Bool),
        TextOp::Matches => (Some("regex"), Elem::Bool),
        TextOp::Extract => (Some("regex"), Elem::Text),
        TextOp::Number | TextOp::LastNumber => (None, Elem::Float),
        TextOp::Trim | TextOp::Lower | TextOp::Upper => (None, Elem::Text),
        TextOp::Words | TextOp::Chars => (None, Elem::Int),
        TextOp::Concat | TextOp::CommonPrefix | TextOp::RemovePrefix => (Some("b"), Elem::Text),
        TextOp::Opening => (None, Elem::Chat),
        TextOp::System => (Some("message"), Elem::Chat),
    }
}

/// The last line of the engine's message, which says why; the lines before it draw the place.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_string()
}
