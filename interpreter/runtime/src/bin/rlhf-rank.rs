//! The rank executable: `rlhf-rank run JOB.json` and `rlhf-rank eval JOB.json`.
//!
//! Started by `rlhf`, not by people. Events go to standard output, one JSON object a line; `stop` or the
//! end of standard input asks for an orderly end.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rlhf_lang::graph::ValueId;
use rlhf_plan::launch::{EvalJob, Event, Job};
use rlhf_runtime::eval::{self, EvalRequest};
use rlhf_runtime::exec;
use rlhf_runtime::fault::{Fault, Result};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["run", path] => read(path).and_then(|job: Job| exec::run(&job, &mut emit, &stop_flag())),
        ["eval", path] => read(path).and_then(|job: EvalJob| evaluate(job)),
        _ => Err(Fault::new(
            "usage: rlhf-rank run JOB.json | rlhf-rank eval JOB.json",
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            emit(Event::Diagnostic(*fault.diagnostic));
            ExitCode::FAILURE
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &str) -> Result<T> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Fault::new(format!("cannot read `{path}`: {e}")))?;
    serde_json::from_str(&text)
        .map_err(|e| Fault::new(format!("`{path}` is not a job of this version: {e}")))
}

fn evaluate(job: EvalJob) -> Result<()> {
    let inputs = job
        .inputs
        .into_iter()
        .enumerate()
        .map(|(i, json)| (ValueId(i as u32), json))
        .collect();
    let request = EvalRequest {
        graph: job.graph,
        root: job.root,
        inputs,
        grad: job.grad,
    };
    let mut answer = eval::run(&request)?;
    let grad = answer.get_mut("grad").map(serde_json::Value::take);
    emit(Event::Value {
        value: answer["value"].take(),
        grad,
    });
    Ok(())
}

/// Writes one event. A closed pipe means that nobody listens; the stop flag will say so too.
fn emit(event: Event) {
    if let Ok(line) = serde_json::to_string(&event) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// A flag that is raised when the starter says `stop` or goes away.
fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                Ok(text) if text.trim() != "stop" => continue,
                _ => break,
            }
        }
        raised.store(true, Ordering::SeqCst);
    });
    flag
}
