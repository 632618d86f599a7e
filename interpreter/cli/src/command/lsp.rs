//! `rlhf lsp`

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use rlhf_lang::compile::Compiled;
use rlhf_lsp::Options;

use crate::datacheck::{Extent, Scripts, Session};
use crate::outcome::{Outcome, Stop};

/// Serves an editor until it says goodbye.
pub fn lsp() -> Outcome<u8> {
    let session = RefCell::new(Session::new(Scripts::LeaveOut));
    let data = |folder: &Path, compiled: &Compiled| {
        let mut sources = compiled.sources.clone();
        let found = compiled.graph.as_ref().map_or(vec![], |graph| {
            let mut session = session.borrow_mut();
            let mut found = session.check(graph, folder, Extent::Head, &mut sources);
            found.extend(rlhf_plan::support::not_run_yet(graph));
            found
        });
        (sources, found)
    };
    let options = Options {
        library: cache().join("rlhf/std"),
        extra: Some(&data),
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
