//! Files that appear or change whole.

use std::io::Write;
use std::path::Path;

use tempfile::NamedTempFile;

/// Replaces a file's text: written beside it and renamed, so that an interruption leaves one text or the
/// other. Permissions stay, and a link stays a link.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let permissions = std::fs::metadata(&path)?.permissions();
    // A file that must not be written is not replaced by one that may.
    std::fs::OpenOptions::new().write(true).open(&path)?;
    let mut beside = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    beside.write_all(text.as_bytes())?;
    beside.as_file().set_permissions(permissions)?;
    beside.as_file().sync_all()?;
    beside.persist(&path)?;
    Ok(())
}
