//! Completion, mostly on text that does not parse.

use rlhf_lang::ide::Completion;

use super::{PROGRAM, document, marked};

/// What is offered at the mark in a line put before the `log` of the step of the program.
fn in_step(line: &str) -> Vec<Completion> {
    at_mark(&PROGRAM.replace("  log reward", &format!("  {line}\n  log reward")))
}

fn at_mark(text: &str) -> Vec<Completion> {
    let (text, at) = marked(text);
    document(&text).complete(at)
}

fn labels(offers: &[Completion]) -> Vec<&str> {
    offers.iter().map(|c| c.label.as_str()).collect()
}

/// The labels that are offered first: those of the lowest rank.
fn first(offers: &[Completion]) -> Vec<&str> {
    let rank = offers.first().map(|c| c.rank);
    let best = offers.iter().filter(|c| Some(c.rank) == rank);
    best.map(|c| c.label.as_str()).collect()
}

#[test]
fn a_reduction_offers_the_axes_of_its_operand_first() {
    assert_eq!(first(&in_step("x = mean(ref, §)")), ["B", "G", "T"]);
    assert_eq!(first(&in_step("x = mean(ref, §")), ["B", "G", "T"]);
    assert_eq!(first(&in_step("x = mean(r, §)")), ["B", "G"]);
    assert_eq!(first(&in_step("x = mean(r * 2, §)")), ["B", "G"]);
    assert_eq!(first(&in_step("x = mean(mean(ref, T), §)")), ["B", "G"]);
    assert_eq!(first(&in_step("x = mean(ref, [B, §])")), ["G", "T"]);
    assert_eq!(first(&in_step("x = mean(ref, [B, §")), ["G", "T"]);
    assert_eq!(first(&in_step("x = at_last(r, §")), ["T"]);
}

#[test]
fn a_list_of_axes_offers_nothing_but_axes() {
    assert_eq!(labels(&in_step("x = mean(ref, [§])")), ["B", "G", "T"]);
}

#[test]
fn an_argument_that_is_an_axis_offers_axes() {
    assert_eq!(first(&in_step("x = group_relative(r, §)")), ["B", "G"]);
    assert_eq!(first(&in_step("x = half(r, ref, §")), ["B", "G"]);
}

#[test]
fn a_call_offers_the_labels_that_are_not_given() {
    let offers = in_step("x = generate(policy, question, temperature: 1, §)[S: ..8]");
    let offered = labels(&offers);
    assert!(offered.contains(&"top_p") && offered.contains(&"stop"));
    assert!(!offered.contains(&"temperature") && !offered.contains(&"prompt"));
    let top_p = offers.iter().find(|c| c.label == "top_p");
    assert_eq!(top_p.map(|c| c.insert.as_str()), Some("top_p: "));
    assert!(labels(&in_step("x = group_relative(r, G, §)")).contains(&"eps"));
    assert!(labels(&in_step("x = half(§, scale: 2)")).contains(&"y"));
    assert!(!labels(&in_step("x = half(§, scale: 2)")).contains(&"scale"));
}

#[test]
fn an_expression_offers_names_columns_and_operators_in_scope() {
    let offers = in_step("x = §");
    let offered = labels(&offers);
    for name in [
        "roll", "ref", "adv", "question", "answer", "batch", "half", "k3", "exp",
    ] {
        assert!(offered.contains(&name), "{name}: {offered:?}");
    }
    // Bound in `train`, in the function, and here.
    for name in ["lp", "d", "x"] {
        assert!(!offered.contains(&name), "{name}");
    }
    let r = offers.iter().find(|c| c.label == "r");
    assert_eq!(r.map(|c| c.detail.as_str()), Some("int[B, G]"));
}

#[test]
fn a_function_that_is_not_imported_brings_its_import() {
    let offers = in_step("x = cli§");
    let clipped = offers
        .iter()
        .find(|c| c.label == "clipped")
        .expect("offered");
    assert!(clipped.also[0].1.contains("use std.ppo { clipped }"));
    let offers = in_step("x = §");
    let k1 = offers.iter().find(|c| c.label == "k1").expect("offered");
    assert_eq!(k1.also[0].1, ", k1");
}

