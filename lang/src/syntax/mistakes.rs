//! Mistakes people make, each with its own sentence.

use super::explain::{Failure, Piece, is_mark, shown};
use super::grammar::Rule;
use super::python;
use super::split::{FOREIGN, ITEMS, STATEMENTS, balance, near};
use super::tokens::{TokenKind, Tokens};
use crate::diag::Diagnostic;
use crate::source::Span;

fn error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("E001", span, message)
}

/// The known mistake behind a failure, if it is one.
pub(crate) fn find(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    lexical(tokens, failure)
        .or_else(|| swallowed(tokens, failure.a, failure.b))
        .or_else(|| comma_before_block(tokens, failure))
        .or_else(|| foreign_word(tokens, failure))
        .or_else(|| equals_sign(tokens, failure))
        .or_else(|| python::index(tokens, failure))
        .or_else(|| brackets(tokens, failure))
        .or_else(|| conditional(tokens, failure))
        .or_else(|| comma(tokens, failure))
        .or_else(|| python::find(tokens, failure))
        .or_else(|| shape(tokens, failure))
}

/// `a // 2]`: what was to divide begins a comment, and the bracket is in it.
pub(crate) fn swallowed(tokens: &Tokens, a: usize, b: usize) -> Option<Diagnostic> {
    let piece = tokens.span(a, b);
    let begin = tokens.comments.partition_point(|c| c.span.lo < piece.lo);
    let comments = tokens.comments[begin..]
        .iter()
        .zip(&tokens.comment_line_start[begin..]);
    for (comment, alone) in comments {
        let next = tokens.index_at(comment.span.lo as usize);
        if next > b || comment.span.lo > piece.hi + 1 {
            break;
        }
        // `#` begins a comment too, with a message of its own.
        let text = &tokens.text[comment.span.range()];
        let open = innermost(tokens, a, next.min(b)).map(|open| partner(tokens.at(open)));
        let closes = open.is_some_and(|close| comment.text.contains(close));
        if !alone && closes && text.starts_with("//") {
            let lo = comment.span.lo as usize;
            let slashes = Span::new(comment.span.file, lo, lo + 2);
            return Some(
                error(
                    slashes,
                    "`//` begins a comment, so the rest of this line is not read",
                )
                .help("`floor(a / b)` divides and rounds down"),
            );
        }
    }
    None
}

/// Tokens that the language does not have, up to where parsing stopped.
fn lexical(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let last = (failure.at + 1).min(failure.b);
    (failure.a..last).find_map(|i| {
        let here = tokens.span(i, i + 1);
        let replace = |right: &str| vec![(here, right.to_string())];
        let text = tokens.at(i);
        Some(match tokens.code[i].kind {
            TokenKind::OpenText => error(here, "this text has no closing `\"`")
                .help("a text ends on the line it begins on; `\\n` in it is a line break"),
            TokenKind::BadNumber => error(here, format!("`{text}` is not a number"))
                .help("numbers are written `8`, `1_000`, `0.5`, `1e-5`; names begin with a letter"),
            TokenKind::Other if text.contains(['“', '”', '„', '‘', '’']) => {
                error(here, "a text stands between straight quotes, `\"`")
            }
            TokenKind::Other => error(here, format!("`{}` is not part of the language", shown(tokens, i)))
                .help("names have the letters a to z, digits and `_`; anything may stand in a text or a comment"),
            TokenKind::Mark => match text {
                "&&" => error(here, "`&&` is written `and`").fix("write `and`", replace("and")),
                "||" => error(here, "`||` is written `or`").fix("write `or`", replace("or")),
                "**" => error(here, "`**` is written `^`").fix("write `^`", replace("^")),
                "!" => error(here, "`!` is written `not`").fix("write `not`", replace("not ")),
                "'" => python::single_quotes(tokens, here),
                "&" => error(here, "`&` is written `and`").help("as in `a > 0 and b > 0`"),
                "+=" | "-=" | "*=" | "/=" => error(here, format!("`{text}` does not exist: a binding is never changed"))
                    .help("bind a new name, or carry a `state` to the next iteration with `next`"),
                ":=" => error(here, "`:=` is written `=`").fix("write `=`", replace("=")),
                "=>" => error(here, "`=>` has no meaning here").help("`>=` compares; `->` stands before a result type"),
                "?" => error(here, "`?` has no meaning here").help("choose with `if c then a else b`"),
                "@" | "$" | "~" | "`" | "\\" => error(here, format!("`{text}` has no meaning here")),
                _ => return None,
            },
            _ => return None,
        })
    })
}

