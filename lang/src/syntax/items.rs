//! Items: finding them, and building each from its piece.

use pest::iterators::Pair;

use super::ast::*;
use super::build::{Builder, children};
use super::explain::Piece;
use super::grammar::Rule;
use super::mistakes::{foreign_opening, swallowed, unknown_item};
use super::parse::{Node, Reader, doc_lines};
use super::split::{item_boundaries, item_end, statement_starts};
use crate::diag::Diagnostic;

impl Reader<'_, '_> {
    /// All items of the file, and their pieces.
    pub fn items(&self) -> (Vec<Item>, Vec<Node>) {
        let count = self.tokens.code.len();
        let mut starts = item_boundaries(self.tokens);
        starts.push(count);
        let (mut items, mut nodes) = (vec![], vec![]);
        let mut documented = 0;
        for (start, limit) in starts.iter().zip(starts.iter().skip(1)) {
            let mut a = *start;
            while a < *limit {
                if self.tokens.at(a) == ";" {
                    a += 1;
                    continue;
                }
                let (kind, node) = self.item(a, *limit);
                let b = node.end().max(a + 1);
                let span = self.tokens.span(a, b);
                let doc = doc_lines(self.tokens, CommentKind::Doc, documented, span.lo as usize);
                documented = span.hi as usize;
                items.push(Item { span, doc, kind });
                nodes.push(node);
                a = b;
            }
        }
        (items, nodes)
    }

    pub fn item(&self, a: usize, limit: usize) -> (ItemKind, Node) {
        match self.tokens.at(a) {
            "use" => self.line(Piece::Use, a, limit, use_item),
            "param" => self.line(Piece::Param, a, limit, param),
            "data" => self.line(Piece::Data, a, limit, data),
            "model" => self.line(Piece::Model, a, limit, model),
            "reward" => self.line(Piece::Reward, a, limit, reward),
            "state" => self.line(Piece::State, a, limit, state),
            "fn" => self.function(a, limit),
            "step" => self.block_item(Piece::Step, a, limit),
            "eval" => self.block_item(Piece::Eval, a, limit),
            "place" => self.block_item(Piece::Place, a, limit),
            _ => {
                let diagnostic = foreign_opening(self.tokens, a)
                    .unwrap_or_else(|| unknown_item(self.tokens, a, limit));
                self.report(diagnostic);
                (self.unread(a, limit), Node::Verbatim { a, b: limit })
            }
        }
    }

    /// An item that does not parse. What it was to name is known where a keyword and a name begin it:
    /// then only that name is without a meaning.
    fn unread(&self, a: usize, b: usize) -> ItemKind {
        let names = ["param", "data", "model", "reward", "state", "fn", "def"];
        let named = names.contains(&self.tokens.at(a)) && a + 1 < b && self.tokens.is_name(a + 1);
        ItemKind::Bad(named.then(|| Name {
            text: self.tokens.at(a + 1).to_string(),
            span: self.tokens.span(a + 1, a + 2),
        }))
    }

    /// An item without a block.
    fn line(
        &self,
        piece: Piece,
        a: usize,
        limit: usize,
        build: impl FnOnce(&Builder, Pair<'_, Rule>) -> Option<ItemKind>,
    ) -> (ItemKind, Node) {
        let b = item_end(self.tokens, a, limit);
        match self.item_piece(piece, a, b, build) {
            Some(kind) => (kind, Node::Line { a, b, bind: false }),
            None => (self.unread(a, b), Node::Verbatim { a, b }),
        }
    }

    fn function(&self, a: usize, limit: usize) -> (ItemKind, Node) {
        let Some(head) = self.prefix(Rule::fn_head, a, self.fn_head_limit(a, limit)) else {
            let b = item_end(self.tokens, a, limit);
            let end = self.body_open(a, b).unwrap_or(b);
            self.piece(Piece::Fn, a, end, |_, _| ());
            return (self.unread(a, b), Node::Verbatim { a, b });
        };
        if self.tokens.at(head) != "{" {
            return self.line(Piece::FnExpr, a, limit, |builder, pair| {
                let mut parts = children(pair);
                let (name, params, result) = fn_head(builder, parts.next()?)?;
                Some(ItemKind::Fn(Fn {
                    name,
                    params,
                    result,
                    bindings: vec![],
                    value: builder.value(parts.next()?),
                }))
            });
        }
        let parts = self.item_piece(Piece::Fn, a, head, fn_without_body);
        let (value, body) = self.fn_body(head, limit);
        let node = body.node(a, head);
        let unread = self.unread(a, head);
        let kind = match parts {
            Some(ItemKind::Fn(f)) => ItemKind::Fn(Fn {
                bindings: body.statements,
                value,
                ..f
            }),
            _ => unread,
        };
        (kind, node)
    }

    /// Where the first statement behind the head at `a` begins, if one begins a line.
    pub fn head_limit(&self, a: usize, limit: usize) -> usize {
        let starts = |i: &usize| statement_starts(self.tokens, *i);
        (a + 1..limit).find(starts).unwrap_or(limit)
    }

    /// Past the first `{` or `=` that is not between the parentheses of the `fn` at `a`.
    fn fn_head_limit(&self, a: usize, limit: usize) -> usize {
        let mut depth = 0usize;
        for i in a..limit {
            match self.tokens.at(i) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                "{" | "=" if depth == 0 => return i + 1,
                _ => {}
            }
        }
        limit
    }

