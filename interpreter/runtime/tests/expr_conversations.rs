//! Operations on conversations; implicit prompts against TRL: `tests/reference/extract_prompt.py` wrote the
//! fixture.

mod expr_support;

use std::collections::HashMap;

use expr_support::{B, Build};
use rlhf_lang::graph::{Elem, TextOp};
use rlhf_runtime::eval::{EvalRequest, run};
use serde_json::{Value as Json, json};

fn value(op: TextOp, args: &[(&str, Elem, Json)], elem: Elem) -> Json {
    let mut b = Build::new();
    let inputs: Vec<_> = args.iter().map(|(n, e, _)| b.input(n, *e, &[B])).collect();
    let root = b.on_text(op, &inputs, elem);
    let inputs = args.iter().map(|(n, _, v)| (b.id(n), v.clone())).collect();
    let request = EvalRequest {
        graph: b.graph.clone(),
        root,
        inputs,
        grad: vec![],
    };
    run(&request).unwrap()["value"].clone()
}

#[test]
fn an_implicit_prompt_is_what_trl_takes_out() {
    let text = include_str!("fixtures/extract_prompt.json");
    let cases: HashMap<String, Json> = serde_json::from_str(text).unwrap();
    for (elem, name) in [(Elem::Text, "text"), (Elem::Chat, "chat")] {
        let of = |part: &str| cases[name][part].clone();
        let pair = [("x", elem, of("chosen")), ("y", elem, of("rejected"))];
        assert_eq!(
            value(TextOp::CommonPrefix, &pair, elem),
            of("prompt"),
            "{name}"
        );
        let rest = [("x", elem, of("chosen")), ("p", elem, of("prompt"))];
        assert_eq!(
            value(TextOp::RemovePrefix, &rest, elem),
            of("rest"),
            "{name}"
        );
    }
}

#[test]
fn what_begins_otherwise_keeps_its_beginning_and_none_stays_none() {
    let x = json!(["ab", "ab", null]);
    let p = json!(["a", "b", "a"]);
    let args = [("x", Elem::Text, x), ("p", Elem::Text, p)];
    let rest = value(TextOp::RemovePrefix, &args, Elem::Text);
    assert_eq!(rest, json!(["b", "ab", null]));
    let alike = value(TextOp::CommonPrefix, &args, Elem::Text);
    assert_eq!(alike, json!(["", "", null]));
}

#[test]
fn the_opening_ends_before_the_assistant_and_a_system_message_comes_first() {
    let say = |role: &str, content: &str| json!({"role": role, "content": content});
    let (s, u, a) = (say("system", "s"), say("user", "u"), say("assistant", "a"));
    let talks = json!([[s, u, a, u, a], [u], [a, u]]);
    let opening = value(TextOp::Opening, &[("c", Elem::Chat, talks)], Elem::Chat);
    assert_eq!(opening, json!([[s, u], [u], []]));
    let system = ("s", Elem::Text, json!(["s", "s"]));
    let texts = ("t", Elem::Text, json!(["u", "v"]));
    let made = value(TextOp::System, &[system.clone(), texts], Elem::Chat);
    assert_eq!(made, json!([[s, u], [s, say("user", "v")]]));
    let chats = ("t", Elem::Chat, json!([[u, a], [u]]));
    assert_eq!(
        value(TextOp::System, &[system, chats], Elem::Chat),
        json!([[s, u, a], [s, u]])
    );
}
