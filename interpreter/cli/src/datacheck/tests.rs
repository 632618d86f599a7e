//! The examples of the pages, and what the rules say in which words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlhf_lang::compile::{self, Request};
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;

use proptest::prelude::*;
use serde_json::json;

use super::memory::Memory;
use super::rule::gold::{self, Trial};
use super::view::View;
use super::{Extent, Scripts, Session};
use crate::pages;

const TEMPLATE: &str = "{%- for message in messages -%}\
     {{- '<|start|>' + message['role'] + '\\n' + message['content'] + '<|end|>\\n' -}}\
     {%- endfor -%}\
     {%- if add_generation_prompt -%}{{- '<|start|>assistant\\n' -}}{%- endif -%}";

/// A folder with `model/`, a small tokenizer and a chat template; `base/`, the same without a template;
/// and `other/`, another vocabulary.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary directory"));
        let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../text/tests/fixtures/tokenizer");
        for model in ["model", "base", "other"] {
            for file in ["tokenizer.json", "tokenizer_config.json"] {
                let text = std::fs::read_to_string(small.join(file)).expect("a fixture");
                let text = match model {
                    "other" => text.replace("<|none|>", "<|nothing|>"),
                    _ => text,
                };
                folder.write(&format!("{model}/{file}"), &text);
            }
            folder.write(
                &format!("{model}/generation_config.json"),
                "{\"eos_token_id\": 2}",
            );
        }
        folder.write("model/chat_template.jinja", TEMPLATE);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        let parent = path.parent().expect("a path in the folder");
        std::fs::create_dir_all(parent).expect("a folder");
        std::fs::write(&path, text).expect("a small file");
        path
    }

    /// What the language and the data say of a program.
    fn check(&self, program: &str) -> (Sources, Vec<Diagnostic>) {
        let mut session = Session::with(Memory::at(None), Scripts::Run);
        self.check_in(&mut session, program)
    }

    fn check_in(&self, session: &mut Session, program: &str) -> (Sources, Vec<Diagnostic>) {
        let compiled = compile::compile(&Request {
            name: "p.rlhf",
            text: program,
            overrides: &[],
            load: &|_| None,
        });
        let (mut sources, mut found) = (compiled.sources, compiled.diagnostics);
        if let Some(graph) = &compiled.graph {
            found.extend(session.check(graph, self.path(), Extent::Head, &mut sources));
        }
        // Whether a comment has an effect is only known with the data.
        found.retain(|d| d.code != "L008");
        (sources, found)
    }
}

/// A fenced block: the words after the fence, and its text.
type Block = (String, String);

/// The blocks of a section of a page.
fn blocks(page: &str, section: &str) -> Vec<Block> {
    let heading = format!("\n## {section}\n");
    let Some((_, rest)) = page.split_once(&heading) else {
        return vec![];
    };
    let rest = rest.split("\n## ").next().unwrap_or_default();
    let parts: Vec<&str> = rest.split("```").collect();
    let fenced = parts.iter().skip(1).step_by(2);
    fenced
        .map(|block| {
            let (info, text) = block.split_once('\n').expect("a fence ends its line");
            (info.to_string(), text.to_string())
        })
        .collect()
}

/// What is said of an example: files by their names, and one program.
fn said(example: &[Block]) -> (Sources, Vec<Diagnostic>) {
    let folder = Folder::new();
    let mut program = None;
    for (info, text) in example {
        match info.split_once(' ') {
            Some((_, name)) => {
                folder.write(name, text);
            }
            None => program = Some(text),
        }
    }
    folder.check(program.expect("an example has a program"))
}

