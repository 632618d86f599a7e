//! `rlhf lsp`

use std::path::PathBuf;

use rlhf_lsp::Options;

use crate::outcome::{Outcome, Stop};

/// Serves an editor until it says goodbye.
pub fn lsp() -> Outcome<u8> {
    let options = Options {
        library: cache().join("rlhf/std"),
        extra: None,
    };
    match rlhf_lsp::serve(&options) {
        Ok(()) => Ok(0),
        Err(failure) => Err(Stop::failed(
            failure.to_string(),
            "`rlhf lsp` is started by an editor; `rlhf check FILE` prints the same problems",
        )),
    }
}

/// The user's cache directory, or else the one for temporary files.
fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let own = variable("XDG_CACHE_HOME").or_else(|| variable("LOCALAPPDATA"));
    let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
    own.map(PathBuf::from)
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
}
