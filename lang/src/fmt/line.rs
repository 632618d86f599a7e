//! One item head or statement: spaces, and where a long one is broken.

use super::WIDTH;
use super::print::Printer;
use crate::syntax::tokens::{Tokens, is_hard};

/// More bracket groups than this in one row are all broken at once.
const MANY_GROUPS: usize = 40;

/// The piece that a token belongs to.
#[derive(Clone, Copy)]
struct Piece {
    /// Its first token.
    first: usize,
    /// The width of the name before `=`, for a binding of a block.
    pad: Option<usize>,
}

/// A matched pair of brackets, by their tokens.
#[derive(Clone, Copy)]
struct Group {
    open: usize,
    close: usize,
}

impl Printer<'_, '_> {
    /// The tokens `a..b`, at the current place of a line with this indentation.
    pub fn line(&mut self, a: usize, b: usize, indent: usize, pad: Option<usize>) {
        let piece = Piece { first: a, pad };
        let width = indent + flat_width(self.tokens, piece, a, b);
        let commented = b > a && self.comment_before(self.tokens.code[b - 1].lo);
        if self.tokens.at(a) == "log" && pad.is_none() && width > WIDTH && !commented {
            return self.metrics(piece, a, b, indent);
        }
        self.run(piece, a, b, indent, 0);
    }

    /// A long `log`, one metric a line.
    fn metrics(&mut self, piece: Piece, a: usize, b: usize, indent: usize) {
        let all = parts(self.tokens, Group { open: a, close: b });
        let inner = indent + "log ".len();
        self.out.push_str("log ");
        for (k, (from, to)) in all.iter().enumerate() {
            if k > 0 {
                self.out.push(',');
                self.newline(inner, false);
            }
            self.run(piece, *from, *to, inner, 1);
        }
    }

    /// Prints `a..b`; `tail` columns follow on the same line.
    fn run(&mut self, piece: Piece, a: usize, b: usize, indent: usize, tail: usize) {
        if b <= a {
            return;
        }
        let commented = self.comment_before(self.tokens.code[b - 1].lo);
        let width = flat_width(self.tokens, piece, a, b);
        if !commented && self.column() + width + tail <= WIDTH {
            for i in a..b {
                self.token(piece, a, b, i, indent);
            }
            return;
        }
        let broken = self.broken_groups(piece, a, b, indent, tail);
        let mut i = a;
        while i < b {
            self.token(piece, a, b, i, indent);
            match broken.iter().find(|g| g.open == i) {
                Some(group) => {
                    self.group(piece, *group, indent);
                    i = group.close + 1;
                }
                None => i += 1,
            }
        }
    }

    /// One token, and what separates it from the one before.
    fn token(&mut self, piece: Piece, a: usize, b: usize, i: usize, indent: usize) {
        if dropped(self.tokens, i, b) {
            return;
        }
        if self.inner_comments(i, indent + 2) {
            self.newline(indent + 2, false);
        } else if i > a {
            let spaces = spaces(self.tokens, piece, i);
            self.out.extend(std::iter::repeat_n(' ', spaces));
        }
        self.out.push_str(self.tokens.at(i));
    }

    /// The content of a broken group, one part a line, and its closer.
    fn group(&mut self, piece: Piece, group: Group, indent: usize) {
        let inner = indent + 2;
        let parts = parts(self.tokens, group);
        let comma = parts.len() > 1;
        for (from, to) in &parts {
            // Comments on lines of their own stand above the part they precede.
            self.inner_comments(*from, inner);
            self.newline(inner, false);
            self.run(piece, *from, *to, inner, usize::from(comma));
            if comma {
                self.out.push(',');
            }
        }
        self.inner_comments(group.close, inner);
        self.newline(indent, false);
        self.out.push_str(self.tokens.at(group.close));
    }

    /// The groups of `a..b` that are broken: those with comments in them, then the widest ones until
    /// the lines fit.
    fn broken_groups(
        &self,
        piece: Piece,
        a: usize,
        b: usize,
        indent: usize,
        tail: usize,
    ) -> Vec<Group> {
        let tokens = self.tokens;
        let all: Vec<Group> = groups(tokens, a, b).into_iter().collect();
        let commented = |g: &Group| {
            let (lo, hi) = (tokens.code[g.open].hi, tokens.code[g.close].lo);
            let next = tokens
                .comments
                .partition_point(|c| (c.span.lo as usize) < lo);
            tokens
                .comments
                .get(next)
                .is_some_and(|c| (c.span.lo as usize) < hi)
        };
        let (mut broken, mut rest): (Vec<Group>, Vec<Group>) =
            all.into_iter().partition(|g| commented(g));
        rest.retain(|g| g.close > g.open + 1);
        if rest.len() > MANY_GROUPS {
            broken.append(&mut rest);
            broken.sort_by_key(|g| g.open);
            return broken;
        }
        rest.sort_by_key(|g| flat_width(tokens, piece, g.open, g.close + 1));
        while self.widest(piece, a, b, indent, &broken) + tail > WIDTH {
            let Some(next) = rest.pop() else {
                break;
            };
            broken.push(next);
            broken.sort_by_key(|g| g.open);
        }
        broken
    }

