//! Blocks: the statements between braces, one at a time.

use pest::iterators::Pair;

use super::ast::*;
use super::build::{Builder, children};
use super::explain::Piece;
use super::grammar::Rule;
use super::mistakes::{foreign_opening, unclosed, unknown_statement};
use super::parse::{Node, Reader};
use super::split::{Braces, Opening, braces, opening, statement_end};
use crate::diag::Diagnostic;

/// How deep blocks may nest; the language itself needs two levels.
const MAX_BLOCKS: usize = 32;

/// What stands between two braces.
pub(crate) struct Body {
    pub statements: Vec<Stmt>,
    /// The values of `return`s with the tokens they begin at.
    pub returns: Vec<(usize, Expr)>,
    pub nodes: Vec<Node>,
    /// One past the last token that belongs to it.
    pub end: usize,
    /// Every brace in it has its partner.
    pub sound: bool,
}

impl Body {
    fn empty(end: usize) -> Self {
        Body {
            statements: vec![],
            returns: vec![],
            nodes: vec![],
            end,
            sound: true,
        }
    }

    /// The printer's view; a block whose braces do not pair is left as it is.
    pub fn node(&self, a: usize, open: usize) -> Node {
        if !self.sound {
            return Node::Verbatim { a, b: self.end };
        }
        Node::Block {
            a,
            open,
            body: self.nodes.clone(),
            close: self.end - 1,
        }
    }
}

impl Reader<'_, '_> {
    /// The block of a `step` or `eval` whose `{` is token `open`.
    pub fn item_block(&self, open: usize, limit: usize) -> Body {
        let body = self.block(open, limit, 0, braces(self.tokens, open, limit));
        for (at, _) in &body.returns {
            let message = "`return` belongs in a `fn`";
            let here = self.tokens.span(*at, at + 1);
            self.report(
                Diagnostic::error("E001", here, message)
                    .help("a block hands on its results by `log`, `minimize` and `next`"),
            );
        }
        body
    }

    fn block(&self, open: usize, limit: usize, level: usize, braces: Braces) -> Body {
        let tokens = self.tokens;
        let mut body = Body::empty(limit);
        if level > MAX_BLOCKS {
            let message = format!("blocks nest deeper than {MAX_BLOCKS} levels");
            self.report(Diagnostic::error(
                "E001",
                tokens.span(open, open + 1),
                message,
            ));
            body.sound = false;
            return body;
        }
        let margin = tokens.code[open].indent;
        let last_close = (open..limit).rev().find(|i| tokens.at(*i) == "}");
        let mut i = open + 1;
        loop {
            while i < limit && tokens.at(i) == ";" {
                i += 1;
            }
            if i >= limit {
                let told = body.nodes.last().is_some_and(|n| n.end() >= limit) && !body.sound;
                if !told {
                    self.report(unclosed(tokens, open));
                }
                body.sound = false;
                return body;
            }
            let token = tokens.code[i];
            let close = tokens.at(i) == "}";
            let outside = token.indent < margin || (!close && token.indent == margin && level > 0);
            if braces == Braces::Missing && token.line_start && outside {
                self.report(unclosed(tokens, open));
                body.sound = false;
                body.end = i;
                return body;
            }
            let displaced = token.indent != margin || !token.line_start;
            if close && braces == Braces::Surplus && last_close != Some(i) && displaced {
                let message = "this `}` closes nothing";
                self.report(
                    Diagnostic::error("E001", tokens.span(i, i + 1), message)
                        .fix("remove it", vec![(tokens.span(i, i + 1), String::new())]),
                );
                body.sound = false;
                i += 1;
                continue;
            }
            if close {
                body.end = i + 1;
                return body;
            }
            i = self.statement(i, limit, level, braces, &mut body);
        }
    }

