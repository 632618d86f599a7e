//! Follows a rank until it ends, and says how it ended.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rlhf_lang::diag::Diagnostic;
use rlhf_plan::launch::Job;
use serde_json::json;

use crate::inbox::{Inbox, Message};
use crate::launch::{End, Launcher, Running};
use crate::outcome::{Outcome, Stop};
use crate::rundir::Manifest;
use crate::terminal::{Terminal, curves, number, summary};

/// What a shell gives a command that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// A run that is about to begin.
pub struct Start {
    /// How ranks are started.
    pub launcher: Launcher,
    /// What the rank is told.
    pub job: Job,
    /// Where that is written.
    pub path: PathBuf,
    /// The view of it.
    pub terminal: Terminal,
    /// The record of it.
    pub manifest: Manifest,
}

/// How a run ended.
pub struct Ended {
    /// The exit code.
    pub code: u8,
    /// How often the user interrupted.
    pub interrupts: usize,
}

/// What becomes of a run when files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It goes on.
    On,
    /// It ends after its current call.
    End,
}

/// Is told where files have changed, and decides.
pub type Decide<'a> = &'a mut dyn FnMut(&mut Inbox, Vec<PathBuf>) -> Outcome<Course>;

/// No change of a file ends a run.
pub fn to_the_end(_: &mut Inbox, _: Vec<PathBuf>) -> Outcome<Course> {
    Ok(Course::On)
}

impl Start {
    /// Runs the rank to its end. Curves, manifest and summary are written however it ends.
    pub fn follow(self, inbox: &mut Inbox, decide: Decide) -> Outcome<Ended> {
        let Start {
            launcher,
            job,
            path,
            mut terminal,
            mut manifest,
        } = self;
        let out = Path::new(&job.out);
        let start = Instant::now();
        let log = out.join("rank.log");
        let started = launcher.start("run", &path, &log, job.threads, inbox.sender());
        let mut rank = started.map_err(|e| {
            Stop::failed(
                format!("`{}` cannot be started: {e}", launcher.rank.display()),
                "in a checkout, `./rlhf` builds it",
            )
        })?;
        let interrupts = listen(&mut rank, &mut terminal, inbox, decide)?;
        let end = rank
            .wait()
            .map_err(|e| Stop::failed(format!("the rank is lost: {e}"), "start the run again"))?;
        terminal.close();
        let seconds = start.elapsed().as_secs_f64();
        let good = terminal.history.done && end == End::Code(0) && !terminal.history.failed;
        if !good && !terminal.history.failed && interrupts < 2 {
            let lost = lost(&job, &terminal, &rank, end);
            terminal.event(rlhf_plan::launch::Event::Diagnostic(lost));
        }
        record(out, &terminal, &mut manifest, good, seconds);
        if good || !terminal.history.steps.is_empty() {
            for line in summary::lines(&terminal.history, out, seconds) {
                terminal.always(&line);
            }
        }
        let code = match (good, interrupts) {
            (true, _) => 0,
            (false, 2..) => INTERRUPTED,
            (false, _) => 1,
        };
        Ok(Ended { code, interrupts })
    }
}

/// Passes events on until the rank is silent; gives the number of interrupts.
fn listen(
    rank: &mut Running,
    terminal: &mut Terminal,
    inbox: &mut Inbox,
    decide: Decide,
) -> Outcome<usize> {
    let mut interrupts = 0;
    let mut course = Course::On;
    loop {
        match inbox.next() {
            Message::Event(event) => terminal.event(*event),
            Message::Interrupt => {
                interrupts += 1;
                if interrupts == 1 {
                    rank.stop();
                    terminal.problem("stopping after the current call; press again to quit now\n");
                } else {
                    rank.kill();
                }
            }
            Message::Touched(paths) => {
                let decided = decide(inbox, paths)?;
                if decided == Course::End && course == Course::On {
                    course = Course::End;
                    rank.stop();
                    terminal.problem("the program has changed: stopping after the current call\n");
                }
            }
            Message::Silent => return Ok(interrupts),
        }
    }
}

/// R402: the rank is gone and did not say why.
fn lost(job: &Job, terminal: &Terminal, rank: &Running, end: End) -> Diagnostic {
    let during = match &terminal.history.call {
        Some((call, iteration)) => format!("during `{call}` of iteration {iteration}"),
        None => match terminal.history.steps.last() {
            Some(report) => format!("after iteration {}", report.iteration),
            None => "before the first iteration".into(),
        },
    };
    let mut d = Diagnostic::bare("R402", format!("the rank stopped {during} ({end})"));
    if let Some((call, _)) = &terminal.history.call {
        let graph = &job.graph;
        let node = graph
            .dag
            .order()
            .find(|id| graph.dag.node(*id).name == *call);
        if let Some(id) = node {
            let message = d.message;
            d = Diagnostic::error("R402", graph.dag.node(id).span, message);
        }
    }
    let log = Path::new(&job.out).join("rank.log");
    let words = rank.last_words(12);
    d.help(match words.is_empty() {
        true => format!("nothing is in {}", log.display()),
        false => format!("the end of {}:\n{}", log.display(), words.join("\n")),
    })
}

fn record(out: &Path, terminal: &Terminal, manifest: &mut Manifest, good: bool, seconds: f64) {
    let history = &terminal.history;
    let iteration = history.steps.last().map_or(0, |r| r.iteration);
    let written = manifest.finish(json!({
        "completed": good && !history.stopped,
        "stopped": history.stopped,
        "iteration": iteration,
        "seconds": (seconds * 10.0).round() / 10.0,
        "peak_memory": history.peak_memory,
        "checkpoints": history.checkpoints,
    }));
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let title = format!(
        "{name}  ·  {}, {}",
        number::count(iteration, "iteration"),
        number::duration(seconds)
    );
    let drawn = match curves::svg(&title, history) {
        Some(svg) => std::fs::write(out.join("curves.svg"), svg),
        None => Ok(()),
    };
    for error in [written.err(), drawn.err()].into_iter().flatten() {
        terminal.problem(&format!(
            "the run directory {} cannot be written: {error}\n",
            out.display()
        ));
    }
}
