//! Pairs of the grammar to expressions and their parts.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use pest::iterators::{Pair, Pairs};
use pest::pratt_parser::{Assoc, Op, PrattParser};

use super::ast::*;
use super::grammar::Rule;
use super::tokens::Tokens;
use crate::diag::Diagnostic;
use crate::source::Span;

/// How deep a tree may be: operators and brackets together.
const MAX_DEPTH: usize = 500;

static OPERATORS: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let left = |rule| Op::infix(rule, Assoc::Left);
    PrattParser::new()
        .op(left(Rule::or))
        .op(left(Rule::and))
        .op(Op::prefix(Rule::not))
        .op(left(Rule::eq)
            | left(Rule::ne)
            | left(Rule::lt)
            | left(Rule::le)
            | left(Rule::gt)
            | left(Rule::ge))
        .op(left(Rule::add) | left(Rule::sub))
        .op(left(Rule::mul) | left(Rule::div) | left(Rule::rem))
        .op(Op::prefix(Rule::neg))
        .op(Op::infix(Rule::pow, Assoc::Right))
});

/// Builds the nodes of one piece; `offset` is where the piece stands in the file.
pub(crate) struct Builder<'a, 't> {
    pub tokens: &'a Tokens<'t>,
    pub offset: usize,
    pub ids: &'a Cell<u32>,
    pub diagnostics: &'a RefCell<Vec<Diagnostic>>,
    /// Levels above the expression being built; beyond reach once too deep.
    pub depth: Cell<usize>,
}

/// The children that carry meaning: punctuation and keywords are left out.
pub(crate) fn children(pair: Pair<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pair.into_inner().filter(|p| !is_silent(p.as_rule()))
}

fn is_silent(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        colon
            | equals
            | arrow
            | dot
            | comma
            | comment
            | open_paren
            | close_paren
            | open_bracket
            | close_bracket
            | open_brace
            | close_brace
            | kw_if
            | kw_then
            | kw_else
            | kw_use
            | kw_param
            | kw_in
            | kw_data
            | kw_from
            | kw_model
            | kw_reward
            | kw_state
            | kw_fn
            | kw_step
            | kw_over
            | kw_eval
            | kw_every
            | kw_place
            | kw_on
            | kw_rows
            | kw_where
            | kw_minimize
            | kw_log
            | kw_next
            | kw_return
            | EOI
    )
}