/// Words of other languages at the place where parsing stopped, or just before.
fn foreign_word(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    let here = |i: usize| tokens.span(i, i + 1);
    let before = at.checked_sub(1).filter(|i| *i >= a);
    for i in before.into_iter().chain([at]).filter(|i| *i < b) {
        match tokens.at(i) {
            "lambda" if i < at => {
                return Some(
                    error(here(i), "there is no `lambda`: functions have names")
                        .help("as in `fn half(x: float[..]) -> float[..] = x / 2`"),
                );
            }
            "for" if i == at => {
                return Some(
                    error(here(i), "there is no `for`: operations work on whole axes")
                        .help("`x * y` multiplies element by element, `sum(x, T)` adds along `T`"),
                );
            }
            "elif" if i == at => {
                return Some(
                    error(here(i), "`elif` is written `else if`")
                        .fix("write `else if`", vec![(here(i), "else if".into())]),
                );
            }
            "is" if i == at => {
                return Some(
                    error(here(i), "`is` is written `==`")
                        .fix("write `==`", vec![(here(i), "==".into())]),
                );
            }
            "in" if i == at && failure.piece != Piece::Param => {
                return Some(
                    error(here(i), "`in` stands only behind the type of a `param`")
                        .help("`contains(text, part)` looks into a text"),
                );
            }
            _ => {}
        }
    }
    None
}

/// `=` where something else is meant.
fn equals_sign(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    if at >= b || tokens.at(at) != "=" || at == a {
        return None;
    }
    let here = tokens.span(at, at + 1);
    let condition = (a..at)
        .rev()
        .take_while(|i| !matches!(tokens.at(*i), "then" | "else"))
        .any(|i| matches!(tokens.at(i), "if" | "where"));
    if condition {
        return Some(
            error(here, "`=` gives a name to a value; `==` compares")
                .fix("write `==`", vec![(here, "==".into())]),
        );
    }
    let opener = innermost(tokens, a, at)?;
    let labelled = tokens.is_word(at - 1) && matches!(tokens.at(at - 2), "(" | "," | "{" | "[");
    if labelled && opener < at {
        let word = tokens.at(at - 1);
        let gap = Span::new(here.file, tokens.code[at - 1].hi, here.hi as usize);
        let message = format!("the label `{word}` is followed by `:`, not `=`");
        return Some(error(here, message).fix("write `:`", vec![(gap, ":".into())]));
    }
    None
}

/// Brackets without a partner.
fn brackets(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    let found = balance(tokens, a, b);
    if let Some((open, close)) = found.crossed.filter(|(_, close)| *close <= at) {
        let (opener, closer) = (tokens.at(open), tokens.at(close));
        let message = format!("this `{opener}` is closed by `{closer}`");
        let mut diagnostic = error(tokens.span(close, close + 1), message)
            .label(tokens.span(open, open + 1), "opened here");
        diagnostic = diagnostic.help(format!("expected `{}`", partner(opener)));
        return Some(diagnostic);
    }
    if let Some(stray) = found.stray.iter().find(|s| **s <= at) {
        let here = tokens.span(*stray, stray + 1);
        return Some(
            error(here, format!("this `{}` closes nothing", tokens.at(*stray)))
                .fix("remove it", vec![(here, String::new())]),
        );
    }
    // The innermost one is the one whose end is missing.
    let open = *found.open.iter().rfind(|o| **o < at.max(a + 1))?;
    // A value right behind a value is a missing comma, unless the piece ends before the bracket does.
    let adjacent = at < b && tokens.begins_value(at) && tokens.ends_value(at - 1);
    if adjacent && !tokens.begins_line(at) {
        return None;
    }
    Some(unclosed(tokens, open))
}

