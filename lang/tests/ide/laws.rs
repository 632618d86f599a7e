//! What holds for every program and every text.

use proptest::prelude::*;
use rlhf_lang::diag::Level;
use rlhf_lang::facts::What;
use rlhf_lang::ide::Document;
use rlhf_lang::source::{FileId, Span};

use super::{PROGRAM, check, document};

/// The shipped programs and the library, with the program of these tests.
fn programs() -> Vec<&'static str> {
    let algorithms = rlhf_stdlib::algorithms().iter().map(|(_, text)| *text);
    let modules = rlhf_stdlib::modules().iter();
    let modules = modules.filter_map(|m| rlhf_stdlib::module(m));
    algorithms.chain(modules).chain([PROGRAM]).collect()
}

/// The text in the standard layout, if it is not in it.
pub fn formatted(text: &str) -> Option<String> {
    let new = rlhf_lang::fmt::format(text).text;
    (new != text).then_some(new)
}

/// Asks everything at a byte.
fn ask(document: &Document, at: u32) {
    let _ = document.hover(at);
    let _ = document.definition(at);
    let _ = document.references(at);
    let _ = document.renamable(at);
    let _ = document.rename(at, "fresh");
    let _ = document.complete(at);
}

fn ask_all(document: &Document) {
    let length = document.source().text.len();
    let whole = Span::new(FileId(0), 0, length);
    let _ = document.hints(whole);
    let _ = document.symbols();
    let _ = document.actions(whole);
}

#[test]
fn the_tree_and_the_facts_agree_on_every_definition() {
    for text in programs() {
        let document = document(text);
        let own = document.compiled().file.id;
        for o in &document.compiled().facts.names {
            let Some(def) = o
                .def
                .filter(|_| o.span.file == own && o.what != What::Unknown)
            else {
                continue;
            };
            let name = document.source().slice(o.span);
            // An axis of a signature alone: the facts name its function.
            if def.file == own && document.source().slice(def) != name {
                continue;
            }
            let found = document.definition(o.span.lo);
            assert_eq!(found, Some(def), "`{name}` at {}", o.span.lo);
        }
    }
}

#[test]
fn every_name_of_the_facts_has_a_hover() {
    for text in programs() {
        let document = document(text);
        let own = document.compiled().file.id;
        for o in &document.compiled().facts.names {
            if o.span.file == own && o.what != What::Unknown {
                let name = document.source().slice(o.span);
                assert!(document.hover(o.span.lo).is_some(), "`{name}`");
            }
        }
    }
}

#[test]
fn a_renamed_program_has_the_same_problems() {
    for text in programs() {
        let before = check(text);
        let codes = |c: &rlhf_lang::Compiled| -> Vec<String> {
            c.diagnostics.iter().map(|d| d.code.clone()).collect()
        };
        let whole = document(text);
        let names: Vec<Span> = whole
            .compiled()
            .facts
            .names
            .iter()
            .map(|o| o.span)
            .filter(|s| s.file == whole.compiled().file.id)
            .collect();
        for span in names {
            let Ok(mut edits) = whole.rename(span.lo, "fresh_name") else {
                continue;
            };
            edits.sort_by_key(|(s, _)| std::cmp::Reverse(s.lo));
            let mut renamed = text.to_string();
            for (s, new) in edits {
                renamed.replace_range(s.range(), &new);
            }
            let after = check(&renamed);
            assert_eq!(
                codes(&before),
                codes(&after),
                "{}\n{renamed}",
                whole.source().slice(span)
            );
        }
    }
}

#[test]
fn every_byte_of_a_program_has_answers() {
    for text in [PROGRAM, "", "step", "use", "// ", "\"", "fn f("] {
        let document = document(text);
        ask_all(&document);
        for at in 0..=text.len() as u32 + 2 {
            ask(&document, at);
        }
    }
}

#[test]
fn what_is_offered_first_after_a_cut_leaves_a_program_that_answers() {
    // Cut off behind every token, as while it is typed.
    for (at, _) in PROGRAM
        .char_indices()
        .filter(|(_, c)| " ([,.:=".contains(*c))
    {
        let text = &PROGRAM[..=at];
        document(text).complete(text.len() as u32);
    }
}

#[test]
fn names_are_found_at_the_end_of_a_long_program() {
    let mut long = PROGRAM.to_string();
    for i in 0..200 {
        long.push_str(&format!(
            "\nfn f{i}(x: float[.., T]) -> float[..] = mean(x, T)\n"
        ));
    }
    let document = document(&long);
    let errors = document.compiled().diagnostics.iter();
    assert!(errors.clone().all(|d| d.level != Level::Error));
    let at = long.rfind("mean(x").expect("the last function") as u32;
    assert!(
        document
            .hover(at + 5)
            .is_some_and(|h| h.code == "x: float[.., T]")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_edit_of_a_program_makes_an_answer_panic(
        at in 0..PROGRAM.len(),
        length in 0usize..12,
        put in "[ -~äß😀\n]{0,6}",
        asked in 0..PROGRAM.len(),
    ) {
        let floor = |mut i: usize| {
            i = i.min(PROGRAM.len());
            while !PROGRAM.is_char_boundary(i) { i -= 1 }
            i
        };
        let mut text = PROGRAM.to_string();
        text.replace_range(floor(at)..floor(at + length), &put);
        let document = document(&text);
        ask_all(&document);
        for i in [asked, at, at + put.len(), text.len()] {
            ask(&document, i as u32);
        }
        if let Some((span, new)) = rlhf_lang::ide::format(&text) {
            let mut edited = text.clone();
            edited.replace_range(span.range(), &new);
            prop_assert_eq!(Some(edited), formatted(&text));
        }
    }
}
