//! The tree: every node spanned, nothing resolved.
//!
//! What does not parse becomes a `Bad` item, statement or expression, so the rest of the file is
//! still checked. Facts about expressions live in side tables keyed by [`ExprId`]; the tree is never
//! rewritten.

use crate::source::{FileId, Span};

/// A parsed file.
#[derive(Clone, Debug)]
pub struct File {
    /// Which text.
    pub id: FileId,
    /// The `//!` lines at the top, without the marker.
    pub doc: String,
    /// Items in order.
    pub items: Vec<Item>,
    /// All comments in order, doc comments included.
    pub comments: Vec<Comment>,
    /// One more than the largest [`ExprId`].
    pub exprs: u32,
}

/// A comment with its marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where, marker included, newline excluded.
    pub span: Span,
    /// `//`, `///` or `//!`.
    pub kind: CommentKind,
    /// The text after the marker, trimmed at the end.
    pub text: String,
}

/// What a comment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    /// `//`
    Line,
    /// `///`, documents the next item.
    Doc,
    /// `//!`, documents the file.
    Module,
}

/// An identifier where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A top-level item.
#[derive(Clone, Debug)]
pub struct Item {
    /// From its first keyword to its last character.
    pub span: Span,
    /// The `///` lines above it, without markers.
    pub doc: Option<String>,
    /// What it is.
    pub kind: ItemKind,
}

/// What an item is.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `use std.kl { k1, k3 }`, `use "mine.rlhf" { f }`
    Use(Use),
    /// `param n: type in range = default`
    Param(Param),
    /// `data d = source("…") { col: type, … }`
    Data(Data),
    /// `model m = kind(…)`
    Model(Model),
    /// `reward f(a: text) -> float = python("file.py:fn", …)`
    Reward(Reward),
    /// `state s: float = 0.1`
    State(State),
    /// `fn f(x: float[..]) -> float[..] = expr`
    Fn(Fn),
    /// `step over d[B: n], iterations: n { … }`
    Step(Step),
    /// `eval every n over d { … }`
    Eval(Eval),
    /// `place p on cluster(…) { … }`
    Place(Place),
    /// Text that did not parse; reported already. Its name, where it has one.
    Bad(Option<Name>),
}

/// Where imports come from.
#[derive(Clone, Debug)]
pub enum UsePath {
    /// `std.kl` as its dotted names.
    Dotted(Vec<Name>),
    /// `"mine.rlhf"`
    File(String, Span),
}

/// `use path { names }`
#[derive(Clone, Debug)]
pub struct Use {
    /// From where.
    pub path: UsePath,
    /// What is taken.
    pub names: Vec<Name>,
}

/// `param name: ty in range = default`
#[derive(Clone, Debug)]
pub struct Param {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: Type,
    /// `lo..hi`, both ends included and optional: an [`ExprKind::Range`].
    pub range: Option<Expr>,
    /// The default; a param without one must be given on the command line.
    pub default: Option<Expr>,
}

/// `data name = source("…", options) { columns }`
#[derive(Clone, Debug)]
pub struct Data {
    /// The name.
    pub name: Name,
    /// The call, such as `jsonl("data/sums.jsonl")`.
    pub source: Expr,
    /// Typed columns.
    pub columns: Vec<Column>,
}

/// `name: type from "other name"`
#[derive(Clone, Debug)]
pub struct Column {
    /// The name in the program.
    pub name: Name,
    /// The type.
    pub ty: Type,
    /// The name in the file, when it differs.
    pub from: Option<(String, Span)>,
}

/// `model name = causal(…)`
#[derive(Clone, Debug)]
pub struct Model {
    /// The name.
    pub name: Name,
    /// The call.
    pub value: Expr,
}

/// `reward name(params) -> type = python(…)`
#[derive(Clone, Debug)]
pub struct Reward {
    /// The name.
    pub name: Name,
    /// Typed arguments.
    pub params: Vec<FnParam>,
    /// What one call returns.
    pub result: Type,
    /// `python("file.py:fn", timeout: 10, otherwise: 0)`, `http(…)` or `command(…)`.
    pub source: Expr,
}

/// `state name: type = init`
#[derive(Clone, Debug)]
pub struct State {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: Type,
    /// The value before the first iteration.
    pub init: Expr,
}

/// `fn name(params) -> result = body`
#[derive(Clone, Debug)]
pub struct Fn {
    /// The name.
    pub name: Name,
    /// Arguments.
    pub params: Vec<FnParam>,
    /// The declared result, if any.
    pub result: Option<Type>,
    /// Bindings of a block body, in order; empty for `= expr`.
    pub bindings: Vec<Stmt>,
    /// What is returned.
    pub value: Expr,
}

/// `name: type = default`
#[derive(Clone, Debug)]
pub struct FnParam {
    /// The name.
    pub name: Name,
    /// `float[.., T]`, `axis`, `model`, …
    pub ty: Type,
    /// Makes the argument optional.
    pub default: Option<Expr>,
}

