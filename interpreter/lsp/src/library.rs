//! Modules of the standard library as files, since every editor can open a file.

use std::io;
use std::path::{Path, PathBuf};

/// Writes a module's text to the folder, read-only, unless it is there already.
pub fn write(folder: &Path, module: &str, text: &str) -> io::Result<PathBuf> {
    let path = folder.join(format!("{module}.rlhf"));
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    // Written aside and renamed, so that another server never reads half of it.
    let aside = folder.join(format!(".{module}.{}", std::process::id()));
    std::fs::write(&aside, text)?;
    let mut permissions = std::fs::metadata(&aside)?.permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&aside, permissions)?;
    std::fs::rename(&aside, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_written_once_and_again_when_its_text_changes() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = write(folder.path(), "std.kl", "one")?;
        assert!(std::fs::metadata(&path)?.permissions().readonly());
        assert_eq!(write(folder.path(), "std.kl", "one")?, path);
        write(folder.path(), "std.kl", "two")?;
        assert_eq!(std::fs::read_to_string(&path)?, "two");
        Ok(())
    }
}
