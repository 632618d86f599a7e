//! The entry points, and the parsing of one piece.

use std::cell::{Cell, RefCell};

use pest::Parser as _;
use pest::error::InputLocation;
use pest::iterators::Pair;

use super::ast::{self, CommentKind, ExprKind};
use super::build::Builder;
use super::explain::{Failure, Piece, explain};
use super::grammar::{Grammar, Rule};
use super::memo::{self, Known};
use super::tokens::Tokens;
use crate::diag::Diagnostic;
use crate::edit;
use crate::source::{FileId, Span};

/// How deep brackets and `if`s may nest in one piece.
const MAX_NESTING: usize = 200;

/// Fixes of one text that are tried out; later ones are left out until these are made.
const TRIED_FIXES: usize = 8;

/// The tree of a text, and what did not parse. Every text gives a tree.
pub fn parse(file: FileId, text: &str) -> (ast::File, Vec<Diagnostic>) {
    let mut parsed = parse_with_layout(file, text);
    keep_fixes_that_hold(file, text, &mut parsed.diagnostics);
    (parsed.file, parsed.diagnostics)
}

/// Takes away the fixes after which something does not parse where they wrote: the word of an item is no
/// mend where no item follows it.
fn keep_fixes_that_hold(file: FileId, text: &str, diagnostics: &mut [Diagnostic]) {
    let before = diagnostics.len();
    let mut tried = 0;
    for d in diagnostics.iter_mut().filter(|d| d.fix.is_some()) {
        tried += 1;
        let holds = |applied: &edit::Applied| {
            let after = parse_with_layout(file, &applied.text).diagnostics;
            let near = |at: Span| (applied.places.iter()).any(|p| p.lo <= at.hi && at.lo <= p.hi);
            after.len() <= before || !after.iter().filter_map(Diagnostic::span).any(near)
        };
        let applied = match tried {
            ..=TRIED_FIXES => edit::apply(text, file, std::slice::from_ref(d)),
            _ => None,
        };
        if !applied.as_ref().is_some_and(holds) {
            d.fix = None;
        }
    }
}

/// A text that is one expression.
pub fn parse_expression(file: FileId, text: &str) -> (ast::Expr, Vec<Diagnostic>) {
    let tokens = Tokens::scan(file, text);
    let reader = Reader::new(&tokens);
    let end = tokens.code.len();
    let expr = if end == 0 {
        let span = Span::new(file, 0, text.len());
        reader.report(
            Diagnostic::error("E001", span, "expected an expression")
                .help("as in `mean(x, T) + 1`"),
        );
        None
    } else {
        reader.piece(Piece::Expression, 0, end, |builder, pair| {
            builder.value(pair)
        })
    };
    let expr = expr.unwrap_or_else(|| reader.bad(tokens.span(0, end)));
    (expr, reader.into_diagnostics())
}

/// A piece of a file as the printer sees it, in token indices.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// An item or statement without a block.
    Line {
        a: usize,
        b: usize,
        /// `name = …` in a block.
        bind: bool,
    },
    /// `head { body }`
    Block {
        a: usize,
        open: usize,
        body: Vec<Node>,
        close: usize,
    },
    /// Did not parse.
    Verbatim { a: usize, b: usize },
}

impl Node {
    /// The first token.
    pub fn first(&self) -> usize {
        match self {
            Node::Line { a, .. } | Node::Block { a, .. } | Node::Verbatim { a, .. } => *a,
        }
    }

    /// One past the last token.
    pub fn end(&self) -> usize {
        match self {
            Node::Line { b, .. } | Node::Verbatim { b, .. } => *b,
            Node::Block { close, .. } => close + 1,
        }
    }
}

/// A tree with what the printer needs.
pub(crate) struct Parsed<'t> {
    pub file: ast::File,
    pub diagnostics: Vec<Diagnostic>,
    pub tokens: Tokens<'t>,
    pub nodes: Vec<Node>,
}

/// Parses, keeping tokens and pieces.
pub(crate) fn parse_with_layout(file: FileId, text: &str) -> Parsed<'_> {
    let tokens = Tokens::scan(file, text);
    let reader = Reader::new(&tokens);
    let (items, nodes) = reader.items();
    let exprs = reader.ids.get();
    let diagnostics = reader.into_diagnostics();
    let doc = doc_lines(&tokens, CommentKind::Module, 0, text.len()).unwrap_or_default();
    let file = ast::File {
        id: file,
        doc,
        items,
        comments: tokens.comments.clone(),
        exprs,
    };
    Parsed {
        file,
        diagnostics,
        tokens,
        nodes,
    }
}

