//! Sessions of an editor without a window: the protocol over a pair of channels.
#![allow(missing_docs)]

mod editor;

use std::cell::Cell;
use std::path::Path;

use editor::{Editor, PROGRAM, at, session};
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::{Source, Span};
use serde_json::{Value, json};

fn text_edits(edits: &Value) -> Vec<String> {
    let list = edits.as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|e| e["newText"].as_str().unwrap_or_default().to_string())
        .collect()
}

#[test]
fn a_session_from_hello_to_goodbye() {
    session(json!({}), |editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        assert_eq!(editor.diagnostics(&uri), Vec::<Value>::new());
        let hover = editor.ask("textDocument/hover", at(&uri, PROGRAM, "roll.text"));
        let shown = hover["contents"]["value"].as_str().unwrap_or_default();
        assert!(shown.contains("roll: rollout[B, G, T]"), "{shown}");

        let hints = editor.ask(
            "textDocument/inlayHint",
            json!({ "textDocument": { "uri": uri }, "range": {
                "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } } }),
        );
        let labels: Vec<&str> = hints
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|h| h["label"].as_str())
            .collect();
        assert!(labels.contains(&": rollout[B, G, T]"), "{labels:?}");

        let symbols = editor.ask(
            "textDocument/documentSymbol",
            json!({ "textDocument": { "uri": uri } }),
        );
        assert!(symbols.to_string().contains("train policy"), "{symbols}");

        let references = editor.ask("textDocument/references", {
            let mut p = at(&uri, PROGRAM, "roll.text");
            p["context"] = json!({ "includeDeclaration": true });
            p
        });
        assert_eq!(references.as_array().map(Vec::len), Some(4), "{references}");
    });
}

#[test]
fn diagnostics_come_with_code_labels_and_fixes_and_go_when_mended() {
    session(json!({}), |editor| {
        let broken = PROGRAM.replace("log reward: mean(r)", "log reward: meen(r)");
        let uri = editor.open("program.rlhf", &broken);
        let found = editor.diagnostics(&uri);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["code"], "E010");
        assert_eq!(found[0]["severity"], 1);
        assert_eq!(found[0]["source"], "rlhf");
        assert!(found[0].get("codeDescription").is_none());
        assert_eq!(text_edits(&found[0]["data"]["edits"]), ["mean"]);

        let actions = editor.ask(
            "textDocument/codeAction",
            json!({ "textDocument": { "uri": uri }, "range": found[0]["range"],
                    "context": { "diagnostics": found } }),
        );
        assert_eq!(actions[0]["kind"], "quickfix");
        let edits = &actions[0]["edit"]["changes"][&uri];
        assert_eq!(text_edits(edits), ["mean"]);
        assert_eq!(edits[0]["range"], found[0]["range"]);

        editor.replace(&uri, PROGRAM);
        assert_eq!(editor.diagnostics(&uri), Vec::<Value>::new());
    });
}

#[test]
fn the_other_half_of_a_conflict_is_related_information() {
    session(json!({}), |editor| {
        let text = PROGRAM.replace(
            "  log reward",
            "  again = logp(policy, roll)\n  log again: mean(again), reward",
        );
        let uri = editor.open("program.rlhf", &text);
        let found = editor.diagnostics(&uri);
        let version = found.iter().find(|d| d["code"] == "E023").cloned();
        let version = version.unwrap_or_else(|| panic!("{found:?}"));
        let related = &version["relatedInformation"][0];
        assert_eq!(related["location"]["uri"], uri);
        assert!(
            related["message"]
                .as_str()
                .is_some_and(|m| m.contains("trained"))
        );
    });
}

