//! The run: iterations of the step's calls, evaluations when they are due, a checkpoint at the end.

mod answer;
mod calls;
mod carry;
mod checkpoint;
mod context;
mod outputs;
mod pass;
mod reach;
mod record;
mod rollout;
mod samples;
mod schedule;
mod train;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rlhf_plan::launch::{Event, Job, Report};
use rlhf_plan::program::Instruction;

use crate::fault::Result;
use context::Context;

pub use pass::Drawn;
pub use train::{Step, Update, measure, update};

/// Where events go.
pub type Emit<'a> = &'a mut dyn FnMut(Event);

/// Runs a job to its end, or until `stop` is raised: then after the current call, with the checkpoint
/// saved. Writes `metrics.jsonl`, `samples.jsonl` and the trained models into the run directory.
pub fn run(job: &Job, emit: Emit, stop: &Arc<AtomicBool>) -> Result<()> {
    let mut context = Context::prepare(job, emit, stop.clone())?;
    (context.emit)(Event::Ready {
        iterations: context.last,
        done: 0,
    });
    let mut done = 0;
    if let Err(fault) = context.iterations(&mut done) {
        // What was learnt so far is worth more than the failure.
        if context.updated {
            context.save_or_warn(done);
        }
        return Err(fault);
    }
    context.save(done)?;
    let stopped = stop.load(Ordering::SeqCst);
    (context.emit)(Event::Done {
        iteration: done,
        stopped,
        peak_memory: peak_memory(),
    });
    Ok(())
}

impl Context<'_> {
    /// All iterations with their evaluations; `done` counts those that ended.
    fn iterations(&mut self, done: &mut usize) -> Result<()> {
        self.evaluations(0)?;
        for iteration in 1..=self.last {
            if !self.iterate(iteration)? {
                break;
            }
            *done = iteration;
            if self.evaluations(iteration)? && iteration < self.last {
                self.save_or_warn(iteration);
            }
        }
        Ok(())
    }

    /// One iteration; false when it was stopped before its last call.
    fn iterate(&mut self, iteration: usize) -> Result<bool> {
        let start = Instant::now();
        let rows = self.step_rows(iteration)?;
        let instructions = self.job.program.step.clone();
        let mut pass = self.begin(iteration, rows);
        for Instruction::Call(node) in instructions {
            if self.stopped() {
                return Ok(false);
            }
            self.call(node, &mut pass)?;
        }
        for metric in &self.job.graph.metrics {
            pass.report_metric(&self.job.graph, metric)?;
        }
        let written = self.write_samples(iteration, &pass);
        self.unless_written(written);
        self.states.extend(pass.next.drain());
        let report = pass.finish(start.elapsed().as_secs_f64());
        let written = self.record.metrics("step", &report);
        self.unless_written(written);
        (self.emit)(Event::Iteration(report));
        Ok(true)
    }

    /// Runs the evaluations that are due at an iteration; true when there was one. All of them run
    /// before the first iteration and after the last.
    fn evaluations(&mut self, iteration: usize) -> Result<bool> {
        let mut report = Report {
            iteration,
            ..Report::default()
        };
        let mut ran = false;
        for index in 0..self.job.graph.evals.len() {
            let eval = &self.job.graph.evals[index];
            let due = iteration.is_multiple_of(eval.every) || iteration == self.last;
            if !due || self.stopped() {
                continue;
            }
            let start = Instant::now();
            let mut pass = self.begin(iteration, self.eval_rows(index));
            for Instruction::Call(node) in self.job.program.evals[index].clone() {
                self.call(node, &mut pass)?;
                if self.stopped() {
                    return Ok(false);
                }
            }
            for metric in &eval.metrics {
                pass.report_metric(&self.job.graph, metric)?;
            }
            let part = pass.finish(start.elapsed().as_secs_f64());
            report.metrics.extend(part.metrics);
            report.seconds.extend(part.seconds);
            report.total_seconds += part.total_seconds;
            report.sampled_tokens += part.sampled_tokens;
            ran = true;
        }
        if ran {
            let written = self.record.metrics("eval", &report);
            self.unless_written(written);
            (self.emit)(Event::Eval(report));
        }
        Ok(ran)
    }
}

/// Largest resident memory of this process in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line
        .and_then(|l| l.split_whitespace().next())
        .and_then(|n| n.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