/// The comments of one kind that stand alone on their lines in `lo..hi`, one space taken from each.
pub(crate) fn doc_lines(
    tokens: &Tokens,
    kind: CommentKind,
    lo: usize,
    hi: usize,
) -> Option<String> {
    let from = tokens
        .comments
        .partition_point(|c| (c.span.lo as usize) < lo);
    let lines: Vec<&str> = tokens.comments[from..]
        .iter()
        .zip(&tokens.comment_line_start[from..])
        .take_while(|(c, _)| (c.span.hi as usize) <= hi)
        .filter(|(c, alone)| c.kind == kind && **alone)
        .map(|(c, _)| c.text.strip_prefix(' ').unwrap_or(&c.text))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Reads a file piece by piece.
pub(crate) struct Reader<'a, 't> {
    pub tokens: &'a Tokens<'t>,
    pub ids: Cell<u32>,
    pub diagnostics: RefCell<Vec<Diagnostic>>,
}

impl<'a, 't> Reader<'a, 't> {
    pub fn new(tokens: &'a Tokens<'t>) -> Self {
        let reader = Reader {
            tokens,
            ids: Cell::new(0),
            diagnostics: RefCell::new(vec![]),
        };
        reader.hash_comments();
        reader.divisions();
        reader
    }

    /// `# …` is read as a comment and reported once.
    fn hash_comments(&self) {
        let text = self.tokens.text.as_bytes();
        let comments = self.tokens.comments.iter();
        // In `'#'` it is the single quotes that are wrong.
        let quoted = |lo: usize| lo > 0 && text[lo - 1] == b'\'';
        let mut hashes = comments.filter(|c| {
            let lo = c.span.lo as usize;
            text.get(lo) == Some(&b'#') && !quoted(lo)
        });
        let Some(first) = hashes.next() else {
            return;
        };
        let lo = first.span.lo as usize;
        let mut edits = vec![(Span::new(first.span.file, lo, lo + 1), "//".to_string())];
        for other in hashes {
            let lo = other.span.lo as usize;
            edits.push((Span::new(other.span.file, lo, lo + 1), "//".to_string()));
        }
        let message = match edits.len() {
            1 => "a comment begins with `//`, not `#`".to_string(),
            n => format!("comments begin with `//`, not `#` ({n} in this file)"),
        };
        self.report(Diagnostic::error("E001", edits[0].0, message).fix("write `//`", edits));
    }

    /// `x = r // 3`: a number alone behind code was to divide.
    fn divisions(&self) {
        let comments = self
            .tokens
            .comments
            .iter()
            .zip(&self.tokens.comment_line_start);
        for (c, alone) in comments {
            let number = c.text.trim().trim_end_matches(')').parse::<f64>().is_ok();
            if c.kind != CommentKind::Line || *alone || !number {
                continue;
            }
            self.report(
                Diagnostic::error(
                    "E001",
                    c.span,
                    "`//` begins a comment, so nothing is divided here",
                )
                .help("`a / b` divides, `floor(a / b)` rounds down"),
            );
        }
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// How many diagnostics there are by now.
    pub fn reported(&self) -> usize {
        self.diagnostics.borrow().len()
    }

    /// In the order of the text.
    fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut all = self.diagnostics.into_inner();
        all.sort_by_key(|d| d.span().map_or(0, |s| s.lo));
        all
    }

    /// An expression that stands for what did not parse.
    pub fn bad(&self, span: Span) -> ast::Expr {
        let id = self.ids.get();
        self.ids.set(id + 1);
        ast::Expr {
            id: ast::ExprId(id),
            span,
            kind: ExprKind::Bad,
        }
    }

    /// Parses the tokens `a..b` as one piece and builds its node; a failure is reported.
    pub fn piece<T>(
        &self,
        piece: Piece,
        a: usize,
        b: usize,
        build: impl FnOnce(&Builder, Pair<'_, Rule>) -> T,
    ) -> Option<T> {
        let tokens = self.tokens;
        if let Some(deep) = too_deep(tokens, a, b) {
            self.report(
                Diagnostic::error(
                    "E001",
                    tokens.span(deep, deep + 1),
                    format!("this nests deeper than {MAX_NESTING} levels"),
                )
                .help("bind parts of it to names of their own"),
            );
            return None;
        }
        let range = tokens.span(a, b).range();
        let offset = range.start;
        match Grammar::parse(piece.rule(), &tokens.text[range]) {
            Ok(mut pairs) => {
                let builder = Builder {
                    tokens,
                    offset,
                    ids: &self.ids,
                    diagnostics: &self.diagnostics,
                    depth: Cell::new(0),
                };
                pairs.next().map(|pair| build(&builder, pair))
            }
            Err(error) => {
                let at = match error.location {
                    InputLocation::Pos(at) | InputLocation::Span((at, _)) => offset + at,
                };
                let expected = match error.variant {
                    pest::error::ErrorVariant::ParsingError { positives, .. } => positives,
                    pest::error::ErrorVariant::CustomError { .. } => vec![],
                };
                let failure = Failure {
                    piece,
                    a,
                    b,
                    at: tokens.index_at(at).clamp(a, b),
                    expected,
                };
                self.report(explain(tokens, &failure));
                None
            }
        }
    }

    /// Like [`Reader::piece`], for a statement: one parsed before is not parsed again.
    pub fn statement_piece(
        &self,
        piece: Piece,
        a: usize,
        b: usize,
        build: impl FnOnce(&Builder, Pair<'_, Rule>) -> Option<ast::StmtKind>,
    ) -> Option<ast::StmtKind> {
        let known = |k| match k {
            Known::Statement(s) => Some(s),
            Known::Item(_) => None,
        };
        let parse = || self.piece(piece, a, b, build).flatten();
        self.remembered(piece, a, b, known, parse, Known::Statement)
    }

    /// Like [`Reader::piece`], for an item without a block.
    pub fn item_piece(
        &self,
        piece: Piece,
        a: usize,
        b: usize,
        build: impl FnOnce(&Builder, Pair<'_, Rule>) -> Option<ast::ItemKind>,
    ) -> Option<ast::ItemKind> {
        let known = |k| match k {
            Known::Item(i) => Some(i),
            Known::Statement(_) => None,
        };
        let parse = || self.piece(piece, a, b, build).flatten();
        self.remembered(piece, a, b, known, parse, Known::Item)
    }

    fn remembered<T: Clone>(
        &self,
        piece: Piece,
        a: usize,
        b: usize,
        known: impl FnOnce(Known) -> Option<T>,
        parse: impl FnOnce() -> Option<T>,
        keep: impl FnOnce(T) -> Known,
    ) -> Option<T> {
        let span = self.tokens.span(a, b);
        let text = &self.tokens.text[span.range()];
        let place = memo::Place {
            file: span.file,
            lo: span.lo as usize,
            id: self.ids.get(),
        };
        if let Some((found, ids)) = memo::recall(piece, text, place)
            && let Some(found) = known(found)
        {
            self.ids.set(place.id + ids);
            return Some(found);
        }
        let before = self.reported();
        let made = parse()?;
        if self.reported() == before {
            let ids = self.ids.get() - place.id;
            memo::remember(piece, text, place, ids, keep(made.clone()));
        }
        Some(made)
    }

    /// Where a rule that begins at `a` ends, if it matches the front of `a..limit`.
    pub fn prefix(&self, rule: Rule, a: usize, limit: usize) -> Option<usize> {
        if too_deep(self.tokens, a, limit).is_some() {
            return None;
        }
        let range = self.tokens.span(a, limit).range();
        let offset = range.start;
        let text = &self.tokens.text[range];
        let matched = memo::front(rule, text, || {
            let pair = Grammar::parse(rule, text).ok()?.next()?;
            Some(pair.as_span().end())
        })?;
        let end = self.tokens.trim(offset, offset + matched).hi;
        Some(self.tokens.index_at(end as usize).clamp(a, limit))
    }
}

/// The token at which the pieces `a..b` nests too deep to be parsed.
fn too_deep(tokens: &Tokens, a: usize, b: usize) -> Option<usize> {
    let mut depth = 0usize;
    for i in a..b {
        match tokens.at(i) {
            "(" | "[" | "{" | "if" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Some(i);
        }
    }
    None
}
