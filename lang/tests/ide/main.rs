//! What an editor is told: the reference, hover, completion, definition, rename.

mod reference;

use rlhf_lang::compile::{Compiled, Request, compile};

/// Compiles a text that imports no files.
pub fn check(text: &str) -> Compiled {
    compile(&Request {
        name: "test.rlhf",
        text,
        overrides: &[],
        load: &|_| None,
    })
}

/// Codes with the messages, one a line, for a failing assertion to show.
pub fn messages(compiled: &Compiled) -> String {
    let lines = compiled
        .diagnostics
        .iter()
        .map(|d| format!("{} {}\n", d.code, d.message));
    lines.collect()
}
