//! The `rlhf` command: checks, formats and shows programs, and starts the rank that trains them.
//!
//! No torch here: everything but `run` and `eval` answers in milliseconds on any machine.

mod args;
mod bug;
mod command;
mod datacheck;
mod hub;
mod inbox;
mod launch;
mod machine;
mod outcome;
mod output;
mod pages;
mod program;
mod replace;
mod report;
mod rundir;
mod terminal;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::Sources;

use args::{Cli, Command};
use outcome::Stop;
use report::Format;

/// Exit codes: 0 in order, 1 problems in the program or a failed run, 2 usage, 3 a bug in this executable.
fn main() -> ExitCode {
    ExitCode::from(bug::guard(command))
}

fn command() -> u8 {
    let cli = Cli::parse();
    let (format, outcome) = match &cli.command {
        Command::Check(args) => (args.format, command::check::check(args)),
        Command::Fmt(args) => (Format::Human, command::fmt::fmt(args)),
        Command::Graph(args) => (Format::Human, command::graph::graph(args)),
        Command::Run(args) => (Format::Human, command::run::run(args)),
        Command::Eval(args) => (args.format, command::eval::eval(args)),
        Command::Explain(args) => (Format::Human, command::explain::explain(args)),
        Command::Doc(args) => (Format::Human, command::doc::doc(args)),
        Command::New(args) => (Format::Human, command::new::new(args)),
        Command::Lsp => (Format::Human, command::lsp::lsp()),
    };
    let say = |format: Format, diagnostic: Diagnostic| {
        report::print(format, &Sources::default(), &[diagnostic]);
    };
    let code = match outcome {
        Ok(code) => code,
        Err(Stop::Failed(diagnostic)) => {
            say(format, *diagnostic);
            1
        }
        Err(Stop::Usage(diagnostic)) => {
            say(format, *diagnostic);
            2
        }
    };
    match output::failure() {
        Some(error) => {
            let incomplete = format!("standard output is incomplete: {error}");
            say(Format::Human, Diagnostic::bare("", incomplete));
            code.max(1)
        }
        None => code,
    }
}
