//! Where items and statements begin and end, decided on tokens alone.
//!
//! The openings looked for (`data d`, `name =`, `train m` at the start of a line) cannot occur inside
//! a correct expression, so a missing bracket in one statement never swallows the next one.

use super::tokens::Tokens;

/// Words that begin an item.
pub(crate) const ITEMS: [&str; 10] = [
    "use", "param", "data", "model", "reward", "state", "fn", "step", "eval", "place",
];

/// Words that begin a statement, beside `name = …`.
pub(crate) const STATEMENTS: [&str; 6] = ["rows", "train", "minimize", "log", "next", "return"];

/// Openings of other languages: they begin a piece of their own, so that the message is about them.
pub(crate) const FOREIGN: [&str; 17] = [
    "def", "class", "import", "from", "for", "while", "let", "const", "var", "function", "func",
    "lambda", "return", "with", "try", "print", "assert",
];

/// How a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Bind,
    Rows,
    Train,
    Minimize,
    Log,
    Next,
    Return,
}

/// Where the items begin. Inside open brackets only what stands no deeper than the item itself counts:
/// there a bracket is missing, while an indented `data d = …` is a misplaced line of a block.
pub(crate) fn item_boundaries(tokens: &Tokens) -> Vec<usize> {
    let mut found = vec![];
    let (mut depth, mut margin) = (0usize, 0);
    for (i, token) in tokens.code.iter().enumerate() {
        if i == 0 || ((depth == 0 || token.indent <= margin) && item_starts(tokens, i)) {
            found.push(i);
            (depth, margin) = (0, token.indent);
        }
        match tokens.at(i) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// Whether an item begins with token `i`.
fn item_starts(tokens: &Tokens, i: usize) -> bool {
    if !tokens.begins_line(i) || !tokens.is_word(i) {
        return false;
    }
    let next = tokens.at(i + 1);
    match tokens.at(i) {
        "step" => next == "over",
        "eval" => next == "every",
        "use" => tokens.is_word(i + 1) || next.starts_with('"'),
        // `reward on gpus(0, 1)` is a line of a plan.
        word if ITEMS.contains(&word) && next == "on" => {
            matches!(tokens.at(i + 2), "=" | ":" | "(")
        }
        word if ITEMS.contains(&word) => tokens.is_name(i + 1),
        word => {
            let margin = tokens.code[i].line_start && tokens.code[i].indent == 0;
            margin
                && tokens.is_name(i + 1)
                && !STATEMENTS.contains(&word)
                && (FOREIGN.contains(&word) || near(word, &ITEMS).is_some())
        }
    }
}

/// How the statement that begins with token `i` opens, if it is one.
pub(crate) fn opening(tokens: &Tokens, i: usize) -> Option<Opening> {
    if !tokens.is_name(i) {
        return None;
    }
    if tokens.at(i + 1) == "=" {
        return Some(Opening::Bind);
    }
    let next_is_name = tokens.is_name(i + 1);
    let another_follows = tokens.begins_line(i + 1)
        && (tokens.at(i + 2) == "=" || STATEMENTS.contains(&tokens.at(i + 1)));
    let value_follows = (tokens.begins_value(i + 1) && !another_follows)
        || matches!(tokens.at(i + 1), "(" | "[" | "-");
    match tokens.at(i) {
        "rows" if next_is_name => Some(Opening::Rows),
        "train" if next_is_name => Some(Opening::Train),
        "next" if next_is_name => Some(Opening::Next),
        "log" if tokens.is_word(i + 1) => Some(Opening::Log),
        "minimize" if value_follows => Some(Opening::Minimize),
        "return" if value_follows => Some(Opening::Return),
        _ => None,
    }
}

/// Whether a statement surely begins with token `i`, whatever stands before it.
pub(crate) fn statement_starts(tokens: &Tokens, i: usize) -> bool {
    if !tokens.begins_line(i) {
        return false;
    }
    let named_above =
        i > 0 && tokens.begins_line(i - 1) && matches!(tokens.at(i - 1), "rows" | "next");
    match opening(tokens, i) {
        Some(Opening::Bind) if named_above => false,
        None => false,
        // `minimize (x)` on a line of its own could go on with what is above.
        Some(Opening::Minimize | Opening::Return)
            if matches!(tokens.at(i + 1), "(" | "-" | "[") =>
        {
            i == 0 || tokens.ends_value(i - 1) || matches!(tokens.at(i - 1), "{" | ";")
        }
        Some(_) => true,
    }
}

/// Whether token `i` begins a line that cannot continue the piece that began at `first`.
fn cannot_continue(tokens: &Tokens, first: usize, i: usize) -> bool {
    let word = tokens.at(i);
    let lone_keyword = i == first + 1
        && (STATEMENTS.contains(&tokens.at(first)) || ITEMS.contains(&tokens.at(first)));
    let closer = matches!(word, ")" | "]" | "}");
    tokens.begins_line(i)
        && (closer || (tokens.begins_value(i) && word != "{"))
        && tokens.ends_value(i - 1)
        && !lone_keyword
        && !joins(word)
        && !joins(tokens.at(i - 1))
}

/// Words between two parts of an item or statement.
fn joins(word: &str) -> bool {
    matches!(word, "in" | "from" | "on" | "over" | "where" | "every")
}

/// Whether an item has as many `{` as `}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Braces {
    Even,
    /// More `{`: indentation tells which block lacks its end.
    Missing,
    /// More `}`.
    Surplus,
}

/// Counts the braces of `a..b`.
pub(crate) fn braces(tokens: &Tokens, a: usize, b: usize) -> Braces {
    let count = |brace| (a..b).filter(|i| tokens.at(*i) == brace).count();
    match count("{").cmp(&count("}")) {
        std::cmp::Ordering::Equal => Braces::Even,
        std::cmp::Ordering::Greater => Braces::Missing,
        std::cmp::Ordering::Less => Braces::Surplus,
    }
}

/// The end of the statement that begins at `first`: one past its last token, at most `limit`.
pub(crate) fn statement_end(tokens: &Tokens, first: usize, limit: usize, braces: Braces) -> usize {
    let mut open = Vec::new();
    for i in first..limit {
        if i > first {
            if statement_starts(tokens, i) {
                return i;
            }
            if open.is_empty() && cannot_continue(tokens, first, i) {
                return i;
            }
        }
        match tokens.at(i) {
            ";" if open.is_empty() => return i,
            "(" | "[" | "{" => open.push(tokens.at(i)),
            ")" | "]" => {
                open.pop();
            }
            "}" if braces != Braces::Even
                && tokens.code[i].line_start
                && tokens.code[i].indent < tokens.code[first].indent =>
            {
                return i;
            }
            "}" => match open.iter().rposition(|o| *o == "{") {
                Some(at) => open.truncate(at),
                None => return i,
            },
            _ => {}
        }
    }
    limit
}

/// The end of the item without a block that begins at `first`.
pub(crate) fn item_end(tokens: &Tokens, first: usize, limit: usize) -> usize {
    let mut depth = 0usize;
    for i in first..limit {
        match tokens.at(i) {
            _ if i > first && depth == 0 && cannot_continue(tokens, first, i) => return i,
            ";" if depth == 0 => return i,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    limit
}

/// The candidate most like `word`, when one is near enough to be a slip of the fingers.
pub(crate) fn near(word: &str, candidates: &[&'static str]) -> Option<&'static str> {
    let limit = match word.len() {
        0..=2 => 0,
        3..=4 => 1,
        _ => 2,
    };
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(word, c), *c))
        .filter(|(d, c)| *d <= limit && *d < c.len() && *d > 0)
        .min()
        .map(|(_, c)| c)
}

/// Unmatched brackets of a range of tokens.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    /// Openers that nothing closes.
    pub open: Vec<usize>,
    /// Closers that close nothing.
    pub stray: Vec<usize>,
    /// An opener and the closer of another kind that stands where its own should.
    pub crossed: Option<(usize, usize)>,
}

/// Matches the brackets of the tokens `a..b`.
pub(crate) fn balance(tokens: &Tokens, a: usize, b: usize) -> Balance {
    let mut found = Balance::default();
    for i in a..b {
        let opener = match tokens.at(i) {
            "(" | "[" | "{" => {
                found.open.push(i);
                continue;
            }
            ")" => "(",
            "]" => "[",
            "}" => "{",
            _ => continue,
        };
        match found.open.last() {
            Some(top) if tokens.at(*top) == opener => {
                found.open.pop();
            }
            Some(top) => {
                let top = *top;
                match found.open.iter().rposition(|o| tokens.at(*o) == opener) {
                    Some(at) => {
                        found.crossed.get_or_insert((top, i));
                        found.open.truncate(at);
                    }
                    None => {
                        found.crossed.get_or_insert((top, i));
                        found.stray.push(i);
                    }
                }
            }
            None => found.stray.push(i),
        }
    }
    found
}