    /// Reads the statement at `a` into `body`; returns the token behind it.
    fn statement(
        &self,
        a: usize,
        limit: usize,
        level: usize,
        braces: Braces,
        body: &mut Body,
    ) -> usize {
        let opening = opening(self.tokens, a);
        if opening == Some(Opening::Train) {
            return self.train(a, limit, level, braces, body);
        }
        let same_line = (a + 1..limit)
            .take_while(|i| !self.tokens.begins_line(*i))
            .last();
        if opening.is_none()
            && let Some(open) = same_line.filter(|last| self.tokens.at(*last) == "{")
        {
            return self.unknown_block(a, open, limit, level, braces, body);
        }
        let b = statement_end(self.tokens, a, limit, braces).max(a + 1);
        let kind = match opening {
            Some(Opening::Bind) => self.statement_piece(Piece::Bind, a, b, bind),
            Some(Opening::Rows) => self.statement_piece(Piece::Rows, a, b, rows),
            Some(Opening::Log) => self.statement_piece(Piece::Log, a, b, log),
            Some(Opening::Next) => self.statement_piece(Piece::Next, a, b, next),
            Some(Opening::Minimize) => {
                self.statement_piece(Piece::Minimize, a, b, |builder, pair| {
                    let value = children(pair).next()?;
                    Some(StmtKind::Minimize(builder.value(value)))
                })
            }
            Some(Opening::Return) => {
                // Remembered like the statement that holds one value too.
                let value = self.statement_piece(Piece::Return, a, b, |builder, pair| {
                    let value = children(pair).next()?;
                    Some(StmtKind::Minimize(builder.value(value)))
                });
                let value = value.and_then(|kind| match kind {
                    StmtKind::Minimize(value) => Some(value),
                    _ => None,
                });
                let verbatim = value.is_none();
                let value = value.unwrap_or_else(|| self.bad(self.tokens.span(a + 1, b)));
                body.returns.push((a, value));
                body.nodes.push(match verbatim {
                    true => Node::Verbatim { a, b },
                    false => Node::Line { a, b, bind: false },
                });
                return b;
            }
            Some(Opening::Train) => None,
            None => {
                let diagnostic = foreign_opening(self.tokens, a)
                    .unwrap_or_else(|| unknown_statement(self.tokens, a, b));
                self.report(diagnostic);
                None
            }
        };
        let bind = opening == Some(Opening::Bind);
        body.nodes.push(match kind {
            Some(_) => Node::Line { a, b, bind },
            None => Node::Verbatim { a, b },
        });
        let read = kind.is_some();
        let kind = kind.unwrap_or_else(|| self.broken(opening, a, b));
        let span = self.tokens.span(a, b);
        body.statements.push(Stmt { span, kind });
        if !read && bind {
            body.statements.extend(self.further_names(a, b));
        }
        b
    }

    /// The names of `x = 1 y = 2` behind the first: they were to be bound too.
    fn further_names(&self, a: usize, b: usize) -> Vec<Stmt> {
        let tokens = self.tokens;
        let mut depth = 0usize;
        let mut found = vec![];
        for i in a + 2..b {
            match tokens.at(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "=" if depth == 0 && tokens.is_name(i - 1) => found.push(i - 1),
                _ => {}
            }
        }
        let statement = |i: usize| Stmt {
            span: tokens.span(i, i + 1),
            kind: StmtKind::Bind {
                name: Name {
                    text: tokens.at(i).to_string(),
                    span: tokens.span(i, i + 1),
                },
                value: self.bad(tokens.span(i, i + 1)),
            },
        };
        found.into_iter().map(statement).collect()
    }

    /// `train policy:` with its lines behind it: reported once, and the lines are read as its block.
    fn colon_block(
        &self,
        (a, colon): (usize, usize),
        limit: usize,
        level: usize,
        braces: Braces,
        body: &mut Body,
    ) -> usize {
        let tokens = self.tokens;
        self.report(
            Diagnostic::error(
                "E001",
                tokens.span(colon, colon + 1),
                "the block of `train` stands in `{ … }`, not behind `:`",
            )
            .help(Piece::Train.example()),
        );
        let parts = self.statement_piece(Piece::Train, a, colon, train_head);
        let margin = tokens.code[a].indent;
        let mut inner = Body::empty(limit);
        let mut i = colon + 1;
        while i < limit && tokens.code[i].indent > margin && tokens.at(i) != "}" {
            i = self.statement(i, limit, level + 1, braces, &mut inner);
        }
        let own = tokens
            .code
            .get(i)
            .is_some_and(|t| t.line_start && t.indent == margin);
        if i < limit && tokens.at(i) == "}" && own && braces == Braces::Surplus {
            i += 1;
        }
        body.nodes.push(Node::Verbatim { a, b: i });
        let kind = match parts {
            Some(StmtKind::Train { model, options, .. }) => StmtKind::Train {
                model,
                options,
                body: inner.statements,
            },
            _ => StmtKind::Bad,
        };
        body.statements.push(Stmt {
            span: tokens.span(a, i),
            kind,
        });
        i
    }

