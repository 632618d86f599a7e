//! Addresses of documents and paths of files.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;
use url::Url;

/// The file of an address; none for a text that has no file yet.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let url = Url::parse(uri.as_str()).ok()?;
    let path = url.to_file_path().ok()?;
    Some(tidy(&path))
}

/// The address of a file.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let absolute = std::path::absolute(path).ok()?;
    let url = Url::from_file_path(tidy(&absolute)).ok()?;
    Uri::from_str(url.as_str()).ok()
}

/// A path without `.` and `..`, so that two ways to write a file's path are equal.
pub fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_way_to_an_address_and_back() {
        let path = std::env::temp_dir().join("ein Ordner/ä#1.rlhf");
        let uri = uri_of(&path).expect("an absolute path has an address");
        assert_eq!(path_of(&uri), Some(tidy(&path)));
    }

    #[test]
    fn a_text_without_a_file_has_no_path() {
        let uri = Uri::from_str("untitled:Untitled-1").expect("an address");
        assert_eq!(path_of(&uri), None);
    }

    #[test]
    fn dots_are_walked() {
        assert_eq!(tidy(Path::new("/a/./b/../c.rlhf")), Path::new("/a/c.rlhf"));
    }
}
