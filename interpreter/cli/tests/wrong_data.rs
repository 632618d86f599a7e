//! Wrong programs whose mistake is in the data they name: each has one message, and on its line.
//!
//! The programs and their small files are in `tests/wrong/data/`; a line that ends in
//! `// expect: D301` is where the message begins.
#![allow(missing_docs)]

#[allow(dead_code)] // not every test reads all of it
mod common;

use std::path::{Path, PathBuf};

use common::Scene;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wrong/data")
}

/// The programs by name, with the line and the code that each expects.
fn programs() -> Vec<(String, Vec<(usize, String)>)> {
    let entries = std::fs::read_dir(folder()).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "rlhf"));
    paths.sort();
    let expected = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("programs are text");
        let lines = text.lines().enumerate();
        let marked =
            lines.filter_map(|(i, l)| Some((i + 1, l.split_once("// expect: ")?.1.into())));
        let name = path.file_name().expect("a file has a name");
        (name.to_string_lossy().into_owned(), marked.collect())
    };
    paths.iter().map(expected).collect()
}

/// A folder with a copy of the corpus.
fn scene() -> Scene {
    let scene = Scene::new();
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}\
                    {% if add_generation_prompt %}<assistant>{% endif %}";
    scene.write("model/chat_template.jinja", template);
    for entry in std::fs::read_dir(folder()).expect("the corpus is there") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("small text files");
        scene.write(&name, &text);
    }
    scene
}

#[test]
fn every_mistake_in_the_data_has_its_message_and_no_other() {
    let scene = scene();
    let programs = programs();
    assert!(programs.len() >= 8);
    for (name, expected) in programs {
        let ran = scene.rlhf(&["check", &name, "--format", "json"]);
        let found: Vec<Value> = ran
            .out
            .lines()
            .map(|l| serde_json::from_str(l).expect("one JSON object a line"))
            .collect();
        let counted: Vec<(usize, String)> = found
            .iter()
            .filter(|d| d["level"] != "hint")
            .map(|d| {
                let line = d["line"].as_u64().unwrap_or_default();
                let code = d["code"].as_str().unwrap_or_default();
                (line as usize, code.to_string())
            })
            .collect();
        assert_eq!(counted, expected, "{name}: {}", ran.out);
        assert_eq!(ran.code, 1, "{name}");
    }
}

#[test]
fn messages_about_data_fit_a_line() {
    let scene = scene();
    for (name, _) in programs() {
        let ran = scene.rlhf(&["check", &name, "--format", "json"]);
        for line in ran.out.lines() {
            let d: Value = serde_json::from_str(line).expect("one JSON object a line");
            let message = d["message"].as_str().unwrap_or_default();
            assert!(message.chars().count() <= 100, "{name}: {message}");
        }
    }
}