impl Builder<'_, '_> {
    pub fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        self.tokens
            .trim(self.offset + span.start(), self.offset + span.end())
    }

    pub fn name(&self, pair: Pair<'_, Rule>) -> Name {
        Name {
            text: pair.as_str().to_string(),
            span: self.span(&pair),
        }
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    pub fn make(&self, span: Span, kind: ExprKind) -> Expr {
        let id = self.ids.get();
        self.ids.set(id + 1);
        Expr {
            id: ExprId(id),
            span,
            kind,
        }
    }

    /// `value`: an expression or a range.
    pub fn value(&self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let mut lo = None;
        let mut hi = None;
        let mut range = false;
        for part in children(pair) {
            match part.as_rule() {
                Rule::dots => range = true,
                _ if range => hi = Some(Box::new(self.expr(part))),
                _ => lo = Some(Box::new(self.expr(part))),
            }
        }
        match (range, lo) {
            (false, Some(lo)) => *lo,
            (_, lo) => self.make(span, ExprKind::Range { lo, hi }),
        }
    }

    /// `expr`: a flat run of operands and operators.
    pub fn expr(&self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let parts: Pairs<'_, Rule> = pair.into_inner();
        let outer = self.depth.get();
        if !self.descend(parts.len(), span) {
            return self.make(span, ExprKind::Bad);
        }
        let parts = parts.filter(|p| p.as_rule() != Rule::comment);
        let expr = OPERATORS
            .map_primary(|operand| self.operand(operand))
            .map_prefix(|op, operand| {
                let span = self.span(&op).to(operand.span);
                let op = match op.as_rule() {
                    Rule::not => UnaryOp::Not,
                    _ => UnaryOp::Neg,
                };
                let operand = Box::new(operand);
                self.make(span, ExprKind::Unary { op, operand })
            })
            .map_infix(|left, op, right| self.binary(left, op, right))
            .parse(parts);
        self.ascend(outer);
        expr
    }

    /// Goes down some levels, unless that is too deep. One message a piece: once it is said, the
    /// depth stays beyond reach.
    fn descend(&self, levels: usize, span: Span) -> bool {
        let outer = self.depth.get();
        if outer + levels <= MAX_DEPTH {
            self.depth.set(outer + levels);
            return true;
        }
        if outer <= MAX_DEPTH {
            let message = format!("this expression nests deeper than {MAX_DEPTH} levels");
            self.report(
                Diagnostic::error("E001", span, message)
                    .help("bind parts of it to names of their own"),
            );
            self.depth.set(usize::MAX / 2);
        }
        false
    }

    fn ascend(&self, outer: usize) {
        if self.depth.get() <= MAX_DEPTH {
            self.depth.set(outer);
        }
    }

    fn binary(&self, left: Expr, op: Pair<'_, Rule>, right: Expr) -> Expr {
        let op_span = self.span(&op);
        let op = match op.as_rule() {
            Rule::or => BinaryOp::Or,
            Rule::and => BinaryOp::And,
            Rule::eq => BinaryOp::Eq,
            Rule::ne => BinaryOp::Ne,
            Rule::lt => BinaryOp::Lt,
            Rule::le => BinaryOp::Le,
            Rule::gt => BinaryOp::Gt,
            Rule::ge => BinaryOp::Ge,
            Rule::add => BinaryOp::Add,
            Rule::sub => BinaryOp::Sub,
            Rule::mul => BinaryOp::Mul,
            Rule::div => BinaryOp::Div,
            Rule::rem => BinaryOp::Rem,
            _ => BinaryOp::Pow,
        };
        if let ExprKind::Binary { op: inner, .. } = left.kind
            && is_comparison(op)
            && is_comparison(inner)
        {
            self.report(
                Diagnostic::error("E001", op_span, "comparisons do not chain")
                    .label(left.span, "this is already a comparison")
                    .help("join two comparisons with `and`, as in `0 < x and x < 1`"),
            );
            return self.make(left.span.to(right.span), ExprKind::Bad);
        }
        let span = left.span.to(right.span);
        let (left, right) = (Box::new(left), Box::new(right));
        self.make(
            span,
            ExprKind::Binary {
                op,
                op_span,
                left,
                right,
            },
        )
    }

    /// An atom and the members read from it.
    fn operand(&self, pair: Pair<'_, Rule>) -> Expr {
        let outer = self.depth.get();
        let whole = self.span(&pair);
        let mut parts = children(pair).collect::<Vec<_>>().into_iter();
        let Some(atom) = parts.next() else {
            unreachable!("the grammar gives every operand an atom")
        };
        if !self.descend(parts.len(), whole) {
            return self.make(whole, ExprKind::Bad);
        }
        let mut expr = self.atom(atom);
        for member in parts {
            let member_span = self.span(&member);
            let Some(label) = children(member).next() else {
                continue;
            };
            let span = expr.span.to(member_span);
            let base = Box::new(expr);
            let member = self.name(label);
            expr = self.make(span, ExprKind::Member { base, member });
        }
        self.ascend(outer);
        expr
    }

    fn atom(&self, pair: Pair<'_, Rule>) -> Expr {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::number => self.number(&pair),
            Rule::text => ExprKind::Text(self.text(&pair)),
            Rule::boolean => ExprKind::Bool(pair.as_str() == "true"),
            Rule::named => self.named(pair),
            Rule::paren => match children(pair).next() {
                Some(value) => ExprKind::Paren(Box::new(self.value(value))),
                None => ExprKind::Bad,
            },
            Rule::list => ExprKind::List(children(pair).map(|v| self.value(v)).collect()),
            Rule::record => ExprKind::Record(self.args(pair)),
            Rule::conditional => {
                let mut parts = children(pair).map(|e| Box::new(self.expr(e)));
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(cond), Some(then), Some(otherwise)) => ExprKind::If {
                        cond,
                        then,
                        otherwise,
                    },
                    _ => ExprKind::Bad,
                }
            }
            _ => ExprKind::Bad,
        };
        self.make(span, kind)
    }

    fn number(&self, pair: &Pair<'_, Rule>) -> ExprKind {
        let text = pair.as_str().replace('_', "");
        let int = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => ExprKind::Number { value, int },
            _ => {
                self.report(
                    Diagnostic::error("E001", self.span(pair), "this number is too large")
                        .help("numbers go up to about 1.8e308"),
                );
                ExprKind::Bad
            }
        }
    }

    fn named(&self, pair: Pair<'_, Rule>) -> ExprKind {
        let mut parts = children(pair);
        let Some(callee) = parts.next().map(|n| self.name(n)) else {
            return ExprKind::Bad;
        };
        let Some(args) = parts.next() else {
            return match callee.text.as_str() {
                "True" | "False" => self.capital_bool(callee),
                "None" => {
                    self.report(
                        Diagnostic::error("E001", callee.span, "there is no `None`")
                            .help("leave the argument out to get its default"),
                    );
                    ExprKind::Bad
                }
                _ => ExprKind::Name(callee.text),
            };
        };
        let args = self.args(args);
        let axes = parts.next().map_or(vec![], |axes| self.axes(axes));
        ExprKind::Call { callee, args, axes }
    }

    fn capital_bool(&self, name: Name) -> ExprKind {
        let right = name.text.to_lowercase();
        self.report(
            Diagnostic::error(
                "E001",
                name.span,
                format!("`{}` is written `{right}` here", name.text),
            )
            .fix(format!("write `{right}`"), vec![(name.span, right.clone())]),
        );
        ExprKind::Bool(right == "true")
    }

    /// The `arg` children of a pair.
    pub fn args(&self, pair: Pair<'_, Rule>) -> Vec<Arg> {
        children(pair)
            .filter(|p| p.as_rule() == Rule::arg)
            .filter_map(|p| self.arg(p))
            .collect()
    }

    pub fn arg(&self, pair: Pair<'_, Rule>) -> Option<Arg> {
        let mut label = None;
        for part in children(pair) {
            match part.as_rule() {
                Rule::label => label = Some(self.name(part)),
                _ => {
                    let value = self.value(part);
                    return Some(Arg { label, value });
                }
            }
        }
        None
    }

    /// `[G: n, T: ..64]`
    pub fn axes(&self, pair: Pair<'_, Rule>) -> Vec<AxisBinder> {
        children(pair).filter_map(|p| self.binder(p)).collect()
    }

    fn binder(&self, pair: Pair<'_, Rule>) -> Option<AxisBinder> {
        let span = self.span(&pair);
        let mut parts = children(pair);
        let name = self.name(parts.next()?);
        let size = parts.next().and_then(|size| match size.as_rule() {
            Rule::ragged => children(size)
                .find(|p| p.as_rule() == Rule::expr)
                .map(|e| AxisSize::Ragged(self.expr(e))),
            _ => Some(AxisSize::Fixed(self.expr(size))),
        });
        Some(AxisBinder { span, name, size })
    }

    /// The text between the quotes, escapes resolved.
    pub fn text(&self, pair: &Pair<'_, Rule>) -> String {
        let span = self.span(pair);
        let raw = pair.as_str();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
        let mut out = String::with_capacity(inner.len());
        let mut rest = inner.char_indices();
        while let Some((at, c)) = rest.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            let Some((_, escaped)) = rest.next() else {
                break;
            };
            match escaped {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                '\\' | '"' => out.push(escaped),
                'u' => {
                    let tail = &inner[at + 2..];
                    match unicode_escape(tail) {
                        Some((c, length)) => {
                            out.push(c);
                            while rest
                                .clone()
                                .next()
                                .is_some_and(|(i, _)| i < at + 2 + length)
                            {
                                rest.next();
                            }
                        }
                        None => {
                            let lo = span.lo as usize + 1 + at;
                            let at = Span::new(span.file, lo, lo + 2);
                            self.report(
                                Diagnostic::error(
                                    "E001",
                                    at,
                                    "`\\u` needs a character's number in braces",
                                )
                                .help("as in `\\u{e9}` for é"),
                            );
                        }
                    }
                }
                other => {
                    let lo = span.lo as usize + 1 + at;
                    let at = Span::new(span.file, lo, lo + 1 + other.len_utf8());
                    self.report(
                        Diagnostic::error("E001", at, format!("`\\{other}` is not an escape"))
                            .help(format!("for a backslash itself write two: `\\\\{other}`"))
                            .fix("double the backslash", vec![(at, format!("\\\\{other}"))]),
                    );
                    out.push('\\');
                    out.push(other);
                }
            }
        }
        out
    }

    /// A type as written.
    pub fn ty(&self, pair: Pair<'_, Rule>) -> Type {
        let span = self.span(&pair);
        let mut parts = children(pair);
        let Some(first) = parts.next() else {
            unreachable!("the grammar gives every type a name or a choice")
        };
        if first.as_rule() == Rule::choice {
            let values = children(first)
                .map(|text| (self.text(&text), self.span(&text)))
                .collect();
            return Type {
                span,
                kind: TypeKind::Enum(values),
                axes: None,
            };
        }
        let name = first.as_str().to_string();
        let axes: Option<Vec<AxisPattern>> = parts
            .next()
            .map(|axes| children(axes).filter_map(|p| self.pattern(p)).collect());
        let (kind, axes) = match axes {
            Some(axes) if axes.is_empty() => (TypeKind::List(name), None),
            axes => (TypeKind::Name(name), axes),
        };
        Type { span, kind, axes }
    }

    fn pattern(&self, pair: Pair<'_, Rule>) -> Option<AxisPattern> {
        let part = children(pair).next()?;
        Some(match part.as_rule() {
            Rule::dots => AxisPattern::Rest(self.span(&part)),
            _ => AxisPattern::Name(self.name(part)),
        })
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// `{e9}` at the start of a text: the character and the bytes it took.
fn unicode_escape(text: &str) -> Option<(char, usize)> {
    let end = text.find('}')?;
    let digits = text.get(..end)?.strip_prefix('{')?;
    let valid = !digits.is_empty() && digits.len() <= 6;
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| valid)?;
    Some((char::from_u32(code)?, end + 1))
}
