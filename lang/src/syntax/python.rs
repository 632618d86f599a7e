//! Habits of Python, each with the way it is written here.

use super::explain::{Failure, Piece, shown};
use super::tokens::{TokenKind, Tokens};
use crate::diag::Diagnostic;
use crate::source::Span;

/// Libraries whose functions people name with the library before them.
const LIBRARIES: [&str; 8] = ["torch", "np", "numpy", "jnp", "jax", "math", "tf", "F"];

/// Methods that reduce, as functions here.
const REDUCTIONS: [&str; 8] = ["mean", "sum", "std", "var", "min", "max", "any", "all"];

fn error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("E001", span, message)
}

/// Methods, names of libraries, and a second statement on one line.
pub(crate) fn find(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    if at >= b || at < a + 2 {
        return None;
    }
    match tokens.at(at) {
        "(" if at >= a + 3 && tokens.at(at - 2) == "." => Some(method(tokens, at)),
        _ => second_statement(tokens, failure),
    }
}

/// `x.mean()`, `torch.exp(x)`
fn method(tokens: &Tokens, at: usize) -> Diagnostic {
    let name = tokens.at(at - 1);
    let (base, whole) = (tokens.at(at - 3), tokens.span(at - 3, at));
    if LIBRARIES.contains(&base) {
        let before = Span::new(tokens.file, tokens.code[at - 3].lo, tokens.code[at - 1].lo);
        return error(whole, format!("`{base}.{name}` is written `{name}`"))
            .help("functions stand alone; those of a paper are imported, as in `use std.kl { k3 }`")
            .fix(format!("write `{name}`"), vec![(before, String::new())]);
    }
    let here = tokens.span(at - 2, at);
    match name {
        "detach" => error(here, "`x.detach()` is written `stop(x)`")
            .help("what is computed above `train` is constant in it anyway"),
        "item" | "float" | "int" | "cpu" | "numpy" | "tolist" => {
            error(here, format!("`.{name}()` has no meaning here"))
                .help("values are numbers already, wherever they are computed")
        }
        "view" | "reshape" | "unsqueeze" | "squeeze" | "expand" | "repeat" | "permute" => error(
            here,
            format!("`.{name}()` does not exist: axes have names and are never reshaped"),
        )
        .help("values meet by the names of their axes"),
        "pow" => error(here, "`x.pow(2)` is written `x ^ 2`"),
        _ if REDUCTIONS.contains(&name) => {
            error(here, format!("`x.{name}()` is written `{name}(x)`"))
                .help(format!("with the axes to remove, as in `{name}(x, T)`"))
        }
        _ => {
            let shown = shown(tokens, at - 1);
            error(here, format!("`.{shown}` is a member, not a function"))
                .help("functions take the value as an argument, as in `mean(x, T)`")
        }
    }
}

/// `lp = logp(policy, roll) loss = …`
fn second_statement(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { piece, a, at, .. } = failure;
    if !matches!(
        piece,
        Piece::Bind | Piece::Minimize | Piece::Next | Piece::Log
    ) {
        return None;
    }
    let depth = (a..at).fold(0i32, |depth, i| match tokens.at(i) {
        "(" | "[" | "{" => depth + 1,
        ")" | "]" | "}" => depth - 1,
        _ => depth,
    });
    let begins = depth == 0 && tokens.is_name(at) && tokens.at(at + 1) == "=";
    if !begins || !tokens.ends_value(at - 1) || tokens.begins_line(at) {
        return None;
    }
    let name = shown(tokens, at);
    let gap = Span::new(tokens.file, tokens.code[at - 1].hi, tokens.code[at].lo);
    let indent = " ".repeat(tokens.code[at].indent);
    Some(
        error(
            tokens.span(at, at + 2),
            format!("`{name} =` begins a second statement on this line"),
        )
        .fix("begin a new line", vec![(gap, format!("\n{indent}"))]),
    )
}

/// `x[0]`, `x[:, -1]`: a bracket behind a value that names no axes.
pub(crate) fn index(tokens: &Tokens, failure: &Failure) -> Option<Diagnostic> {
    let &Failure { a, b, at, .. } = failure;
    let mut open = vec![];
    for i in a..=at.min(b.saturating_sub(1)) {
        match tokens.at(i) {
            "(" | "[" | "{" => open.push(i),
            ")" | "]" | "}" if i < at => {
                open.pop();
            }
            _ => {}
        }
    }
    let bracket = open
        .last()
        .copied()
        .filter(|i| tokens.at(*i) == "[" && *i > a)?;
    if !tokens.ends_value(bracket - 1) {
        return None;
    }
    let inside = bracket + 1;
    let number = tokens
        .code
        .get(inside)
        .is_some_and(|t| t.kind == TokenKind::Number);
    let slice = matches!(tokens.at(inside), ":" | "-" | "...");
    // Behind a name there are no axes at all.
    let behind_name = tokens.is_name(bracket - 1) && bracket == at;
    if !number && !slice && !behind_name {
        return None;
    }
    let close = (inside..b).find(|i| tokens.at(*i) == "]" || tokens.begins_line(*i));
    let end = close
        .filter(|i| tokens.at(*i) == "]")
        .map_or(bracket + 1, |i| i + 1);
    Some(
        error(
            tokens.span(bracket, end),
            "values are not indexed with brackets",
        )
        .help(
            "`pick(x, G, index)` selects along an axis, `first(x, T)` and `last(x, T)` at the ends",
        ),
    )
}

/// `from std.kl import k3`
pub(crate) fn import(tokens: &Tokens, a: usize) -> Option<Diagnostic> {
    if tokens.at(a) != "from" {
        return None;
    }
    let end = (a + 1..tokens.code.len())
        .find(|i| tokens.begins_line(*i))
        .unwrap_or(tokens.code.len());
    let import = (a + 1..end).find(|i| tokens.at(*i) == "import")?;
    let plain = |i: usize| tokens.is_name(i) || matches!(tokens.at(i), "." | ",");
    let path: String = (a + 1..import).map(|i| tokens.at(i)).collect();
    if path.is_empty() || import + 1 >= end || !(a + 1..end).all(plain) {
        return None;
    }
    let names: Vec<&str> = (import + 1..end)
        .filter(|i| tokens.is_name(*i))
        .map(|i| tokens.at(i))
        .collect();
    let names = names.join(", ");
    let whole = tokens.span(a, end);
    Some(
        error(whole, "`from … import …` is written `use … { … }`").fix(
            format!("write `use {path} {{ {names} }}`"),
            vec![(whole, format!("use {path} {{ {names} }}"))],
        ),
    )
}

/// `'yes'`, with the change where the closing quote stands on the line.
pub(super) fn single_quotes(tokens: &Tokens, here: Span) -> Diagnostic {
    let d = error(here, "a text stands between double quotes, `\"`");
    let rest = &tokens.text[here.hi as usize..];
    let line = rest.lines().next().unwrap_or_default();
    let inside = line.split('\'').next().unwrap_or_default();
    if inside.len() == line.len() || inside.contains(['"', '\\']) {
        return d;
    }
    let close = here.hi as usize + inside.len();
    let quote = |lo: usize| (Span::new(here.file, lo, lo + 1), "\"".to_string());
    d.fix(
        "write double quotes",
        vec![quote(here.lo as usize), quote(close)],
    )
}