#[test]
fn positions_count_in_utf_16_unless_utf_8_is_offered() {
    let text = PROGRAM.replace(
        "  log reward",
        "  same = if roll.text == \"ä😀\" then meen(r) else 0\n  log same: mean(same), reward",
    );
    let line = text.lines().position(|l| l.contains("meen")).unwrap_or(0);
    let column = |encoding: &str| {
        let before = text.lines().nth(line).and_then(|l| l.split("meen").next());
        let before = before.unwrap_or_default();
        match encoding {
            "utf-8" => before.len(),
            _ => before.encode_utf16().count(),
        }
    };
    for (offered, used) in [
        (json!({}), "utf-16"),
        (
            json!({ "positionEncodings": ["utf-32", "utf-8", "utf-16"] }),
            "utf-8",
        ),
    ] {
        session(json!({ "general": offered }), |editor| {
            assert_eq!(editor.capabilities["positionEncoding"], used);
            let uri = editor.open("program.rlhf", &text);
            let found = editor.diagnostics(&uri);
            assert_eq!(found[0]["code"], "E010", "{found:?}");
            assert_eq!(found[0]["range"]["start"]["line"], line);
            assert_eq!(found[0]["range"]["start"]["character"], column(used));
            let hover = editor.ask(
                "textDocument/hover",
                json!({ "textDocument": { "uri": uri },
                        "position": { "line": line, "character": column(used) + 5 } }),
            );
            let shown = hover["contents"]["value"].as_str().unwrap_or_default();
            assert!(shown.contains("r: int[B, G]"), "{shown}");
        });
    }
}

#[test]
fn incremental_changes_behind_an_emoji_land_where_they_are_meant() {
    session(json!({}), |editor| {
        let text = PROGRAM.replace("//! A program.", "//! Ein Übungsprogramm 😀.");
        let uri = editor.open("program.rlhf", &text);
        assert!(editor.diagnostics(&uri).is_empty());
        // Behind the smiley, then in the line below.
        let end = "//! Ein Übungsprogramm 😀".encode_utf16().count();
        editor.change(
            &uri,
            json!([
                { "range": { "start": { "line": 0, "character": end },
                             "end": { "line": 0, "character": end + 1 } }, "text": "😀" },
                { "range": { "start": { "line": 1, "character": 4 },
                             "end": { "line": 1, "character": 7 } }, "text": "sdt" },
            ]),
        );
        let found = editor.diagnostics(&uri);
        assert!(found.iter().any(|d| d["code"] == "E040"), "{found:?}");
        editor.change(
            &uri,
            json!([{ "range": { "start": { "line": 1, "character": 4 },
                                "end": { "line": 1, "character": 7 } }, "text": "std" }]),
        );
        assert!(editor.diagnostics(&uri).is_empty());
    });
}

#[test]
fn completion_on_a_broken_line_offers_the_axes_of_the_operand() {
    session(json!({}), |editor| {
        let text = PROGRAM.replace("  log reward", "  x = mean(ref, \n  log reward");
        let uri = editor.open("program.rlhf", &text);
        assert!(!editor.diagnostics(&uri).is_empty());
        let mut place = at(&uri, &text, "mean(ref, ");
        let character = place["position"]["character"].as_u64().unwrap_or(0) + 10;
        place["position"]["character"] = character.into();
        let offers = editor.ask("textDocument/completion", place);
        let labels: Vec<&str> = offers
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|o| o["label"].as_str())
            .take(3)
            .collect();
        assert_eq!(labels, ["B", "G", "T"]);
    });
}

#[test]
fn a_name_is_renamed_everywhere_or_refused_with_a_reason() {
    session(json!({}), |editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        let place = at(&uri, PROGRAM, "ref  =");
        let span = editor.ask("textDocument/prepareRename", place.clone());
        assert_eq!(span["placeholder"], "ref");
        let mut rename = place;
        rename["newName"] = "scored".into();
        let edit = editor.ask("textDocument/rename", rename.clone());
        assert_eq!(
            edit["changes"][&uri].as_array().map(Vec::len),
            Some(2),
            "{edit}"
        );
        rename["newName"] = "if".into();
        let refused = editor.fail("textDocument/rename", rename);
        assert!(refused.contains("keyword"), "{refused}");
        let refused = editor.fail("textDocument/prepareRename", at(&uri, PROGRAM, "k3(lp"));
        assert!(refused.contains("std.kl"), "{refused}");
    });
}

#[test]
fn formatting_is_the_one_layout() {
    session(json!({}), |editor| {
        let text = PROGRAM.replace("ref  = logp(anchor, roll)", "ref=logp( anchor,roll )");
        let uri = editor.open("program.rlhf", &text);
        let params = json!({ "textDocument": { "uri": uri },
                             "options": { "tabSize": 8, "insertSpaces": false } });
        let edits = editor.ask("textDocument/formatting", params.clone());
        assert_eq!(edits.as_array().map(Vec::len), Some(1), "{edits}");
        assert_eq!(
            edits[0]["range"]["start"]["line"],
            edits[0]["range"]["end"]["line"]
        );
        editor.replace(&uri, PROGRAM);
        let edits = editor.ask("textDocument/formatting", params);
        assert_eq!(edits, json!([]));
    });
}

