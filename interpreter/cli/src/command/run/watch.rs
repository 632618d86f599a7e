//! Watches a rank until it ends, and says how it ended.

use std::path::Path;
use std::time::Instant;

use rlhf_lang::diag::Diagnostic;
use rlhf_plan::launch::Job;
use serde_json::json;

use crate::launch::{End, Launcher, Message, Running};
use crate::outcome::{Outcome, Stop};
use crate::rundir::Manifest;
use crate::terminal::{Terminal, curves, number, summary};

/// What a shell gives a command that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// Runs the rank to its end. Curves, manifest and summary are written however it ends.
pub fn watch(
    launcher: &Launcher,
    job: &Job,
    path: &Path,
    mut terminal: Terminal,
    mut manifest: Manifest,
) -> Outcome<u8> {
    let out = Path::new(&job.out);
    let start = Instant::now();
    let started = launcher.start("run", path, &out.join("rank.log"), job.threads);
    let mut rank = started.map_err(|e| {
        Stop::failed(
            format!("`{}` cannot be started: {e}", launcher.rank.display()),
            "in a checkout, `./rlhf` builds it",
        )
    })?;
    let interrupts = listen(&mut rank, &mut terminal);
    let end = rank
        .wait()
        .map_err(|e| Stop::failed(format!("the rank is lost: {e}"), "start the run again"))?;
    terminal.close();
    let seconds = start.elapsed().as_secs_f64();
    let good = terminal.history.done && end == End::Code(0) && !terminal.history.failed;
    if !good && !terminal.history.failed && interrupts < 2 {
        let lost = lost(job, &terminal, &rank, end);
        terminal.event(rlhf_plan::launch::Event::Diagnostic(lost));
    }
    record(out, &terminal, &mut manifest, good, seconds);
    if good || !terminal.history.steps.is_empty() {
        for line in summary::lines(&terminal.history, out, seconds) {
            terminal.always(&line);
        }
    }
    Ok(match (good, interrupts) {
        (true, _) => 0,
        (false, 2..) => INTERRUPTED,
        (false, _) => 1,
    })
}

/// Passes events on until the rank is silent; gives the number of interrupts.
fn listen(rank: &mut Running, terminal: &mut Terminal) -> usize {
    let mut interrupts = 0;
    loop {
        match rank.next() {
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
            Message::Silent => return interrupts,
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
        "{name}  ·  {iteration} iterations, {}",
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
