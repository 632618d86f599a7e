//! Any text as tokens: the ground that splitting, messages and the printer stand on.

use super::ast::{Comment, CommentKind};
use super::scan::Scanner;
use crate::source::{FileId, Span};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    BadNumber,
    Text,
    /// A text without its closing quote; it ends with its line.
    OpenText,
    Mark,
    /// Characters the language does not use.
    Other,
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub lo: usize,
    pub hi: usize,
    /// Nothing but white space stands before it on its line.
    pub line_start: bool,
    /// Bytes of white space before the first token of its line.
    pub indent: usize,
}

/// The tokens of a text, comments apart.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'t> {
    pub file: FileId,
    pub text: &'t str,
    pub code: Vec<Token>,
    pub comments: Vec<Comment>,
    /// For each comment, whether it is alone on its line.
    pub comment_line_start: Vec<bool>,
}

impl<'t> Tokens<'t> {
    /// Scans a text; every text scans.
    pub fn scan(file: FileId, text: &'t str) -> Self {
        let mut tokens = Tokens {
            file,
            text,
            code: vec![],
            comments: vec![],
            comment_line_start: vec![],
        };
        let (mut end, mut indent) = (0, 0);
        let mut scanner = Scanner { text, at: 0 };
        // Whether the line holds nothing yet but `;`, which the printer leaves out.
        let mut bare = true;
        while let Some((kind, lo)) = scanner.next() {
            let hi = scanner.at;
            let gap = &text.as_bytes()[end..lo];
            let newline = gap.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
            let line_start = newline.is_some() || end == 0;
            if line_start {
                indent = gap.len() - newline.map_or(0, |n| n + 1);
                bare = true;
            }
            end = hi;
            let Some(kind) = kind else {
                tokens.comments.push(comment(file, lo, &text[lo..hi]));
                tokens.comment_line_start.push(bare);
                continue;
            };
            bare &= &text[lo..hi] == ";";
            tokens.code.push(Token {
                kind,
                lo,
                hi,
                line_start,
                indent,
            });
        }
        tokens
    }

    /// The text of token `i`; empty past the end.
    pub fn at(&self, i: usize) -> &'t str {
        self.code.get(i).map_or("", |t| &self.text[t.lo..t.hi])
    }

    /// Whether token `i` is a word.
    pub fn is_word(&self, i: usize) -> bool {
        self.code.get(i).is_some_and(|t| t.kind == TokenKind::Word)
    }

    /// Whether token `i` is a word that can be a name.
    pub fn is_name(&self, i: usize) -> bool {
        self.is_word(i) && !is_hard(self.at(i))
    }

    /// Whether token `i` begins a line or follows a `;`.
    pub fn begins_line(&self, i: usize) -> bool {
        self.code.get(i).is_some_and(|t| t.line_start) || (i > 0 && self.at(i - 1) == ";")
    }

    /// Whether an expression can end with token `i`.
    pub fn ends_value(&self, i: usize) -> bool {
        let Some(token) = self.code.get(i) else {
            return false;
        };
        match token.kind {
            TokenKind::Word => !is_hard(self.at(i)) || matches!(self.at(i), "true" | "false"),
            TokenKind::Number | TokenKind::BadNumber => true,
            TokenKind::Text | TokenKind::OpenText => true,
            TokenKind::Mark => matches!(self.at(i), ")" | "]" | "}"),
            TokenKind::Other => false,
        }
    }

    /// Whether an expression can begin with token `i` and could not go on with it.
    pub fn begins_value(&self, i: usize) -> bool {
        let Some(token) = self.code.get(i) else {
            return false;
        };
        match token.kind {
            TokenKind::Word => !matches!(self.at(i), "then" | "else" | "and" | "or"),
            TokenKind::Mark => self.at(i) == "{",
            TokenKind::Other => false,
            _ => true,
        }
    }

    /// The span of the tokens `a..b`; an empty range gives the empty span before `a`.
    pub fn span(&self, a: usize, b: usize) -> Span {
        let lo = self.code.get(a).map_or(self.text.len(), |t| t.lo);
        let hi = match b.checked_sub(1).and_then(|last| self.code.get(last)) {
            Some(last) if b > a => last.hi,
            _ => lo,
        };
        Span::new(self.file, lo, hi)
    }

    /// `lo..hi` without the white space and comments at its end.
    pub fn trim(&self, lo: usize, hi: usize) -> Span {
        let after = self.code.partition_point(|t| t.hi <= hi);
        let end = after.checked_sub(1).map_or(lo, |last| self.code[last].hi);
        Span::new(self.file, lo, end.max(lo))
    }

    /// The first token that ends after `offset`.
    pub fn index_at(&self, offset: usize) -> usize {
        self.code.partition_point(|t| t.hi <= offset)
    }
}

/// Words that cannot be names.
pub(crate) fn is_hard(word: &str) -> bool {
    matches!(
        word,
        "if" | "then" | "else" | "and" | "or" | "not" | "true" | "false"
    )
}

fn comment(file: FileId, lo: usize, text: &str) -> Comment {
    let text = text.trim_end();
    let (kind, marker) = if text.starts_with("//!") {
        (CommentKind::Module, 3)
    } else if text.starts_with("///") && !text.starts_with("////") {
        (CommentKind::Doc, 3)
    } else {
        (CommentKind::Line, if text.starts_with('#') { 1 } else { 2 })
    };
    Comment {
        span: Span::new(file, lo, lo + text.len()),
        kind,
        text: text[marker..].to_string(),
    }
}
