//! Finds libtorch, so that nobody has to set a library path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rlhf_lang::diag::Diagnostic;

/// Prints torch's folder without importing it, which would take seconds.
const ASK: &str = "import importlib.util as u; s = u.find_spec('torch'); \
                   print(s.submodule_search_locations[0] if s else '')";

/// The folders to put before the library path: `LIBTORCH`'s, or those of the torch that
/// `RLHF_PYTHON` imports.
pub fn find() -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let torch = match std::env::var_os("LIBTORCH").filter(|v| !v.is_empty()) {
        Some(path) => {
            let path = PathBuf::from(path);
            if !holds_libtorch(&path.join("lib")) {
                return Err(Box::new(
                    Diagnostic::bare(
                        "",
                        format!("LIBTORCH={} has no lib/{}", path.display(), library()),
                    )
                    .help("it names the folder of libtorch 2.11; unset it to use the checkout's"),
                ));
            }
            path
        }
        None => ask_python().ok_or_else(|| {
            Box::new(Diagnostic::bare("", "libtorch is not found").help(
                "in a checkout, `./rlhf` installs it; otherwise set LIBTORCH to the folder of \
                 libtorch 2.11, or RLHF_PYTHON to a Python that has torch 2.11",
            ))
        })?,
    };
    let mut folders = vec![torch.join("lib")];
    // The wheel's CUDA libraries: libtorch_cpu needs libcudart even where no GPU is.
    let beside = torch.parent().map(|p| p.join("nvidia/cu13/lib"));
    folders.extend(beside.filter(|p| p.is_dir()));
    Ok(folders)
}

/// The variable that the dynamic linker reads.
pub fn variable() -> &'static str {
    if cfg!(target_os = "macos") {
        "DYLD_LIBRARY_PATH"
    } else {
        "LD_LIBRARY_PATH"
    }
}

fn ask_python() -> Option<PathBuf> {
    let output = Command::new(super::python())
        .args(["-c", ASK])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let path = PathBuf::from(text.trim());
    holds_libtorch(&path.join("lib")).then_some(path)
}

fn holds_libtorch(folder: &Path) -> bool {
    folder.join(library()).is_file()
}

fn library() -> &'static str {
    if cfg!(target_os = "macos") {
        "libtorch_cpu.dylib"
    } else {
        "libtorch_cpu.so"
    }
}
