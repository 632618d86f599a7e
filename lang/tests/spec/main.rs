//! The manual is the law: every block of `tests/spec/*.md` is checked, and the manual names all there is.
//!
//! `UPDATE_SPEC=1 cargo test -p rlhf-lang --test spec -- --test-threads=1` writes the messages and tables that
//! pages show.

mod block;
mod coverage;
mod diff;
#[path = "../../../stdlib/tests/example/mod.rs"]
mod example;
mod expression;
mod library;
mod page;
mod programs;
mod wrap;

use std::path::PathBuf;

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether pages are rewritten rather than compared.
fn updating() -> bool {
    std::env::var_os("UPDATE_SPEC").is_some_and(|v| v == "1")
}

/// The text of a file of the repository.
fn read(path: &str) -> String {
    let at = root().join(path);
    std::fs::read_to_string(&at).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Fails with every complaint at once.
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n\n{}", wrong.join("\n\n"));
}
