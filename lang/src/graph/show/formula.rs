//! Expressions as the language writes them.

use crate::graph::{AxisId, AxisSize, Binary, ExprRef, Graph, Op, Reduce, TextOp, Unary};

/// Beyond this many operations an expression ends in `…`: shared parts are written out, so a formula
/// can be far longer than the expression it shows.
const LENGTH: usize = 80;

/// An expression as text; values appear by their names.
pub fn formula(graph: &Graph, e: ExprRef) -> String {
    let mut writer = Writer {
        graph,
        left: LENGTH,
    };
    writer.write(e, 0)
}

struct Writer<'g> {
    graph: &'g Graph,
    left: usize,
}

impl Writer<'_> {
    /// `outer` is how tightly the surroundings bind; a looser operator gets parentheses.
    fn write(&mut self, e: ExprRef, outer: u8) -> String {
        if self.left == 0 {
            return "…".into();
        }
        self.left -= 1;
        let expr = self.graph.expr(e);
        let args = &expr.args;
        match &expr.op {
            Op::Number(v) => number(*v),
            Op::Bool(b) => b.to_string(),
            Op::Text(t) => format!("{t:?}"),
            Op::Value(v) => self.graph.value(*v).name.clone(),
            Op::State(s) => self.graph.states[s.0 as usize].name.clone(),
            Op::Iteration => "iteration".into(),
            Op::Iterations => "iterations".into(),
            Op::Unary(Unary::Neg) => {
                let x = self.write(args[0], 7);
                parens(format!("-{x}"), 6, outer)
            }
            Op::Unary(Unary::Not) => {
                let x = self.write(args[0], 7);
                parens(format!("not {x}"), 6, outer)
            }
            Op::Unary(u) => self.call(unary(*u), args, &[]),
            Op::Binary(b) => self.binary(*b, args[0], args[1], outer),
            Op::Select => {
                let c = self.write(args[0], 0);
                let a = self.write(args[1], 0);
                let b = self.write(args[2], 0);
                parens(format!("if {c} then {a} else {b}"), 0, outer.min(1))
            }
            Op::Clamp => self.call("clamp", args, &[]),
            Op::Stop => self.call("stop", args, &[]),
            Op::Reduce { op, axes, biased } => {
                let mut extra = vec![self.axes(axes)];
                if *biased {
                    extra.push("biased: true".into());
                }
                self.call(reduce(*op), args, &extra)
            }
            Op::Shift { axis, by } => {
                let fill = self.write(args[1], 0);
                let extra = [
                    self.axis(*axis),
                    format!("by: {by}"),
                    format!("fill: {fill}"),
                ];
                self.call("shift", &args[..1], &extra)
            }
            Op::First(a) => self.call("first", args, &[self.axis(*a)]),
            Op::Last(a) => self.call("last", args, &[self.axis(*a)]),
            Op::AtLast(a) => self.call("at_last", args, &[self.axis(*a)]),
            Op::SuffixSum(a) | Op::PrefixSum(a) => {
                let name = match expr.op {
                    Op::SuffixSum(_) => "suffix_sum",
                    _ => "prefix_sum",
                };
                let decay = self.write(args[1], 0);
                let extra = [self.axis(*a), format!("decay: {decay}")];
                self.call(name, &args[..1], &extra)
            }
            Op::Len(a) => self.call("len", args, &[self.axis(*a)]),
            Op::Index(a) => format!("index({})", self.axis(*a)),
            Op::Pick(a) => {
                let index = self.write(args[1], 0);
                self.call("pick", &args[..1], &[self.axis(*a), index])
            }
            Op::Top { axis, into } => {
                let by = self.write(args[1], 0);
                let mut extra = vec![self.axis(*axis), format!("by: {by}")];
                if let AxisSize::Fixed(k) = self.graph.axis(*into).size {
                    extra.push(format!("k: {k}"));
                }
                self.call("top", &args[..1], &extra)
            }
            // The axis of the result says it already.
            Op::Restrict(_) => self.write(args[0], outer),
            Op::OnText(TextOp::Concat) => self.binary(Binary::Add, args[0], args[1], outer),
            Op::OnText(t) => self.call(on_text(*t), args, &[]),
        }
    }

    fn binary(&mut self, op: Binary, a: ExprRef, b: ExprRef, outer: u8) -> String {
        let (sign, level) = match op {
            Binary::Min => return self.call("min", &[a, b], &[]),
            Binary::Max => return self.call("max", &[a, b], &[]),
            Binary::Or => ("or", 1),
            Binary::And => ("and", 2),
            Binary::Eq => ("==", 3),
            Binary::Ne => ("!=", 3),
            Binary::Lt => ("<", 3),
            Binary::Le => ("<=", 3),
            Binary::Gt => (">", 3),
            Binary::Ge => (">=", 3),
            Binary::Add => ("+", 4),
            Binary::Sub => ("-", 4),
            Binary::Mul => ("*", 5),
            Binary::Div => ("/", 5),
            Binary::Rem => ("%", 5),
            Binary::Pow => ("^", 8),
        };
        // `^` groups to the right, the others to the left.
        let right = u8::from(op == Binary::Pow);
        let x = self.write(a, level + right);
        let y = self.write(b, level + 1 - right);
        parens(format!("{x} {sign} {y}"), level, outer)
    }

    fn call(&mut self, name: &str, args: &[ExprRef], extra: &[String]) -> String {
        let mut parts: Vec<String> = args.iter().map(|a| self.write(*a, 0)).collect();
        parts.extend_from_slice(extra);
        format!("{name}({})", parts.join(", "))
    }

    fn axis(&self, a: AxisId) -> String {
        self.axes(&[a])
    }

    fn axes(&self, axes: &[AxisId]) -> String {
        let names: Vec<&str> = axes
            .iter()
            .map(|a| match self.graph.axis(*a).name.as_str() {
                "" => "rows",
                name => name,
            })
            .collect();
        match &names[..] {
            [one] => one.to_string(),
            many => format!("[{}]", many.join(", ")),
        }
    }
}

