//! Tokens and chat templates against transformers: `tests/reference/chat_template.py` wrote the
//! fixtures.

use std::path::{Path, PathBuf};

use rlhf_text::{Message, Tokens, Turn};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Fixture {
    plain: Vec<Plain>,
    templates: Vec<Chats>,
}

#[derive(Deserialize)]
struct Plain {
    text: String,
    bare: Vec<u32>,
    special: Vec<u32>,
}

#[derive(Deserialize)]
struct Chats {
    template: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    messages: Vec<Message>,
    text: String,
    ids: Vec<u32>,
    /// Without the generation prompt.
    closed: String,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("fixtures/chat_template.json")).unwrap()
}

fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer")
}

/// A copy of the small tokenizer that a test may change.
fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(small()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn hello() -> Vec<Message> {
    vec![Message {
        role: "user".into(),
        content: "Hello".into(),
    }]
}

#[test]
fn texts_have_the_ids_of_transformers_and_come_back() {
    let tokens = Tokens::load(&small()).unwrap();
    for case in fixture().plain {
        assert_eq!(
            tokens.encode(&case.text, false).unwrap(),
            case.bare,
            "{:?}",
            case.text
        );
        assert_eq!(
            tokens.encode(&case.text, true).unwrap(),
            case.special,
            "{:?}",
            case.text
        );
        let without = case.text.replace("<|end|>", "");
        assert_eq!(tokens.decode(&case.special), without);
    }
    assert!(tokens.vocab() >= 259);
}

#[test]
fn templates_give_the_text_and_ids_of_transformers() {
    for chats in fixture().templates {
        let dir = copy();
        std::fs::write(dir.path().join("chat_template.jinja"), &chats.template).unwrap();
        let tokens = Tokens::load(dir.path()).unwrap();
        for case in chats.cases {
            assert_eq!(
                tokens.render(&case.messages, Turn::Open).unwrap(),
                case.text
            );
            assert_eq!(tokens.chat(&case.messages).unwrap(), case.ids);
            let closed = tokens.render(&case.messages, Turn::Closed).unwrap();
            assert_eq!(closed, case.closed);
        }
    }
}

#[test]
fn a_template_in_the_configuration_is_found_alone_or_among_named_ones() {
    let template = "{{ eos_token }}{{ messages[0].content }}";
    let forms = [
        json!(template),
        json!([{"name": "tool_use", "template": "no"}, {"name": "default", "template": template}]),
    ];
    for form in forms {
        let dir = copy();
        let config = json!({
            "eos_token": {"content": "<|end|>", "lstrip": false},
            "chat_template": form,
        });
        std::fs::write(dir.path().join("tokenizer_config.json"), config.to_string()).unwrap();
        let tokens = Tokens::load(dir.path()).unwrap();
        assert_eq!(tokens.render(&hello(), Turn::Open).unwrap(), "<|end|>Hello");
    }
}

#[test]
fn every_id_that_ends_a_response_is_known() {
    assert_eq!(Tokens::load(&small()).unwrap().eos(), [2, 0]);
    let dir = copy();
    std::fs::remove_file(dir.path().join("generation_config.json")).unwrap();
    std::fs::write(dir.path().join("config.json"), r#"{"eos_token_id": 7}"#).unwrap();
    assert_eq!(Tokens::load(dir.path()).unwrap().eos(), [7, 2]);
}

#[test]
fn a_checkpoint_without_a_template_says_so() {
    let tokens = Tokens::load(&small()).unwrap();
    assert!(!tokens.has_template());
    let fault = tokens.chat(&hello()).unwrap_err();
    assert_eq!(fault.code, "D310");
    assert!(fault.help.is_some());
    assert_eq!(
        fault.message,
        "`chat(…)` needs a chat template and this checkpoint has none"
    );
}

#[test]
fn a_template_that_refuses_or_does_not_parse_says_why() {
    let dir = copy();
    let write = |text: &str| std::fs::write(dir.path().join("chat_template.jinja"), text).unwrap();
    write("a\n{{ raise_exception('system first') }}");
    let tokens = Tokens::load(dir.path()).unwrap();
    assert_eq!(
        tokens.chat(&hello()).unwrap_err().message,
        "the chat template refused this conversation: system first (line 2 of the template)"
    );
    write("{% for m in messages %}");
    let fault = Tokens::load(dir.path()).unwrap_err().message;
    assert!(
        fault.starts_with("the chat template does not parse: "),
        "{fault}"
    );
}

#[test]
fn a_missing_or_broken_tokenizer_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Tokens::load(dir.path()).unwrap_err();
    assert!(fault.message.ends_with("has no tokenizer.json"));
    assert!(fault.help.is_some());
    std::fs::write(dir.path().join("tokenizer.json"), "{").unwrap();
    let fault = Tokens::load(dir.path()).unwrap_err();
    assert!(fault.message.contains("cannot be read"));
}

#[test]
fn smollm2_equals_transformers() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("fixtures/chat_smollm2.json")).unwrap();
    assert_eq!(cases.len(), 3);
    // `./test` puts the model in place and names it; the committed ids are checked where it is.
    let Some(dir) = std::env::var_os("RLHF_SMOLLM2") else {
        return;
    };
    let tokens = Tokens::load(Path::new(&dir)).unwrap();
    for case in cases {
        assert_eq!(
            tokens.render(&case.messages, Turn::Open).unwrap(),
            case.text
        );
        assert_eq!(tokens.chat(&case.messages).unwrap(), case.ids);
        let closed = tokens.render(&case.messages, Turn::Closed).unwrap();
        assert_eq!(closed, case.closed);
    }
    assert_eq!(tokens.eos(), [2]);
    assert_eq!(tokens.vocab(), 49_152);
}

