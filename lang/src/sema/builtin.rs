//! The operators that are written as calls.

use crate::ast::{Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{
    AxisId, AxisSize, Binary, Const, Elem, ExprRef, ForwardOutput, Op, Reduce, TextOp, Type, Unary,
};
use crate::source::Span;

use super::args::{label, may, must};
use super::{Env, Sema, Val};

/// What a built-in name does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Builtin {
    Unary(Unary),
    Reduce(Reduce),
    Clamp,
    Stop,
    Shift,
    End(bool),
    AtLast,
    Scan(bool),
    Len,
    Index,
    Pick,
    Top,
    Text(TextOp),
    /// On texts or on conversations.
    Prefix(TextOp),
    Opening,
    Chat,
    Generate,
    Answer,
    /// One output of a pass over a rollout.
    Pass(ForwardOutput),
    /// Of two models, behind `next`.
    Lerp,
}

/// Every built-in name.
pub(crate) const NAMES: &[&str] = &[
    "exp",
    "log",
    "log1p",
    "expm1",
    "abs",
    "sqrt",
    "sigmoid",
    "log_sigmoid",
    "softplus",
    "relu",
    "tanh",
    "sign",
    "floor",
    "ceil",
    "round",
    "mean",
    "sum",
    "std",
    "var",
    "min",
    "max",
    "any",
    "all",
    "count",
    "argmax",
    "clamp",
    "stop",
    "shift",
    "first",
    "last",
    "at_last",
    "suffix_sum",
    "prefix_sum",
    "len",
    "index",
    "pick",
    "contains",
    "starts_with",
    "ends_with",
    "matches",
    "extract",
    "number",
    "last_number",
    "trim",
    "lower",
    "upper",
    "words",
    "chars",
    "common_prefix",
    "remove_prefix",
    "opening",
    "chat",
    "generate",
    "answer",
    "logp",
    "entropy",
    "value",
    "score",
    "top",
    "lerp",
];

/// What a name does as a call.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    use Builtin as B;
    Some(match name {
        "exp" => B::Unary(Unary::Exp),
        "log" => B::Unary(Unary::Log),
        "log1p" => B::Unary(Unary::Log1p),
        "expm1" => B::Unary(Unary::Expm1),
        "abs" => B::Unary(Unary::Abs),
        "sqrt" => B::Unary(Unary::Sqrt),
        "sigmoid" => B::Unary(Unary::Sigmoid),
        "log_sigmoid" => B::Unary(Unary::LogSigmoid),
        "softplus" => B::Unary(Unary::Softplus),
        "relu" => B::Unary(Unary::Relu),
        "tanh" => B::Unary(Unary::Tanh),
        "sign" => B::Unary(Unary::Sign),
        "floor" => B::Unary(Unary::Floor),
        "ceil" => B::Unary(Unary::Ceil),
        "round" => B::Unary(Unary::Round),
        "mean" => B::Reduce(Reduce::Mean),
        "sum" => B::Reduce(Reduce::Sum),
        "std" => B::Reduce(Reduce::Std),
        "var" => B::Reduce(Reduce::Var),
        "min" => B::Reduce(Reduce::Min),
        "max" => B::Reduce(Reduce::Max),
        "any" => B::Reduce(Reduce::Any),
        "all" => B::Reduce(Reduce::All),
        "count" => B::Reduce(Reduce::Count),
        "argmax" => B::Reduce(Reduce::Argmax),
        "clamp" => B::Clamp,
        "stop" => B::Stop,
        "shift" => B::Shift,
        "first" => B::End(false),
        "last" => B::End(true),
        "at_last" => B::AtLast,
        "suffix_sum" => B::Scan(true),
        "prefix_sum" => B::Scan(false),
        "len" => B::Len,
        "index" => B::Index,
        "pick" => B::Pick,
        "contains" => B::Text(TextOp::Contains),
        "starts_with" => B::Text(TextOp::StartsWith),
        "ends_with" => B::Text(TextOp::EndsWith),
        "matches" => B::Text(TextOp::Matches),
        "extract" => B::Text(TextOp::Extract),
        "number" => B::Text(TextOp::Number),
        "last_number" => B::Text(TextOp::LastNumber),
        "trim" => B::Text(TextOp::Trim),
        "lower" => B::Text(TextOp::Lower),
        "upper" => B::Text(TextOp::Upper),
        "words" => B::Text(TextOp::Words),
        "chars" => B::Text(TextOp::Chars),
        "common_prefix" => B::Prefix(TextOp::CommonPrefix),
        "remove_prefix" => B::Prefix(TextOp::RemovePrefix),
        "opening" => B::Opening,
        "chat" => B::Chat,
        "generate" => B::Generate,
        "answer" => B::Answer,
        "logp" => B::Pass(ForwardOutput::Logp),
        "entropy" => B::Pass(ForwardOutput::Entropy),
        "value" => B::Pass(ForwardOutput::Value),
        "score" => B::Pass(ForwardOutput::Score),
        "top" => B::Top,
        "lerp" => B::Lerp,
        _ => return None,
    })
}

