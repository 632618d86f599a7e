//! Checkpoints that are on this machine already, looked at without downloading anything.

use std::path::{Path, PathBuf};

use super::download::{Kind, Name};
use super::{PACKAGED, cache, home, is_path, package};
use crate::program;

/// The folder of a checkpoint whose tokenizer is here; its weights may be missing.
pub fn local(checkpoint: &str, folder: &Path) -> Option<PathBuf> {
    let expanded = home(checkpoint);
    let found = program::find(folder, &expanded).or_else(|| {
        let name = Name::parse(checkpoint, Kind::Model).filter(|_| !is_path(checkpoint))?;
        let cached = cache::root().and_then(|root| cache::snapshot(&root, &name));
        cached.or_else(|| package::built().filter(|_| checkpoint == PACKAGED))
    })?;
    found.join("tokenizer.json").is_file().then_some(found)
}
