//! The examples of the pages, and what the rules say in which words.

use std::path::{Path, PathBuf};

use rlhf_lang::compile::{self, Request};
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;

use super::memory::Memory;
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
fn said(example: &[Block]) -> Vec<Diagnostic> {
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
    folder.check(program.expect("an example has a program")).1
}

#[test]
fn every_page_about_data_has_an_example_that_fails_and_one_that_passes() {
    let codes: Vec<&str> = pages::codes()
        .into_iter()
        .filter(|c| c.starts_with('D') || ["M118", "M119", "M120"].contains(c))
        .collect();
    assert_eq!(codes.len(), 18);
    for code in codes {
        let page = pages::explain(code).expect("a listed code has a page");
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        let found = said(&blocks(page, "Fails"));
        let words: Vec<String> = found
            .iter()
            .map(|d| format!("{}: {}", d.code, d.message))
            .collect();
        // One cause, one message.
        assert_eq!(found.len(), 1, "{code}: {words:#?}");
        assert_eq!(found[0].code, code, "{words:#?}");
        assert!(found[0].help.is_some(), "{code} offers something to do");
        assert!(found[0].span().is_some(), "{code} points at something");
        let found = said(&blocks(page, "Passes"));
        assert!(found.is_empty(), "{code}: {found:#?}");
    }
}

#[test]
fn first_lines_are_short_and_name_what_was_found() {
    let messages: Vec<String> = pages::codes()
        .into_iter()
        .filter(|c| c.starts_with('D') || ["M118", "M119", "M120"].contains(c))
        .map(|code| {
            let page = pages::explain(code).expect("a listed code has a page");
            let found = said(&blocks(page, "Fails"));
            let d = &found[0];
            assert!(d.message.chars().count() <= 100, "{}", d.message);
            let help = d.help.clone().unwrap_or_default();
            format!("{:?} {code}: {}\n  {help}\n", d.level, d.message)
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
    assert_eq!(sources.get(span.file).slice(span), "answer");
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
        "with `answer` as the response, `exact` failed: line 2, ZeroDivisionError: division by zero"
    );
    let mut editor = Session::with(Memory::at(None), Scripts::LeaveOut);
    let (_, found) = folder.check_in(&mut editor, program);
    assert!(found.iter().all(|d| d.code != "R403"), "{found:#?}");
}