    /// What is still known of a statement that does not parse: its name, or that there is a loss.
    fn broken(&self, opening: Option<Opening>, a: usize, b: usize) -> StmtKind {
        let name = |i: usize| Name {
            text: self.tokens.at(i).to_string(),
            span: self.tokens.span(i, i + 1),
        };
        let rest = |from: usize| self.bad(self.tokens.span(from.min(b), b));
        match opening {
            Some(Opening::Bind) => StmtKind::Bind {
                name: name(a),
                value: rest(a + 2),
            },
            Some(Opening::Next) if self.tokens.at(a + 2) == "=" => StmtKind::Next {
                name: name(a + 1),
                value: rest(a + 3),
            },
            Some(Opening::Minimize) => StmtKind::Minimize(rest(a + 1)),
            _ => StmtKind::Bad,
        }
    }

    /// `trian policy { … }`, `for x in d { … }`: reported once, and the statements inside still read.
    fn unknown_block(
        &self,
        a: usize,
        open: usize,
        limit: usize,
        level: usize,
        braces: Braces,
        body: &mut Body,
    ) -> usize {
        let diagnostic = foreign_opening(self.tokens, a)
            .unwrap_or_else(|| unknown_statement(self.tokens, a, open));
        self.report(diagnostic);
        let inner = self.block(open, limit, level + 1, braces);
        body.sound &= inner.sound;
        body.nodes.push(Node::Verbatim { a, b: inner.end });
        let span = self.tokens.span(a, inner.end);
        body.statements.push(Stmt {
            span,
            kind: StmtKind::Bad,
        });
        inner.end
    }

    fn train(
        &self,
        a: usize,
        limit: usize,
        level: usize,
        braces: Braces,
        body: &mut Body,
    ) -> usize {
        let tokens = self.tokens;
        let head = self.prefix(Rule::train_head, a, self.head_limit(a, limit));
        if let Some(colon) = head.filter(|end| *end < limit && tokens.at(*end) == ":")
            && tokens.begins_line(colon + 1)
        {
            return self.colon_block((a, colon), limit, level, braces, body);
        }
        let exact = head.filter(|end| *end < limit && tokens.at(*end) == "{");
        let Some(open) = exact.or_else(|| self.body_open(a, limit)) else {
            let b = statement_end(tokens, a, limit, braces).max(a + 1);
            let before = self.reported();
            self.piece(Piece::Train, a, b, |_, _| ());
            if self.reported() == before {
                let message = "expected `{` after the head of this `train`";
                let here = tokens.span(b - 1, b);
                let help = Piece::Train.example();
                self.report(Diagnostic::error("E001", here, message).help(help));
            }
            let span = tokens.span(a, b);
            body.statements.push(Stmt {
                span,
                kind: StmtKind::Bad,
            });
            body.nodes.push(Node::Verbatim { a, b });
            return b;
        };
        let parts = self.statement_piece(Piece::Train, a, open, train_head);
        let inner = self.block(open, limit, level + 1, braces);
        body.sound &= inner.sound;
        body.nodes.push(match parts {
            Some(_) => inner.node(a, open),
            None => Node::Verbatim { a, b: inner.end },
        });
        let span = tokens.span(a, inner.end);
        body.returns.extend(inner.returns);
        let kind = match parts {
            Some(StmtKind::Train { model, options, .. }) => StmtKind::Train {
                model,
                options,
                body: inner.statements,
            },
            _ => StmtKind::Bad,
        };
        body.statements.push(Stmt { span, kind });
        inner.end
    }