    /// `step`, `eval` and `place`: a head and a block.
    fn block_item(&self, piece: Piece, a: usize, limit: usize) -> (ItemKind, Node) {
        let head_rule = match piece {
            Piece::Step => Rule::step_head,
            Piece::Eval => Rule::eval_head,
            _ => Rule::place_head,
        };
        let end = self.prefix(head_rule, a, self.head_limit(a, limit));
        let Some(open) = end.filter(|end| self.tokens.at(*end) == "{" && *end < limit) else {
            return (ItemKind::Bad(None), self.broken_block(piece, a, end, limit));
        };
        if piece == Piece::Place {
            let head = self.piece(piece, a, open, place_head).flatten();
            let (calls, body) = self.place_calls(open, limit);
            let node = body.node(a, open);
            let kind = head.map_or(ItemKind::Bad(None), |(program, cluster)| {
                ItemKind::Place(Place {
                    program,
                    cluster,
                    calls,
                })
            });
            return (kind, node);
        }
        let head = self.item_piece(piece, a, open, block_head);
        let body = self.item_block(open, limit);
        let node = body.node(a, open);
        let kind = match head {
            Some(ItemKind::Step(step)) => ItemKind::Step(Step {
                body: body.statements,
                ..step
            }),
            Some(ItemKind::Eval(eval)) => ItemKind::Eval(Eval {
                body: body.statements,
                ..eval
            }),
            _ => ItemKind::Bad(None),
        };
        (kind, node)
    }

    /// Reports a head that does not parse, and still reads the statements behind it.
    fn broken_block(&self, piece: Piece, a: usize, head: Option<usize>, limit: usize) -> Node {
        let Some(open) = self.body_open(a, limit) else {
            let b = head.unwrap_or_else(|| item_end(self.tokens, a, limit));
            let before = self.reported();
            self.piece(piece, a, b, |_, _| ());
            if self.reported() == before {
                let noun = piece.noun();
                let at = self.tokens.span(b - 1, b);
                let message = format!("expected `{{` after the head of this {noun}");
                let plain = || Diagnostic::error("E001", at, message).help(piece.example());
                self.report(swallowed(self.tokens, a, limit).unwrap_or_else(plain));
            }
            return Node::Verbatim { a, b: limit };
        };
        self.piece(piece, a, open, |_, _| ());
        let end = match piece {
            Piece::Place => self.place_calls(open, limit).1.end,
            _ => self.item_block(open, limit).end,
        };
        Node::Verbatim { a, b: end }
    }

    /// The `{` that opens the block of the item or statement at `a`: the last token of its line.
    pub fn body_open(&self, a: usize, limit: usize) -> Option<usize> {
        (a..limit)
            .take_while(|i| *i == a || !statement_starts(self.tokens, *i))
            .find(|i| self.tokens.at(*i) == "{" && self.tokens.begins_line(i + 1))
    }
}

