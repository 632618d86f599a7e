//! One sentence for a piece that does not parse.
//!
//! The known mistakes are looked for first (`mistakes.rs`); what remains says what was expected and
//! after what, in the terms the language uses.

use super::grammar::Rule;
use super::mistakes;
use super::tokens::{TokenKind, Tokens};
use crate::diag::Diagnostic;

/// What a piece of text is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    Use,
    Param,
    Data,
    Model,
    Reward,
    State,
    Fn,
    FnExpr,
    Step,
    Eval,
    Place,
    PlaceCall,
    Bind,
    Rows,
    Train,
    Minimize,
    Log,
    Next,
    Return,
    Expression,
}

impl Piece {
    /// The rule that must match all of it.
    pub fn rule(self) -> Rule {
        match self {
            Piece::Use => Rule::whole_use,
            Piece::Param => Rule::whole_param,
            Piece::Data => Rule::whole_data,
            Piece::Model => Rule::whole_model,
            Piece::Reward => Rule::whole_reward,
            Piece::State => Rule::whole_state,
            Piece::Fn => Rule::whole_fn,
            Piece::FnExpr => Rule::whole_fn_expr,
            Piece::Step => Rule::whole_step,
            Piece::Eval => Rule::whole_eval,
            Piece::Place => Rule::whole_place,
            Piece::PlaceCall => Rule::whole_place_call,
            Piece::Bind => Rule::whole_bind,
            Piece::Rows => Rule::whole_rows,
            Piece::Train => Rule::whole_train,
            Piece::Minimize => Rule::whole_minimize,
            Piece::Log => Rule::whole_log,
            Piece::Next => Rule::whole_next,
            Piece::Return => Rule::whole_return,
            Piece::Expression => Rule::whole_value,
        }
    }

    /// What messages call it.
    pub fn noun(self) -> &'static str {
        match self {
            Piece::Use => "`use`",
            Piece::Param => "`param`",
            Piece::Data => "`data`",
            Piece::Model => "`model`",
            Piece::Reward => "`reward`",
            Piece::State => "`state`",
            Piece::Fn | Piece::FnExpr => "`fn`",
            Piece::Step => "`step`",
            Piece::Eval => "`eval`",
            Piece::Place => "`place`",
            Piece::PlaceCall => "line of the plan",
            Piece::Bind => "binding",
            Piece::Rows => "`rows`",
            Piece::Train => "`train`",
            Piece::Minimize => "`minimize`",
            Piece::Log => "`log`",
            Piece::Next => "`next`",
            Piece::Return => "`return`",
            Piece::Expression => "expression",
        }
    }

    /// A correct one, for the help line.
    pub fn example(self) -> &'static str {
        match self {
            Piece::Use => "as in `use std.kl { k1, k3 }`",
            Piece::Param => "as in `param clip: float in 0..1 = 0.2`",
            Piece::Data => "as in `data d = jsonl(\"d.jsonl\") { question: text, answer: text }`",
            Piece::Model => "as in `model policy = causal(base)`",
            Piece::Reward => {
                "as in `reward exact(response: text) -> float = python(\"score.py:exact\")`"
            }
            Piece::State => "as in `state beta: float = 0.1`",
            Piece::Fn | Piece::FnExpr => "as in `fn half(x: float[..]) -> float[..] = x / 2`",
            Piece::Step => "as in `step over d[B: 8], iterations: 60 { … }`",
            Piece::Eval => "as in `eval every 20 over held { … }`",
            Piece::Place => "as in `place grpo on cluster(nodes: 1, gpus: 8) { … }`",
            Piece::PlaceCall => "as in `train policy on gpus(0, 8) { dp: 8 }`",
            Piece::Bind => "as in `adv = r - mean(r, G)`",
            Piece::Rows => "as in `rows D = B where std(r, G) > 0, limit: 64`",
            Piece::Train => "as in `train policy, minibatch: 4, epochs: 2 { … }`",
            Piece::Minimize => "as in `minimize mean(loss, [B, G, T])`",
            Piece::Log => "as in `log reward: mean(r), length: mean(len(roll, T))`",
            Piece::Next => "as in `next beta = beta * 1.5`",
            Piece::Return => "as in `return y`",
            Piece::Expression => "as in `mean(x, T) + 1`",
        }
    }
}

/// A piece that did not parse.
pub(crate) struct Failure {
    pub piece: Piece,
    /// Its tokens `a..b`.
    pub a: usize,
    pub b: usize,
    /// The first token that fits nothing; `b` when the piece ends too early.
    pub at: usize,
    /// What the grammar could have taken there.
    pub expected: Vec<Rule>,
}

impl Failure {
    /// Whether the grammar could have taken `rule`.
    pub fn expects(&self, rule: Rule) -> bool {
        self.expected.contains(&rule)
    }
}

/// The diagnostic of a failure.
pub(crate) fn explain(tokens: &Tokens, failure: &Failure) -> Diagnostic {
    mistakes::find(tokens, failure).unwrap_or_else(|| plain(tokens, failure))
}