fn parens(text: String, level: u8, outer: u8) -> String {
    if level < outer {
        return format!("({text})");
    }
    text
}

fn number(v: f64) -> String {
    if v != 0.0 && (v.abs() < 1e-3 || v.abs() >= 1e9) {
        return format!("{v:e}");
    }
    format!("{v}")
}

fn unary(u: Unary) -> &'static str {
    match u {
        Unary::Neg => "-",
        Unary::Not => "not",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Log1p => "log1p",
        Unary::Expm1 => "expm1",
        Unary::Abs => "abs",
        Unary::Sqrt => "sqrt",
        Unary::Sigmoid => "sigmoid",
        Unary::LogSigmoid => "log_sigmoid",
        Unary::Softplus => "softplus",
        Unary::Relu => "relu",
        Unary::Tanh => "tanh",
        Unary::Sign => "sign",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
        Unary::Round => "round",
    }
}

fn reduce(r: Reduce) -> &'static str {
    match r {
        Reduce::Mean => "mean",
        Reduce::Sum => "sum",
        Reduce::Std => "std",
        Reduce::Var => "var",
        Reduce::Min => "min",
        Reduce::Max => "max",
        Reduce::Any => "any",
        Reduce::All => "all",
        Reduce::Count => "count",
        Reduce::Argmax => "argmax",
    }
}

fn on_text(t: TextOp) -> &'static str {
    match t {
        TextOp::Contains => "contains",
        TextOp::StartsWith => "starts_with",
        TextOp::EndsWith => "ends_with",
        TextOp::Matches => "matches",
        TextOp::Extract => "extract",
        TextOp::Number => "number",
        TextOp::LastNumber => "last_number",
        TextOp::Trim => "trim",
        TextOp::Lower => "lower",
        TextOp::Upper => "upper",
        TextOp::Words => "words",
        TextOp::Chars => "chars",
        TextOp::Concat => "+",
        TextOp::CommonPrefix => "common_prefix",
        TextOp::RemovePrefix => "remove_prefix",
        TextOp::Opening => "opening",
        TextOp::System => "chat",
    }
}
