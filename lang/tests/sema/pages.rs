//! Every page's examples do what the page says.

use std::collections::BTreeSet;
use std::path::Path;

use rlhf_lang::diag::Level;
use rlhf_lang::lint::{codes, explain};

use super::{check, messages, program};

/// A block, with the overrides that its first line names.
type Example<'p> = (&'p str, Vec<(&'p str, &'p str)>);

/// The blocks under a heading, up to the next one.
fn examples<'p>(page: &'p str, heading: &str) -> Vec<Example<'p>> {
    let title = format!("## {heading}\n");
    let from = page.find(&title).expect("a page has both examples") + title.len();
    let section = page[from..].split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```rlhf\n").skip(1);
    let found: Vec<_> = blocks
        .filter_map(|b| b.split("```").next())
        .map(example)
        .collect();
    assert!(!found.is_empty(), "an example is a block of rlhf: {page}");
    found
}

fn example(block: &str) -> Example<'_> {
    let with = block
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("// with: "))
        .map(|l| {
            l.split(' ')
                .filter_map(|pair| pair.split_once('='))
                .collect()
        });
    (block, with.unwrap_or_default())
}

#[test]
fn every_failing_example_has_its_code() {
    let mut wrong = String::new();
    for code in codes() {
        let page = explain(code).expect("listed codes have pages");
        for (block, overrides) in examples(page, "Fails") {
            let compiled = check(&program(block), &overrides);
            let fires = compiled.diagnostics.iter().any(|d| d.code == code);
            let mut others = compiled
                .diagnostics
                .iter()
                .filter(|d| d.level != Level::Hint && d.code.starts_with(['E', 'M', 'P', 'D']));
            if !fires || (!code.starts_with('L') && others.any(|d| d.code != code)) {
                wrong += &format!("{code}\n{}\n", messages(&compiled));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "failing examples that say something else:\n{wrong}"
    );
}

#[test]
fn every_passing_example_is_clean() {
    let mut wrong = String::new();
    for code in codes() {
        let page = explain(code).expect("listed codes have pages");
        for (block, overrides) in examples(page, "Passes") {
            let compiled = check(&program(block), &overrides);
            let found: Vec<_> = compiled
                .diagnostics
                .iter()
                // Bindings and params of a fragment need not be used, except where that is the subject.
                .filter(|d| d.level != Level::Hint || d.code == code)
                .filter(|d| {
                    code.starts_with('L') && d.code == code
                        || !matches!(d.code.as_str(), "L001" | "L002" | "L003")
                })
                .collect();
            if !found.is_empty() {
                wrong += &format!("{code}\n{}\n", messages(&compiled));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "passing examples that say something:\n{wrong}"
    );
}

#[test]
fn every_code_in_the_sources_has_a_page() {
    let mut used = BTreeSet::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut used,
    );
    // Their pages are the command line's; `allow` knows them.
    used.retain(|code| !matches!(code.as_str(), "M119" | "M120"));
    let known: BTreeSet<String> = codes().map(str::to_string).collect();
    assert_eq!(used, known, "codes in the sources, codes with pages");
}

fn collect(folder: &Path, used: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the crate has sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, used);
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_name().is_some_and(|n| n != "pages.rs")
        {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            for quoted in text.split('"') {
                let code = quoted.len() == 4
                    && quoted.starts_with(['E', 'L', 'M', 'P'])
                    && quoted[1..].bytes().all(|b| b.is_ascii_digit());
                if code {
                    used.insert(quoted.to_string());
                }
            }
        }
    }
}
