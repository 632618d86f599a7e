//! Paths as programs write them.

use std::path::{Path, PathBuf};

/// `path` seen from a program's folder, or else from the working directory; the first that exists.
pub fn find(folder: &Path, path: &str) -> Option<PathBuf> {
    [within(folder, path), PathBuf::from(path)]
        .into_iter()
        .find(|p| p.exists())
}

/// `path` in a program's folder, without the `./` of the working directory.
pub fn within(folder: &Path, path: &str) -> PathBuf {
    match folder == Path::new(".") {
        true => PathBuf::from(path),
        false => folder.join(path),
    }
}

/// The file or folder beside `path` whose name is most like it.
pub fn nearest(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_string_lossy().into_owned();
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let (score, name) = names
        .map(|name| (strsim::jaro_winkler(&wanted, &name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.8).then(|| path.with_file_name(name))
}

/// The candidate most like `wanted`, if one is alike at all.
pub fn alike<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|c| (strsim::jaro_winkler(wanted, c), c))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// What to do about a file that is not there.
pub fn elsewhere(folder: &Path, path: &str) -> String {
    match nearest(&within(folder, path)) {
        Some(near) => format!("a similar name is there: `{}`", near.display()),
        None => format!(
            "looked in the program's folder (`{}`) and in the working directory",
            folder.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_folder_comes_before_the_working_directory() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        // Tests run in the crate's folder, which has this file too.
        let own = dir.path().join("Cargo.toml");
        assert_eq!(find(dir.path(), "Cargo.toml"), Some("Cargo.toml".into()));
        std::fs::write(&own, "").expect("a small file");
        assert_eq!(find(dir.path(), "Cargo.toml"), Some(own));
        assert_eq!(find(dir.path(), "nothing"), None);
    }

    #[test]
    fn a_missing_file_is_answered_with_the_nearest_name() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("sums.jsonl"), "").expect("a small file");
        assert!(elsewhere(dir.path(), "summs.jsonl").ends_with("sums.jsonl`"));
        assert!(elsewhere(dir.path(), "x").starts_with("looked in"));
    }
}
