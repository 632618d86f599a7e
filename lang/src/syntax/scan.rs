//! The tokens of a text by hand: what the rule `tokens` of the grammar says, many times as fast.
//!
//! The rule is the specification; a test holds the two against each other on any text.

use super::tokens::TokenKind;

/// Marks of two characters; every other one is a single character.
const PAIRS: [&[u8; 2]; 15] = [
    b"->", b"..", b"==", b"!=", b"<=", b">=", b"=>", b":=", b"+=", b"-=", b"*=", b"/=", b"&&",
    b"||", b"**",
];

/// Walks over a text.
pub(crate) struct Scanner<'t> {
    pub text: &'t str,
    /// The next byte.
    pub at: usize,
}

impl Scanner<'_> {
    /// The next token and where it begins; its kind is `None` for a comment. It ends at `at`.
    pub fn next(&mut self) -> Option<(Option<TokenKind>, usize)> {
        self.white_space();
        let lo = self.at;
        let first = self.byte(0)?;
        let kind = match first {
            b'/' if self.byte(1) == Some(b'/') => self.comment(),
            b'#' => self.comment(),
            b'"' => Some(self.text_literal()),
            b'0'..=b'9' => Some(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.while_word();
                Some(TokenKind::Word)
            }
            _ if self.mark() => Some(TokenKind::Mark),
            _ => {
                self.other();
                Some(TokenKind::Other)
            }
        };
        Some((kind, lo))
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn white_space(&mut self) {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(0xc2 | 0xef) if self.rest().starts_with(['\u{a0}', '\u{feff}']) => {
                    self.at += self.rest().chars().next().map_or(1, char::len_utf8);
                }
                _ => return,
            }
        }
    }

    fn comment(&mut self) -> Option<TokenKind> {
        let rest = &self.text.as_bytes()[self.at..];
        let end = rest.iter().position(|b| *b == b'\n');
        self.at += end.unwrap_or(rest.len());
        None
    }

    /// `"…"` with escapes; without its closing quote it ends with its line.
    fn text_literal(&mut self) -> TokenKind {
        self.at += 1;
        while let Some(b) = self.byte(0) {
            match b {
                b'"' => {
                    self.at += 1;
                    return TokenKind::Text;
                }
                b'\n' | b'\r' => break,
                b'\\' => match self.byte(1) {
                    Some(b'\n' | b'\r') | None => {
                        self.at += 1;
                        break;
                    }
                    Some(_) => {
                        self.at += 1;
                        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    }
                },
                _ => self.at += 1,
            }
        }
        TokenKind::OpenText
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        self.digits();
        let whole = self.at;
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                self.at = whole;
            }
        }
        let mantissa = self.at;
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                self.at = mantissa;
            }
        }
        if !self.byte(0).is_some_and(is_word) {
            return TokenKind::Number;
        }
        self.at = start;
        self.while_word();
        TokenKind::BadNumber
    }

    /// Digits with single `_` between them; false when there are none.
    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
            let more = self.byte(1).is_some_and(|b| b.is_ascii_digit());
            if self.byte(0) == Some(b'_') && more {
                self.at += 1;
            }
        }
        self.at > start
    }

    fn while_word(&mut self) {
        while self.byte(0).is_some_and(is_word) {
            self.at += 1;
        }
    }

    fn mark(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        if PAIRS.iter().any(|p| rest.starts_with(&p[..])) {
            self.at += 2;
            return true;
        }
        let single = rest
            .first()
            .is_some_and(|b| b"()[]{},;:.=<>+-*/%^|!&?@$~'`\\".contains(b));
        if single {
            self.at += 1;
        }
        single
    }

    /// Characters that the language does not use: a run of those beyond ASCII, or one of ASCII.
    fn other(&mut self) {
        let start = self.at;
        while let Some(c) = self.rest().chars().next() {
            if c.is_ascii() || matches!(c, '\u{a0}' | '\u{feff}') {
                break;
            }
            self.at += c.len_utf8();
        }
        if self.at == start {
            self.at += 1;
        }
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

#[cfg(test)]
mod tests {
    use pest::Parser as _;
    use proptest::prelude::*;

    use super::super::grammar::{Grammar, Rule};
    use super::*;

    /// Tokens as the grammar's rule has them.
    fn specified(text: &str) -> Vec<(Option<TokenKind>, usize, usize)> {
        let all = Grammar::parse(Rule::tokens, text).expect("the rule takes any text");
        let all = all.flat_map(|p| p.into_inner());
        all.filter(|p| p.as_rule() != Rule::EOI)
            .map(|p| {
                let kind = match p.as_rule() {
                    Rule::word => Some(TokenKind::Word),
                    Rule::number => Some(TokenKind::Number),
                    Rule::bad_number => Some(TokenKind::BadNumber),
                    Rule::text => Some(TokenKind::Text),
                    Rule::open_text => Some(TokenKind::OpenText),
                    Rule::mark => Some(TokenKind::Mark),
                    Rule::comment => None,
                    _ => Some(TokenKind::Other),
                };
                (kind, p.as_span().start(), p.as_span().end())
            })
            .collect()
    }

    fn scanned(text: &str) -> Vec<(Option<TokenKind>, usize, usize)> {
        let mut scanner = Scanner { text, at: 0 };
        let mut found = vec![];
        while let Some((kind, lo)) = scanner.next() {
            found.push((kind, lo, scanner.at));
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn the_scanner_is_the_grammar_on_any_text(text in "\\PC{0,60}") {
            prop_assert_eq!(scanned(&text), specified(&text));
        }

        #[test]
        fn the_scanner_is_the_grammar_on_pieces_of_programs(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "a", "_b", "1", "1_0", "1__", "1_", "1.", "1.5", "1..2", "1e5", "1e", "1e+", "1e-3", "1.e", "2x",
                "0_.5", "1.5_", "\"", "\"a\"", "\"\\", "\\\"", "\n", "\r", "\t", " ", "\u{a0}", "\u{feff}", "é", "😀", "//", "/", "#",
                "!", "=", "==", "=>", ":=", ":", "..", ".", "->", "-", "&&", "&", "|", "||", "*", "**", "*=", "\0", "'",
                "`", "$", "(", "]", "{", ",", ";", "^", "%", "?", "@", "~", "<", "<=", "e", "E", "+",
            ]), 0..24),
        ) {
            let text = pieces.concat();
            prop_assert_eq!(scanned(&text), specified(&text));
        }
    }
}
