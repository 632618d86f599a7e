//! `--let`: names, axes and values.

use rlhf_lang::compile::Input;
use rlhf_lang::graph::Elem;
use serde_json::Value;

use crate::outcome::{Outcome, Stop};

/// An input with its value.
#[derive(Clone, Debug)]
pub struct Given {
    /// What the expression sees.
    pub input: Input,
    /// Nested lists.
    pub value: Value,
}

impl Given {
    /// Reads `name[A, B]=VALUE`, where VALUE is JSON, `@file.json`, or else text as it stands.
    pub fn parse(text: &str) -> Outcome<Given> {
        let example = "as in `--let 'lp[B,T]=[[0.1, 0.2], [0.3]]'` or `--let eps=0.2`";
        let wrong = |what: &str| Stop::usage(format!("`--let {text}`: {what}"), example);
        let (head, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("`=` is missing"))?;
        let (name, axes) = match head.split_once('[') {
            None => (head.trim(), vec![]),
            Some((name, axes)) => {
                let axes = axes
                    .trim_end()
                    .strip_suffix(']')
                    .ok_or_else(|| wrong("`]` is missing"))?;
                (name.trim(), axes.split(',').map(str::trim).collect())
            }
        };
        for word in std::iter::once(&name).chain(&axes) {
            if !is_identifier(word) {
                return Err(wrong(&format!("`{word}` is not a name")));
            }
        }
        let value = read(value.trim(), name)?;
        let mut lengths = vec![None; axes.len()];
        let mut elem = None;
        measure(&value, &axes, 0, &mut lengths, &mut elem)
            .map_err(|what| wrong(&format!("`{name}` {what}")))?;
        let axes = axes
            .iter()
            .zip(&lengths)
            .map(|(axis, length)| {
                let same = match length {
                    Some(Length::Same(n)) => Some(*n),
                    Some(Length::Different) => None,
                    // No list got so deep: every outer list is empty.
                    None => Some(0),
                };
                (axis.to_string(), same)
            })
            .collect();
        Ok(Given {
            input: Input {
                name: name.into(),
                axes,
                elem: elem.unwrap_or(Elem::Float),
            },
            value,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Same(usize),
    Different,
}

fn read(value: &str, name: &str) -> Outcome<Value> {
    if let Some(path) = value.strip_prefix('@') {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Stop::usage(
                format!("`{path}`, the value of `{name}`, cannot be read: {e}"),
                "the path is relative to the working directory",
            )
        })?;
        return serde_json::from_str(&text).map_err(|e| {
            Stop::usage(
                format!("`{path}`, the value of `{name}`, is not JSON: {e}"),
                "numbers in nested lists, such as [[0.1, 0.2], [0.3]]",
            )
        });
    }
    match serde_json::from_str(value) {
        Ok(value) => Ok(value),
        // A list that does not parse is a slip; a bare word is text.
        Err(e) if value.starts_with(['[', '{', '"']) => Err(Stop::usage(
            format!("the value of `{name}` is not JSON: {e}"),
            "numbers in nested lists, such as [[0.1, 0.2], [0.3]]",
        )),
        Err(_) => Ok(Value::String(value.into())),
    }
}

/// Finds the lengths of the lists at every depth and the type of the elements.
fn measure(
    value: &Value,
    axes: &[&str],
    depth: usize,
    lengths: &mut [Option<Length>],
    elem: &mut Option<Elem>,
) -> Result<(), String> {
    if depth == axes.len() {
        let found = match value {
            Value::Number(_) => Some(Elem::Float),
            Value::Bool(_) => Some(Elem::Bool),
            Value::String(_) => Some(Elem::Text),
            // None: it fits numbers and texts.
            Value::Null => None,
            Value::Array(_) => {
                let named = axes.len();
                return Err(format!("has more nested lists than its {named} named axes"));
            }
            Value::Object(_) => return Err("holds an object".into()),
        };
        return match (*elem, found) {
            (Some(a), Some(b)) if a != b => Err("mixes numbers, text and booleans".into()),
            (None, Some(b)) => {
                *elem = Some(b);
                Ok(())
            }
            _ => Ok(()),
        };
    }
    let Value::Array(items) = value else {
        return Err(format!("has no list for its axis `{}`", axes[depth]));
    };
    lengths[depth] = Some(match lengths[depth] {
        None => Length::Same(items.len()),
        Some(Length::Same(n)) if n == items.len() => Length::Same(n),
        Some(_) => Length::Different,
    });
    items
        .iter()
        .try_for_each(|item| measure(item, axes, depth + 1, lengths, elem))
}

fn is_identifier(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(text: &str) -> Vec<(String, Option<usize>)> {
        Given::parse(text).expect("it is well formed").input.axes
    }

    #[test]
    fn lists_of_different_lengths_make_a_ragged_axis() {
        assert_eq!(
            axes("lp[B, T]=[[1, 2], [3]]"),
            [("B".into(), Some(2)), ("T".into(), None)]
        );
        assert_eq!(axes("x[B]=[1, 2]"), [("B".into(), Some(2))]);
        assert_eq!(axes("eps=0.2"), []);
    }

    #[test]
    fn elements_are_numbers_booleans_or_text() {
        let elem = |text| Given::parse(text).expect("it is well formed").input.elem;
        assert_eq!(elem("x=0.5"), Elem::Float);
        assert_eq!(elem("x[B]=[true, false]"), Elem::Bool);
        assert_eq!(elem("x=the answer is 4"), Elem::Text);
        assert_eq!(elem("x[B]=[null, \"4\"]"), Elem::Text);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            "x",
            "x[B=1",
            "1x=2",
            "x=[1]",
            "x[B]=1",
            "x[B]=[1, \"a\"]",
            "x[B]=[1,",
            "x=@no-such-file.json",
        ] {
            assert!(Given::parse(text).is_err(), "{text}");
        }
    }
}