    /// The widest of the lines that `a..b` takes, the content of broken groups left out.
    fn widest(&self, piece: Piece, a: usize, b: usize, indent: usize, broken: &[Group]) -> usize {
        let mut column = self.column();
        let mut widest = 0;
        let mut from = a;
        for group in broken {
            column += flat_width(self.tokens, piece, from, group.open + 1);
            widest = widest.max(column);
            column = indent;
            from = group.close;
        }
        widest.max(column + flat_width(self.tokens, piece, from, b))
    }

    /// Columns taken on the current line.
    fn column(&self) -> usize {
        let line = self.out.rfind('\n').map_or(0, |n| n + 1);
        self.out[line..].chars().count()
    }
}

/// The outermost groups of `a..b`, in order.
fn groups(tokens: &Tokens, a: usize, b: usize) -> Vec<Group> {
    let mut found = vec![];
    let mut open = vec![];
    for i in a..b {
        match tokens.at(i) {
            "(" | "[" | "{" => open.push(i),
            ")" | "]" | "}" => {
                if let Some(start) = open.pop()
                    && open.is_empty()
                {
                    found.push(Group {
                        open: start,
                        close: i,
                    });
                }
            }
            _ => {}
        }
    }
    found
}

/// What the commas of a group separate.
fn parts(tokens: &Tokens, group: Group) -> Vec<(usize, usize)> {
    let mut found = vec![];
    let mut depth = 0usize;
    let mut from = group.open + 1;
    for i in group.open + 1..group.close {
        match tokens.at(i) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                found.push((from, i));
                from = i + 1;
            }
            _ => {}
        }
    }
    if from < group.close {
        found.push((from, group.close));
    }
    found
}

/// A comma with nothing behind it is not printed; a broken group writes its own.
fn dropped(tokens: &Tokens, i: usize, b: usize) -> bool {
    tokens.at(i) == "," && (i + 1 == b || matches!(tokens.at(i + 1), ")" | "]" | "}"))
}

/// The width of `a..b` on one line.
fn flat_width(tokens: &Tokens, piece: Piece, a: usize, b: usize) -> usize {
    (a..b)
        .filter(|i| !dropped(tokens, *i, b))
        .map(|i| {
            let before = if i > a { spaces(tokens, piece, i) } else { 0 };
            before + tokens.at(i).chars().count()
        })
        .sum()
}

/// How many spaces stand before token `i`.
fn spaces(tokens: &Tokens, piece: Piece, i: usize) -> usize {
    match piece.pad {
        Some(pad) if i == piece.first + 1 => (pad + 1)
            .saturating_sub(tokens.at(piece.first).len())
            .max(1),
        _ => usize::from(spaced(tokens, piece, i)),
    }
}

fn spaced(tokens: &Tokens, piece: Piece, i: usize) -> bool {
    let before = i - 1;
    let (one, two) = (tokens.at(before), tokens.at(i));
    let after_value = tokens.ends_value(before) && !is_keyword(tokens, piece, before);
    match (one, two) {
        (_, "," | ";" | ":" | ")" | "]") => false,
        ("(" | "[" | ".", _) | (_, ".") => false,
        ("{", "}") => false,
        ("{", _) | (_, "}") => true,
        ("-", _) if is_prefix(tokens, piece, before) => false,
        (_, "..") => !after_value,
        ("..", "=") => true,
        ("..", _) => false,
        (_, "(") => !tokens.is_word(before) || is_hard(one) || is_keyword(tokens, piece, before),
        (_, "[") => !after_value,
        _ => true,
    }
}

/// Whether token `i` is a `-` before its only operand.
fn is_prefix(tokens: &Tokens, piece: Piece, i: usize) -> bool {
    tokens.at(i) == "-"
        && (i == piece.first || !tokens.ends_value(i - 1) || is_keyword(tokens, piece, i - 1))
}

/// Whether the word at `i` is there for its meaning and names nothing.
fn is_keyword(tokens: &Tokens, piece: Piece, i: usize) -> bool {
    if piece.pad.is_some() {
        return false;
    }
    let word = tokens.at(i);
    if i == piece.first {
        return matches!(word, "minimize" | "return");
    }
    match tokens.at(piece.first) {
        "param" => word == "in" && i > piece.first + 2,
        "rows" => word == "where" && i > piece.first + 3,
        "eval" => word == "every" && i == piece.first + 1,
        _ => word == "on" && i > piece.first,
    }
}