#[test]
fn every_page_about_data_has_an_example_that_fails_and_one_that_passes() {
    let codes: Vec<&str> = pages::codes()
        .into_iter()
        .filter(|c| c.starts_with('D') || ["M119", "M120"].contains(c))
        .collect();
    assert_eq!(codes.len(), 17);
    let mut wrong = vec![];
    for code in codes {
        let page = pages::explain(code).expect("a listed code has a page");
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        let words = |found: &[Diagnostic]| -> Vec<String> {
            let all = found.iter();
            all.map(|d| format!("{}: {}", d.code, d.message)).collect()
        };
        let (_, found) = said(&blocks(page, "Fails"));
        // One cause, one message, which points at something and offers something to do.
        match &found[..] {
            [d] if d.code == code && d.help.is_some() && d.span().is_some() => {}
            _ => wrong.push((code, words(&found))),
        }
        let (_, found) = said(&blocks(page, "Passes"));
        if !found.is_empty() {
            wrong.push((code, words(&found)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn first_lines_are_short_and_name_what_was_found() {
    let messages: Vec<String> = pages::codes()
        .into_iter()
        .filter(|c| c.starts_with('D') || ["M119", "M120"].contains(c))
        .map(|code| {
            let page = pages::explain(code).expect("a listed code has a page");
            let (sources, found) = said(&blocks(page, "Fails"));
            let d = &found[0];
            assert!(d.message.chars().count() <= 100, "{}", d.message);
            let help = d.help.clone().unwrap_or_default();
            let span = d.span().expect("a place");
            let at = sources.get(span.file).slice(span);
            format!(
                "{:?} {code}: {}\n  at: {at}\n  {help}\n",
                d.level, d.message
            )
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

const PROGRAM: &str = "data rows = jsonl(\"rows.jsonl\") { question: text, answer: text }\n\
model policy = causal(\"model\", optim: adamw(1e-5))\n\
\n\
step over rows[B: 1], iterations: 1 {\n  \
  told = answer(chat(question), answer)[W: ..4]\n  \
  train policy { minimize -mean(logp(policy, told)) }\n\
}\n";

fn codes(found: &[Diagnostic]) -> Vec<&str> {
    found.iter().map(|d| d.code.as_str()).collect()
}

#[test]
fn a_finding_moves_with_the_program_without_being_looked_for_again() {
    let folder = Folder::new();
    folder.write(
        "rows.jsonl",
        "{\"question\": \"2 + 3 =\", \"answer\": \"It is five.\"}\n",
    );
    let mut session = Session::with(Memory::at(Some(folder.path().join("cache"))), Scripts::Run);
    let (sources, found) = folder.check_in(&mut session, PROGRAM);
    assert_eq!(codes(&found), ["D303"]);
    let span = found[0].span().expect("a place");
    assert_eq!(sources.get(span.file).slice(span), "W: ..4");
    // The tokenizer is not even read: what it led to is remembered.
    let moved = format!("// a line more\n{}", PROGRAM.replace("1e-5", "2e-5"));
    let mut next = Session::with(Memory::at(Some(folder.path().join("cache"))), Scripts::Run);
    let (_, later) = folder.check_in(&mut next, &moved);
    assert!(next.tokenizers.is_empty());
    assert_eq!(later[0].message, found[0].message);
    assert_eq!(later[0].span().map(|s| s.lo), Some(span.lo + 15));
    // A larger limit is another question.
    let (_, wide) = folder.check_in(&mut next, &PROGRAM.replace("..4", "..40"));
    assert!(wide.is_empty(), "{wide:#?}");
    assert_eq!(next.tokenizers.len(), 1);
}

#[test]
fn a_changed_file_is_looked_at_again() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    let mut session = Session::with(Memory::at(None), Scripts::Run);
    assert!(folder.check_in(&mut session, PROGRAM).1.is_empty());
    folder.write(
        "rows.jsonl",
        "{\"question\": \"2\", \"answer\": \"It is five.\"}\n",
    );
    assert_eq!(codes(&folder.check_in(&mut session, PROGRAM).1), ["D303"]);
    std::fs::remove_file(folder.path().join("model/chat_template.jinja")).expect("it was there");
    let found = folder.check_in(&mut session, PROGRAM).1;
    assert_eq!(codes(&found), ["D310", "D303"]);
}

#[test]
fn a_checkpoint_that_is_not_here_silences_what_needs_it() {
    let folder = Folder::new();
    folder.write(
        "rows.jsonl",
        "{\"question\": \"2\", \"answer\": \"It is five.\"}\n",
    );
    let program = PROGRAM.replace("\"model\"", "\"nobody/nothing\"");
    assert!(folder.check(&program).1.is_empty());
}

#[test]
fn a_prompt_made_of_columns_and_texts_is_followed() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    folder.write("model/config.json", "{\"max_position_embeddings\": 30}");
    let program = PROGRAM.replace(
        "chat(question)",
        "\"A long instruction goes before it: \" + question",
    );
    let (_, found) = folder.check(&program);
    assert_eq!(codes(&found), ["M119"]);
    assert!(
        found[0].message.starts_with("prompt of "),
        "{}",
        found[0].message
    );
}

#[test]
fn a_reward_that_fails_on_the_right_answer_says_so_and_an_editor_never_runs_one() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    folder.write(
        "exact.py",
        "def score(response, answer):\n    return 1 / (len(answer) - 1)\n",
    );
    let program = "data rows = jsonl(\"rows.jsonl\") { question: text, answer: text }\n\
        model policy = causal(\"model\", optim: adamw(1e-5))\n\
        reward exact(response: text, answer: text) -> float = python(\"exact.py:score\")\n\
        step over rows[B: 1], iterations: 1 {\n\
        roll = generate(policy, chat(question), temperature: 1)[G: 2, T: ..4]\n\
        r = exact(roll.text, answer)\n\
        train policy { minimize -mean((r - mean(r, G)) * logp(policy, roll)) }\n}\n";
    let (_, found) = folder.check(program);
    let d = found
        .iter()
        .find(|d| d.code == "R403")
        .expect("the reward divides by zero");
    assert_eq!(d.level, Level::Warning);
    assert_eq!(
        d.message,
        "with `answer` as the response, `exact` failed on row 1: line 2, ZeroDivisionError: division by zero"
    );
    let mut editor = Session::with(Memory::at(None), Scripts::LeaveOut);
    let (_, found) = folder.check_in(&mut editor, program);
    assert!(found.iter().all(|d| d.code != "R403"), "{found:#?}");
}

const SCORED: &str = "data rows = jsonl(\"rows.jsonl\") { question: text, answer: text }\n\
    model policy = causal(\"model\", optim: adamw(1e-5))\n\
    reward exact(response: text, answer: text) -> float = python(\"exact.py:score\")\n\
    step over rows[B: 1], iterations: 1 {\n\
    roll = generate(policy, chat(question), temperature: 1)[G: 2, T: ..4]\n\
    r = exact(roll.text, answer)\n\
    train policy { minimize -mean((r - mean(r, G)) * logp(policy, roll)) }\n}\n";

#[test]
fn a_module_that_the_reward_imports_is_looked_at_again_when_it_changes() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    folder.write(
        "exact.py",
        "import os, sys\nsys.dont_write_bytecode = True\n\
         sys.path.insert(0, os.path.dirname(__file__))\nfrom rules.exact import score\n",
    );
    let mut session = Session::with(Memory::at(None), Scripts::Run);
    for (result, expected) in [("0", true), ("1.0", false)] {
        folder.write(
            "rules/exact.py",
            &format!("def score(response, answer): return {result}\n"),
        );
        let (_, found) = folder.check_in(&mut session, SCORED);
        assert_eq!(codes(&found).contains(&"D313"), expected, "{found:#?}");
    }
}

#[test]
fn without_a_python_it_is_not_known_whether_a_reward_is_sound() {
    let folder = Folder::new();
    let rows = folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    folder.write("exact.py", "def score(response, answer): return 0\n");
    let compiled = compile::compile(&Request {
        name: "p.rlhf",
        text: SCORED,
        overrides: &[],
        load: &|_| None,
    });
    let graph = compiled.graph.expect("the program is right");
    let rows = rlhf_text::rows::read(&graph.data[0], &rows, Extent::Head).expect("one row");
    let view = View::of(&graph, folder.path());
    let tables = [Some(Arc::new(rows))];
    let (scoring, reward) = (&view.scorings[0], &graph.rewards[0]);
    let trial = gold::check(
        &view,
        scoring,
        reward,
        &tables,
        folder.path(),
        "no-such-python",
    );
    assert!(matches!(trial, Trial::Unknown), "{trial:?}");
}

#[test]
fn a_session_keeps_what_its_last_check_used_and_folders_without_files_apart() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    folder.write("more.jsonl", "{\"question\": \"3\", \"answer\": \"5\"}\n");
    let mut session = Session::with(Memory::at(None), Scripts::Run);
    for (rows, model) in [("rows", "model"), ("more", "other"), ("more", "none")] {
        std::fs::create_dir_all(folder.path().join("none")).expect("a folder");
        let program = PROGRAM
            .replace("rows.jsonl", &format!("{rows}.jsonl"))
            .replace("\"model\"", &format!("\"{model}\""));
        folder.check_in(&mut session, &program);
        let tables: Vec<String> = session
            .tables
            .keys()
            .map(|k| k.0[0].display().to_string())
            .collect();
        assert!(
            tables.len() == 1 && tables[0].ends_with(&format!("{rows}.jsonl")),
            "{tables:?}"
        );
        let all = session.tokenizers.keys().all(|(f, _)| f.ends_with(model));
        assert!(all && session.tokenizers.len() <= 1);
    }
}

#[test]
fn rows_of_the_evaluation_that_are_trained_on_are_counted() {
    let folder = Folder::new();
    let row = |n: u32| format!("{{\"question\": \"{n}\", \"answer\": \"5\"}}\n");
    folder.write("rows.jsonl", &(0..10).map(row).collect::<String>());
    folder.write("held.jsonl", &(7..12).map(row).collect::<String>());
    let program = format!(
        "{}\neval every 1 over held {{\n  \
         best = generate(policy, chat(question), temperature: 0)[S: ..4]\n  \
         log accuracy: mean(if best.text == answer then 1 else 0)\n}}\n",
        PROGRAM.replacen(
            "model policy",
            "data held = jsonl(\"held.jsonl\") { question: text, answer: text }\nmodel policy",
            1,
        )
    );
    let (sources, found) = folder.check(&program);
    assert_eq!(codes(&found), ["M118"]);
    assert_eq!(
        found[0].message,
        "3 of 5 rows of `held.jsonl` are in `rows.jsonl` too, which the step trains on"
    );
    assert!(found[0].help.as_ref().is_some_and(|h| h.contains("row 1")));
    let span = found[0].span().expect("a place");
    assert_eq!(sources.get(span.file).slice(span), "\"held.jsonl\"");
}

#[test]
fn a_held_out_set_whose_questions_are_others_is_no_overlap_though_its_answers_are_the_same() {
    let folder = Folder::new();
    let rows = |names: [u32; 3]| {
        let row =
            |n| format!("{{\"question\": \"{n}\", \"prompt\": \"{n}\", \"answer\": \"5\"}}\n");
        names.map(row).concat()
    };
    folder.write("rows.jsonl", &rows([1, 2, 3]));
    folder.write("held.jsonl", &rows([7, 8, 9]));
    let over = |column: &str| {
        format!(
            "{}\neval every 1 over held {{\n  \
             best = generate(policy, chat({column}), temperature: 0)[S: ..4]\n  \
             log accuracy: mean(if best.text == answer then 1 else 0)\n}}\n",
            PROGRAM.replacen(
                "model policy",
                &format!("data held = jsonl(\"held.jsonl\") {{ {column}: text, answer: text }}\nmodel policy"),
                1,
            )
        )
    };
    for column in ["question", "prompt"] {
        let (_, found) = folder.check(&over(column));
        assert!(found.is_empty(), "{column}: {found:#?}");
    }
}

#[test]
fn a_text_that_doubles_with_every_line_is_left_alone() {
    let folder = Folder::new();
    folder.write("rows.jsonl", "{\"question\": \"2\", \"answer\": \"5\"}\n");
    let lines: String = (0..40)
        .map(|i| format!("  t{} = t{i} + t{i}\n", i + 1))
        .collect();
    let program = PROGRAM
        .replace("  told", &format!("  t0 = question + \".\"\n{lines}  told"))
        .replace("chat(question)", "t40")
        .replace("..4", "..40");
    let (_, found) = folder.check(&program);
    assert!(found.is_empty(), "{found:#?}");
}

/// The program over conversations.
fn over_chats() -> String {
    PROGRAM
        .replace("question: text", "talk: chat")
        .replace("chat(question)", "talk")
        .replace("..4", "..40")
}

#[test]
fn a_conversation_that_the_template_refuses_is_named_with_the_reason() {
    let folder = Folder::new();
    let talk = |role: &str| json!({"talk": [{"role": role, "content": "2"}], "answer": "5"});
    folder.write(
        "rows.jsonl",
        &format!("{}\n{}\n", talk("user"), talk("system")),
    );
    let strict =
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}";
    folder.write("model/chat_template.jinja", &format!("{strict}{TEMPLATE}"));
    let (_, found) = folder.check(&over_chats());
    assert_eq!(codes(&found), ["D311"]);
    assert_eq!(
        found[0].message,
        "row 2 of `rows.jsonl`: the chat template refused this conversation: no system turn \
         (line 1 of the template)"
    );
}

#[test]
fn a_role_that_the_template_leaves_out_is_named() {
    let folder = Folder::new();
    let row = json!({"talk": [
        {"role": "user", "content": "2"}, {"role": "narrator", "content": "later"}
    ], "answer": "5"});
    folder.write("rows.jsonl", &row.to_string());
    let (_, found) = folder.check(&over_chats());
    assert!(
        found.is_empty(),
        "this template writes every role: {found:#?}"
    );
    let picky = "{%- for m in messages -%}{%- if m['role'] == 'user' -%}<|start|>{{ m.content }}\
                 {%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}<|end|>{%- endif -%}";
    folder.write("model/chat_template.jinja", picky);
    let (_, found) = folder.check(&over_chats());
    let d = found
        .iter()
        .find(|d| d.code == "D311")
        .expect("a role is left out");
    assert_eq!(
        d.message,
        "row 1 of `rows.jsonl`: role `narrator` is not one this template knows"
    );
    assert!(
        d.help
            .as_ref()
            .is_some_and(|h| h.contains("left out of the prompt"))
    );
}

#[test]
fn every_mark_of_the_template_is_looked_for_in_every_row() {
    let folder = Folder::new();
    let row = |q: &str| json!({"question": q, "answer": "5"}).to_string() + "\n";
    let rows: String = ["2<|end|>", "<|start|>2", "2"].map(row).concat();
    folder.write("rows.jsonl", &rows);
    let (_, found) = folder.check(&PROGRAM.replace("..4", "..40"));
    let d = found.iter().find(|d| d.code == "D309");
    let message = &d.expect("two rows have a mark").message;
    assert!(message.ends_with("(2 of 3 rows)"), "{message}");
}

#[test]
fn csv_and_json_are_checked_as_jsonl_is() {
    let folder = Folder::new();
    folder.write("rows.csv", "question,anwser\n2,5\n");
    folder.write("rows.json", "[{\"question\": \"2\", \"anwser\": \"5\"}]");
    for (format, message) in [
        (
            "csv",
            "`rows.csv` has no column `answer` (row 1 (line 2) has `question`, `anwser`)",
        ),
        (
            "json",
            "`rows.json` has no column `answer` (row 1 has `question`, `anwser`)",
        ),
    ] {
        let program = PROGRAM
            .replacen("jsonl(", &format!("{format}("), 1)
            .replace("rows.jsonl", &format!("rows.{format}"));
        let (_, found) = folder.check(&program);
        assert_eq!(codes(&found), ["D301"], "{format}: {found:#?}");
        assert_eq!(found[0].message, message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands in the data and in the template, there is an answer whose places are in the
    /// program.
    #[test]
    fn no_data_and_no_template_bring_the_check_down(
        cells in prop::collection::vec((".{0,20}", ".{0,20}"), 0..6),
        role in "[a-z]{0,9}",
        template in "(\\{%-? |\\{\\{ |messages|\\[0\\]|\\.content| -?%\\}|\\}\\}|if |endif|[a-z ]){0,8}",
        broken in any::<bool>(),
    ) {
        let folder = Folder::new();
        let rows: String = cells
            .iter()
            .map(|(q, a)| json!({"question": q, "answer": a}).to_string() + "\n")
            .collect();
        folder.write("rows.jsonl", &rows);
        if broken {
            folder.write("model/chat_template.jinja", &template);
        }
        let (sources, found) = folder.check(PROGRAM);
        let talks: String = cells
            .iter()
            .map(|(q, a)| json!({"talk": [{"role": role, "content": q}], "answer": a}).to_string() + "\n")
            .collect();
        folder.write("rows.jsonl", &talks);
        let (_, more) = folder.check(&over_chats());
        for d in found.iter().chain(&more) {
            let span = d.span().expect("a place");
            prop_assert!(span.range().end <= sources.get(span.file).text.len() + 20, "{d:?}");
            prop_assert!(!d.message.contains('\n'), "{}", d.message);
        }
    }
}
