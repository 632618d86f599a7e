//! The `rlhf` command: checks, formats and shows programs, and starts the rank that trains them.
//!
//! No torch here: everything but `run` and `eval` answers in milliseconds on any machine.

mod args;
mod command;
mod datacheck;
mod hub;
mod launch;
mod machine;
mod outcome;
mod output;
mod pages;
mod program;
mod report;
mod rundir;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::Sources;

use args::{Cli, Command};
use outcome::Stop;
use report::Format;

/// Exit codes: 0 in order, 1 problems in the program or a failed run, 2 usage.
fn main() -> ExitCode {
    let cli = Cli::parse();
    let (format, outcome) = match &cli.command {
        Command::Check(args) => (args.format, command::check::check(args)),
        Command::Fmt(args) => (Format::Human, command::fmt::fmt(args)),
        Command::Graph(args) => (Format::Human, command::graph::graph(args)),
        Command::Run(args) => (Format::Human, command::run::run(args)),
        Command::Eval(args) => (args.format, command::eval::eval(args)),
        Command::Explain(args) => (Format::Human, command::explain::explain(args)),
        Command::Lsp => (Format::Human, command::lsp::lsp()),
    };
    let say = |diagnostic: Diagnostic| {
        report::print(format, &Sources::default(), &[diagnostic]);
    };
    ExitCode::from(match outcome {
        Ok(code) => code,
        Err(Stop::Failed(diagnostic)) => {
            say(*diagnostic);
            1
        }
        Err(Stop::Usage(diagnostic)) => {
            say(*diagnostic);
            2
        }
    })
}
