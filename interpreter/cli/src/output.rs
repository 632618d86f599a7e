//! Standard output and standard error, for text that may be cut short by a closed pipe.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

/// What kept standard output from being written, once something did.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Writes to standard output. A reader that went away, as in `| head`, is not an error; another failure,
/// such as a full disk, is kept for [`failure`], so that a command says it once, at its end.
pub fn out(text: &str) {
    let mut stream = std::io::stdout().lock();
    let written = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // Only the first failure is told.
        let _ = FAILURE.set(error.to_string());
    }
}

/// Writes to standard error.
pub fn err(text: &str) {
    let mut stream = std::io::stderr().lock();
    let _ = stream.write_all(text.as_bytes());
}

/// Why standard output is incomplete, if it is.
pub fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}