/// `expected … after …`
fn plain(tokens: &Tokens, failure: &Failure) -> Diagnostic {
    let &Failure {
        piece, a, b, at, ..
    } = failure;
    let after = after(tokens, failure);
    let here = match at < b {
        true => tokens.span(at, at + 1),
        // The end of the piece: the last token is what there is to point at.
        false => tokens.span(b - 1, b),
    };
    let wanted = match wanted(failure) {
        Some("a value") if at > a && tokens.at(at - 1) == "in" => Some("a range"),
        Some("`{`") if piece == Piece::Data => Some("the columns in `{ … }`"),
        Some("`{`") if piece == Piece::Use => Some("the names to take in `{ … }`"),
        wanted => wanted,
    };
    let message = match wanted {
        Some(wanted) => format!("expected {wanted} {after}"),
        None if at < b && at > a => format!("`{}` does not fit {after}", shown(tokens, at)),
        None => format!("this {} does not parse", piece.noun()),
    };
    let mut diagnostic = Diagnostic::error("E001", here, message).help(piece.example());
    if at < b {
        let token = shown(tokens, at);
        diagnostic = diagnostic.here(format!("found `{token}`"));
        if wanted.is_none() && tokens.begins_value(at) && tokens.ends_value(at - 1) {
            diagnostic = diagnostic.help(match piece {
                Piece::Expression => "an operator is missing between the two",
                _ => "an operator or a line break is missing between the two",
            });
        }
    } else {
        diagnostic = diagnostic.here("it ends here");
    }
    diagnostic
}

/// `after …`, in words where the place has one.
fn after(tokens: &Tokens, failure: &Failure) -> String {
    let &Failure { piece, a, at, .. } = failure;
    let noun = piece.noun();
    let named = !matches!(piece, Piece::Bind | Piece::Expression | Piece::PlaceCall);
    match at - a {
        0 => format!("at the start of this {noun}"),
        1 if named => format!("after {noun}"),
        2 if named && tokens.is_name(at - 1) && !matches!(piece, Piece::Log | Piece::Minimize) => {
            match piece {
                Piece::Step | Piece::Eval | Piece::Return => {
                    format!("after `{}`", shown(tokens, at - 1))
                }
                _ => format!("after the name of this {noun}"),
            }
        }
        _ => format!("after `{}`", shown(tokens, at - 1)),
    }
}

/// A token's text, cut where it is long.
pub(crate) fn shown(tokens: &Tokens, i: usize) -> String {
    let text = tokens.at(i);
    match text.char_indices().nth(24) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_string(),
    }
}

/// The one thing to name among what was expected. `None` when all before was complete, so that
/// only an end or an operator could follow.
fn wanted(failure: &Failure) -> Option<&'static str> {
    let first = |pairs: &[(Rule, &'static str)]| {
        pairs
            .iter()
            .find(|(rule, _)| failure.expects(*rule))
            .map(|(_, word)| *word)
    };
    let keyword = first(&[
        (Rule::kw_then, "`then`"),
        (Rule::kw_else, "`else`"),
        (Rule::kw_over, "`over`"),
        (Rule::kw_every, "`every`"),
        (Rule::kw_where, "`where`"),
        (Rule::kw_on, "`on`"),
    ]);
    if keyword.is_some() {
        return keyword;
    }
    if failure.expects(Rule::EOI) {
        return None;
    }
    first(&[
        (Rule::fn_param, "an argument such as `x: float[..]`"),
        (Rule::metric, "a metric such as `reward: mean(r)`"),
        (Rule::column, "a column such as `question: text`"),
        (Rule::binder, "an axis such as `G: 8` or `T: ..64`"),
        (Rule::type_, "a type"),
        (Rule::value, "a value"),
        (Rule::expr, "a value"),
        (Rule::operand, "a value"),
        (Rule::arg, "an argument"),
        (Rule::named, "a value"),
        (Rule::params, "the arguments in `( … )`"),
        (Rule::names, "the names to take in `{ … }`"),
        (Rule::columns, "the columns in `{ … }`"),
        (Rule::dotted, "where to import from"),
        (Rule::text, "a text in quotes"),
        (Rule::arrow, "`->`"),
        (Rule::colon, "`:`"),
        (Rule::equals, "`=`"),
        (Rule::name, "a name"),
        (Rule::label, "a name"),
        (Rule::close_paren, "`)`"),
        (Rule::close_bracket, "`]`"),
        (Rule::close_brace, "`}`"),
        (Rule::open_brace, "`{`"),
        (Rule::kw_in, "`in`"),
    ])
}

/// Whether token `i` is a mark of the language, for messages that quote it.
pub(crate) fn is_mark(tokens: &Tokens, i: usize) -> bool {
    tokens
        .code
        .get(i)
        .is_some_and(|t| t.kind == TokenKind::Mark)
}
