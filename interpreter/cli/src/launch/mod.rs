//! Starts a rank and listens to it.

mod library;
mod process;

use std::path::PathBuf;

use rlhf_lang::diag::Diagnostic;

pub use process::{End, Running};

/// How ranks are started on this machine.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The executable.
    pub rank: PathBuf,
    /// Folders with the libraries it needs.
    pub libraries: Vec<PathBuf>,
}

impl Launcher {
    /// Finds `rlhf-rank` and libtorch.
    pub fn find() -> Result<Launcher, Box<Diagnostic>> {
        Ok(Launcher {
            rank: rank()?,
            libraries: library::find()?,
        })
    }
}

/// The Python for rewards and for the set-up script.
pub fn python() -> String {
    let set = std::env::var("RLHF_PYTHON").ok();
    set.filter(|p| !p.is_empty())
        .unwrap_or_else(|| "python3".into())
}

fn rank() -> Result<PathBuf, Box<Diagnostic>> {
    if let Some(path) = std::env::var_os("RLHF_RANK").map(PathBuf::from) {
        return match path.is_file() {
            true => Ok(path),
            false => Err(Box::new(
                Diagnostic::bare("", format!("RLHF_RANK names no file: {}", path.display()))
                    .help("unset it to use the `rlhf-rank` beside `rlhf`"),
            )),
        };
    }
    let name = format!("rlhf-rank{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.canonicalize().ok())
        .and_then(|exe| Some(exe.parent()?.join(&name)));
    match beside {
        Some(path) if path.is_file() => Ok(path),
        _ => Err(Box::new(
            Diagnostic::bare("", "`rlhf-rank`, which trains, is not beside `rlhf`")
                .help("in a checkout, `./rlhf` builds both; otherwise set RLHF_RANK to its path"),
        )),
    }
}
