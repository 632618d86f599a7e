//! External rewards: the user's Python in worker processes, so that a crash, a hang or a wrong result
//! is a diagnostic and not a dead run.

mod worker;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Elem, Reward, RewardSource};
use rlhf_lang::source::Span;
use serde_json::Value as Json;

use crate::files::{alike, elsewhere, find};
use crate::{Result, failure};
use worker::{Failure, Target, Unready, Worker};

/// Where Python is and where its output goes.
#[derive(Clone, Debug)]
pub struct Python {
    /// The executable.
    pub executable: PathBuf,
    /// A file to which everything the user's code prints is appended.
    pub log: Option<PathBuf>,
    /// How long importing the user's file may take.
    pub start: Duration,
}

/// Importing a file may load models; past this it hangs.
pub const START: Duration = Duration::from_secs(300);

/// So many names of a file are listed.
const LISTED: usize = 12;

/// Worker processes for one reward.
pub struct Pool {
    reward: Reward,
    target: Target,
    workers: Vec<Mutex<Option<Worker>>>,
}

/// Results of a batch of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// In the order of the calls; booleans as 0 and 1.
    pub values: Vec<f64>,
    /// R403 when calls failed and `otherwise` took their place.
    pub warning: Option<Diagnostic>,
}

impl Pool {
    /// Starts the workers (4, or as many as there are cores, unless the program says) and imports the
    /// user's file in each. `base` is the program's folder.
    ///
    /// D312 when there is no such file or function, or the file cannot be imported.
    pub fn start(reward: &Reward, base: &Path, python: &Python) -> Result<Pool> {
        let RewardSource::Python {
            file,
            function,
            span,
        } = &reward.source
        else {
            return Err(Box::new(not_python(reward)));
        };
        let found = find(base, file).and_then(|p| p.canonicalize().ok());
        let path = found.ok_or_else(|| {
            let message = format!("there is no file `{file}`");
            Diagnostic::error("D312", *span, message).help(elsewhere(base, file))
        })?;
        let target = Target {
            python: python.executable.clone(),
            file: path,
            function: function.clone(),
            result: match reward.result {
                Elem::Bool => "bool",
                Elem::Int => "int",
                _ => "float",
            },
            log: python.log.clone(),
            start: python.start,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = reward.workers.unwrap_or(cores.min(4)).max(1);
        let pool = Pool {
            reward: reward.clone(),
            target,
            workers: (0..count).map(|_| Mutex::new(None)).collect(),
        };
        std::thread::scope(|scope| {
            let starts: Vec<_> = pool
                .workers
                .iter()
                .map(|slot| {
                    let pool = &pool;
                    scope.spawn(move || {
                        let worker = pool.worker()?;
                        *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(worker);
                        Ok(())
                    })
                })
                .collect();
            starts.into_iter().try_for_each(|start| match start.join() {
                Ok(result) => result,
                Err(_) => Err(failure("a thread that starts a reward worker panicked")),
            })
        })?;
        Ok(pool)
    }

    /// As the program declares it.
    pub fn reward(&self) -> &Reward {
        &self.reward
    }

    /// Calls the function once for each list of arguments. The workers share the calls; a call that
    /// runs past the timeout costs its worker, and a new one takes its place.
    ///
    /// R403 when a call fails and the reward has no `otherwise`.
    pub fn score(&self, calls: &[Vec<Json>]) -> Result<Scored> {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let shares = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .workers
                .iter()
                .map(|slot| scope.spawn(|| self.share(slot, calls, &next, &stop)))
                .collect();
            threads
                .into_iter()
                .map(|t| match t.join() {
                    Ok(share) => share,
                    Err(_) => Err(failure("a thread that calls a reward panicked")),
                })
                .collect::<Result<Vec<_>>>()
        })?;
        let mut values = vec![self.reward.otherwise.unwrap_or(0.0); calls.len()];
        let mut failures = Vec::new();
        for (i, result) in shares.into_iter().flatten() {
            match result {
                Ok(x) => values[i] = x,
                Err(failure) => failures.push((i, failure)),
            }
        }
        failures.sort_by_key(|(i, _)| *i);
        let warning = match (failures.first(), self.reward.otherwise) {
            (None, _) => None,
            (Some((_, first)), None) => return Err(self.fatal(first)),
            (Some((_, first)), Some(value)) => {
                Some(self.warning(first, failures.len(), calls.len(), value))
            }
        };
        Ok(Scored { values, warning })
    }

    /// What one worker does of a batch: call numbers with their results.
    fn share(
        &self,
        slot: &Mutex<Option<Worker>>,
        calls: &[Vec<Json>],
        next: &AtomicUsize,
        stop: &AtomicBool,
    ) -> Result<Vec<(usize, std::result::Result<f64, Failure>)>> {
        let mut slot = slot.lock().unwrap_or_else(|e| e.into_inner());
        let limit = self
            .reward
            .timeout
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        let mut share = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(args) = calls.get(i) else { break };
            let mut worker = match slot.take() {
                Some(worker) => worker,
                None => self
                    .worker()
                    .inspect_err(|_| stop.store(true, Ordering::Relaxed))?,
            };
            let result = worker.call(args, limit);
            if result.is_ok() || worker.alive() {
                *slot = Some(worker);
            }
            if result.is_err() && self.reward.otherwise.is_none() {
                stop.store(true, Ordering::Relaxed);
            }
            share.push((i, result));
        }
        Ok(share)
    }

    fn worker(&self) -> Result<Worker> {
        Worker::start(&self.target).map_err(|unready| self.unready(unready))
    }

    fn unready(&self, unready: Unready) -> Box<Diagnostic> {
        let RewardSource::Python {
            file,
            function,
            span,
        } = &self.reward.source
        else {
            return Box::new(not_python(&self.reward));
        };
        Box::new(match unready {
            Unready::NoPython(e) => {
                let python = self.target.python.display();
                let message = format!("`{python}` cannot be started: {e}");
                Diagnostic::error("", *span, message)
                    .help("rewards written in Python need a Python 3")
            }
            Unready::Import(failure) => {
                let message = format!("`{file}` cannot be imported: {}", place(&failure));
                Diagnostic::error("D312", *span, message).help(trace(&failure))
            }
            Unready::Missing(names) => {
                let names = names.iter().map(String::as_str);
                no_function(file, function, names, *span)
            }
        })
    }

    fn fatal(&self, failure: &Failure) -> Box<Diagnostic> {
        let help = match trace(failure) {
            trace if trace.is_empty() => String::new(),
            trace => format!("{trace}\n"),
        };
        let message = format!("`{}` failed: {}", self.reward.name, place(failure));
        Box::new(
            Diagnostic::error("R403", self.reward.span, message).help(format!(
                "{help}`otherwise: 0` would give such a call a value and let the run go on"
            )),
        )
    }

    fn warning(&self, first: &Failure, failed: usize, calls: usize, value: f64) -> Diagnostic {
        let name = &self.reward.name;
        let message = format!(
            "`{name}` failed on {failed} of {calls} responses (first: {}); `otherwise: {value}` used",
            place(first)
        );
        let mut warning = Diagnostic::warning("R403", self.reward.span, message);
        let trace = trace(first);
        if !trace.is_empty() {
            warning = warning.help(trace);
        }
        warning
    }
}

/// `line 12, ZeroDivisionError: division by zero`
fn place(failure: &Failure) -> String {
    match failure.line {
        Some(line) => format!("line {line}, {}", failure.what),
        None => failure.what.clone(),
    }
}

/// The last lines of the traceback.
fn trace(failure: &Failure) -> String {
    let lines: Vec<&str> = failure.trace.trim_end().lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// D312: the file has no such function; `names` are those it has.
pub fn no_function<'a>(
    file: &str,
    function: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    span: Span,
) -> Diagnostic {
    let message = format!("`{file}` has no function `{function}`");
    let d = Diagnostic::error("D312", span, message);
    if let Some(near) = alike(function, names.clone()) {
        return d.help(format!("a similar one: `{near}`"));
    }
    let names: Vec<&str> = names.take(LISTED).collect();
    match names.is_empty() {
        true => d.help("it defines no functions"),
        false => d.help(format!("it defines: {}", names.join(", "))),
    }
}

/// Other sources are refused before a run: `plan::support`.
fn not_python(reward: &Reward) -> Diagnostic {
    let message = format!("`{}` is not a Python reward", reward.name);
    Diagnostic::error("E090", reward.span, message).help("`python(\"file.py:fn\")` runs")
}
