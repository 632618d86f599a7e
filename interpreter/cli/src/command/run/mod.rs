//! `rlhf run`

mod help;
mod models;
mod watch;

use std::path::{Path, PathBuf};

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::graph::Graph;
use rlhf_lang::source::Sources;
use rlhf_plan::launch::Job;
use rlhf_plan::program::Program as Instructions;

use crate::args::Run;
use crate::datacheck::{self, Extent};
use crate::launch::{self, Launcher};
use crate::machine;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::{self, Program};
use crate::report::{self, Format};
use crate::rundir::{self, Facts, Manifest};
use crate::terminal::{Mode, Terminal};

/// Compiles, finds the models, makes the run directory, starts the rank and watches it.
pub fn run(args: &Run) -> Outcome<u8> {
    if args.help {
        return help::print(&args.words);
    }
    let (program, overrides) = program::one(&args.words)?;
    if args.device != "cpu" {
        return Err(Stop::usage(
            format!("there is no device `{}` here", args.device),
            "the only device is `cpu`",
        ));
    }
    if args.iterations == Some(0) {
        return Err(Stop::usage(
            "`--iterations 0` runs nothing",
            "`rlhf check` checks a program without running it",
        ));
    }
    let compiled = program.compile(&overrides);
    let (mut sources, mut diagnostics) = (compiled.sources, compiled.diagnostics);
    if let Some(graph) = &compiled.graph {
        let head = datacheck::check(graph, &program.folder, Extent::Head, &mut sources);
        diagnostics.extend(head);
        diagnostics.extend(rlhf_plan::support::unsupported(graph));
    }
    let shown: Vec<Diagnostic> = diagnostics
        .into_iter()
        .filter(|d| d.level != Level::Hint)
        .collect();
    show(args, &sources, &shown);
    if shown.iter().any(|d| d.level == Level::Error) {
        return Ok(1);
    }
    let Some(graph) = compiled.graph else {
        return Err(Stop::failed(
            format!(
                "`{}` has no `step`, so there is nothing to run",
                program.name
            ),
            "a library is imported by a program: `use \"mine.rlhf\" { f }`",
        ));
    };
    // What has a place in the program is drawn over it.
    start(args, &program, graph, &sources).or_else(|stop| match stop {
        Stop::Failed(d) => {
            show(args, &sources, &[*d]);
            Ok(1)
        }
        stop => Err(stop),
    })
}

/// Problems for people, and with `--json` for scripts too.
fn show(args: &Run, sources: &Sources, diagnostics: &[Diagnostic]) {
    report::print(Format::Human, sources, diagnostics);
    if args.json {
        for d in diagnostics {
            let event = report::event(sources, d);
            output::out(&format!("{event}\n"));
        }
    }
}

fn start(args: &Run, program: &Program, graph: Graph, sources: &Sources) -> Outcome<u8> {
    let mode = match (args.json, args.quiet) {
        (false, false) => Mode::Table,
        (false, true) => Mode::Quiet,
        (true, false) => Mode::Json,
        (true, true) => Mode::QuietJson,
    };
    let terminal = Terminal::new(mode, sources.clone());
    let launcher = Launcher::find().map_err(Stop::Failed)?;
    let say = |line: &str| terminal.say(line);
    let checkpoints = models::checkpoints(&graph, &program.folder, &say)?;
    let threads = args.threads.map_or_else(machine::threads, usize::from);
    let dtype = machine::dtype();
    let plan = models::plan(&graph, &checkpoints, dtype, threads)?;
    let out = rundir::create(args.out.as_deref(), &program.stem)?;
    let names = graph.models.iter().map(|m| m.name.clone());
    // The first text is the program; the standard library's belong to the version.
    let texts = sources.iter().skip(1).map(|(_, source)| source);
    let facts = Facts {
        libraries: texts
            .filter(|source| rlhf_stdlib::module(&source.name).is_none())
            .collect(),
        params: &graph.params,
        seed: args.seed,
        iterations: args.iterations,
        dtype,
        threads,
        checkpoints: names.zip(checkpoints.iter().cloned()).collect(),
    };
    let manifest = Manifest::write(&out, program, &facts).map_err(|e| unwritable(&out, &e))?;
    terminal.say(&plan);
    terminal.say(&format!("run   {}", out.display()));
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    let text = |path: PathBuf| path.display().to_string();
    let job = Job {
        program: Instructions::single(&graph),
        graph,
        checkpoints: checkpoints
            .iter()
            .map(|path| text(absolute(path)))
            .collect(),
        base: text(absolute(&program.folder)),
        out: text(out.clone()),
        seed: args.seed,
        iterations: args.iterations,
        threads,
        dtype,
        python: launch::python(),
    };
    let path = out.join("job.json");
    serde_json::to_vec(&job)
        .map_err(std::io::Error::from)
        .and_then(|bytes| std::fs::write(&path, bytes))
        .map_err(|e| unwritable(&out, &e))?;
    watch::watch(&launcher, &job, &path, terminal, manifest)
}

fn unwritable(out: &Path, error: &std::io::Error) -> Stop {
    Stop::failed(
        format!(
            "the run directory `{}` cannot be written: {error}",
            out.display()
        ),
        "`--out DIR` names another place",
    )
}
