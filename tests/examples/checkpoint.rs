//! Writes the tiny checkpoints that the tests train, for reference scripts:
//! `cargo run --release -p rlhf-tests --example checkpoint -- FOLDER` makes `FOLDER/model`, a language
//! model, and `FOLDER/judge`, the same body with a scalar head.

use std::path::PathBuf;
use std::process::ExitCode;

use rlhf_tests::Checkpoint;

/// The one that the tests use.
const SEED: u64 = 7;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: checkpoint FOLDER");
        return ExitCode::from(2);
    };
    let model = Checkpoint::new(SEED);
    model.write(&folder.join("model"));
    model.with_scalar_head().write(&folder.join("judge"));
    ExitCode::SUCCESS
}
