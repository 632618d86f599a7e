//! Findings that cost time, remembered between commands.
//!
//! Loading a tokenizer takes a hundred times as long as the rest of a check. What it led to is kept in
//! the user's cache directory, under a digest of everything that was looked at. All of it is best
//! effort: where nothing can be kept, everything is found again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::finding::Finding;

/// Older entries than so many are removed.
const KEPT: usize = 64;

/// So many are held in one process, such as an editor server.
const HELD: usize = 1024;

/// Remembered findings.
#[derive(Debug)]
pub struct Memory {
    folder: Option<PathBuf>,
    entries: HashMap<String, Vec<Finding>>,
}

impl Memory {
    /// In `check/` of `RLHF_CACHE`, or else of `rlhf/` in the user's cache directory.
    pub fn of_user() -> Memory {
        let variable = |name: &str| {
            let set = std::env::var_os(name).filter(|v| !v.is_empty());
            set.map(PathBuf::from)
        };
        let root = variable("RLHF_CACHE").or_else(|| {
            let cache = variable("XDG_CACHE_HOME");
            let cache = cache.or_else(|| Some(variable("HOME")?.join(".cache")));
            Some(cache?.join("rlhf"))
        });
        Memory::at(root.map(|root| root.join("check")))
    }

    /// In a folder, or in this process alone.
    pub fn at(folder: Option<PathBuf>) -> Memory {
        Memory {
            folder,
            entries: HashMap::new(),
        }
    }

    /// What was found under this key before, or what is found now; that is kept unless `find` comes to
    /// nothing.
    pub fn recall(
        &mut self,
        key: &str,
        find: impl FnOnce() -> Option<Vec<Finding>>,
    ) -> Vec<Finding> {
        if let Some(known) = self.entries.get(key) {
            return known.clone();
        }
        let found = match self.stored(key) {
            Some(found) => found,
            None => {
                let Some(found) = find() else {
                    return vec![];
                };
                self.store(key, &found);
                found
            }
        };
        if self.entries.len() >= HELD {
            self.entries.clear();
        }
        self.entries.insert(key.into(), found.clone());
        found
    }

    fn stored(&self, key: &str) -> Option<Vec<Finding>> {
        let text = std::fs::read_to_string(self.folder.as_ref()?.join(key)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn store(&self, key: &str, found: &[Finding]) {
        // Two processes may write one entry, so it appears by renaming a complete file.
        let write = |folder: &Path| -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&file, found)?;
            file.persist(folder.join(key)).map_err(|e| e.error)?;
            prune(folder)
        };
        if let Some(folder) = &self.folder {
            // Without a place for it, the next command finds it again.
            let _ = write(folder);
        }
    }
}

/// Leaves the newest entries.
fn prune(folder: &Path) -> std::io::Result<()> {
    let mut entries: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(folder)?
        .flatten()
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    entries.sort();
    let old = entries.len().saturating_sub(KEPT);
    for (_, path) in entries.into_iter().take(old) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// A digest of what was looked at. The version and the time of this executable are part of it.
pub fn key(looked_at: &impl Serialize) -> Option<String> {
    let own = std::env::current_exe().ok().and_then(|p| stamp(&p));
    let text = serde_json::to_vec(&(env!("CARGO_PKG_VERSION"), own, looked_at)).ok()?;
    let digest = Sha256::digest(&text);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What tells whether a file is still the same: its path, its length and when it was written. None for a
/// file that is not there, so that a key needs the name of what was looked for beside it.
pub fn stamp(path: &Path) -> Option<(PathBuf, u64, u128)> {
    let metadata = std::fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((path.into(), metadata.len(), since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datacheck::finding::Place;

    fn finding(message: &str) -> Finding {
        Finding::error("D303", Place::Call(0), message.into(), "")
    }

    #[test]
    fn a_finding_is_found_once_also_by_the_next_command() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let folder = dir.path().join("check");
        let mut memory = Memory::at(Some(folder.clone()));
        let first = memory.recall("a", || Some(vec![finding("one")]));
        assert_eq!(memory.recall("a", || panic!("it is known")), first);
        let mut next = Memory::at(Some(folder));
        assert_eq!(next.recall("a", || panic!("it is stored")), first);
        assert_eq!(next.recall("b", || Some(vec![])), []);
    }

    #[test]
    fn what_was_not_found_out_is_looked_for_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut memory = Memory::at(Some(dir.path().into()));
        assert_eq!(memory.recall("a", || None), []);
        assert_eq!(memory.recall("a", || Some(vec![finding("one")])).len(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_stamp() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(stamp(&dir.path().join("x")), None);
    }

    #[test]
    fn what_cannot_be_read_or_written_is_found_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("a"), "not JSON").expect("a small file");
        let mut memory = Memory::at(Some(dir.path().into()));
        assert_eq!(memory.recall("a", || Some(vec![])), []);
        let mut nowhere = Memory::at(Some(dir.path().join("a/check")));
        assert_eq!(nowhere.recall("b", || Some(vec![finding("two")])).len(), 1);
    }

    #[test]
    fn only_the_newest_entries_are_kept() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut memory = Memory::at(Some(dir.path().into()));
        for i in 0..KEPT + 10 {
            memory.recall(&format!("{i}"), || Some(vec![]));
        }
        let entries = std::fs::read_dir(dir.path()).expect("it is there").count();
        assert_eq!(entries, KEPT);
    }

    #[test]
    fn a_key_changes_with_what_was_looked_at() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("x");
        std::fs::write(&file, "a").expect("a small file");
        let before = key(&stamp(&file));
        assert_eq!(before, key(&stamp(&file)));
        std::fs::write(&file, "ab").expect("a small file");
        assert_ne!(before, key(&stamp(&file)));
    }
}
