//! External rewards: the user's Python in worker processes, so that a crash, a hang or a wrong result
//! is a diagnostic and not a dead run.

mod worker;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisId, Elem, Reward, RewardSource};
use serde_json::{Value as Json, json};

use crate::data::{locate, nearest};
use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, align, to_bools, to_f64s};
use worker::{Failure, Target, Unready, Worker};

/// Where Python is and where its output goes.
#[derive(Clone, Debug)]
pub struct Python {
    /// The executable.
    pub executable: PathBuf,
    /// A file to which everything the user's code prints is appended.
    pub log: Option<PathBuf>,
}

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
            return Err(not_python(reward));
        };
        let found = locate(file, base).and_then(|p| p.canonicalize().ok());
        let path = found.ok_or_else(|| {
            Fault::code("D312", format!("there is no file `{file}`"))
                .at(*span)
                .help(format!(
                    "a path is relative to the program's folder, `{}`, or to the working directory",
                    base.display()
                ))
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
                Err(_) => Err(Fault::new("a thread that starts a reward worker panicked")),
            })
        })?;
        Ok(pool)
    }

    /// Calls the function once for each element of the arguments, all broadcast to `axes`.
    pub fn score_values(
        &self,
        args: &[Value],
        axes: &[AxisId],
        shapes: &Shapes,
    ) -> Result<(Value, Option<Diagnostic>)> {
        let columns = args
            .iter()
            .zip(&self.reward.params)
            .map(|(arg, (_, elem))| cells(&align(arg, axes, shapes)?, *elem))
            .collect::<Result<Vec<_>>>()?;
        let count = crate::value::numel(axes, shapes)?;
        let calls: Vec<Vec<Json>> = (0..count)
            .map(|i| columns.iter().map(|column| column[i].clone()).collect())
            .collect();
        let scored = self.score(&calls)?;
        let value = match self.reward.result {
            Elem::Bool => {
                let flags: Vec<bool> = scored.values.iter().map(|x| *x != 0.0).collect();
                Value::from_bool(axes.to_vec(), &flags, shapes)?
            }
            _ => Value::from_f64(axes.to_vec(), &scored.values, shapes)?,
        };
        Ok((value, scored.warning))
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
                    Err(_) => Err(Fault::new("a thread that calls a reward panicked")),
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

    fn unready(&self, unready: Unready) -> Fault {
        let RewardSource::Python {
            file,
            function,
            span,
        } = &self.reward.source
        else {
            return not_python(&self.reward);
        };
        let fault = match unready {
            Unready::NoPython(e) => Fault::new(format!(
                "`{}` cannot be started: {e}",
                self.target.python.display()
            ))
            .help("rewards written in Python need a Python 3"),
            Unready::Import(failure) => Fault::code(
                "D312",
                format!("`{file}` cannot be imported: {}", place(&failure)),
            )
            .help(trace(&failure)),
            Unready::Missing(names) => {
                let fault = Fault::code("D312", format!("`{file}` has no function `{function}`"));
                let near = nearest(function, names.iter().map(String::as_str));
                match (near, names.is_empty()) {
                    (Some(near), _) => fault.help(format!("a similar one: `{near}`")),
                    (None, true) => fault.help("it defines no functions"),
                    (None, false) => fault.help(format!("it defines: {}", names.join(", "))),
                }
            }
        };
        fault.at(*span)
    }

    fn fatal(&self, failure: &Failure) -> Fault {
        let help = match trace(failure) {
            trace if trace.is_empty() => String::new(),
            trace => format!("{trace}\n"),
        };
        Fault::code(
            "R403",
            format!("`{}` failed: {}", self.reward.name, place(failure)),
        )
        .at(self.reward.span)
        .help(format!(
            "{help}`otherwise: 0` would give such a call a value and let the run go on"
        ))
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

/// The elements of an argument as JSON, in storage order.
fn cells(value: &Value, elem: Elem) -> Result<Vec<Json>> {
    Ok(match &value.data {
        Data::Num(t) => to_f64s(t)?
            .into_iter()
            .map(|x| match elem {
                Elem::Int if x.fract() == 0.0 && x.abs() < 9e15 => json!(x as i64),
                // None and what JSON cannot hold.
                _ => json!(x),
            })
            .collect(),
        Data::Bool(t) => to_bools(t)?.into_iter().map(Json::Bool).collect(),
        Data::Text(v) => v.iter().map(|t| json!(t.as_deref())).collect(),
        Data::Chat(v) => v.iter().map(|c| json!(c.as_ref())).collect(),
        Data::TextList(v) => v
            .iter()
            .map(|l| l.iter().map(|t| Json::from(t.as_ref())).collect())
            .collect(),
    })
}

/// Refused before loading: `plan::support`.
fn not_python(reward: &Reward) -> Fault {
    Fault::new(format!("`{}` is not a Python reward", reward.name)).at(reward.span)
}