    /// `{ a = …; return … }`: the value and the bindings.
    pub fn fn_body(&self, open: usize, limit: usize) -> (Expr, Body) {
        let tokens = self.tokens;
        let mut body = self.block(open, limit, 0, braces(tokens, open, limit));
        for statement in &body.statements {
            if !matches!(statement.kind, StmtKind::Bind { .. } | StmtKind::Bad) {
                let first = tokens.index_at(statement.span.lo as usize);
                let message = format!("`{}` cannot stand in a `fn`", tokens.at(first));
                self.report(
                    Diagnostic::error("E001", tokens.span(first, first + 1), message)
                        .help("a `fn` body holds bindings and, at its end, one `return`"),
                );
            }
        }
        let mut returns = std::mem::take(&mut body.returns).into_iter();
        let Some((at, value)) = returns.next() else {
            let broken = body
                .statements
                .iter()
                .any(|s| matches!(s.kind, StmtKind::Bad));
            if body.sound && !broken {
                let message = "this `fn` has no `return`";
                self.report(
                    Diagnostic::error("E001", tokens.span(open, open + 1), message)
                        .help("as in `fn half(x: float[..]) -> float[..] { y = x / 2; return y }`"),
                );
            }
            let span = tokens.span(open, open + 1);
            return (self.bad(span), body);
        };
        let here = tokens.span(at, at + 1);
        if let Some((second, _)) = returns.next() {
            let message = "a `fn` has one `return`";
            self.report(
                Diagnostic::error("E001", tokens.span(second, second + 1), message)
                    .label(here, "the first is here")
                    .help("choose between values with `if c then a else b`"),
            );
        } else if let Some(late) = body.statements.iter().find(|s| s.span.lo > here.lo) {
            self.report(
                Diagnostic::error("E001", late.span, "this stands behind the `return`")
                    .label(here, "the `fn` ends here"),
            );
        }
        (value, body)
    }

    /// The lines of a plan.
    pub fn place_calls(&self, open: usize, limit: usize) -> (Vec<PlaceCall>, Body) {
        let tokens = self.tokens;
        let braces = braces(tokens, open, limit);
        let mut body = Body::empty(limit);
        let mut calls = vec![];
        let mut i = open + 1;
        loop {
            match tokens.at(i) {
                _ if i >= limit => {
                    self.report(unclosed(tokens, open));
                    body.sound = false;
                    return (calls, body);
                }
                ";" => i += 1,
                "}" => {
                    body.end = i + 1;
                    return (calls, body);
                }
                _ => {
                    let b = statement_end(tokens, i, limit, braces).max(i + 1);
                    let parts = self.piece(Piece::PlaceCall, i, b, place_call).flatten();
                    body.nodes.push(match parts {
                        Some(_) => Node::Line {
                            a: i,
                            b,
                            bind: false,
                        },
                        None => Node::Verbatim { a: i, b },
                    });
                    let span = tokens.span(i, b);
                    calls.extend(parts.map(|call| PlaceCall { span, ..call }));
                    i = b;
                }
            }
        }
    }
}

fn bind(builder: &Builder, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let value = builder.value(parts.next()?);
    Some(StmtKind::Bind { name, value })
}

fn next(builder: &Builder, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let value = builder.value(parts.next()?);
    Some(StmtKind::Next { name, value })
}

fn rows(builder: &Builder, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let mut parts = children(pair);
    Some(StmtKind::Rows {
        name: builder.name(parts.next()?),
        of: builder.name(parts.next()?),
        cond: builder.value(parts.next()?),
        options: parts.filter_map(|arg| builder.arg(arg)).collect(),
    })
}

fn log(builder: &Builder, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let metrics = children(pair).filter_map(|metric| {
        let mut parts = children(metric);
        let name = builder.name(parts.next()?);
        Some((name, builder.value(parts.next()?)))
    });
    Some(StmtKind::Log(metrics.collect()))
}

/// A `train` whose body is read apart.
fn train_head(builder: &Builder, pair: Pair<'_, Rule>) -> Option<StmtKind> {
    let mut parts = children(pair).filter(|p| p.as_rule() != Rule::kw_train);
    let model = builder.name(parts.next()?);
    Some(StmtKind::Train {
        model,
        options: parts.filter_map(|arg| builder.arg(arg)).collect(),
        body: vec![],
    })
}

fn place_call(builder: &Builder, pair: Pair<'_, Rule>) -> Option<PlaceCall> {
    let span = builder.span(&pair);
    let (mut train, mut name, mut devices, mut options) = (false, None, None, vec![]);
    for part in children(pair) {
        match part.as_rule() {
            Rule::kw_train => train = true,
            Rule::name => name = Some(builder.name(part)),
            Rule::expr => devices = Some(builder.expr(part)),
            _ => options = builder.args(part),
        }
    }
    Some(PlaceCall {
        span,
        train,
        name: name?,
        devices: devices?,
        options,
    })
}