#[test]
fn a_member_of_a_rollout_is_offered_behind_its_point() {
    assert_eq!(labels(&in_step("x = roll.§")), ["finished", "logp", "text"]);
    assert_eq!(
        labels(&in_step("x = roll.te§")),
        ["finished", "logp", "text"]
    );
    assert_eq!(
        labels(&in_step("x = mean(roll.§")),
        ["finished", "logp", "text"]
    );
    assert!(labels(&in_step("x = r.§")).is_empty());
    let offers = in_step("w = answer(chat(question), answer)[W: ..8]\n  x = w.§");
    assert_eq!(labels(&offers), ["finished", "text"]);
}

#[test]
fn a_statement_and_an_item_begin_with_their_words() {
    assert_eq!(labels(&in_step("§")), ["log", "next", "rows", "train"]);
    assert_eq!(labels(&in_step("tr§")), ["log", "next", "rows", "train"]);
    let text = PROGRAM.replace("    minimize", "    §\n    minimize");
    assert_eq!(labels(&at_mark(&text)), ["log", "minimize"]);
    let text = PROGRAM.replace("\nmodel anchor", "\n§\nmodel anchor");
    assert!(labels(&at_mark(&text)).contains(&"param"));
    assert!(labels(&at_mark("§")).contains(&"step"));
    assert!(labels(&at_mark("par§")).contains(&"param"));
    assert_eq!(
        labels(&at_mark("fn f(x: float) -> float {\n  §\n}\n")),
        ["return"]
    );
}

#[test]
fn keywords_are_followed_by_what_they_take() {
    assert_eq!(labels(&in_step("train §")), ["anchor", "policy"]);
    let text = PROGRAM.replace("step over sums", "step over §");
    assert_eq!(labels(&at_mark(&text)), ["held", "sums"]);
    let text = PROGRAM.replace("causal(base", "§(base");
    assert_eq!(labels(&at_mark(&text)), ["causal", "frozen", "scalar"]);
    let text = PROGRAM.replace("sums = jsonl(", "sums = §(");
    assert!(labels(&at_mark(&text)).contains(&"parquet"));
    let text = PROGRAM.replace("frozen(policy)", "frozen(policy, dtype: §)");
    assert_eq!(labels(&at_mark(&text)), ["bf16", "f32"]);
    let text = PROGRAM.replace("param batch: int", "param batch: §");
    assert!(labels(&at_mark(&text)).contains(&"int"));
}

#[test]
fn use_offers_modules_and_their_functions() {
    assert!(labels(&at_mark("use §")).contains(&"std.kl"));
    assert!(labels(&at_mark("use std.§")).contains(&"kl"));
    let offers = at_mark("use std.kl { k1, § }\n");
    let offered = labels(&offers);
    assert!(offered.contains(&"k3") && !offered.contains(&"k1"));
    assert!(labels(&at_mark("use std.kl { §")).contains(&"k3"));
}

#[test]
fn a_choice_offers_its_cases() {
    let text = PROGRAM.replace("\"hard\" | \"soft\" = \"soft\"", "\"hard\" | \"soft\" = §");
    let offers = at_mark(&text);
    assert_eq!(labels(&offers), ["hard", "soft"]);
    assert_eq!(offers[0].insert, "\"hard\"");
    let text = PROGRAM.replace(
        "\"hard\" | \"soft\" = \"soft\"",
        "\"hard\" | \"soft\" = \"§\"",
    );
    assert_eq!(at_mark(&text)[0].insert, "hard");
}

#[test]
fn comments_texts_and_new_names_offer_nothing() {
    for line in ["// §", "x = contains(roll.text, \"§\")", "x = 1§"] {
        assert!(in_step(line).is_empty(), "{line}");
    }
    assert!(at_mark("param §").is_empty());
    assert!(at_mark("//! §").is_empty());
}

#[test]
fn an_open_bracket_above_does_not_reach_the_next_statement() {
    let offers = in_step("x = mean(ref, [B,\n  y = §");
    assert!(labels(&offers).contains(&"ref"));
    assert!(labels(&offers).contains(&"exp"));
}
