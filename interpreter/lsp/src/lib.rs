//! The editor server: `lang::ide` over the Language Server Protocol.
//!
//! One thread. Changes are taken in as they come, and a text is compiled when a question is asked or
//! when the editor pauses, so fast typing costs one compilation.

mod answer;
mod convert;
mod library;
mod paths;
mod publish;
mod server;
mod session;
mod texts;

use std::path::{Path, PathBuf};

use lsp_server::{Connection, ProtocolError};
use rlhf_lang::Compiled;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::Sources;

pub use server::run;

/// Finds what a program's text alone does not show, such as problems of its data: given the program's
/// folder, the texts that the diagnostics refer to and the diagnostics.
pub type Extra<'a> = dyn Fn(&Path, &Compiled) -> (Sources, Vec<Diagnostic>) + 'a;

/// What the server needs from its surroundings.
pub struct Options<'a> {
    /// The folder that modules of the standard library are written to when an editor opens one.
    pub library: PathBuf,
    /// Asked when a program is opened and saved.
    pub extra: Option<&'a Extra<'a>>,
}

/// Why a session ended early.
#[derive(Debug)]
pub enum Failure {
    /// The editor did not keep to the protocol.
    Protocol(ProtocolError),
    /// The pipe broke.
    Pipe(std::io::Error),
    /// A message could not be written or read as JSON.
    Json(serde_json::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Protocol(e) => write!(f, "the editor does not keep to the protocol: {e}"),
            Failure::Pipe(e) => write!(f, "the connection to the editor broke: {e}"),
            Failure::Json(e) => write!(f, "a message of the editor cannot be read: {e}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<ProtocolError> for Failure {
    fn from(e: ProtocolError) -> Self {
        Failure::Protocol(e)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(e: serde_json::Error) -> Self {
        Failure::Json(e)
    }
}

/// Serves an editor over standard input and output until it says goodbye.
pub fn serve(options: &Options) -> Result<(), Failure> {
    let (connection, threads) = Connection::stdio();
    let outcome = run(&connection, options);
    // The writing thread ends when its channel closes.
    drop(connection);
    outcome?;
    threads.join().map_err(Failure::Pipe)
}