/// An opener that nothing closes.
pub(crate) fn unclosed(tokens: &Tokens, open: usize) -> Diagnostic {
    let opener = tokens.at(open);
    error(
        tokens.span(open, open + 1),
        format!("this `{opener}` is never closed"),
    )
    .help(format!("expected a `{}`", partner(opener)))
}

fn partner(opener: &str) -> &'static str {
    match opener {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

/// `if` without `then` or `else`, and Python's order.
fn conditional(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    let form = "`if` gives a value: `if c then a else b`";
    if failure.expects(Rule::kw_where) {
        return None;
    }
    if at < b && tokens.at(at) == "if" && at > a && tokens.ends_value(at - 1) {
        return Some(
            error(
                tokens.span(at, at + 1),
                "`if` stands before the value it chooses",
            )
            .help(form),
        );
    }
    if at < b && tokens.at(at) == "else" && !failure.expects(Rule::kw_else) {
        return Some(
            error(
                tokens.span(at, at + 1),
                "this `else` has no `if … then` before it",
            )
            .help(form),
        );
    }
    let missing = match (
        failure.expects(Rule::kw_then),
        failure.expects(Rule::kw_else),
    ) {
        (true, _) => "then",
        (_, true) => "else",
        _ => return None,
    };
    // The `if` whose part is missing: going back, each `else` pairs with an earlier `if`.
    let mut complete = 0usize;
    let origin = (a..at).rev().find(|i| match tokens.at(*i) {
        "else" => {
            complete += 1;
            false
        }
        "if" if complete > 0 => {
            complete -= 1;
            false
        }
        "if" => true,
        _ => false,
    })?;
    let adjacent = at < b && tokens.begins_value(at) && tokens.ends_value(at - 1);
    if adjacent
        && !matches!(tokens.at(at), "if" | "not")
        && missing == "else"
        && has_else(tokens, at, b)
    {
        return None;
    }
    let mut diagnostic = error(
        tokens.span(origin, origin + 1),
        format!("this `if` has no `{missing}`"),
    )
    .help(form);
    if at < b {
        let text = format!("expected `{missing}` here");
        diagnostic = diagnostic.label(tokens.span(at, at + 1), text);
    }
    Some(diagnostic)
}

fn has_else(tokens: &Tokens, from: usize, to: usize) -> bool {
    (from..to).any(|i| tokens.at(i) == "else")
}

/// A comma missing between two values.
fn comma(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure {
        piece, a, b, at, ..
    } = failure;
    if at >= b || at == a || !tokens.ends_value(at - 1) || !tokens.begins_value(at) {
        return None;
    }
    let end = tokens.code[at - 1].hi;
    let insert = |title: &str, mark: &str| {
        let point = Span::new(tokens.file, end, end);
        (title.to_string(), vec![(point, mark.to_string())])
    };
    let colon = || {
        let (title, edits) = insert("add a colon", ":");
        let message = format!("expected `:` after `{}`", shown(tokens, at - 1));
        Some(error(tokens.span(at, at + 1), message).fix(title, edits))
    };
    let Some(open) = innermost(tokens, a, at) else {
        let options = matches!(piece, Piece::Train | Piece::Step | Piece::Log | Piece::Rows);
        if options && tokens.is_word(at) && tokens.at(at + 1) == ":" {
            let (title, edits) = insert("add a comma", ",");
            let message = format!("expected `,` before `{}`", shown(tokens, at));
            return Some(error(tokens.span(at, at + 1), message).fix(title, edits));
        }
        let label = options && failure.expects(Rule::colon) && tokens.at(at - 2) == ",";
        return if label { colon() } else { None };
    };
    if !failure.expects(Rule::comma) {
        return None;
    }
    let axes = tokens.at(open) == "[" && open > a && tokens.ends_value(open - 1);
    if axes && failure.expects(Rule::colon) && !tokens.is_word(at) {
        return colon();
    }
    let between = match tokens.at(open) {
        "(" if open > a && tokens.is_name(open - 1) => "arguments",
        "(" => return None,
        "[" => "the parts of this list",
        _ => "the parts of this `{ … }`",
    };
    let (title, edits) = insert("add a comma", ",");
    let here = tokens.span(at, at + 1);
    if tokens.code[at].lo == end && matches!(tokens.code[at].kind, TokenKind::Text) {
        let prefix = tokens.span(at - 1, at);
        let message = format!("a text has no `{}` before it", shown(tokens, at - 1));
        return Some(
            error(prefix, message).help("texts are joined by `+`: `\"Solve \" + question`"),
        );
    }
    Some(
        error(here, format!("expected `,` between {between}"))
            .label(tokens.span(open, open + 1), "in here")
            .fix(title, edits),
    )
}

/// `train m, { … }`
fn comma_before_block(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let heads = [Piece::Train, Piece::Step, Piece::Eval, Piece::Place];
    if !heads.contains(&failure.piece) {
        return None;
    }
    let stray = |i: &usize| tokens.at(*i) == "," && tokens.at(i + 1) == "{";
    let i = (failure.a..failure.at).find(stray)?;
    let here = tokens.span(i, i + 1);
    let message = "no `,` stands before the `{` of a block";
    Some(error(here, message).fix("remove it", vec![(here, String::new())]))
}

/// The last opener of `a..at` that is still open at `at`.
fn innermost(tokens: &Tokens, a: usize, at: usize) -> Option<usize> {
    balance(tokens, a, at).open.last().copied()
}

/// Things of the wrong shape: indexing, method calls, numbers without a leading digit.
fn shape(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    let kind = |i: usize| tokens.code.get(i).map(|t| t.kind);
    let number = |i: usize| kind(i) == Some(TokenKind::Number);
    if at >= a + 2 && tokens.at(at - 1) == "." && number(at - 2) {
        let point = tokens.span(at - 2, at);
        let message = "digits follow the point of a number, as in `1.0`";
        return Some(error(point, message));
    }
    if at >= b || at == a {
        return None;
    }
    let here = tokens.span(at, at + 1);
    let inside = innermost(tokens, a, at).filter(|open| *open > a);
    match tokens.at(at) {
        "[" if tokens.ends_value(at - 1) => Some(
            error(here, "values are not indexed with brackets")
                .help("`pick(x, G, index)` selects; a bracket behind a call names axes, as in `[G: 8, T: ..64]`"),
        ),
        "(" if at >= 2 && tokens.at(at - 2) == "." => Some(
            error(here, format!("`.{}` is a member, not a function", shown(tokens, at - 1)))
                .help("functions take the value as an argument, as in `mean(x, T)`"),
        ),
        "." if number(at + 1) && !tokens.ends_value(at - 1) => {
            Some(error(here, "a number begins with a digit, as in `0.5`"))
        }
        "," if inside.is_some_and(|o| tokens.at(o) == "(" && !tokens.is_name(o - 1)) => Some(
            error(here, "parentheses hold one value")
                .help("a list stands in brackets, as in `[B, G]`"),
        ),
        ".." if inside.is_some_and(|o| tokens.at(o) == "[" && tokens.ends_value(o - 1)) => Some(
            error(here, "the length of an axis is `n` or at most `..n`")
                .help("as in `[G: 8, T: ..64]`; `min_tokens:` is the least length of a response"),
        ),
        "=" if failure.piece == Piece::Expression => Some(
            error(here, "an expression binds no name").help("`==` compares"),
        ),
        ";" | "{" | "}" | ")" | "]" => None,
        _ if is_mark(tokens, at) && is_mark(tokens, at - 1) && is_infix(tokens.at(at)) && is_infix(tokens.at(at - 1)) => {
            let (one, two) = (tokens.at(at - 1), tokens.at(at));
            let message = format!("a value is missing between `{one}` and `{two}`");
            Some(error(here, message))
        }
        _ => None,
    }
}

fn is_infix(mark: &str) -> bool {
    matches!(
        mark,
        "+" | "-" | "*" | "/" | "%" | "^" | "==" | "!=" | "<" | "<=" | ">" | ">="
    )
}

/// A line that begins as in another language.
pub(crate) fn foreign_opening(tokens: &Tokens, a: usize) -> Option<Diagnostic> {
    let word = tokens.at(a);
    let here = tokens.span(a, a + 1);
    if !FOREIGN.contains(&word) && word != "if" {
        return None;
    }
    if let Some(diagnostic) = python::import(tokens, a) {
        return Some(diagnostic);
    }
    let (message, help) = match word {
        "def" | "function" | "func" => (
            format!("`{word}` is written `fn`"),
            "as in `fn half(x: float[..]) -> float[..] = x / 2`",
        ),
        "import" | "from" => (
            format!("`{word}` is written `use`"),
            "as in `use std.kl { k1, k3 }`",
        ),
        "for" | "while" => (
            format!("there is no `{word}`: a program has no loops"),
            "`step over d[B: 8], iterations: 60 { … }` is one iteration; operations work on whole axes",
        ),
        "let" | "const" | "var" => (
            format!("a binding has no `{word}` before its name"),
            "as in `adv = r - mean(r, G)`; what a user may override is a `param`",
        ),
        "if" => (
            "`if` is not a statement".to_string(),
            "it gives a value, as in `x = if c then a else b`",
        ),
        "assert" => (
            "there is no `assert`".to_string(),
            "the range of a `param` holds its values, as in `param batch: int in 1.. = 8`",
        ),
        "print" => (
            "there is no `print`".to_string(),
            "`log name: value` reports a number",
        ),
        "return" => (
            "`return` belongs in a `fn`".to_string(),
            "as in `fn half(x: float[..]) -> float[..] { y = x / 2; return y }`",
        ),
        _ => (
            format!("`{word}` has no meaning here"),
            "a program has `use param data model reward state fn step eval place`",
        ),
    };
    Some(error(here, message).help(help))
}

/// A line outside any block that begins no item.
pub(crate) fn unknown_item(tokens: &Tokens, a: usize, b: usize) -> Diagnostic {
    let word = tokens.at(a);
    let here = tokens.span(a, a + 1);
    let statement = STATEMENTS.contains(&word) || (tokens.is_name(a) && tokens.at(a + 1) == "=");
    if let Some(similar) = near(word, &ITEMS).filter(|_| tokens.at(a + 1) != "=") {
        let d =
            error(here, format!("`{word}` begins no item")).help(format!("similar: `{similar}`"));
        // A name or a file follows the word that begins an item.
        return match tokens.is_name(a + 1) || tokens.at(a + 1).starts_with('"') {
            true => d.fix(format!("write `{similar}`"), vec![(here, similar.into())]),
            false => d,
        };
    }
    if matches!(word, ")" | "]" | "}") {
        return error(here, format!("this `{word}` closes nothing"))
            .fix("remove it", vec![(here, String::new())]);
    }
    if statement {
        let what = match tokens.at(a + 1) {
            "=" => "a binding".to_string(),
            _ => format!("`{word}`"),
        };
        return error(here, format!("{what} stands in a block, not outside")).help(
            "as in `step over d[B: 8], iterations: 60 { … }`; outside, a `param` names a value",
        );
    }
    if ITEMS.contains(&word) {
        let help = match word {
            "step" => Piece::Step.example(),
            "eval" => Piece::Eval.example(),
            _ => "an item is its keyword, a name and the rest, as in `model policy = causal(base)`",
        };
        return error(here, format!("this `{word}` is not complete")).help(help);
    }
    if let Some(diagnostic) = lexical(tokens, &whole(a, b)) {
        return diagnostic;
    }
    error(here, format!("`{}` begins no item", shown(tokens, a)))
        .help("items begin with `use param data model reward state fn step eval place`")
}

/// A line in a block that begins no statement.
pub(crate) fn unknown_statement(tokens: &Tokens, a: usize, b: usize) -> Diagnostic {
    let word = tokens.at(a);
    let here = tokens.span(a, a + 1);
    if let Some(diagnostic) = lexical(tokens, &whole(a, b)) {
        return diagnostic;
    }
    if matches!(word, ")" | "]" | "}") {
        return error(here, format!("this `{word}` closes nothing"))
            .fix("remove it", vec![(here, String::new())]);
    }
    if STATEMENTS.contains(&word) && a + 1 < b + 1 {
        let piece = match word {
            "rows" => Piece::Rows,
            "train" => Piece::Train,
            "minimize" => Piece::Minimize,
            "log" => Piece::Log,
            "next" => Piece::Next,
            _ => Piece::Return,
        };
        if word == "log" && matches!(tokens.at(a + 1), "(" | "{") {
            let open = tokens.span(a + 1, a + 2);
            let message = format!("`log` takes `name: value`, without `{}`", tokens.at(a + 1));
            return error(open, message).help(piece.example());
        }
        return error(here, format!("this `{word}` is not complete")).help(piece.example());
    }
    if ITEMS.contains(&word) && tokens.is_name(a + 1) && b > a + 1 {
        return error(here, format!("`{word}` stands outside blocks"))
            .help("move it above the `step`");
    }
    if matches!(word, "maximize" | "maximise" | "max") && tokens.is_word(a) && b > a + 1 {
        return error(here, "a loss is minimized")
            .help("what is to grow is negated: `minimize -…`");
    }
    let similar = near(word, &STATEMENTS).or(match word {
        "minimise" | "loss" | "min" => Some("minimize"),
        _ => None,
    });
    if let Some(similar) = similar.filter(|_| tokens.is_word(a) && b > a + 1) {
        return error(here, format!("`{word}` begins no statement"))
            .help(format!("similar: `{similar}`"))
            .fix(format!("write `{similar}`"), vec![(here, similar.into())]);
    }
    match tokens.at(a + 1) {
        _ if b <= a + 1 => {}
        "==" if tokens.is_name(a) => {
            let equals = tokens.span(a + 1, a + 2);
            return error(equals, "`==` compares; `=` gives a name to a value")
                .fix("write `=`", vec![(equals, "=".into())]);
        }
        ":" if tokens.is_name(a) => {
            let colon = tokens.span(a + 1, a + 2);
            return error(colon, format!("expected `=` after the name `{word}`"))
                .help("as in `adv = r - mean(r, G)`; types are not written in a block");
        }
        "," if tokens.is_name(a) => {
            return error(tokens.span(a + 1, a + 2), "a binding has one name")
                .help("bind each value on a line of its own");
        }
        _ => {}
    }
    if tokens.is_name(a) && tokens.begins_value(a + 1) && b > a + 1 {
        return error(
            tokens.span(a + 1, a + 2),
            format!("expected `=` after the name `{word}`"),
        )
        .help("a statement is `name = …` or begins with `rows train minimize log next`");
    }
    error(tokens.span(a, b), "this value has no name and no effect")
        .help("bind it, as in `x = …`; a number is reported by `log name: …`")
}

fn whole(a: usize, b: usize) -> Failure {
    Failure {
        piece: Piece::Bind,
        a,
        b,
        at: b,
        expected: vec![],
    }
}
