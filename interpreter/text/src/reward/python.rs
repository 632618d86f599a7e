//! Rewards in Python: a pool of worker processes that share the calls.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Reward, RewardSource};
use rlhf_lang::source::Span;
use serde_json::Value as Json;

use super::worker::{Failure, Style, Target, Unready, Worker};
use super::{Python, Results, all_fail, limit, no_function, said, trace};
use crate::files::{elsewhere, find};
use crate::{Result, failure};

/// Worker processes for one reward.
pub(super) struct Workers {
    target: Target,
    /// What the program calls the function.
    function: (String, String, Span),
    slots: Vec<Mutex<Option<Worker>>>,
    style: Style,
}

impl Workers {
    /// Starts the workers (4, or as many as there are cores, unless the program says; one for a function
    /// that takes whole batches) and imports the user's file in each.
    pub(super) fn start(reward: &Reward, base: &Path, python: &Python) -> Result<Workers> {
        let RewardSource::Python {
            file,
            function,
            span,
        } = &reward.source
        else {
            return Err(failure("this reward is not in Python"));
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
            params: reward.params.iter().map(|(name, _)| name.clone()).collect(),
            result: reward.result.name(),
            log: python.log.clone(),
            start: python.start,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = reward.workers.unwrap_or(cores.min(4)).max(1);
        let mut workers = Workers {
            target,
            function: (file.clone(), function.clone(), *span),
            slots: vec![],
            style: Style::Each,
        };
        let first = workers.worker()?;
        workers.style = first.style();
        workers.slots.push(Mutex::new(Some(first)));
        if workers.style == Style::Each {
            let more = workers.several(count - 1)?;
            let slots = more.into_iter().map(|worker| Mutex::new(Some(worker)));
            workers.slots.extend(slots);
        }
        Ok(workers)
    }

    /// The results of the calls. The workers share them; a call that runs past the timeout costs its
    /// worker, and a new one takes its place.
    pub(super) fn score(&self, reward: &Reward, calls: &[Vec<Json>]) -> Result<Results> {
        if self.style == Style::Batch {
            return self.batch(reward, calls);
        }
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let shares = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .slots
                .iter()
                .map(|slot| scope.spawn(|| self.share(reward, slot, calls, &next, &stop)))
                .collect();
            threads
                .into_iter()
                .map(|t| match t.join() {
                    Ok(share) => share,
                    Err(_) => Err(failure("a thread that calls a reward panicked")),
                })
                .collect::<Result<Vec<_>>>()
        })?;
        Ok(shares.into_iter().flatten().collect())
    }

    /// One call for all.
    fn batch(&self, reward: &Reward, calls: &[Vec<Json>]) -> Result<Results> {
        if calls.is_empty() {
            return Ok(vec![]);
        }
        let mut slot = self.slots[0].lock().unwrap_or_else(|e| e.into_inner());
        let mut worker = match slot.take() {
            Some(worker) => worker,
            None => self.worker()?,
        };
        let results = match worker.batch(calls, limit(reward)) {
            Ok(values) if values.len() == calls.len() => {
                let values = values.iter().map(|v| super::number(reward, v));
                values.enumerate().collect()
            }
            Ok(values) => {
                let (given, wanted) = (values.len(), calls.len());
                let what = format!("returned {given} values for {wanted} completions");
                all_fail(calls.len(), &Failure::plain(what))
            }
            Err(failure) => all_fail(calls.len(), &failure),
        };
        if worker.alive() {
            *slot = Some(worker);
        }
        Ok(results)
    }

    /// What one worker does of the calls.
    fn share(
        &self,
        reward: &Reward,
        slot: &Mutex<Option<Worker>>,
        calls: &[Vec<Json>],
        next: &AtomicUsize,
        stop: &AtomicBool,
    ) -> Result<Results> {
        let mut slot = slot.lock().unwrap_or_else(|e| e.into_inner());
        let limit = limit(reward);
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
            let result = result.and_then(|value| super::number(reward, &value));
            if result.is_ok() || worker.alive() {
                *slot = Some(worker);
            }
            if result.is_err() && reward.otherwise.is_none() {
                stop.store(true, Ordering::Relaxed);
            }
            share.push((i, result));
        }
        Ok(share)
    }

    fn several(&self, count: usize) -> Result<Vec<Worker>> {
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..count).map(|_| scope.spawn(|| self.worker())).collect();
            let started = starts.into_iter().map(|start| match start.join() {
                Ok(result) => result,
                Err(_) => Err(failure("a thread that starts a reward worker panicked")),
            });
            started.collect()
        })
    }

    fn worker(&self) -> Result<Worker> {
        Worker::start(&self.target).map_err(|unready| self.unready(unready))
    }

    fn unready(&self, unready: Unready) -> Box<Diagnostic> {
        let (file, function, span) = &self.function;
        Box::new(match unready {
            Unready::NoPython(e) => {
                let python = self.target.python.display();
                let message = format!("`{python}` cannot be started: {e}");
                Diagnostic::error("", *span, message)
                    .help("rewards written in Python need a Python 3")
            }
            Unready::Import(failure) => {
                let message = format!("`{file}` cannot be imported: {}", said(&failure));
                Diagnostic::error("D312", *span, message).help(trace(&failure))
            }
            Unready::Missing(names) => {
                let names = names.iter().map(String::as_str);
                no_function(file, function, names, *span)
            }
            Unready::Arguments(what) => {
                let message = format!("`{function}` of `{file}` takes {what}");
                let declared = self.target.params.join(", ");
                Diagnostic::error("D312", *span, message).help(format!(
                    "the reward declares ({declared}); an argument reaches such a function by its name"
                ))
            }
        })
    }
}