#[test]
fn the_definition_of_a_library_function_is_a_file_that_can_be_opened() {
    session(json!({}), |editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        let there = editor.ask("textDocument/definition", at(&uri, PROGRAM, "k3(lp"));
        let file = there["uri"].as_str().unwrap_or_default().to_string();
        let path = url::Url::parse(&file)
            .ok()
            .and_then(|u| u.to_file_path().ok());
        let path = path.expect("a file");
        assert!(path.ends_with("std.kl.rlhf"), "{}", path.display());
        let text = std::fs::read_to_string(&path).expect("the module is written");
        let line = there["range"]["start"]["line"].as_u64().unwrap_or(0) as usize;
        assert!(
            text.lines()
                .nth(line)
                .is_some_and(|l| l.starts_with("fn k3("))
        );
        // The editor opens it and asks about it.
        let library = editor.open_at(&path, &text);
        assert!(editor.diagnostics(&library).is_empty());
        let hover = editor.ask(
            "textDocument/hover",
            at(&library, &text, "ratio(p, q, limit)"),
        );
        assert!(hover.to_string().contains("The log-ratio"), "{hover}");
    });
}

#[test]
fn an_imported_file_is_read_as_it_is_open_and_its_changes_are_seen() {
    session(json!({}), |editor| {
        editor.write("mine.rlhf", "fn twice(x: float[..]) -> float[..] = x + x\n");
        let text = PROGRAM
            .replace("use std.kl", "use \"mine.rlhf\" { twice }\nuse std.kl")
            .replace("mean(r)", "mean(twice(r))");
        let uri = editor.open("program.rlhf", &text);
        assert!(editor.diagnostics(&uri).is_empty(), "as it is on disk");
        let there = editor.ask("textDocument/definition", at(&uri, &text, "twice(r)"));
        assert!(
            there["uri"]
                .as_str()
                .is_some_and(|u| u.ends_with("/mine.rlhf"))
        );

        let library = editor.open("mine.rlhf", "fn twise(x: float[..]) -> float[..] = x + x\n");
        let found = editor.diagnostics_of(&[&uri, &library]);
        assert_eq!(found[0][0]["code"], "E040", "as it is open: {found:?}");
        assert!(found[1].is_empty());

        editor.replace(&library, "fn twice(x: float[..]) -> float[..] = x + x\n");
        let found = editor.diagnostics_of(&[&uri, &library]);
        assert!(found[0].is_empty(), "{found:?}");

        editor.replace(&library, "fn twice(x: float[..]) -> float[..] = x + y\n");
        let found = editor.diagnostics_of(&[&uri, &library]);
        let import = text.lines().position(|l| l.contains("mine.rlhf"));
        assert_eq!(
            found[0][0]["range"]["start"]["line"].as_u64(),
            import.map(|l| l as u64)
        );
        let related = &found[0][0]["relatedInformation"][0]["location"]["uri"];
        assert_eq!(related, &json!(library));

        editor.close(&library);
        assert!(
            editor.diagnostics(&uri).is_empty(),
            "as it is on disk again"
        );
    });
}

#[test]
fn a_library_that_changes_on_disk_is_read_again() {
    session(json!({}), |editor| {
        let text = PROGRAM.replace("use std.kl", "use \"mine.rlhf\" { twice }\nuse std.kl");
        let uri = editor.open("program.rlhf", &text);
        assert_eq!(editor.diagnostics(&uri)[0]["code"], "E040");
        let path = editor.write("mine.rlhf", "fn twice(x: float[..]) -> float[..] = x + x\n");
        editor.tell(
            "workspace/didChangeWatchedFiles",
            json!({ "changes": [{ "uri": path, "type": 1 }] }),
        );
        assert!(editor.diagnostics(&uri).is_empty());
    });
}

#[test]
fn an_editor_that_watches_files_is_asked_to() {
    let watching =
        json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    session(watching, |editor| {
        let asked = editor.next_request();
        assert_eq!(asked.0, "client/registerCapability");
        assert!(asked.1.to_string().contains("**/*.rlhf"));
    });
}

