//! Every page's examples do what the page says.

use std::collections::BTreeSet;
use std::path::Path;

use rlhf_lang::diag::Level;
use rlhf_lang::lint::{codes, explain};

use super::{check, messages, program};

/// The block under a heading, with the overrides that its first line names.
fn example<'p>(page: &'p str, heading: &str) -> (&'p str, Vec<(&'p str, &'p str)>) {
    let from = page
        .find(&format!("## {heading}"))
        .expect("a page has both examples");
    let block = page[from..]
        .split("```rlhf\n")
        .nth(1)
        .and_then(|b| b.split("```").next())
        .expect("an example is a block of rlhf");
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
        let (block, overrides) = example(page, "Fails");
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
        let (block, overrides) = example(page, "Passes");
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
