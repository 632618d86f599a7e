//! What a person, or a script, sees of a run.

pub mod curves;
pub mod number;
pub mod summary;
mod table;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rlhf_lang::source::Sources;
use rlhf_plan::launch::{Event, Report};
use serde_json::Value;

use crate::output;
use crate::report;
use table::Table;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A line an iteration.
    Table,
    /// Nothing but problems and the summary.
    Quiet,
    /// Events as JSON on standard output; the lines for people go to standard error.
    Json,
    /// Events as JSON, and only problems and the summary for people.
    QuietJson,
}

/// Clears the screen, if standard error is one.
pub fn clear() {
    let terminal = console::Term::stderr();
    if terminal.is_term() {
        // What cannot be cleared is scrolled away.
        let _ = terminal.clear_screen();
    }
}

/// What a run has reported.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Iterations.
    pub steps: Vec<Report>,
    /// Evaluations.
    pub evals: Vec<Report>,
    /// Directories of complete checkpoints, one a trained model.
    pub checkpoints: Vec<String>,
    /// Largest resident memory in bytes.
    pub peak_memory: Option<u64>,
    /// The user ended the run.
    pub stopped: bool,
    /// The run ended in good order.
    pub done: bool,
    /// An error was reported.
    pub failed: bool,
    /// The call in progress, and its iteration.
    pub call: Option<(String, usize)>,
}

/// The view of one run.
#[derive(Debug)]
pub struct Terminal {
    mode: Mode,
    sources: Sources,
    bar: ProgressBar,
    table: Option<Table>,
    iterations: usize,
    start: Instant,
    /// Everything reported so far.
    pub history: History,
}

impl Terminal {
    /// A view; the bar appears when the rank is ready, and only on a terminal.
    pub fn new(mode: Mode, sources: Sources) -> Self {
        Terminal {
            mode,
            sources,
            bar: ProgressBar::hidden(),
            table: None,
            iterations: 0,
            start: Instant::now(),
            history: History::default(),
        }
    }

    /// A line for people that is not worth keeping when quiet.
    pub fn say(&self, line: &str) {
        if matches!(self.mode, Mode::Table | Mode::Json) {
            self.always(line);
        }
    }

    /// A line for people.
    pub fn always(&self, line: &str) {
        self.bar.suspend(|| match self.mode {
            Mode::Table | Mode::Quiet => output::out(&format!("{line}\n")),
            Mode::Json | Mode::QuietJson => output::err(&format!("{line}\n")),
        });
    }

    /// Text for standard error, such as a drawn diagnostic.
    pub fn problem(&self, text: &str) {
        self.bar.suspend(|| output::err(text));
    }

    /// Shows an event and remembers it.
    pub fn event(&mut self, event: Event) {
        if matches!(self.mode, Mode::Json | Mode::QuietJson)
            && let Some(object) = self.object(&event)
        {
            self.bar.suspend(|| output::out(&format!("{object}\n")));
        }
        match event {
            Event::Note { text } => self.say(&text),
            Event::Ready { iterations, done } => self.ready(iterations, done),
            Event::Progress {
                iteration,
                call,
                done,
                total,
            } => {
                let percent = (100 * done).checked_div(total).unwrap_or(0);
                self.bar.set_message(format!("{call} {percent} %"));
                self.history.call = Some((call, iteration));
            }
            Event::Iteration(report) => self.iteration(report),
            Event::Eval(report) => {
                let line = table::evaluation(&report);
                self.say(&line);
                self.history.evals.push(report);
            }
            Event::Saved { path, .. } => {
                if !self.history.checkpoints.contains(&path) {
                    self.history.checkpoints.push(path);
                }
            }
            Event::Diagnostic(d) => {
                self.history.failed |= d.level == rlhf_lang::diag::Level::Error;
                self.problem(&report::human(&self.sources, &d));
            }
            Event::Value { .. } => {}
            Event::Done {
                stopped,
                peak_memory,
                ..
            } => {
                self.history.done = true;
                self.history.stopped = stopped;
                self.history.peak_memory = Some(peak_memory).filter(|p| *p > 0);
            }
        }
    }

    /// Takes the bar away.
    pub fn close(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }

    fn ready(&mut self, iterations: usize, done: usize) {
        self.iterations = iterations;
        self.start = Instant::now();
        if !matches!(self.mode, Mode::Table | Mode::Json) {
            return;
        }
        let terminal = ProgressDrawTarget::stderr();
        self.bar = ProgressBar::with_draw_target(Some(iterations as u64), terminal);
        // A template that does not parse would be a mistake in this line; the default bar serves too.
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} [{bar:32}] {prefix}{msg}") {
            self.bar.set_style(style.progress_chars("━╸ "));
        }
        self.bar.set_position(done as u64);
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn iteration(&mut self, report: Report) {
        if self.table.is_none() {
            let table = Table::new(&report, self.iterations);
            self.say(&table.header());
            self.table = Some(table);
        }
        if let Some(table) = &self.table {
            let width = console::Term::stdout().size_checked();
            let width = width.map(|(_, columns)| usize::from(columns));
            self.say(&table.row(&report, self.iterations, width));
        }
        self.bar.set_position(report.iteration as u64);
        self.bar.set_message("");
        self.history.call = None;
        self.history.steps.push(report);
        // Iterations cost about the same: their mean tells the time left better than a moving rate.
        let ran = self.history.steps.len();
        let position = self.history.steps.last().map_or(0, |r| r.iteration);
        let left = self.iterations.saturating_sub(position) as f64;
        let left = left * self.start.elapsed().as_secs_f64() / ran as f64;
        let left = match left < 60.0 {
            true => format!("{left:.0} s"),
            false => number::duration(left),
        };
        self.bar.set_prefix(format!("{left} left  "));
    }

    /// What a script gets of an event.
    fn object(&self, event: &Event) -> Option<Value> {
        match event {
            Event::Iteration(_) | Event::Eval(_) | Event::Saved { .. } | Event::Done { .. } => {
                serde_json::to_value(event).ok()
            }
            Event::Diagnostic(d) => Some(report::event(&self.sources, d)),
            Event::Note { .. }
            | Event::Ready { .. }
            | Event::Progress { .. }
            | Event::Value { .. } => None,
        }
    }
}