#[test]
fn broken_texts_have_answers() {
    session(json!({}), |editor| {
        for (i, text) in [
            "",
            "step over",
            "train {",
            "\u{feff}😀 \"",
            "use \"program.rlhf\" { x }",
        ]
        .iter()
        .enumerate()
        {
            let uri = editor.open(&format!("broken{i}.rlhf"), text);
            editor.diagnostics(&uri);
            for method in ["hover", "completion", "definition"] {
                let place = json!({ "textDocument": { "uri": uri },
                                    "position": { "line": 7, "character": 70 } });
                editor.ask(&format!("textDocument/{method}"), place);
            }
        }
    });
}

#[test]
fn what_the_server_does_not_know_is_an_error_and_not_the_end() {
    session(json!({}), |editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        editor.diagnostics(&uri);
        let unknown = editor.fail("textDocument/selfDestruct", json!({}));
        assert!(unknown.contains("textDocument/selfDestruct"), "{unknown}");
        let wrong = editor.fail("textDocument/hover", json!({ "where": 3 }));
        assert!(wrong.contains("cannot be read"), "{wrong}");
        editor.tell("textDocument/didChange", json!({ "nonsense": true }));
        editor.tell("$/setTrace", json!({ "value": "off" }));
        let nowhere = json!({ "textDocument": { "uri": "file:///nowhere.rlhf" },
                              "position": { "line": 0, "character": 0 } });
        assert_eq!(editor.ask("textDocument/hover", nowhere), Value::Null);
        let hover = editor.ask("textDocument/hover", at(&uri, PROGRAM, "roll.text"));
        assert!(hover.to_string().contains("rollout"));
    });
}

#[test]
fn what_others_find_is_shown_when_a_text_is_opened_or_saved() {
    let asked = Cell::new(0);
    let extra = |_: &Path, compiled: &rlhf_lang::Compiled| {
        asked.set(asked.get() + 1);
        let mut d = Diagnostic::bare("D301", "no file `sums.jsonl`");
        d.level = Level::Warning;
        (compiled.sources.clone(), vec![d])
    };
    editor::session_with(json!({}), Some(&extra), |editor: &mut Editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        let found = editor.diagnostics(&uri);
        assert_eq!(found[0]["code"], "D301");
        assert_eq!(found[0]["severity"], 2);
        editor.change(&uri, json!([{ "text": format!("{PROGRAM}\n") }]));
        assert!(editor.diagnostics(&uri).is_empty(), "it is another text");
        editor.tell(
            "textDocument/didSave",
            json!({ "textDocument": { "uri": uri } }),
        );
        assert_eq!(editor.diagnostics(&uri)[0]["code"], "D301");
    });
    assert_eq!(asked.get(), 2);
}

#[test]
fn a_problem_within_a_data_file_is_shown_where_the_program_names_the_file() {
    let extra = |_: &Path, compiled: &rlhf_lang::Compiled| {
        let mut sources = compiled.sources.clone();
        let rows = sources.add(Source::new("sums.jsonl", "{}\n{\n"));
        let named = compiled.file.items[0].span;
        let d = Diagnostic::error("D300", Span::new(rows, 3, 4), "line 2 is not JSON");
        (sources, vec![d.label(named, "declared here")])
    };
    editor::session_with(json!({}), Some(&extra), |editor: &mut Editor| {
        let uri = editor.open("program.rlhf", &format!("\n\n{PROGRAM}"));
        let found = editor.diagnostics(&uri);
        let mut found = found.iter();
        let d = found.find(|d| d["code"] == "D300").expect("it is shown");
        // The first item stands below the program's doc comment.
        let first = PROGRAM.lines().position(|l| !l.starts_with("//"));
        assert_eq!(
            d["range"]["start"]["line"].as_u64(),
            first.map(|l| l as u64 + 2),
            "{d}"
        );
    });
}

#[test]
fn a_bug_in_what_others_find_does_not_end_the_session() {
    let extra = |_: &Path, _: &rlhf_lang::Compiled| panic!("a bug");
    editor::session_with(json!({}), Some(&extra), |editor: &mut Editor| {
        let uri = editor.open("program.rlhf", PROGRAM);
        assert!(editor.diagnostics(&uri).is_empty());
    });
}