#[derive(Deserialize)]
struct Masks {
    templates: std::collections::HashMap<String, String>,
    cases: Vec<Masked>,
}

#[derive(Deserialize)]
struct Masked {
    template: String,
    messages: Vec<Message>,
    opening: usize,
    prompt: Vec<u32>,
    response: Vec<u32>,
    mask: Vec<u8>,
}

/// `tests/reference/assistant_masks.py` wrote the fixture.
#[test]
fn the_assistants_tokens_are_those_of_transformers() {
    let masks: Masks = serde_json::from_str(include_str!("fixtures/assistant_masks.json")).unwrap();
    for (name, template) in &masks.templates {
        let dir = copy();
        std::fs::write(dir.path().join("chat_template.jinja"), template).unwrap();
        let tokens = Tokens::load(dir.path()).unwrap();
        // Without its marks, a template is asked turn by turn.
        let bare = template
            .replace("{% generation %}", "")
            .replace("{% endgeneration %}\n", "");
        let bare = bare
            .replace("{%- generation %}\n", "")
            .replace("{%- endgeneration %}\n", "");
        std::fs::write(dir.path().join("chat_template.jinja"), bare).unwrap();
        let unmarked = Tokens::load(dir.path()).unwrap();
        for case in masks.cases.iter().filter(|c| c.template == *name) {
            let (prompt, messages) = case.messages.split_at(case.opening);
            let made = tokens.continued(prompt, messages).unwrap();
            assert_eq!(made.prompt, case.prompt, "{name}");
            assert_eq!(made.response, case.response, "{name}");
            let mask: Vec<bool> = case.mask.iter().map(|m| *m == 1).collect();
            assert_eq!(made.assistant, mask, "{name}");
            assert_eq!(
                unmarked.continued(prompt, messages).unwrap(),
                made,
                "{name}"
            );
        }
    }
}

#[test]
fn a_template_that_rewrites_the_prompt_gives_no_response() {
    let dir = copy();
    let template = "{{ messages | length }}{{ messages[-1].content }}";
    std::fs::write(dir.path().join("chat_template.jinja"), template).unwrap();
    let tokens = Tokens::load(dir.path()).unwrap();
    let d = tokens.continued(&hello(), &hello()).unwrap_err();
    assert_eq!(
        d.message,
        "the template writes this prompt in another way when an answer follows"
    );
    assert!(d.help.is_some());
    let d = tokens.continued(&hello(), &[]).unwrap_err();
    assert_eq!(d.message, "the response has no messages");
}
