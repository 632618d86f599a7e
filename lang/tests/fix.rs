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
        .replace("answer then", "answer && True then")
        .replace("param base", "parm base");
    let after = mended(&wrong);
    let right = PROGRAM.replace("answer then", "answer and true then");
    assert_eq!(after.text, right);
    assert_eq!(after.count, 3);
    assert!(check(&after.text).is_empty());
}

#[test]
fn a_name_that_is_only_near_is_left_to_the_author() {
    for (from, to) in [
        ("mean(r)\n}", "mean(polic)\n}"),
        ("mean(r)\n}", "men(r)\n}"),
        ("temperature: 1", "temprature: 1"),
    ] {
        let wrong = PROGRAM.replace(from, to);
        let offered = check(&wrong);
        assert!(
            offered.iter().any(|d| d.fix.is_some()),
            "an editor offers it: {offered:?}"
        );
        let after = mended(&wrong);
        assert_eq!((after.text, after.count), (wrong, 0));
    }
}

#[test]
fn one_bad_change_does_not_keep_the_others_from_being_made() {
    let bad = change(vec![(at(0, 1), "worse")]);
    let good = change(vec![(at(2, 3), "y")]);
    let known = |d: &Diagnostic, message: &str| Diagnostic {
        message: message.into(),
        ..d.clone()
    };
    let (bad, good) = (known(&bad, "bad"), known(&good, "good"));
    let after = mend("a b", &|text: &str| match text {
        "a b" => vec![bad.clone(), good.clone()],
        "a y" => vec![bad.clone()],
        _ => vec![bad.clone(), good.clone(), known(&bad, "another")],
    });
    assert_eq!((after.text.as_str(), after.count), ("a y", 1));
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

/// The titles of the fixes of a text that does not parse.
fn offered(text: &str) -> Vec<String> {
    let (_, diagnostics) = rlhf_lang::syntax::parse(rlhf_lang::source::FileId(0), text);
    assert!(!diagnostics.is_empty(), "{text}");
    let fixes = diagnostics.into_iter().filter_map(|d| d.fix);
    fixes.map(|f| f.title).collect()
}

#[test]
fn a_word_is_offered_only_where_the_text_parses_with_it() {
    assert_eq!(offered("parm n: int = 1"), ["write `param`"]);
    assert_eq!(offered("step {}\nerate(policy, 1)"), [""; 0]);
}

#[test]
fn a_separator_before_a_doc_line_changes_no_meaning() {
    let text = "/// one\n;/// two\nfn f(x: float[..]) -> float[..] = x\n";
    let doc = |t: &str| {
        rlhf_lang::syntax::parse(rlhf_lang::source::FileId(0), t)
            .0
            .items[0]
            .doc
            .clone()
    };
    let laid_out = rlhf_lang::fmt::format(text).text;
    assert_eq!(doc(text).as_deref(), Some("one\ntwo"));
    assert_eq!(doc(&laid_out), doc(text));
}
