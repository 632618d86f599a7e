//! The rules of the house: which room may see which, how long a file may be, what is said where.
#![allow(missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Direct dependencies of a room that are allowed, among the workspace's crates.
const IMPORTS: [(&str, &[&str]); 8] = [
    ("rlhf-stdlib", &[]),
    ("rlhf-lang", &["rlhf-stdlib"]),
    ("rlhf-kernels", &[]),
    ("rlhf-text", &["rlhf-lang"]),
    ("rlhf-plan", &["rlhf-lang"]),
    (
        "rlhf-runtime",
        &["rlhf-lang", "rlhf-plan", "rlhf-kernels", "rlhf-text"],
    ),
    ("rlhf-lsp", &["rlhf-lang", "rlhf-plan", "rlhf-text"]),
    (
        "rlhf",
        &[
            "rlhf-lang",
            "rlhf-plan",
            "rlhf-lsp",
            "rlhf-stdlib",
            "rlhf-text",
        ],
    ),
];

/// Packages that a room must never see, directly or through others.
const NEVER: [(&str, &[&str]); 6] = [
    (
        "rlhf-lang",
        &[
            "tch",
            "torch-sys",
            "clap",
            "notify",
            "miette",
            "cudarc",
            "ureq",
            "tokio",
        ],
    ),
    (
        "rlhf-plan",
        &[
            "tch",
            "torch-sys",
            "clap",
            "notify",
            "miette",
            "cudarc",
            "ureq",
            "tokio",
        ],
    ),
    (
        "rlhf-text",
        &["tch", "torch-sys", "cudarc", "clap", "notify", "miette"],
    ),
    ("rlhf-lsp", &["tch", "torch-sys", "cudarc"]),
    ("rlhf", &["tch", "torch-sys", "cudarc"]),
    ("rlhf-runtime", &["clap", "miette", "indicatif", "notify"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.expect("rustc is there: it built this test");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix("host: "));
    line.expect("rustc names its host").to_string()
}

/// Dependencies by package name; dev-dependencies are left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let host = host();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        // What other platforms need was never fetched.
        .args(["--filter-platform", &host])
        .current_dir(root())
        .output()
        .expect("cargo is there: it runs this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let names: BTreeMap<String, String> = list(&metadata["packages"])
        .iter()
        .map(|p| (text(&p["id"]), text(&p["name"])))
        .collect();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let of = all.entry(names[&text(&node["id"])].clone()).or_default();
        for dependency in list(&node["deps"]) {
            let kinds = list(&dependency["dep_kinds"]);
            if kinds.iter().any(|kind| kind["kind"] != "dev") {
                of.insert(names[&text(&dependency["pkg"])].clone());
            }
        }
    }
    all
}

fn reachable(all: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_string()];
    while let Some(package) = open.pop() {
        for next in all.get(&package).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

#[test]
fn every_room_sees_only_what_the_table_allows() {
    let all = dependencies();
    for (room, allowed) in IMPORTS {
        let found: Vec<&String> = all[room]
            .iter()
            .filter(|d| IMPORTS.iter().any(|(name, _)| name == d))
            .filter(|d| !allowed.contains(&d.as_str()))
            .collect();
        assert!(found.is_empty(), "{room} may not depend on {found:?}");
    }
    for (room, never) in NEVER {
        let seen = reachable(&all, room);
        let found: Vec<&&str> = never.iter().filter(|d| seen.contains(**d)).collect();
        assert!(found.is_empty(), "{room} must not see {found:?}");
    }
    assert!(
        all["rlhf-stdlib"].is_empty(),
        "the standard library is text alone"
    );
}

/// Every Rust file of the workspace with its text, by path from the root.
fn sources() -> Vec<(String, String)> {
    let mut files = vec![];
    for room in ["lang", "stdlib", "kernels", "interpreter", "tests", "bench"] {
        collect(&root().join(room), &mut files);
    }
    assert!(files.len() > 20, "the rooms are found");
    files.sort();
    files
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let shown = path.strip_prefix(root()).unwrap_or(&path);
            files.push((shown.display().to_string(), text));
        }
    }
}

/// Files under `room` that break a rule, with what they break it by.
fn breaking(room: &str, words: &[&str]) -> Vec<String> {
    let sources = sources();
    let files = sources.iter().filter(|(path, _)| path.starts_with(room));
    files
        .flat_map(|(path, text)| {
            let code = text.lines().enumerate().filter(|(_, l)| !is_comment(l));
            code.filter_map(|(number, line)| {
                let word = words.iter().find(|word| line.contains(**word))?;
                Some(format!("{path}:{}: {word}", number + 1))
            })
            .collect::<Vec<_>>()
        })
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let sources = sources();
    let long: Vec<String> = sources
        .iter()
        .filter(|(_, text)| text.lines().count() > 600)
        .map(|(path, text)| format!("{path}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_module_says_what_it_is() {
    let sources = sources();
    let silent: Vec<&String> = sources
        .iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn the_language_knows_no_files_clock_environment_or_terminal() {
    let words = [
        "std::fs",
        "std::env",
        "std::net",
        "std::time",
        "std::thread",
        "std::process",
        "println!",
        "eprintln!",
    ];
    let found = breaking("lang/src", &words);
    assert!(found.is_empty(), "{found:#?}");
    let found = breaking("interpreter/plan/src", &words);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_runtime_sees_graphs_and_never_syntax() {
    let found = breaking(
        "interpreter/runtime/src",
        &["rlhf_lang::syntax", "rlhf_lang::sema", "clap::"],
    );
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn unsafe_code_is_in_the_kernels_alone() {
    // Split, so that this line is not found.
    let word = concat!("un", "safe");
    let forms = [
        format!("{word} {{"),
        format!("{word} fn"),
        format!("{word} impl"),
        format!("{word} extern"),
    ];
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    for room in ["lang", "stdlib", "interpreter", "tests"] {
        let found = breaking(room, &forms);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn every_diagnostic_code_has_a_page() {
    let folders = ["lang/src/lint", "interpreter/cli/src/pages"];
    let pages: BTreeSet<String> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).expect("the pages are there"))
        .flatten()
        .filter_map(|e| Some(e.file_name().into_string().ok()?.to_uppercase()))
        .filter(|name| name.ends_with(".MD"))
        .collect();
    let mut missing = BTreeMap::new();
    for (path, text) in sources() {
        let rooms = [
            "lang/src",
            "interpreter/text/src",
            "interpreter/runtime/src",
            "interpreter/cli/src",
        ];
        if !rooms.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        for code in codes(&text) {
            if !pages.iter().any(|page| page.starts_with(&code)) {
                missing.insert(code, path.clone());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// String literals that are codes: a letter of the six kinds and three digits.
fn codes(text: &str) -> Vec<String> {
    let literals = text.split('"');
    literals
        .filter(|word| {
            word.len() == 4
                && word.starts_with(['E', 'L', 'M', 'D', 'P', 'R'])
                && word[1..].bytes().all(|b| b.is_ascii_digit())
        })
        .map(String::from)
        .collect()
}
