//! The wrong programs of `tests/wrong/`: each has one mistake that people made, and gets one message.
//!
//! A line that ends in `// expect: M103` is where the message begins. The expectations are taken out
//! before a program is checked, so nothing depends on a comment beside the mistake. Every message is
//! kept as a snapshot under the program's line: reading `snapshots/` is reviewing messages.

mod render;

use std::fs;
use std::path::{Path, PathBuf};

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::FileId;

const MARK: &str = "// expect: ";

struct Wrong {
    name: String,
    /// Without the expectations.
    text: String,
    /// `27 M103`, or `lib/baseline.rlhf:2 E014` where the message begins in another file.
    expected: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/wrong")
}

fn programs() -> Vec<Wrong> {
    let entries = fs::read_dir(folder()).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "rlhf"));
    paths.sort();
    paths.iter().map(|p| read(p)).collect()
}

fn read(path: &Path) -> Wrong {
    let whole = fs::read_to_string(path).expect("programs are text");
    let (mut text, mut expected) = (String::new(), vec![]);
    for (i, line) in whole.split_inclusive('\n').enumerate() {
        match line.split_once(MARK) {
            Some((code, marks)) => {
                text += code.trim_end();
                text.push('\n');
                let place = |mark: &str| match mark.split_once('@') {
                    Some((code, elsewhere)) => format!("{elsewhere} {code}"),
                    None => format!("{} {mark}", i + 1),
                };
                expected.extend(marks.split_whitespace().map(place));
            }
            None => text += line,
        }
    }
    let name = path.file_stem().expect("a file has a name");
    Wrong {
        name: name.to_string_lossy().into(),
        text,
        expected,
    }
}

fn check(wrong: &Wrong) -> Compiled {
    compile(&Request {
        name: &format!("{}.rlhf", wrong.name),
        text: &wrong.text,
        overrides: &[],
        load: &|path| fs::read_to_string(folder().join(path)).ok(),
    })
}

fn place(compiled: &Compiled, d: &Diagnostic) -> String {
    let line = d.span().map_or(String::new(), |s| {
        let source = compiled.sources.get(s.file);
        let line = source.line_column(s.lo).0;
        match s.file {
            FileId(0) => line.to_string(),
            _ => format!("{}:{line}", source.name),
        }
    });
    format!("{line} {}", d.code)
}

/// What counts: everything but hints that were not asked for.
fn counted<'c>(wrong: &Wrong, compiled: &'c Compiled) -> Vec<&'c Diagnostic> {
    let asked = |d: &Diagnostic| wrong.expected.iter().any(|e| e.ends_with(&d.code));
    let all = compiled.diagnostics.iter();
    all.filter(|d| d.level != Level::Hint || asked(d)).collect()
}

#[test]
fn every_mistake_has_its_message_and_no_other() {
    let mut told = String::new();
    for wrong in programs() {
        let compiled = check(&wrong);
        let found = counted(&wrong, &compiled);
        let places: Vec<_> = found.iter().map(|d| place(&compiled, d)).collect();
        if places != wrong.expected {
            told += &format!("\n{}: expected {:?}\n", wrong.name, wrong.expected);
            for d in found {
                told += &render::concise(&compiled.sources, d);
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}

#[test]
fn every_program_names_where_it_comes_from_and_is_whole() {
    for wrong in programs() {
        let first = wrong.text.lines().next().unwrap_or_default();
        let cited =
            first.starts_with("//! Modelled on ") || first.starts_with("//! A common slip: ");
        assert!(cited, "{}: {first}", wrong.name);
        let lines = wrong.text.lines().count();
        assert!((15..=55).contains(&lines), "{}: {lines} lines", wrong.name);
        assert!(!wrong.expected.is_empty(), "{} expects nothing", wrong.name);
    }
}

#[test]
fn at_least_forty_five_are_modelled_on_public_reports() {
    let all = programs();
    let cited = all
        .iter()
        .filter(|w| w.text.starts_with("//! Modelled on "));
    assert!(cited.count() >= 45);
}

#[test]
fn every_message_fits_a_line() {
    let mut long = String::new();
    for wrong in programs() {
        let compiled = check(&wrong);
        for d in counted(&wrong, &compiled) {
            let line = format!("{}: {}", d.code, d.message);
            if line.chars().count() > 100 {
                long += &format!("{} ({}): {line}\n", wrong.name, line.chars().count());
            }
        }
    }
    assert!(long.is_empty(), "longer than 100 columns:\n{long}");
}

#[test]
fn messages_blame_nobody() {
    let words = [
        " you ",
        "your",
        "invalid",
        "illegal",
        "please",
        "sorry",
        "!",
        "failed to",
    ];
    for wrong in programs() {
        let compiled = check(&wrong);
        for d in counted(&wrong, &compiled) {
            // What is quoted from the program is the program's.
            let said = d.message.split('`').step_by(2).collect::<String>();
            let said = format!(" {} ", said.to_lowercase());
            let bad = words.iter().find(|w| said.contains(**w));
            assert!(bad.is_none(), "{}: {bad:?} in {}", wrong.name, d.message);
        }
    }
}

#[test]
fn messages_read_as_kept() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for wrong in programs() {
            let compiled = check(&wrong);
            let mut text = String::new();
            for d in counted(&wrong, &compiled) {
                text += &render::whole(&compiled.sources, d);
            }
            insta::assert_snapshot!(wrong.name.as_str(), text);
        }
    });
}

#[test]
fn a_fix_leaves_a_program_without_its_message() {
    let mut told = String::new();
    for wrong in programs() {
        let compiled = check(&wrong);
        for d in counted(&wrong, &compiled) {
            let Some(fix) = &d.fix else { continue };
            let mut edits = fix.edits.clone();
            edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.lo));
            let mut text = wrong.text.clone();
            for (span, new) in edits {
                text.replace_range(span.range(), &new);
            }
            let mended = Wrong {
                name: wrong.name.clone(),
                text,
                expected: vec![],
            };
            let after = check(&mended);
            let again = after.diagnostics.iter().find(|a| a.code == d.code);
            if let Some(again) = again {
                told += &format!("{}: {} → {}\n", wrong.name, fix.title, again.message);
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}

#[test]
fn any_line_end_gives_the_same_messages() {
    for wrong in programs() {
        let places = |text: String| {
            let same = Wrong {
                name: wrong.name.clone(),
                text,
                expected: wrong.expected.clone(),
            };
            let compiled = check(&same);
            let found = counted(&same, &compiled);
            found
                .iter()
                .map(|d| place(&compiled, d))
                .collect::<Vec<_>>()
        };
        for end in ["\r", "\r\n"] {
            let found = places(wrong.text.replace('\n', end));
            assert_eq!(found, wrong.expected, "{} with {end:?}", wrong.name);
        }
    }
}