/// `step over d[B: n], options { body }`
#[derive(Clone, Debug)]
pub struct Step {
    /// The data set.
    pub over: Name,
    /// `[B: batch]`
    pub axes: Vec<AxisBinder>,
    /// `iterations: 60`, `epochs: 2`, …
    pub options: Vec<Arg>,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// `eval every n over d { body }`
#[derive(Clone, Debug)]
pub struct Eval {
    /// Iterations between two evaluations.
    pub every: Expr,
    /// The data set.
    pub over: Name,
    /// `[B: n]`, optional: without it all rows are evaluated.
    pub axes: Vec<AxisBinder>,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// `place program on cluster(…) { calls }`
#[derive(Clone, Debug)]
pub struct Place {
    /// The program's name.
    pub program: Name,
    /// The cluster call.
    pub cluster: Expr,
    /// Where each call goes.
    pub calls: Vec<PlaceCall>,
}

/// `roll on gpus(0, 16) { dp: 8 }` or `train policy on …`
#[derive(Clone, Debug)]
pub struct PlaceCall {
    /// The whole line.
    pub span: Span,
    /// True for `train m`.
    pub train: bool,
    /// The call's name, or the trained model's.
    pub name: Name,
    /// `gpus(0, 16)`
    pub devices: Expr,
    /// `dp: 8, tp: 2`
    pub options: Vec<Arg>,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: TypeKind,
    /// `[.., T]`; `None` when no bracket is written.
    pub axes: Option<Vec<AxisPattern>>,
}

/// The part of a type before its axes.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `float`, `text`, `axis`, `model`, … : not yet resolved.
    Name(String),
    /// `text[]`
    List(String),
    /// `"token" | "sequence"`
    Enum(Vec<(String, Span)>),
}

/// One entry of a type's axes.
#[derive(Clone, Debug)]
pub enum AxisPattern {
    /// `..`: any further axes.
    Rest(Span),
    /// A name.
    Name(Name),
}

/// `B: batch` (fixed) or `T: ..64` (ragged), introducing an axis.
#[derive(Clone, Debug)]
pub struct AxisBinder {
    /// The whole entry.
    pub span: Span,
    /// The new axis.
    pub name: Name,
    /// Its size; `None` when only the name is written.
    pub size: Option<AxisSize>,
}

/// How long an axis is.
#[derive(Clone, Debug)]
pub enum AxisSize {
    /// Always this long.
    Fixed(Expr),
    /// At most this long, each row its own length.
    Ragged(Expr),
}

/// A statement of a block.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The whole statement.
    pub span: Span,
    /// What it is.
    pub kind: StmtKind,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `name = value`
    Bind {
        /// The new name.
        name: Name,
        /// Its value.
        value: Expr,
    },
    /// `rows D = B where cond, limit: 64`
    Rows {
        /// The new sub-axis.
        name: Name,
        /// The axis it is taken from.
        of: Name,
        /// Which rows.
        cond: Expr,
        /// `limit: n`
        options: Vec<Arg>,
    },
    /// `train m, minibatch: 4 { … }`
    Train {
        /// The model.
        model: Name,
        /// Options.
        options: Vec<Arg>,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// `minimize e`
    Minimize(Expr),
    /// `log a: x, b: y`
    Log(Vec<(Name, Expr)>),
    /// `next s = e`
    Next {
        /// The state or model.
        name: Name,
        /// Its value in the next iteration.
        value: Expr,
    },
    /// Text that did not parse; reported already.
    Bad,
}

/// Numbers the expressions of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Key of the side tables.
    pub id: ExprId,
    /// Where.
    pub span: Span,
    /// What.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `8`, `1e-5`
    Number {
        /// The value.
        value: f64,
        /// Written without point and exponent.
        int: bool,
    },
    /// `"text"`, escapes resolved.
    Text(String),
    /// `true`, `false`
    Bool(bool),
    /// A name.
    Name(String),
    /// `f(args)` with the axes it introduces, if any: `generate(…)[G: n, T: ..64]`.
    Call {
        /// What is called.
        callee: Name,
        /// Arguments in order.
        args: Vec<Arg>,
        /// The bracket behind the call.
        axes: Vec<AxisBinder>,
    },
    /// `base.member`
    Member {
        /// What has the member.
        base: Box<Expr>,
        /// Which one.
        member: Name,
    },
    /// `-x`, `not x`
    Unary {
        /// Operator.
        op: UnaryOp,
        /// Operand.
        operand: Box<Expr>,
    },
    /// `a + b`
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `if c then a else b`
    If {
        /// Condition.
        cond: Box<Expr>,
        /// Where it holds.
        then: Box<Expr>,
        /// Elsewhere.
        otherwise: Box<Expr>,
    },
    /// `[a, b]`: a list of axes or of constants.
    List(Vec<Expr>),
    /// `{ rank: 8, alpha: 16 }`
    Record(Vec<Arg>),
    /// `1..`, `0..1`, `..64`
    Range {
        /// Lower end.
        lo: Option<Box<Expr>>,
        /// Upper end.
        hi: Option<Box<Expr>>,
    },
    /// `(e)`; kept for the printer.
    Paren(Box<Expr>),
    /// Text that did not parse; reported already.
    Bad,
}

/// An argument, with its label when it has one.
#[derive(Clone, Debug)]
pub struct Arg {
    /// `temperature` in `temperature: 1`.
    pub label: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
}

/// Infix operators, loosest first: `or`, `and`, comparisons, `+ -`, `* / %`, `^`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `or`
    Or,
    /// `and`
    And,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `^`, right-associative, tighter than prefix `-`.
    Pow,
}
