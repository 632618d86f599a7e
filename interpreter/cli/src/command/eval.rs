//! `rlhf eval`: a pure expression over JSON values.

mod input;

use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::ValueId;
use rlhf_lang::source::Sources;
use rlhf_plan::launch::{EvalJob, Event};
use serde_json::json;

use crate::args::Eval;
use crate::inbox::{Inbox, Message};
use crate::launch::{End, Launcher};
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::report;
use input::Given;

/// Prints the value, or with `--grad` an object of the value and its gradients.
pub fn eval(args: &Eval) -> Outcome<u8> {
    let given: Vec<Given> = args
        .lets
        .iter()
        .map(|text| Given::parse(text))
        .collect::<Outcome<_>>()?;
    let grad = args
        .grad
        .iter()
        .map(|name| position(&given, name))
        .collect::<Outcome<_>>()?;
    let inputs: Vec<Input> = given.iter().map(|g| g.input.clone()).collect();
    let load = |path: &str| std::fs::read_to_string(path).ok();
    let compiled = match compile_expression(&args.expression, &args.uses, &inputs, &load) {
        Ok(compiled) => compiled,
        Err((sources, diagnostics)) => {
            report::print(args.format, &sources, &diagnostics);
            return Ok(1);
        }
    };
    let job = EvalJob {
        graph: compiled.graph,
        root: compiled.value,
        inputs: given.into_iter().map(|g| g.value).collect(),
        grad,
    };
    evaluate(args, &job, &compiled.sources)
}

fn position(given: &[Given], name: &str) -> Outcome<ValueId> {
    match given.iter().position(|g| g.input.name == name) {
        Some(i) => Ok(ValueId(i as u32)),
        None => {
            let names: Vec<&str> = given.iter().map(|g| g.input.name.as_str()).collect();
            Err(Stop::usage(
                format!("`--grad {name}` names no input"),
                match names.is_empty() {
                    true => "give it as `--let name=value`".into(),
                    false => format!("inputs: {}", names.join(", ")),
                },
            ))
        }
    }
}

fn evaluate(args: &Eval, job: &EvalJob, sources: &Sources) -> Outcome<u8> {
    let launcher = Launcher::find().map_err(Stop::Failed)?;
    let folder = tempfile::tempdir()
        .map_err(|e| Stop::failed(format!("no temporary folder: {e}"), "set TMPDIR"))?;
    let result = listen(args, job, sources, &launcher, folder.path());
    result.map_err(|e| match e {
        Trouble::Io(e) => Stop::failed(
            format!("`{}` cannot be run: {e}", launcher.rank.display()),
            "in a checkout, `./rlhf` builds it",
        ),
        Trouble::Stop(stop) => stop,
    })
}

enum Trouble {
    Io(std::io::Error),
    Stop(Stop),
}

impl From<std::io::Error> for Trouble {
    fn from(e: std::io::Error) -> Self {
        Trouble::Io(e)
    }
}

fn listen(
    args: &Eval,
    job: &EvalJob,
    sources: &Sources,
    launcher: &Launcher,
    folder: &std::path::Path,
) -> Result<u8, Trouble> {
    let path = folder.join("job.json");
    std::fs::write(
        &path,
        serde_json::to_vec(job).map_err(std::io::Error::from)?,
    )?;
    let mut inbox = Inbox::new()?;
    let log = folder.join("rank.log");
    let mut rank = launcher.start("eval", &path, &log, 1, inbox.sender())?;
    let (mut answered, mut failed) = (false, false);
    loop {
        match inbox.next() {
            Message::Event(event) => match *event {
                Event::Value { value, grad } => {
                    answered = true;
                    let shown = match grad {
                        Some(grad) => json!({ "value": value, "grad": grad }),
                        None => value,
                    };
                    output::out(&format!("{shown}\n"));
                }
                Event::Diagnostic(d) => {
                    failed = true;
                    report::print(args.format, sources, &[d]);
                }
                _ => {}
            },
            Message::Interrupt => {
                rank.kill();
                return Ok(130);
            }
            Message::Silent => break,
            Message::Touched(_) => {}
        }
    }
    let end = rank.wait()?;
    if answered && end == End::Code(0) {
        return Ok(0);
    }
    if !failed {
        let words = rank.last_words(8).join("\n");
        let d = Diagnostic::bare("R402", format!("the rank ended without an answer ({end})"));
        return Err(Trouble::Stop(Stop::from(d.help(words))));
    }
    Ok(1)
}
