//! The cache that Hugging Face's own tools share.

use std::path::{Path, PathBuf};

use super::directory::{self, Parts};
use super::download::Name;

/// Where the cache is: `HF_HUB_CACHE`, or `hub` in `HF_HOME`, or in the user's cache directory.
pub fn root() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let path = if let Some(cache) = variable("HF_HUB_CACHE") {
        PathBuf::from(cache)
    } else if let Some(home) = variable("HF_HOME") {
        PathBuf::from(home).join("hub")
    } else if let Some(cache) = variable("XDG_CACHE_HOME") {
        PathBuf::from(cache).join("huggingface/hub")
    } else {
        PathBuf::from(variable("HOME")?).join(".cache/huggingface/hub")
    };
    std::path::absolute(path).ok()
}

/// A snapshot of the model's main branch that has these parts.
pub fn find(root: &Path, name: &Name, parts: Parts) -> Option<PathBuf> {
    let snapshot = snapshot(root, name)?;
    directory::missing(&snapshot, parts)
        .is_empty()
        .then_some(snapshot)
}

/// The snapshot of the main branch, with what is there of it.
pub fn snapshot(root: &Path, name: &Name) -> Option<PathBuf> {
    let model = root.join(name.folder());
    let revision = std::fs::read_to_string(model.join("refs/main")).ok()?;
    let snapshot = model.join("snapshots").join(revision.trim());
    snapshot.is_dir().then_some(snapshot)
}

#[cfg(test)]
mod tests {
    use super::super::download::Kind;
    use super::*;

    #[test]
    fn only_a_complete_snapshot_counts() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let name = Name::parse("org/model", Kind::Model).expect("a hub id");
        let snapshot = root.path().join("models--org--model/snapshots/abc");
        std::fs::create_dir_all(&snapshot).expect("a folder");
        let refs = root.path().join("models--org--model/refs");
        std::fs::create_dir_all(&refs).expect("a folder");
        std::fs::write(refs.join("main"), "abc").expect("a small file");
        for file in ["config.json", "tokenizer.json"] {
            std::fs::write(snapshot.join(file), "{}").expect("a small file");
        }
        let all = || find(root.path(), &name, Parts::All);
        assert_eq!(all(), None);
        assert!(find(root.path(), &name, Parts::Shape).is_some());
        std::fs::write(snapshot.join("model.safetensors"), "").expect("a small file");
        assert_eq!(all(), Some(snapshot));
    }
}
