//! Operators on text.

use crate::ast::{Arg, Name};
use crate::diag::Diagnostic;
use crate::graph::{Const, Elem, ExprRef, Op, TextOp, Type};
use crate::source::Span;

use super::args::must;
use super::{Env, Sema};

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
        TextOp::Concat => (Some("b"), Elem::Text),
    }
}

/// The last line of the engine's message, which says why; the lines before it draw the place.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_string()
}
