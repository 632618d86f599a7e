//! What the language has built in: a signature, a paragraph and an example of every name.
//!
//! The text is Markdown beside this file, one section a name: an indented block with the signature, the
//! paragraph, an indented block with an example. An editor shows it on hover, the command line prints
//! it, and the labels that a call takes are read from the signature.

use std::sync::OnceLock;

/// Chapters in the order of a reference manual.
const CHAPTERS: &[(Chapter, &str)] = &[
    (Chapter::Item, include_str!("items.md")),
    (Chapter::Statement, include_str!("statements.md")),
    (Chapter::Verb, include_str!("verbs.md")),
    (Chapter::Operator, include_str!("reductions.md")),
    (Chapter::Operator, include_str!("elementwise.md")),
    (Chapter::Operator, include_str!("sequences.md")),
    (Chapter::Operator, include_str!("selection.md")),
    (Chapter::Operator, include_str!("text.md")),
    (Chapter::Model, include_str!("models.md")),
    (Chapter::Source, include_str!("sources.md")),
    (Chapter::Type, include_str!("types.md")),
];

/// Where a name of the language stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chapter {
    /// `param`, `data`, …: begins an item.
    Item,
    /// `train`, `minimize`, …: begins a statement or is a word of an expression.
    Statement,
    /// `generate`, `logp`, …, and the members of what they give.
    Verb,
    /// `mean`, `exp`, …: a call in an expression.
    Operator,
    /// `causal`, `frozen`, …: a kind of model, and its optimizer.
    Model,
    /// `jsonl`, `python`, …: a source of data or of rewards.
    Source,
    /// `float`, `axis`, …
    Type,
}

/// One name of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name; a member begins with its point.
    pub name: &'static str,
    /// Where it stands.
    pub chapter: Chapter,
    /// How it is written, one form a line.
    pub signature: String,
    /// What it does, as Markdown.
    pub doc: &'static str,
    /// A use of it; empty where the text says it all.
    pub example: String,
}

/// One thing that a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'e> {
    /// Its label.
    pub label: &'e str,
    /// Its type and default, as the signature writes them.
    pub rest: &'e str,
    /// It may be left out.
    pub optional: bool,
}

/// Every name with a meaning of its own.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let chapters = CHAPTERS.iter();
        chapters
            .flat_map(|(chapter, text)| sections(*chapter, text))
            .collect()
    })
}

/// What a name means as a call, or else as a word: `log` is the logarithm.
pub fn builtin(name: &str) -> Option<&'static Entry> {
    let calls = [Chapter::Operator, Chapter::Verb];
    let call = entries()
        .iter()
        .find(|e| e.name == name && calls.contains(&e.chapter));
    call.or_else(|| entries().iter().find(|e| e.name == name))
}

/// What a name means in one chapter: `log` is a statement too.
pub fn within(name: &str, chapter: Chapter) -> Option<&'static Entry> {
    entries()
        .iter()
        .find(|e| e.name == name && e.chapter == chapter)
}

impl Entry {
    /// What a call takes, by the signature's first line.
    pub fn arguments(&self) -> Vec<Argument<'_>> {
        let line = self.signature.lines().next().unwrap_or_default();
        let Some(inner) = line.split_once('(').map(|(_, rest)| rest) else {
            return vec![];
        };
        let mut arguments = vec![];
        let (mut depth, mut from) = (0usize, 0);
        for (i, c) in inner.char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' if depth > 0 => depth -= 1,
                ',' | ')' if depth == 0 => {
                    arguments.extend(argument(&inner[from..i]));
                    from = i + 1;
                    if c == ')' {
                        break;
                    }
                }
                _ => {}
            }
        }
        arguments
    }
}

fn argument(text: &str) -> Option<Argument<'_>> {
    let (label, rest) = text.trim().split_once(':')?;
    let (label, optional) = match label.strip_suffix('?') {
        Some(label) => (label, true),
        None => (label, rest.contains(" = ")),
    };
    Some(Argument {
        label,
        rest: rest.trim(),
        optional,
    })
}

fn sections(chapter: Chapter, text: &'static str) -> impl Iterator<Item = Entry> {
    let sections = text.split("\n## ").skip(1);
    sections.filter_map(move |section| {
        let (name, body) = section.split_once('\n')?;
        // The paragraph is what stands between the two indented blocks.
        let (signature, rest) = body.trim_start_matches('\n').split_once("\n\n")?;
        let (doc, example) = rest.split_once("\n\n    ").unwrap_or((rest, ""));
        Some(Entry {
            name: name.trim(),
            chapter,
            signature: outdent(signature),
            doc: doc.trim(),
            example: outdent(example),
        })
    })
}

fn outdent(block: &str) -> String {
    let lines = block.trim_end().lines();
    let lines: Vec<&str> = lines.map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_operator_and_verb_has_an_entry() {
        let names = crate::sema::BUILTINS.iter();
        let missing: Vec<_> = names.filter(|n| builtin(n).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_call_of_the_reference_exists() {
        let calls = entries().iter().filter(|e| {
            matches!(e.chapter, Chapter::Operator | Chapter::Verb) && !e.name.starts_with('.')
        });
        for e in calls {
            assert!(crate::sema::BUILTINS.contains(&e.name), "{}", e.name);
        }
    }

    #[test]
    fn no_name_stands_twice_in_a_chapter_and_none_is_without_text() {
        for e in entries() {
            let same = entries().iter();
            let same = same.filter(|o| o.name == e.name && o.chapter == e.chapter);
            assert_eq!(same.count(), 1, "{}", e.name);
            assert!(e.doc.ends_with('.'), "{}: {}", e.name, e.doc);
            assert!(e.signature.contains(e.name), "{}", e.name);
            assert!(!e.doc.contains("\n    "), "{}", e.name);
        }
    }

    #[test]
    fn a_word_with_two_meanings_is_the_call_unless_its_chapter_is_named() {
        assert_eq!(builtin("log").map(|e| e.chapter), Some(Chapter::Operator));
        let statement = within("log", Chapter::Statement);
        assert!(statement.is_some_and(|e| e.signature.starts_with("log name")));
    }

    #[test]
    fn the_arguments_of_a_call_are_read_from_its_signature() {
        let shift = builtin("shift").map(Entry::arguments).unwrap_or_default();
        let shown: Vec<_> = shift.iter().map(|a| (a.label, a.optional)).collect();
        assert_eq!(
            shown,
            [("x", false), ("axis", false), ("by", true), ("fill", true)]
        );
        let std = builtin("std").map(Entry::arguments).unwrap_or_default();
        assert_eq!(std[2].label, "biased");
        assert_eq!(std[2].rest, "bool");
    }
}
