//! Safe changes are applied as far as they leave a text better, and no further.
#![allow(missing_docs)]

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::fix::{Mended, apply, mend};
use rlhf_lang::source::{FileId, Span};
use rlhf_lang::{Request, compile};

const FILE: FileId = FileId(0);

const PROGRAM: &str = r#"//! Sums.
/// Where to start.
param base: checkpoint = "./model"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal(base, optim: adamw(lr: 1e-5))
step over sums[B: 2], iterations: 3 {
  roll = generate(policy, question, temperature: 1)[G: 2, T: ..8]
  r = if roll.text == answer then 1 else 0
  train policy { // allow(M101): as small as a program can be
    lp = logp(policy, roll)
    minimize -mean(mean(r * lp, T), [B, G])
  }
  log reward: mean(r)
}
"#;

fn check(text: &str) -> Vec<Diagnostic> {
    let request = Request {
        name: "sums.rlhf",
        text,
        overrides: &[],
        load: &|_| None,
    };
    compile(&request).diagnostics
}

fn mended(text: &str) -> Mended {
    mend(text, &check)
}

fn at(lo: usize, hi: usize) -> Span {
    Span::new(FILE, lo, hi)
}

fn change(edits: Vec<(Span, &str)>) -> Diagnostic {
    let edits = edits.into_iter().map(|(s, t)| (s, t.to_string())).collect();
    Diagnostic::error("E010", at(0, 1), "wrong").fix("mend it", edits)
}

#[test]
fn changes_that_do_not_touch_are_applied_together() {
    let all = [
        change(vec![(at(4, 5), "D")]),
        change(vec![(at(0, 1), "AA")]),
    ];
    let applied = apply("a b c", FILE, &all).expect("there are changes");
    assert_eq!((applied.text.as_str(), applied.count), ("AA b D", 2));
    assert_eq!(applied.places, [at(0, 2), at(5, 6)]);
}

#[test]
fn of_changes_that_overlap_the_first_is_applied() {
    let all = [change(vec![(at(0, 3), "x")]), change(vec![(at(2, 5), "y")])];
    let applied = apply("a b c", FILE, &all).expect("there are changes");
    assert_eq!((applied.text.as_str(), applied.count), ("x c", 1));
    let twice = [change(vec![(at(1, 1), "x")]), change(vec![(at(1, 1), "x")])];
    let applied = apply("ab", FILE, &twice).expect("there are changes");
    assert_eq!((applied.text.as_str(), applied.count), ("axb", 1));
}

#[test]
fn changes_elsewhere_or_out_of_the_text_are_left_out() {
    let other = Span::new(FileId(1), 0, 1);
    for edits in [
        vec![(other, "x")],
        vec![(at(0, 1), "x"), (other, "x")],
        vec![(at(2, 9), "x")],
        vec![(at(1, 2), "x")],
        vec![(at(0, 2), "ä")],
    ] {
        assert_eq!(apply("äb", FILE, &[change(edits)]), None);
    }
}

#[test]
fn mistakes_hidden_behind_mistakes_are_mended_in_turn() {
    let wrong = PROGRAM
        .replace("answer then", "anwser && true then")
        .replace(
            "log reward: mean(r)",
            "log reward: mean(rol.txet == answer)",
        )
        .replace("temperature: 1", "temprature: 1");
    let after = mended(&wrong);
    let right = PROGRAM
        .replace("answer then", "answer and true then")
        .replace(
            "log reward: mean(r)",
            "log reward: mean(roll.text == answer)",
        );
    assert_eq!(after.text, right);
    assert_eq!(after.count, 5);
    assert!(check(&after.text).is_empty());
}

#[test]
fn a_change_that_makes_another_error_is_not_applied() {
    // A name that is close and of another kind: the change would put a model where a number is wanted.
    let wrong = PROGRAM.replace("mean(r)\n}", "mean(polic)\n}");
    let before = check(&wrong);
    assert!(before.iter().any(|d| d.fix.is_some()), "{before:?}");
    let after = mended(&wrong);
    assert_eq!((after.text, after.count), (wrong, 0));
}

#[test]
fn a_short_name_that_may_be_several_others_is_left_to_the_author() {
    let wrong = PROGRAM.replace("mean(r)\n}", "mean(rr)\n}");
    let guess = change(vec![(at(0, 2), "lr")]);
    let after = mend("rr", &|text: &str| match text {
        "rr" => vec![guess.clone()],
        _ => vec![],
    });
    assert_eq!((after.text.as_str(), after.count), ("rr", 0));
    assert_eq!(mended(&wrong).text, wrong);
}

#[test]
fn one_bad_change_does_not_keep_the_others_from_being_made() {
    let wrong = PROGRAM
        .replace("mean(r)\n}", "mean(polic)\n}")
        .replace("temperature: 1", "temprature: 1");
    let after = mended(&wrong);
    assert_eq!(after.count, 1);
    assert_eq!(after.text, PROGRAM.replace("mean(r)\n}", "mean(polic)\n}"));
}

#[test]
fn a_clean_text_stays_as_it_is() {
    let after = mended(PROGRAM);
    assert_eq!((after.text.as_str(), after.count), (PROGRAM, 0));
}

#[test]
fn mending_ends_when_every_change_brings_the_next() {
    let endless = |text: &str| {
        let end = text.len();
        vec![
            Diagnostic::warning("L001", at(0, 1), format!("{end} is not enough"))
                .fix("add one", vec![(at(end, end), "x".to_string())]),
        ]
    };
    let after = mend("x", &endless);
    assert_eq!(after.text.len(), after.count + 1);
}

#[test]
fn whatever_is_missing_mending_leaves_no_worse_text_and_is_done_at_once() {
    let syntax = |text: &str| rlhf_lang::syntax::parse(FILE, text).1.len();
    // Every third character: all of them find nothing more and take seconds.
    for (i, c) in PROGRAM.char_indices().step_by(3) {
        let broken = format!("{}{}", &PROGRAM[..i], &PROGRAM[i + c.len_utf8()..]);
        let once = mended(&broken);
        assert!(syntax(&once.text) <= syntax(&broken), "{}", once.text);
        assert_eq!(once.count == 0, once.text == broken, "{broken}");
        let twice = mended(&once.text);
        assert_eq!((twice.text, twice.count), (once.text, 0), "{broken}");
    }
}
