//! Definition, references, rename, the outline, formatting and fixes.

use rlhf_lang::ide::{SymbolKind, format};
use rlhf_lang::source::{FileId, Span};

use super::{PROGRAM, check, document, find, marked, messages};

/// The file and the text of the line that the name at the `n`th occurrence of a text is defined in.
fn definition(what: &str, n: usize) -> (String, String) {
    let document = document(PROGRAM);
    let span = document.definition(find(PROGRAM, what, n));
    let span = span.unwrap_or_else(|| panic!("`{what}` is defined nowhere"));
    let source = document.compiled().sources.get(span.file);
    let (line, _) = source.line_column(span.lo);
    let text = source.text.lines().nth(line - 1).unwrap_or_default();
    (source.name.clone(), text.trim().to_string())
}

#[test]
fn names_lead_to_their_definitions() {
    assert_eq!(definition("roll)", 0).1, definition("roll.text", 0).1);
    assert!(definition("adv, T", 0).1.starts_with("adv  ="));
    assert!(definition("batch]", 0).1.starts_with("param batch"));
    assert!(definition("question)", 0).1.starts_with("data sums"));
    assert!(definition("sums[", 0).1.starts_with("data sums"));
    assert!(definition("policy)", 0).1.starts_with("model policy"));
    assert!(definition("scale: 2", 0).1.starts_with("fn half"));
    assert!(definition("T)\n", 0).1.starts_with("fn half"));
    assert!(definition("G)", 0).1.starts_with("roll = generate"));
}

#[test]
fn functions_of_the_library_lead_into_it() {
    let (file, line) = definition("k3(lp", 0);
    assert_eq!(file, "std.kl");
    assert!(line.starts_with("fn k3("));
    assert_eq!(definition("k3 }", 0).0, "std.kl");
    assert_eq!(definition("warmup", 0).0, "std.prelude");
    assert_eq!(definition("std.kl", 0).0, "std.kl");
}

#[test]
fn built_in_words_are_defined_nowhere() {
    let document = document(PROGRAM);
    for what in [
        "mean(",
        "generate",
        "minimize",
        "float",
        "// ",
        "temperature",
    ] {
        let at = PROGRAM.find(what).unwrap_or(2);
        assert_eq!(document.definition(at as u32), None, "{what}");
    }
}

#[test]
fn references_are_every_mention_in_scope() {
    let document = document(PROGRAM);
    assert_eq!(document.references(find(PROGRAM, "roll", 0)).len(), 4);
    assert_eq!(document.references(find(PROGRAM, "question", 0)).len(), 2);
    // The axis of the step, not that of the function.
    assert_eq!(document.references(find(PROGRAM, "G: 8", 0)).len(), 4);
    assert_eq!(
        document.references(find(PROGRAM, "scale: float", 0)).len(),
        3
    );
}

/// The program with the name at the mark given another.
fn renamed(text: &str, to: &str) -> Result<String, String> {
    let (mut text, at) = marked(text);
    let mut edits = document(&text).rename(at, to)?;
    edits.sort_by_key(|(s, _)| std::cmp::Reverse(s.lo));
    for (span, new) in edits {
        text.replace_range(span.range(), &new);
    }
    Ok(text)
}

fn mark(what: &str, n: usize) -> String {
    let at = find(PROGRAM, what, n) as usize;
    format!("{}§{}", &PROGRAM[..at], &PROGRAM[at..])
}

#[test]
fn a_binding_is_renamed_wherever_it_is_meant() {
    let text = renamed(&mark("ref  =", 0), "scored").expect("a free name");
    assert_eq!(text.matches("scored").count(), 3);
    assert_eq!(
        check(&text).diagnostics.len(),
        check(PROGRAM).diagnostics.len()
    );
}

#[test]
fn an_argument_is_renamed_with_its_labels() {
    let text = renamed(&mark("scale:", 0), "factor").expect("a free name");
    assert!(text.contains("factor: float = 0.5") && text.contains("factor: 2"));
}

