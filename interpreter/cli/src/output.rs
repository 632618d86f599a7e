//! Standard output and standard error, for text that may be cut short by a closed pipe.

use std::io::Write;

/// Writes to standard output. A reader that went away, as in `| head`, is not an error.
pub fn out(text: &str) {
    let mut stream = std::io::stdout().lock();
    let _ = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
}

/// Writes to standard error.
pub fn err(text: &str) {
    let mut stream = std::io::stderr().lock();
    let _ = stream.write_all(text.as_bytes());
}
