//! Hover and hints.

use rlhf_lang::source::{FileId, Span};

use super::{PROGRAM, document, find};

/// What is shown at the `n`th occurrence of a text, `plus` bytes into it.
fn hover(what: &str, n: usize, plus: u32) -> (String, String) {
    let document = document(PROGRAM);
    let hover = document.hover(find(PROGRAM, what, n) + plus);
    let hover = hover.unwrap_or_else(|| panic!("nothing is shown at `{what}`"));
    (hover.code, hover.doc)
}

#[test]
fn the_program_of_these_tests_has_no_problems() {
    let document = document(PROGRAM);
    let problems = document.compiled().diagnostics.iter();
    let problems: Vec<_> = problems.filter(|d| d.code != "L002").collect();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_binding_has_its_type_with_axes() {
    assert_eq!(hover("r    =", 0, 0).0, "r: int[B, G]");
    assert_eq!(hover("lp * adv", 0, 0).0, "lp: float[B, G, T]");
}

#[test]
fn a_rollout_has_its_axes_and_their_sizes() {
    let (code, doc) = hover("roll =", 0, 1);
    assert_eq!(code, "roll: rollout[B, G, T]");
    assert!(doc.contains("`axis T: ..16 over [B, G]`"), "{doc}");
    assert!(doc.contains("`axis B: 4`"), "{doc}");
}

#[test]
fn a_model_says_which_version_is_read() {
    assert!(
        hover("generate(policy", 0, 10)
            .1
            .contains("as the step started")
    );
    assert!(
        hover("logp(policy", 0, 6)
            .1
            .contains("live in `train policy`")
    );
    assert!(
        hover("generate(policy", 1, 10)
            .1
            .contains("as the last training left it")
    );
    assert!(
        hover("logp(anchor", 0, 6)
            .1
            .contains("the initial weights of `policy`")
    );
}

#[test]
fn a_param_has_its_declaration_and_its_doc() {
    let (code, doc) = hover("[B: batch", 0, 4);
    assert_eq!(code, "param batch: int in 1.. = 4");
    assert_eq!(doc, "Prompts.");
}

#[test]
fn a_function_of_the_library_has_its_signature_doc_and_module() {
    for (what, n) in [("group_relative", 0), ("group_relative", 1)] {
        let (code, doc) = hover(what, n, 0);
        assert_eq!(
            code,
            "fn group_relative(r: float[..], g: axis, eps: float = 1e-4, biased: bool = false, before: float = 1e30, after: float = 1e30) -> float[..]"
        );
        assert!(
            doc.contains("Shao") && doc.contains("From `std.grpo`."),
            "{doc}"
        );
    }
    assert!(hover("warmup", 0, 0).0.starts_with("fn warmup("));
}

#[test]
fn a_function_of_the_file_has_its_signature_and_doc() {
    let (code, doc) = hover("half(r", 0, 0);
    assert!(code.starts_with("fn half(x: float[..], y: float[.., T], g: axis"));
    assert_eq!(doc, "Half of the distance.");
}

#[test]
fn an_argument_has_its_declared_type_and_that_of_the_first_call() {
    let (code, doc) = hover("(y, T)", 0, 1);
    assert_eq!(code, "y: float[.., T]");
    assert_eq!(doc, "`float[B, G, T]` in the first call.");
}

#[test]
fn built_in_words_have_their_reference() {
    assert!(hover("mean(y", 0, 0).0.starts_with("mean(x: float[..]"));
    assert!(
        hover("generate(", 0, 0)
            .0
            .starts_with("generate(model: model")
    );
    assert!(hover("train policy", 0, 0).1.contains("new version"));
    assert!(hover("minimize", 0, 0).1.contains("one number"));
    assert!(hover("log reward", 0, 0).0.starts_with("log name"));
    assert!(hover("causal", 0, 0).0.starts_with("causal("));
    assert!(hover("adamw", 0, 0).0.starts_with("adamw("));
    assert!(hover("jsonl", 0, 0).0.starts_with("jsonl("));
    assert!(hover("step over", 0, 0).0.starts_with("step over"));
    assert!(hover("checkpoint", 0, 0).1.contains("Hugging Face"));
    assert!(hover("if roll", 0, 0).0.starts_with("if condition"));
}

#[test]
fn a_member_has_its_type_here() {
    assert_eq!(hover("roll.text", 0, 6).0, ".text: text[B, G]");
    assert_eq!(hover("best.text", 0, 6).0, ".text: text[rows]");
}

#[test]
fn a_label_says_what_it_takes() {
    assert_eq!(hover("temperature: 1", 0, 0).0, "temperature: float = 1");
    assert_eq!(hover("scale: 2", 0, 0).0, "scale: float");
    assert!(hover("iterations: 60", 0, 0).0.starts_with("step over"));
}

#[test]
fn a_column_has_its_type_and_the_name_in_the_file() {
    let (code, doc) = hover("== answer", 0, 4);
    assert_eq!(code, "answer: text[B]");
    assert_eq!(doc, "Column `result` of `sums`.");
}

#[test]
fn an_expression_has_the_type_of_its_innermost_part() {
    assert_eq!(hover("lp * adv", 0, 3).0, "float[B, G, T]");
    assert_eq!(hover("== answer", 0, 0).0, "bool[B, G]");
}

#[test]
fn a_comment_and_white_space_have_nothing() {
    let document = document(PROGRAM);
    assert_eq!(document.hover(5), None);
    assert_eq!(document.hover(find(PROGRAM, "\n\nstep", 0) + 1), None);
}

#[test]
fn a_function_that_nothing_calls_still_has_its_names() {
    let text =
        "fn f(x: float[.., T], k: float = 1) -> float[..] {\n  y = x * k\n  return mean(y, T)\n}\n";
    let document = document(text);
    let x = document.hover(find(text, "x * k", 0)).expect("an argument");
    assert_eq!(x.code, "x: float[.., T]");
    let y = document.hover(find(text, "(y", 0) + 1).expect("a binding");
    assert_eq!(y.code, "y");
}

#[test]
fn hints_stand_behind_bindings_and_arguments() {
    let document = document(PROGRAM);
    let whole = Span::new(FileId(0), 0, PROGRAM.len());
    let hints = document.hints(whole);
    let shown: Vec<String> = hints
        .iter()
        .map(|h| {
            let line = PROGRAM[..h.offset as usize].rsplit('\n').next();
            format!("{}{}", line.unwrap_or_default().trim_start(), h.text)
        })
        .collect();
    assert!(
        shown.contains(&"roll: rollout[B, G, T]".to_string()),
        "{shown:#?}"
    );
    assert!(shown.contains(&"r: int[B, G]".to_string()), "{shown:#?}");
    assert!(
        shown.contains(&"lp: float[B, G, T]".to_string()),
        "{shown:#?}"
    );
    assert!(shown.contains(&"d: float[B, G]".to_string()), "{shown:#?}");
    assert!(
        shown.iter().any(|s| s.ends_with("g: axis as G")),
        "{shown:#?}"
    );
    let few = Span::new(FileId(0), 0, find(PROGRAM, "model policy", 0) as usize);
    assert!(document.hints(few).is_empty());
}
