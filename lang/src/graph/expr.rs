//! Pure expressions as a shared DAG: what `Map` nodes compute and what `Train` nodes minimize.
//!
//! Functions are inlined, params are folded, names are gone. A node may be used by several others
//! and is computed once. All numbers are real; `none` is a number without a value.

use serde::{Deserialize, Serialize};

use super::{AxisId, StateId, ValueId};
use crate::source::Span;

/// Index of an expression in [`super::Graph::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExprRef(pub u32);

/// Element type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Elem {
    /// A real number, or none.
    Float,
    /// A whole number.
    Int,
    /// true or false.
    Bool,
    /// A string, or none.
    Text,
    /// A list of `{role, content}` messages.
    Chat,
    /// A list of strings.
    TextList,
}

impl Elem {
    /// The type as the language writes it.
    pub fn name(self) -> &'static str {
        match self {
            Elem::Float => "float",
            Elem::Int => "int",
            Elem::Bool => "bool",
            Elem::Text => "text",
            Elem::Chat => "chat",
            Elem::TextList => "text[]",
        }
    }
}

/// Element type and named axes, outermost first. A ragged axis is always last and always comes with
/// the axes it is ragged over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Type {
    /// What one element is.
    pub elem: Elem,
    /// `[B, G, T]`
    pub axes: Vec<AxisId>,
}

impl Type {
    /// A type without axes.
    pub fn scalar(elem: Elem) -> Self {
        Type { elem, axes: vec![] }
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expr {
    /// What is done.
    pub op: Op,
    /// Operands; every one has a smaller index than this expression.
    pub args: Vec<ExprRef>,
    /// The result. Operands are broadcast to its axes by name.
    pub ty: Type,
    /// The text it came from.
    pub span: Span,
}

/// Operations. `x` is the first operand. Unless said otherwise the result has the union of the
/// operands' axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// A constant.
    Number(f64),
    /// A constant.
    Bool(bool),
    /// A constant.
    Text(String),
    /// What a node produced. The leaves through which gradients leave a loss.
    Value(ValueId),
    /// A number carried from the iteration before.
    State(StateId),
    /// The current iteration, from 1.
    Iteration,
    /// The number of iterations of the run.
    Iterations,
    /// Element-wise on one operand.
    Unary(Unary),
    /// Element-wise on two operands.
    Binary(Binary),
    /// `if args[0] then args[1] else args[2]`, element-wise.
    Select,
    /// `x` limited to `args[1]..=args[2]`.
    Clamp,
    /// `x` as a constant: no gradient passes.
    Stop,
    /// Removes `axes`. `mean`/`sum`/`count` of booleans count the true ones.
    Reduce {
        /// Which reduction.
        op: Reduce,
        /// The axes removed; never empty.
        axes: Vec<AxisId>,
        /// `std`/`var` divide by n instead of n−1.
        biased: bool,
    },
    /// `y_t = x_{t-by}` along the ragged `axis`; where that lies outside the row, `args[1]`.
    Shift {
        /// The sequence axis.
        axis: AxisId,
        /// Positive: later; negative: earlier.
        by: i64,
    },
    /// The row's first element; the axis is removed. Zero for an empty row.
    First(AxisId),
    /// The row's last element; the axis is removed. Zero for an empty row.
    Last(AxisId),
    /// `x` (without `axis`) on the last element of each row, 0 on the others.
    AtLast(AxisId),
    /// `y_t = x_t + args[1]_t · y_{t+1}`, `y` after the end is 0.
    SuffixSum(AxisId),
    /// `y_t = x_t + args[1]_t · y_{t-1}`, `y` before the start is 0.
    PrefixSum(AxisId),
    /// The number of elements of each row of `x` along the ragged axis, which is removed.
    Len(AxisId),
    /// The position along `axis`, from 0. No operand.
    Index(AxisId),
    /// The element of `x` at `args[1]` along the fixed `axis`, which is removed. A ragged axis over it
    /// becomes the one of the picked responses.
    Pick(AxisId),
    /// The elements of `x` along the fixed `axis` whose `args[1]` is largest, along `into`: largest
    /// first, earlier first among equals.
    Top {
        /// The axis selected from.
        axis: AxisId,
        /// The axis of those that are kept.
        into: AxisId,
    },
    /// The rows of `x` where `args[1]` holds, in their order, along the axis of the subset; no more
    /// than its limit.
    Restrict(AxisId),
    /// Element-wise on text.
    OnText(TextOp),
}

/// Element-wise operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // each is the function of its name
pub enum Unary {
    Neg,
    Not,
    Exp,
    Log,
    /// `log(1 + x)`, accurate near 0.
    Log1p,
    /// `exp(x) - 1`, accurate near 0.
    Expm1,
    Abs,
    Sqrt,
    Sigmoid,
    LogSigmoid,
    Softplus,
    Relu,
    Tanh,
    Sign,
    Floor,
    Ceil,
    Round,
}

/// Element-wise operations on two operands. A comparison with none is false, `Ne` included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // each is the operator of its name
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // each is the function of its name
pub enum Reduce {
    Mean,
    Sum,
    Std,
    Var,
    Min,
    Max,
    Any,
    All,
    Count,
    /// The index, from 0, of the first largest element along one fixed axis.
    Argmax,
}

/// Operations on text and on conversations. None in, none (or false) out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextOp {
    /// `contains(x, part)`
    Contains,
    /// `starts_with(x, prefix)`
    StartsWith,
    /// `ends_with(x, suffix)`
    EndsWith,
    /// `matches(x, regex)`: the regular expression, a constant, occurs in `x`.
    Matches,
    /// `extract(x, regex)`: the first group (or the whole match) of the first match, or none.
    Extract,
    /// `number(x)`: the whole trimmed text as a number (thousands separators allowed), or none.
    Number,
    /// `last_number(x)`: the last number that occurs in the text, or none.
    LastNumber,
    /// Without surrounding white space.
    Trim,
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
    /// The number of words, separated by white space.
    Words,
    /// The number of characters.
    Chars,
    /// `a + b` of two texts.
    Concat,
    /// What two texts begin with alike, or two conversations: their messages. At least the last message or
    /// character of each is left out, and a space before the place where two texts part.
    CommonPrefix,
    /// A text, or a conversation, without the other in front.
    RemovePrefix,
    /// The messages before the first of the assistant.
    Opening,
    /// A conversation of a system message and then the second operand: a user's text or a conversation.
    System,
}
