//! The words of the command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::report::Format;

/// A declarative language for reinforcement learning from human feedback, and its interpreter.
#[derive(Debug, Parser)]
#[command(name = "rlhf", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check programs: the language, the mathematics, and the data they name
    Check(Check),
    /// Put programs in the standard layout
    Fmt(Fmt),
    /// Show a program's dataflow graph
    Graph(Graph),
    /// Train
    Run(Run),
    /// Evaluate a pure expression over JSON values
    Eval(Eval),
    /// Explain a diagnostic's code, or list all codes
    Explain(Explain),
    /// Show the signature and the text of a function or verb
    Doc(Doc),
    /// Copy a shipped algorithm to edit it
    New(New),
    /// Serve an editor over standard input and output
    Lsp,
}

/// `rlhf check`
#[derive(Debug, Args)]
pub struct Check {
    /// Programs, or names of shipped algorithms, and `name=value` for their params
    #[arg(required = true, value_name = "FILE|name=value")]
    pub words: Vec<String>,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Fail on warnings too
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub deny: Option<Deny>,
    /// Read every row of the data rather than the first 256
    #[arg(long)]
    pub all_rows: bool,
    /// Apply the changes that are safe, and report what is left
    #[arg(long, conflicts_with = "watch")]
    pub fix: bool,
    /// Check again whenever something that was read has changed
    #[arg(long)]
    pub watch: bool,
}

/// What else fails a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings fail.
    Warnings,
}

/// `rlhf fmt`
#[derive(Debug, Args)]
pub struct Fmt {
    /// Programs to rewrite in place; `-` formats standard input to standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Change nothing; fail when a file is not in the standard layout
    #[arg(long)]
    pub check: bool,
}

/// `rlhf graph`
#[derive(Debug, Args)]
pub struct Graph {
    /// A program, or the name of a shipped algorithm, and `name=value` for its params
    #[arg(required = true, value_name = "FILE|name=value")]
    pub words: Vec<String>,
    /// In Graphviz's language
    #[arg(long, group = "form")]
    pub dot: bool,
    /// As a picture
    #[arg(long, group = "form")]
    pub svg: bool,
    /// In Mermaid's language, which pages of code hosts draw
    #[arg(long, group = "form")]
    pub mermaid: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// `rlhf run`. No flag can be set by a program, and no param by a flag.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Run {
    /// A program, or the name of a shipped algorithm, and `name=value` for its params
    #[arg(value_name = "FILE|name=value")]
    pub words: Vec<String>,
    /// Stop after so many iterations; the schedules do not change
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// Seed of sampling and shuffling
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Run directory: absent or empty [default: the next free runs/<program>-<n>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Where to compute
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: String,
    /// Start anew, in a fresh run directory, whenever the program has changed and checks
    #[arg(long, conflicts_with = "out")]
    pub watch: bool,
    /// Print only the summary
    #[arg(long)]
    pub quiet: bool,
    /// One JSON object a line on standard output instead of the table
    #[arg(long)]
    pub json: bool,
    /// List these flags and the program's own params
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

/// `rlhf eval`
#[derive(Debug, Args)]
pub struct Eval {
    /// The expression, such as 'mean(clipped(exp(lp - old), adv, 0.2))'
    #[arg(allow_hyphen_values = true)]
    pub expression: String,
    /// Bring a module's functions into scope, such as std.ppo
    #[arg(long = "use", value_name = "MODULE")]
    pub uses: Vec<String>,
    /// An input: name=VALUE, name[AXES]=VALUE or name[AXES]=@file.json. Nested lists are axes in the
    /// order named; lists of different lengths make an axis ragged
    #[arg(long = "let", value_name = "NAME[AXES]=VALUE")]
    pub lets: Vec<String>,
    /// Also print the gradient of the value with respect to this input; may be given several times
    #[arg(long, value_name = "NAME")]
    pub grad: Vec<String>,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// `rlhf explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// A code such as E031; all codes are listed without one
    pub code: Option<String>,
}

/// `rlhf doc`
#[derive(Debug, Args)]
pub struct Doc {
    /// A function, a module or a verb, such as k3, std.kl.k3, std.kl or generate
    pub name: Option<String>,
}

/// `rlhf new`
#[derive(Debug, Args)]
pub struct New {
    /// The file to write; `.rlhf` is added to a name without an ending
    pub file: Option<String>,
    /// The shipped algorithm to copy; without it, they are listed
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
}