impl Sema<'_> {
    /// A built-in operator other than the verbs.
    pub(crate) fn operator(
        &mut self,
        b: Builtin,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let name = callee.text.as_str();
        match b {
            Builtin::Unary(op) => {
                let found = self.arguments("E016", callee, args, &[must("x")])?;
                let (x, at) = self.operand(found[0], env)?;
                self.need_number(name, x, at)?;
                let elem = match op {
                    Unary::Abs | Unary::Relu => self.elem(x),
                    Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => Elem::Int,
                    _ => Elem::Float,
                };
                let axes = self.ty(x).axes.clone();
                Some(self.emit(Op::Unary(op), vec![x], Type { elem, axes }, span))
            }
            Builtin::Stop => {
                let found = self.arguments("E016", callee, args, &[must("x")])?;
                let (x, at) = self.operand(found[0], env)?;
                self.need_number(name, x, at)?;
                let ty = self.ty(x).clone();
                Some(self.emit(Op::Stop, vec![x], ty, span))
            }
            Builtin::Clamp => {
                let slots = [must("x"), must("lo"), must("hi")];
                let found = self.arguments("E016", callee, args, &slots)?;
                let mut operands = vec![];
                for f in found {
                    let (x, at) = self.operand(f, env)?;
                    self.need_number(name, x, at)?;
                    operands.push((x, at));
                }
                self.limits(operands[1], operands[2])?;
                let axes = self.join(&mut operands, span)?;
                let elem = self.wider(operands[0].0, operands[1].0);
                let elem = if elem == Elem::Int {
                    self.elem(operands[2].0)
                } else {
                    elem
                };
                let args = operands.iter().map(|(x, _)| *x).collect();
                Some(self.emit(Op::Clamp, args, Type { elem, axes }, span))
            }
            Builtin::Reduce(op) => self.reduction(op, span, callee, args, env),
            Builtin::Text(op) => self.text_operator(op, span, callee, args, env),
            Builtin::Prefix(op) => self.prefix_operator(op, span, callee, args, env),
            Builtin::Opening => self.opening(span, callee, args, env),
            Builtin::Lerp => {
                let d = Diagnostic::error("E025", span, "`lerp` cannot stand here");
                self.fail(d.help(
                    "it blends models behind `next`: `next anchor = lerp(anchor, policy, 0.01)`",
                ))
            }
            _ => self.sequence(b, span, callee, args, env),
        }
    }

    /// The lower limit of `clamp` is not above the upper one.
    fn limits(&mut self, lo: (ExprRef, Span), hi: (ExprRef, Span)) -> Option<()> {
        let number = |x: ExprRef| match self.as_const(x) {
            Some(Const::Float(v)) => Some(v),
            Some(Const::Int(v)) => Some(v as f64),
            _ => None,
        };
        match (number(lo.0), number(hi.0)) {
            (Some(low), Some(high)) if low > high => self.fail(
                Diagnostic::error(
                    "E018",
                    hi.1,
                    format!("the upper limit {high} of `clamp` is below the lower limit {low}"),
                )
                .label(lo.1, "the lower limit")
                .help("as in `clamp(x, lo, hi)`: the lower one first"),
            ),
            _ => Some(()),
        }
    }

    pub(crate) fn operand(&mut self, e: Option<&Expr>, env: &mut Env) -> Option<(ExprRef, Span)> {
        let e = e?;
        Some((self.expr(e, env)?, e.span))
    }

    /// `mean(x, T)`, and `min(a, b)` when `b` is not an axis.
    fn reduction(
        &mut self,
        op: Reduce,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let name = callee.text.as_str();
        let pairwise = match op {
            Reduce::Min => Some(Binary::Min),
            Reduce::Max => Some(Binary::Max),
            _ => None,
        };
        if let Some(op) = pairwise
            && let [_, second] = args
            && second.label.is_none()
            && !names_axes(&second.value, env)
        {
            let found = self.arguments("E016", callee, args, &[must("a"), must("b")])?;
            let a = self.operand(found[0], env);
            let b = self.operand(found[1], env);
            let (a, b) = (a?, b?);
            for x in [a, b] {
                self.need_number(name, x.0, x.1)?;
            }
            let elem = self.wider(a.0, b.0);
            return self.pair(op, a, b, elem, span);
        }
        let mut slots = vec![must("x"), may("axes")];
        if matches!(op, Reduce::Std | Reduce::Var) {
            slots.push(label("biased"));
        }
        let found = self.arguments("E016", callee, args, &slots)?;
        let (x, at) = self.operand(found[0], env)?;
        let elem = self.reduced(op, name, x, at)?;
        let biased = match found.get(2).copied().flatten() {
            Some(e) => self.truth_of(e, env, "biased")?,
            None => false,
        };
        let x = match found[1] {
            Some(e) => self.narrow_to_named(x, e, env),
            None => x,
        };
        let all = self.ty(x).axes.clone();
        let axes: Vec<AxisId> = match found[1] {
            Some(e) => {
                let named = self.axes_argument(e, env, Some((x, at)), "reduced over")?;
                named.into_iter().map(|(a, _)| a).collect()
            }
            None => all.clone(),
        };
        let axes = self.ordered(axes);
        let kept: Vec<AxisId> = all.into_iter().filter(|a| !axes.contains(a)).collect();
        self.keeps_parents(&axes, &kept, at, span)?;
        if op == Reduce::Argmax {
            self.one_fixed(name, &axes, span)?;
        }
        let alone = pairwise.is_some() && found[1].is_none() && self.as_const(x).is_some();
        if axes.is_empty() && !alone && !matches!(op, Reduce::Count | Reduce::Std | Reduce::Var) {
            // One number is its own mean.
            return Some(x);
        }
        if axes.is_empty() {
            let what = self.quote(at);
            let d = Diagnostic::error(
                "E030",
                span,
                format!("{what} is one number, so `{name}` has nothing to range over"),
            );
            return self.fail(match pairwise {
                Some(_) => d.help(format!(
                    "`{name}(a, b)` chooses between two; `{name}(x, T)` along an axis"
                )),
                None => d,
            });
        }
        let op = Op::Reduce { op, axes, biased };
        Some(self.emit(op, vec![x], Type { elem, axes: kept }, span))
    }

    /// The element type of a reduction.
    fn reduced(&mut self, op: Reduce, name: &str, x: ExprRef, at: Span) -> Option<Elem> {
        let (is, number) = (self.elem(x), self.is_number(x));
        match op {
            Reduce::Any | Reduce::All if is == Elem::Bool => Some(Elem::Bool),
            Reduce::Any | Reduce::All => {
                self.wrong_type(&format!("`{name}`"), "a truth value", x, at)
            }
            Reduce::Count if number || is == Elem::Bool => Some(Elem::Int),
            Reduce::Mean if is == Elem::Bool => Some(Elem::Float),
            Reduce::Sum if is == Elem::Bool => Some(Elem::Int),
            _ if !number => self.wrong_type(&format!("`{name}`"), "a number", x, at),
            Reduce::Sum | Reduce::Min | Reduce::Max => Some(is),
            Reduce::Argmax => Some(Elem::Int),
            _ => Some(Elem::Float),
        }
    }

    /// Operators along one axis.
    fn sequence(
        &mut self,
        b: Builtin,
        span: Span,
        callee: &Name,
        args: &[Arg],
        env: &mut Env,
    ) -> Option<ExprRef> {
        let name = callee.text.as_str();
        let slots = match b {
            Builtin::Index => vec![must("axis")],
            Builtin::Shift => vec![must("x"), must("axis"), may("by"), may("fill")],
            Builtin::Scan(_) => vec![must("x"), must("axis"), may("decay")],
            _ => vec![must("x"), must("axis")],
        };
        let found = self.arguments("E016", callee, args, &slots)?;
        if b == Builtin::Index {
            let axis = self.sequence_axis(found[0]?, env, None, name)?;
            return Some(self.index(axis, span));
        }
        if b == Builtin::Len
            && let Some(Val::Rollout(r)) = self.rollout_argument(found[0]?, env)
        {
            return self.rollout_length(r, found[0]?.span, found[1]?, env, span);
        }
        let (x, at) = self.operand(found[0], env)?;
        let axes = self.ty(x).axes.clone();
        let without =
            |axis| -> Vec<AxisId> { axes.iter().copied().filter(|a| *a != axis).collect() };
        if b != Builtin::Len {
            self.need_number(name, x, at)?;
        }
        if b == Builtin::AtLast {
            let axis = self.sequence_axis(found[1]?, env, None, name)?;
            if axes.contains(&axis) {
                let what = self.quote(at);
                let t = self.axis_name(axis).to_string();
                return self.fail(Diagnostic::error(
                    "E036",
                    at,
                    format!("`at_last` puts one number a response on its last token, and {what} has `{t}` already"),
                ));
            }
            let i = self.index(axis, span);
            let mut operands = [(x, at), (i, span)];
            let axes = self.join(&mut operands, span)?;
            // Over a part of the rows the tokens are those of the part.
            let axis = axes
                .iter()
                .copied()
                .find(|a| self.is_ragged(*a))
                .unwrap_or(axis);
            let ty = Type {
                elem: self.elem(x),
                axes,
            };
            return Some(self.emit(Op::AtLast(axis), vec![operands[0].0], ty, span));
        }
        let axis = self.sequence_axis(found[1]?, env, Some((x, at)), name)?;
        let elem = self.elem(x);
        Some(match b {
            Builtin::Len => {
                let ty = Type {
                    elem: Elem::Int,
                    axes: without(axis),
                };
                self.emit(Op::Len(axis), vec![x], ty, span)
            }
            Builtin::End(last) => {
                let op = if last {
                    Op::Last(axis)
                } else {
                    Op::First(axis)
                };
                let ty = Type {
                    elem,
                    axes: without(axis),
                };
                self.emit(op, vec![x], ty, span)
            }
            Builtin::Scan(suffix) => {
                let decay = match found[2] {
                    Some(_) => self.operand(found[2], env)?,
                    None => (self.number(1.0, true, span), span),
                };
                self.need_number(name, decay.0, decay.1)?;
                let op = if suffix {
                    Op::SuffixSum(axis)
                } else {
                    Op::PrefixSum(axis)
                };
                let mut operands = [(x, at), decay];
                let axes = self.join(&mut operands, span)?;
                let elem = self.wider(x, decay.0);
                let op = self.along(op, &axes);
                let [(x, _), (decay, _)] = operands;
                self.emit(op, vec![x, decay], Type { elem, axes }, span)
            }
            _ => {
                let by = match found[2] {
                    Some(e) => {
                        let by = self.real(e, env, "by", (-1e9, 1e9))?;
                        if by.fract() != 0.0 {
                            return self.bad_option(e, "by", "a whole number");
                        }
                        by as i64
                    }
                    None => 1,
                };
                let fill = match found[3] {
                    Some(_) => self.operand(found[3], env)?,
                    None => (self.number(0.0, true, span), span),
                };
                self.need_number(name, fill.0, fill.1)?;
                let mut operands = [(x, at), fill];
                let axes = self.join(&mut operands, span)?;
                let elem = self.wider(x, fill.0);
                let op = self.along(Op::Shift { axis, by }, &axes);
                let [(x, _), (fill, _)] = operands;
                self.emit(op, vec![x, fill], Type { elem, axes }, span)
            }
        })
    }

    /// A sequence operator along the ragged axis of its result: over a part of the rows the tokens are
    /// those of the part.
    fn along(&self, op: Op, axes: &[AxisId]) -> Op {
        let Some(axis) = axes.iter().copied().find(|a| self.is_ragged(*a)) else {
            return op;
        };
        match op {
            Op::SuffixSum(_) => Op::SuffixSum(axis),
            Op::PrefixSum(_) => Op::PrefixSum(axis),
            Op::Shift { by, .. } => Op::Shift { axis, by },
            op => op,
        }
    }

    pub(crate) fn index(&mut self, axis: AxisId, span: Span) -> ExprRef {
        let mut axes = self.graph.axis(axis).parents.clone();
        axes.push(axis);
        let ty = Type {
            elem: Elem::Int,
            axes,
        };
        self.emit(Op::Index(axis), vec![], ty, span)
    }

    /// The rollout an argument names, without complaint when it is something else.
    fn rollout_argument(&mut self, e: &Expr, env: &mut Env) -> Option<Val> {
        let ExprKind::Name(name) = &e.kind else {
            return None;
        };
        let local = env.find(name)?;
        if !matches!(local.val, Val::Rollout(_)) {
            return None;
        }
        local.used = true;
        Some(local.val.clone())
    }

    /// `len(roll, T)`
    fn rollout_length(
        &mut self,
        r: crate::graph::RolloutId,
        at: Span,
        axis: &Expr,
        env: &mut Env,
        span: Span,
    ) -> Option<ExprRef> {
        let tokens = self.graph.rollout(r).tokens;
        let index = self.index(tokens, at);
        let named = self.sequence_axis(axis, env, Some((index, at)), "len")?;
        let mut axes = self.ty(index).axes.clone();
        axes.retain(|a| *a != named);
        let ty = Type {
            elem: Elem::Int,
            axes,
        };
        Some(self.emit(Op::Len(named), vec![index], ty, span))
    }

    /// True for an axis of fixed size.
    pub(crate) fn fixed_size(&self, a: AxisId) -> Option<usize> {
        match self.graph.axis(a).size {
            AxisSize::Fixed(n) => Some(n),
            _ => None,
        }
    }
}

/// Whether an argument is written as axes.
fn names_axes(e: &Expr, env: &mut Env) -> bool {
    match &e.kind {
        ExprKind::List(_) => true,
        ExprKind::Paren(inner) => names_axes(inner, env),
        ExprKind::Name(name) => env
            .find(name)
            .is_some_and(|l| matches!(l.val, Val::Axis(_) | Val::Axes(_))),
        _ => false,
    }
}