/// A `step` or `eval` whose body is read apart.
fn block_head(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let is_eval = pair.as_rule() == Rule::eval_head;
    let (mut every, mut over, mut axes, mut options) = (None, None, vec![], vec![]);
    for part in children(pair) {
        match part.as_rule() {
            Rule::expr => every = Some(builder.expr(part)),
            Rule::name => over = Some(builder.name(part)),
            Rule::axes => axes = builder.axes(part),
            Rule::arg => options.extend(builder.arg(part)),
            _ => {}
        }
    }
    let (over, body) = (over?, vec![]);
    Some(if is_eval {
        ItemKind::Eval(Eval {
            every: every?,
            over,
            axes,
            body,
        })
    } else {
        ItemKind::Step(Step {
            over,
            axes,
            options,
            body,
        })
    })
}

fn place_head(builder: &Builder, pair: Pair<'_, Rule>) -> Option<(Name, Expr)> {
    let mut parts = children(pair);
    let program = builder.name(parts.next()?);
    Some((program, builder.expr(parts.next()?)))
}

fn use_item(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    let from = parts.next()?;
    let path = match from.as_rule() {
        Rule::text => UsePath::File(builder.text(&from), builder.span(&from)),
        _ => UsePath::Dotted(children(from).map(|n| builder.name(n)).collect()),
    };
    let names = children(parts.next()?).map(|n| builder.name(n)).collect();
    Some(ItemKind::Use(Use { path, names }))
}

fn param(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let ty = builder.ty(parts.next()?);
    let (mut range, mut default) = (None, None);
    for part in parts {
        let rule = part.as_rule();
        let value = builder.value(children(part).next()?);
        if rule != Rule::range {
            default = Some(value);
            continue;
        }
        if !matches!(value.kind, ExprKind::Range { .. }) {
            let message = "expected a range after `in`";
            builder.report(
                Diagnostic::error("E001", value.span, message)
                    .help("ranges include both ends and may be open: `0..1`, `1..`, `..64`"),
            );
            continue;
        }
        range = Some(value);
    }
    Some(ItemKind::Param(Param {
        name,
        ty,
        range,
        default,
    }))
}

fn data(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let source = builder.expr(parts.next()?);
    let columns = children(parts.next()?)
        .filter_map(|c| column(builder, c))
        .collect();
    Some(ItemKind::Data(Data {
        name,
        source,
        columns,
    }))
}

fn column(builder: &Builder, pair: Pair<'_, Rule>) -> Option<Column> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let ty = builder.ty(parts.next()?);
    let from = parts
        .next()
        .and_then(|source| children(source).next())
        .map(|text| (builder.text(&text), builder.span(&text)));
    Some(Column { name, ty, from })
}

fn model(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let value = builder.value(parts.next()?);
    Some(ItemKind::Model(Model { name, value }))
}

fn reward(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    Some(ItemKind::Reward(Reward {
        name: builder.name(parts.next()?),
        params: params(builder, parts.next()?),
        result: builder.ty(parts.next()?),
        source: builder.expr(parts.next()?),
    }))
}

fn state(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let mut parts = children(pair);
    Some(ItemKind::State(State {
        name: builder.name(parts.next()?),
        ty: builder.ty(parts.next()?),
        init: builder.value(parts.next()?),
    }))
}

type FnHead = (Name, Vec<FnParam>, Option<Type>);

fn fn_head(builder: &Builder, pair: Pair<'_, Rule>) -> Option<FnHead> {
    let mut parts = children(pair);
    let name = builder.name(parts.next()?);
    let params = params(builder, parts.next()?);
    Some((name, params, parts.next().map(|ty| builder.ty(ty))))
}

/// A function whose block is read apart.
fn fn_without_body(builder: &Builder, pair: Pair<'_, Rule>) -> Option<ItemKind> {
    let span = builder.span(&pair);
    let (name, params, result) = fn_head(builder, pair)?;
    Some(ItemKind::Fn(Fn {
        name,
        params,
        result,
        bindings: vec![],
        value: builder.make(span, ExprKind::Bad),
    }))
}

fn params(builder: &Builder, pair: Pair<'_, Rule>) -> Vec<FnParam> {
    children(pair)
        .filter_map(|pair| {
            let mut parts = children(pair);
            let name = builder.name(parts.next()?);
            let ty = builder.ty(parts.next()?);
            let default = parts
                .next()
                .and_then(|d| children(d).next())
                .map(|value| builder.value(value));
            Some(FnParam { name, ty, default })
        })
        .collect()
}