#[test]
fn a_column_keeps_its_name_in_the_file() {
    let text = renamed(&mark("question)", 0), "q").expect("a free name");
    assert!(text.contains("{ q: text from \"question\","), "{text}");
    let text = renamed(&mark("answer then", 0), "a").expect("a free name");
    assert!(text.contains("a: text from \"result\""), "{text}");
}

#[test]
fn a_name_that_cannot_be_taken_is_refused_with_a_reason() {
    let refused = |what: &str, to: &str| renamed(&mark(what, 0), to).expect_err(to);
    assert_eq!(
        refused("ref  =", "adv"),
        "`adv` is already a name, on line 28"
    );
    assert!(refused("ref  =", "question").contains("already a name"));
    assert!(refused("ref  =", "if").contains("keyword"));
    assert!(refused("ref  =", "mean").contains("built in"));
    assert!(refused("ref  =", "warmup").contains("std.prelude"));
    assert!(refused("ref  =", "2x").contains("not a name"));
    assert!(refused("ref  =", "é").contains("not a name"));
    assert!(refused("lp =", "adv").contains("already a name"));
}

#[test]
fn what_is_defined_elsewhere_is_refused_with_a_reason() {
    let refused = |what: &str| renamed(&mark(what, 0), "new").expect_err(what);
    assert!(refused("k3(lp").contains("std.kl"));
    assert!(refused("warmup").contains("std.prelude"));
    assert!(refused("mean(").contains("word of the language"));
    assert!(refused("temperature").contains("word of the language"));
    assert!(refused("step over").contains("word of the language"));
    assert!(refused("\n\nstep").contains("no name"));
}

#[test]
fn a_name_in_text_that_does_not_parse_is_refused() {
    let broken = PROGRAM.replace("  log reward", "  z = ref +* 2\n  log reward");
    let at = find(&broken, "ref  =", 0) as usize;
    let text = format!("{}§{}", &broken[..at], &broken[at..]);
    let reason = renamed(&text, "scored").expect_err("a broken line");
    assert!(reason.contains("does not parse"), "{reason}");
}

#[test]
fn the_outline_has_items_with_what_they_bind() {
    let document = document(PROGRAM);
    let symbols = document.symbols();
    let step = symbols
        .iter()
        .find(|s| s.kind == SymbolKind::Step)
        .expect("a step");
    let names: Vec<_> = step.children.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["roll", "r", "ref", "adv", "train policy"]);
    assert_eq!(step.children[2].detail, "float[B, G, T]");
    for s in symbols.iter().chain(&step.children) {
        assert!(
            s.span.lo <= s.selection.lo && s.selection.hi <= s.span.hi,
            "{}",
            s.name
        );
    }
}

#[test]
fn formatting_is_one_edit_of_what_differs() {
    let text = PROGRAM.replace("ref  = logp", "ref=logp");
    let (span, new) = format(&text).expect("a text that is not in the layout");
    let mut formatted = text.clone();
    formatted.replace_range(span.range(), &new);
    assert_eq!(Some(formatted), super::laws::formatted(&text));
    assert!(span.range().len() < 100, "{span:?}");
    assert_eq!(format(PROGRAM), None, "the program is in the layout");
}

#[test]
fn a_fix_is_offered_where_its_problem_is() {
    let text = PROGRAM.replace("log reward: mean(r)", "log reward: meen(r)");
    let document = document(&text);
    let at = find(&text, "meen", 0);
    let touch = Span::new(FileId(0), at as usize, at as usize);
    let actions = document.actions(touch);
    assert_eq!(actions.len(), 1, "{}", messages(document.compiled()));
    assert_eq!(actions[0].edits[0].1, "mean");
    assert!(document.actions(Span::new(FileId(0), 0, 3)).is_empty());
}
