//! D312: the file of a reward and the function in it, or its program, found without running it.

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Reward, RewardSource};
use rlhf_text::files;
use rlhf_text::reward::{self, Pool, Python, START};

use super::python;

/// The script is not there, or no line of it gives the function a meaning.
pub fn check(reward: &Reward, folder: &Path) -> Option<Diagnostic> {
    let RewardSource::Python {
        file,
        function,
        span,
    } = &reward.source
    else {
        return program(reward, folder);
    };
    let Some(path) = files::find(folder, file) else {
        let message = format!("there is no file `{file}`");
        let d = Diagnostic::error("D312", *span, message);
        return Some(d.help(files::elsewhere(folder, file)));
    };
    if path.is_dir() {
        let message = format!("`{file}` is a folder, not a Python file");
        let d = Diagnostic::error("D312", *span, message);
        return Some(d.help("a reward is a function in a file: `python(\"exact.py:score\")`"));
    }
    // What cannot be read as text is left to Python, which knows other encodings.
    let text = std::fs::read_to_string(&path).ok()?;
    let names = python::names(&text)?;
    if names.iter().any(|n| n == function) {
        return None;
    }
    let shown = names.iter().map(String::as_str);
    let shown = shown.filter(|n| !n.starts_with('_'));
    Some(reward::no_function(file, function, shown, *span))
}

/// A program that is not there; nothing of it is started.
fn program(reward: &Reward, folder: &Path) -> Option<Diagnostic> {
    let RewardSource::Command { .. } = reward.source else {
        return None;
    };
    let python = Python {
        executable: PathBuf::new(),
        log: None,
        start: START,
    };
    let started = Pool::start(reward, folder, &python);
    started.err().map(|d| *d)
}
