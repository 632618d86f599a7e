//! Operations on text, element by element.

use std::sync::Arc;

use regex::Regex;
use rlhf_lang::graph::{AxisId, Expr, Op, TextOp};

use crate::fault::{Fault, Result};
use crate::value::{Shapes, Value, align};

/// A text operation over `axes`; `pattern` is the second operand's expression.
pub(super) fn apply(
    op: TextOp,
    args: &[&Value],
    pattern: Option<&Expr>,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let full = args
        .iter()
        .map(|a| align(a, axes, shapes))
        .collect::<Result<Vec<_>>>()?;
    let operand = |i: usize| -> Result<&[Option<Arc<str>>]> {
        full.get(i)
            .ok_or_else(|| super::missing_operand(i))?
            .texts()
    };
    let texts = operand(0)?;
    let numbers = |f: &dyn Fn(&str) -> Option<f64>| {
        let of = |t: &Option<Arc<str>>| t.as_deref().and_then(f).unwrap_or(f64::NAN);
        let numbers: Vec<f64> = texts.iter().map(of).collect();
        Value::from_f64(axes.to_vec(), &numbers, shapes)
    };
    let changed = |f: &dyn Fn(&str) -> Option<Arc<str>>| {
        let texts = texts.iter().map(|t| t.as_deref().and_then(f)).collect();
        Ok(Value::from_text(axes.to_vec(), texts))
    };
    let flags = |f: &dyn Fn(&str, &str) -> bool| {
        let both = |(a, b): (&Option<Arc<str>>, &Option<Arc<str>>)| match (a, b) {
            (Some(a), Some(b)) => f(a, b),
            _ => false,
        };
        let flags: Vec<bool> = texts.iter().zip(operand(1)?).map(both).collect();
        Value::from_bool(axes.to_vec(), &flags, shapes)
    };
    match op {
        TextOp::Contains => flags(&|x, part| x.contains(part)),
        TextOp::StartsWith => flags(&|x, part| x.starts_with(part)),
        TextOp::EndsWith => flags(&|x, part| x.ends_with(part)),
        TextOp::Matches => {
            let regex = compile(pattern)?;
            flags(&|x, _| regex.is_match(x))
        }
        TextOp::Extract => {
            let regex = compile(pattern)?;
            changed(&|x| {
                let found = regex.captures(x)?;
                let whole = if found.len() > 1 {
                    found.get(1)
                } else {
                    found.get(0)
                };
                Some(whole?.as_str().into())
            })
        }
        TextOp::Number => numbers(&parse_number),
        TextOp::LastNumber => numbers(&last_number),
        TextOp::Trim => changed(&|x| Some(x.trim().into())),
        TextOp::Lower => changed(&|x| Some(x.to_lowercase().into())),
        TextOp::Upper => changed(&|x| Some(x.to_uppercase().into())),
        TextOp::Words => numbers(&|x| Some(x.split_whitespace().count() as f64)),
        TextOp::Chars => numbers(&|x| Some(x.chars().count() as f64)),
        TextOp::Concat => {
            let joined = texts.iter().zip(operand(1)?).map(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => Some(format!("{a}{b}").into()),
                _ => None,
            });
            Ok(Value::from_text(axes.to_vec(), joined.collect()))
        }
        TextOp::CommonPrefix => {
            let both = texts.iter().zip(operand(1)?).map(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => Some(common_prefix(a, b).into()),
                _ => None,
            });
            Ok(Value::from_text(axes.to_vec(), both.collect()))
        }
        TextOp::RemovePrefix => {
            let both = texts.iter().zip(operand(1)?).map(|(x, prefix)| {
                let (x, prefix) = (x.as_deref()?, prefix.as_deref()?);
                Some(x.strip_prefix(prefix).unwrap_or(x).into())
            });
            Ok(Value::from_text(axes.to_vec(), both.collect()))
        }
        TextOp::Opening | TextOp::System => Err(Fault::new("a conversation is expected")),
    }
}

