//! `rlhf check`

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rlhf_lang::compile::Compiled;
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::fix;
use rlhf_lang::source::Sources;

use crate::args::{Check, Deny};
use crate::datacheck::{Extent, Scripts, Session};
use crate::inbox::{Inbox, Message};
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::{self, Overrides, Program};
use crate::replace::replace;
use crate::report::{self, Format};
use crate::terminal::{self, number};
use crate::watch::{self, Watch};

/// Checks every file. The exit code is 2 when one of them is not there, and else 1 when one has an error (or,
/// when asked, a warning).
pub fn check(args: &Check) -> Outcome<u8> {
    let (files, overrides) = program::split(&args.words)?;
    if files.is_empty() {
        return Err(Stop::usage(
            "no program is named",
            "as in `rlhf check grpo.rlhf`",
        ));
    }
    let job = Job {
        args,
        files,
        overrides,
        data: RefCell::new(Session::new(Scripts::Run)),
    };
    if args.fix {
        job.fix()?;
    }
    match args.watch {
        true => job.watch(),
        false => Ok(job.show(&job.round(), None)),
    }
}

/// What a command line asks for.
struct Job<'a> {
    args: &'a Check,
    files: Vec<&'a str>,
    overrides: Overrides,
    /// What was read of data and tokenizers, kept from round to round.
    data: RefCell<Session>,
}

/// A program with what is wrong with it.
struct Checked {
    name: String,
    sources: Sources,
    diagnostics: Vec<Diagnostic>,
    /// What the check read.
    reads: BTreeSet<PathBuf>,
    took: Duration,
}

/// One file's result: a program, or why there is none.
type Found = Result<Checked, Box<Diagnostic>>;

impl Job<'_> {
    fn round(&self) -> Vec<Found> {
        self.files.iter().map(|file| self.one(file)).collect()
    }

    fn one(&self, file: &str) -> Found {
        let start = Instant::now();
        let program = open(file)?;
        let compiled = program.compile(&self.overrides);
        let reads = watch::reads(&program, &compiled);
        let (sources, diagnostics) = self.with_data(&program, compiled);
        Ok(Checked {
            name: program.name,
            sources,
            diagnostics,
            reads,
            took: start.elapsed(),
        })
    }

    fn with_data(&self, program: &Program, compiled: Compiled) -> (Sources, Vec<Diagnostic>) {
        let extent = match self.args.all_rows {
            true => Extent::All,
            false => Extent::Head,
        };
        let (mut sources, mut diagnostics) = (compiled.sources, compiled.diagnostics);
        if let Some(graph) = &compiled.graph {
            let mut session = self.data.borrow_mut();
            let data = session.check(graph, &program.folder, extent, &mut sources);
            diagnostics.extend(data);
            diagnostics.extend(rlhf_plan::support::not_run_yet(graph));
        }
        (sources, diagnostics)
    }

    /// Prints a round, and gives the exit code. `watched` is the number of files that are watched.
    fn show(&self, round: &[Found], watched: Option<usize>) -> u8 {
        let format = self.args.format;
        let mut code = 0;
        for (i, found) in round.iter().enumerate() {
            let checked = match found {
                Ok(checked) => checked,
                Err(d) => {
                    report::print(format, &Sources::default(), &[(**d).clone()]);
                    code = 2;
                    continue;
                }
            };
            report::print(format, &checked.sources, &checked.diagnostics);
            let count = |level| {
                let all = checked.diagnostics.iter();
                all.filter(|d| d.level == level).count()
            };
            let (errors, warnings) = (count(Level::Error), count(Level::Warning));
            if errors > 0 || (self.args.deny == Some(Deny::Warnings) && warnings > 0) {
                code = code.max(1);
            }
            if format == Format::Human {
                let last = i + 1 == round.len();
                let watched = watched.filter(|_| last).map(|n| number::count(n, "file"));
                let watched = watched.map_or(String::new(), |n| format!(", watching {n}"));
                output::err(&format!(
                    "{}: {} ({} ms){watched}\n",
                    checked.name,
                    verdict(errors, warnings, count(Level::Hint)),
                    checked.took.as_millis(),
                ));
            }
        }
        code
    }

    /// Applies the safe changes to every file that is there.
    fn fix(&self) -> Outcome<()> {
        for file in &self.files {
            let Ok(program) = open(file) else { continue };
            let Some(path) = &program.file else {
                return Err(Stop::usage(
                    format!("`{file}` is a shipped program and has no file to mend"),
                    format!("copy it first: `rlhf new mine.rlhf --from {file}`"),
                ));
            };
            self.mend(&program, path)?;
        }
        Ok(())
    }

    fn mend(&self, program: &Program, path: &Path) -> Outcome<()> {
        let with = |text: &str| {
            let text = text.into();
            let program = Program {
                text,
                ..program.clone()
            };
            let compiled = program.compile(&self.overrides);
            (program, compiled)
        };
        let language = fix::mend(&program.text, &|text| with(text).1.diagnostics);
        // The data is looked at once the program has a meaning.
        let all = fix::mend(&language.text, &|text| {
            let (program, compiled) = with(text);
            self.with_data(&program, compiled).1
        });
        let count = language.count + all.count;
        if count == 0 {
            return Ok(());
        }
        replace(path, &all.text).map_err(|e| {
            Stop::failed(
                format!("`{}` cannot be written: {e}", path.display()),
                "it is unchanged",
            )
        })?;
        let problems = number::count(count, "problem");
        output::err(&format!("{}: {problems} mended\n", program.name));
        Ok(())
    }

    /// Checks again and again until interrupted.
    fn watch(&self) -> Outcome<u8> {
        for file in &self.files {
            watch::watchable(&Program::open(file)?)?;
        }
        let mut inbox = Inbox::new().map_err(|e| {
            Stop::failed(format!("interrupts cannot be received: {e}"), "start again")
        })?;
        let mut watch = Watch::new(inbox.sender())?;
        loop {
            let round = loop {
                let round = self.round();
                // Read before it was watched: a change in between would go unnoticed.
                if !watch.follow(&self.reads(&round))? {
                    break round;
                }
            };
            if self.args.format == Format::Human {
                terminal::clear();
            }
            self.show(&round, Some(watch.count()));
            loop {
                match inbox.next() {
                    Message::Interrupt => return Ok(0),
                    Message::Touched(paths) => {
                        if watch.changed(&inbox.settle(paths))? {
                            break;
                        }
                    }
                    Message::Event(_) | Message::Silent => {}
                }
            }
        }
    }

    fn reads(&self, round: &[Found]) -> BTreeSet<PathBuf> {
        let checked = round.iter().flatten().flat_map(|c| c.reads.clone());
        let named = self.files.iter().zip(round);
        // A file that went away may come back.
        let gone = named.filter(|(_, found)| found.is_err());
        checked
            .chain(gone.map(|(file, _)| PathBuf::from(file)))
            .collect()
    }
}

fn open(file: &str) -> Result<Program, Box<Diagnostic>> {
    Program::open(file).map_err(|stop| match stop {
        Stop::Usage(d) | Stop::Failed(d) => d,
    })
}

fn verdict(errors: usize, warnings: usize, hints: usize) -> String {
    let parts: Vec<String> = [(errors, "error"), (warnings, "warning"), (hints, "hint")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| number::count(n, word))
        .collect();
    match parts.is_empty() {
        true => "no problems".into(),
        false => parts.join(", "),
    }
}
