//! `rlhf run`

mod again;
mod follow;
mod help;
mod models;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::graph::Graph;
use rlhf_lang::source::Sources;
use rlhf_plan::launch::Job;
use rlhf_plan::program::Program as Instructions;

use crate::args::Run;
use crate::datacheck::{self, Extent};
use crate::inbox::Inbox;
use crate::launch::{self, Launcher};
use crate::machine;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::{self, Program};
use crate::report::{self, Format};
use crate::rundir::{self, Facts, Manifest};
use crate::terminal::{Mode, Terminal};
use crate::watch;
use follow::Start;

/// Compiles, finds the models, makes the run directory, starts the rank and follows it to its end.
pub fn run(args: &Run) -> Outcome<u8> {
    if args.help {
        return help::print(&args.words);
    }
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
    if args.watch {
        return again::again(args);
    }
    let Some(checked) = Examined::new(args)?.checked(args)? else {
        return Ok(1);
    };
    let mut inbox = inbox()?;
    let ended =
        start(args, &checked).and_then(|run| run.follow(&mut inbox, &mut follow::to_the_end));
    match ended {
        Ok(ended) => Ok(ended.code),
        // What has a place in the program is drawn over it.
        Err(Stop::Failed(d)) => {
            show(args, &checked.sources, &[*d]);
            Ok(1)
        }
        Err(stop) => Err(stop),
    }
}

/// A program with what is wrong with it.
struct Examined {
    program: Program,
    graph: Option<Graph>,
    sources: Sources,
    diagnostics: Vec<Diagnostic>,
    /// What was read for it.
    reads: BTreeSet<PathBuf>,
}

/// A program that can run.
struct Checked {
    program: Program,
    graph: Graph,
    sources: Sources,
}

impl Examined {
    fn new(args: &Run) -> Outcome<Examined> {
        let (program, overrides) = program::one(&args.words)?;
        let compiled = program.compile(&overrides);
        let reads = watch::reads(&program, &compiled);
        let (mut sources, mut diagnostics) = (compiled.sources, compiled.diagnostics);
        if let Some(graph) = &compiled.graph {
            let head = datacheck::check(graph, &program.folder, Extent::Head, &mut sources);
            diagnostics.extend(head);
            diagnostics.extend(rlhf_plan::support::unsupported(graph));
        }
        diagnostics.retain(|d| d.level != Level::Hint);
        Ok(Examined {
            program,
            graph: compiled.graph,
            sources,
            diagnostics,
            reads,
        })
    }

    /// Shows what is wrong; the program, if nothing keeps it from running.
    fn checked(self, args: &Run) -> Outcome<Option<Checked>> {
        show(args, &self.sources, &self.diagnostics);
        if self.diagnostics.iter().any(|d| d.level == Level::Error) {
            return Ok(None);
        }
        let Some(graph) = self.graph else {
            return Err(Stop::failed(
                format!(
                    "`{}` has no `step`, so there is nothing to run",
                    self.program.name
                ),
                "a library is imported by a program: `use \"mine.rlhf\" { f }`",
            ));
        };
        Ok(Some(Checked {
            program: self.program,
            graph,
            sources: self.sources,
        }))
    }
}

fn inbox() -> Outcome<Inbox> {
    Inbox::new()
        .map_err(|e| Stop::failed(format!("interrupts cannot be received: {e}"), "start again"))
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

/// Everything a rank needs, in a fresh run directory.
fn start(args: &Run, checked: &Checked) -> Outcome<Start> {
    let Checked {
        program,
        graph,
        sources,
    } = checked;
    let mode = match (args.json, args.quiet) {
        (false, false) => Mode::Table,
        (false, true) => Mode::Quiet,
        (true, false) => Mode::Json,
        (true, true) => Mode::QuietJson,
    };
    let terminal = Terminal::new(mode, sources.clone());
    let launcher = Launcher::find().map_err(Stop::Failed)?;
    let say = |line: &str| terminal.say(line);
    let checkpoints = models::checkpoints(graph, &program.folder, &say)?;
    let mut resolved = graph.clone();
    models::datasets(&mut resolved, &program.folder, &say)?;
    let threads = args.threads.map_or_else(machine::threads, usize::from);
    let dtype = machine::dtype();
    let plan = models::plan(graph, &checkpoints, dtype, threads)?;
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
        program: Instructions::single(graph),
        graph: resolved,
        checkpoints: checkpoints
            .iter()
            .map(|path| text(absolute(path)))
            .collect(),
        adapters: models::adapters(graph, &program.folder)
            .into_iter()
            .map(|path| Some(text(absolute(&path?))))
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
    Ok(Start {
        launcher,
        job,
        path,
        terminal,
        manifest,
    })
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