/// What two texts begin with alike, without the last character of the shorter one and without a space before
/// the place where they part: tokenizers join it with the word that follows.
fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let mut end = 0;
    for ((at, x), y) in a.char_indices().zip(b.chars()) {
        end = at;
        if x != y {
            return a[..end].strip_suffix(' ').unwrap_or(&a[..end]);
        }
    }
    &a[..end]
}

fn compile(pattern: Option<&Expr>) -> Result<Regex> {
    let Some(Expr {
        op: Op::Text(text),
        span,
        ..
    }) = pattern
    else {
        return Err(Fault::new("a regular expression must be a constant"));
    };
    Regex::new(text).map_err(|e| {
        let why = e.to_string();
        // The last line names the reason; those before draw the pattern.
        let why = why
            .lines()
            .last()
            .unwrap_or("")
            .trim_start_matches("error: ");
        Fault::new(format!("`{text}` is not a regular expression: {why}"))
            .at(*span)
            .help("the syntax is that of the regex crate: no look-around, no back-references")
    })
}

/// The whole trimmed text as a number, or none. Commas may separate thousands, and one leading `$` is
/// skipped: `"1,234.5"`, `"-3"`, `"+2e3"`, `".5"`, `"$12"`; not `"$12."` or `"12 apples"`.
pub fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (lo, hi) = number_at(text, 0)?;
    let sign = match &text[..lo] {
        "" | "$" => 1.0,
        "-$" => -1.0,
        _ => return None,
    };
    if hi != text.len() {
        return None;
    }
    value_of(&text[lo..hi]).map(|x| sign * x)
}

/// The last number in the text, or none. A full stop, a unit or a letter after the digits ends it:
/// the last number of `"so 7 + 5 = 12."` and of `"$12."` is 12, of `"x-3"` 3, of `"= -3"` −3, of
/// `"$1,250.50"` 1250.5.
pub fn last_number(text: &str) -> Option<f64> {
    let mut last = None;
    let mut at = 0;
    while let Some((lo, hi)) = number_at(text, at) {
        last = value_of(&text[lo..hi]);
        at = hi;
    }
    last
}

/// None past the range of f64.
fn value_of(digits: &str) -> Option<f64> {
    let x: f64 = digits.replace(',', "").parse().ok()?;
    x.is_finite().then_some(x)
}

/// The first number at or after the byte `from`: sign, digits (in threes where commas separate
/// them), fraction, exponent.
fn number_at(text: &str, from: usize) -> Option<(usize, usize)> {
    let b = text.as_bytes();
    let digit = |i: usize| b.get(i).is_some_and(u8::is_ascii_digit);
    let run = |mut i: usize| {
        while digit(i) {
            i += 1;
        }
        i
    };
    let first = (from..b.len()).find(|i| digit(*i))?;
    let before = |i: usize| (i > from).then(|| b[i - 1]);
    let joined = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b')' | b'.' | b']');
    // `.5`, but not the end of `v1.5` or of `no.5`.
    let bare_fraction = before(first) == Some(b'.') && !before(first - 1).is_some_and(joined);
    let start = if bare_fraction { first - 1 } else { first };
    // A sign counts unless something is subtracted from: `5-3`, `x-3`.
    let signed =
        matches!(before(start), Some(b'-' | b'+')) && !(start >= 2 && joined(b[start - 2]));
    let lo = if signed { start - 1 } else { start };
    let mut hi = run(first);
    if !bare_fraction {
        if hi - first <= 3 {
            while b.get(hi) == Some(&b',') && run(hi + 1) == hi + 4 {
                hi += 4;
            }
        }
        if b.get(hi) == Some(&b'.') && digit(hi + 1) {
            hi = run(hi + 1);
        }
    }
    if matches!(b.get(hi), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(hi + 1), Some(b'-' | b'+')));
        if digit(hi + 1 + sign) {
            hi = run(hi + 1 + sign);
        }
    }
    Some((lo, hi))
}
