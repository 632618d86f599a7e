//! External rewards: the user's Python in worker processes, a program of its own, or a service behind a web
//! address. A crash, a hang or a wrong result is a diagnostic and not a dead run.

mod command;
mod http;
mod python;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Elem, Reward, RewardSource};
use rlhf_lang::source::Span;
use serde_json::{Map, Value as Json};

use crate::Result;
use crate::files::alike;
use worker::Failure;

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

/// What answers the calls of one reward.
pub struct Pool {
    reward: Reward,
    source: Source,
}

enum Source {
    Python(python::Workers),
    Command(command::Program),
    Http(http::Service),
}

/// Call numbers with their results.
type Results = Vec<(usize, std::result::Result<f64, Failure>)>;

/// Results of a batch of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// In the order of the calls; booleans as 0 and 1.
    pub values: Vec<f64>,
    /// R403 when calls failed and `otherwise` took their place.
    pub warning: Option<Diagnostic>,
}

impl Pool {
    /// Makes a reward ready to be called. `base` is the program's folder. Python is started and imports
    /// the user's file; a command is started by every batch; a web address is not asked yet.
    ///
    /// D312 when there is no such file, function or program, or the file cannot be imported.
    pub fn start(reward: &Reward, base: &Path, python: &Python) -> Result<Pool> {
        let source = match &reward.source {
            RewardSource::Python { .. } => {
                Source::Python(python::Workers::start(reward, base, python)?)
            }
            RewardSource::Command { command, span } => {
                Source::Command(command::Program::find(command, *span, base, python)?)
            }
            RewardSource::Http { url, .. } => Source::Http(http::Service::new(url, reward.timeout)),
        };
        let reward = reward.clone();
        Ok(Pool { reward, source })
    }

    /// As the program declares it.
    pub fn reward(&self) -> &Reward {
        &self.reward
    }

    /// The result of each list of arguments. `place` names a call: `row 3`.
    ///
    /// R403 when a call fails, or gives none or no finite number, and the reward has no `otherwise`.
    pub fn score(&self, calls: &[Vec<Json>], place: &dyn Fn(usize) -> String) -> Result<Scored> {
        let mut results = match &self.source {
            Source::Python(workers) => workers.score(&self.reward, calls)?,
            Source::Command(program) => program.score(&self.reward, calls),
            Source::Http(service) => service.score(&self.reward, calls),
        };
        results.sort_by_key(|(i, _)| *i);
        let mut values = vec![self.reward.otherwise.unwrap_or(0.0); calls.len()];
        let mut failures = Vec::new();
        for (i, result) in results {
            match result {
                Ok(x) => values[i] = x,
                Err(failure) => failures.push((place(i), failure)),
            }
        }
        let warning = match (failures.first(), self.reward.otherwise) {
            (None, _) => None,
            (Some((at, first)), None) => return Err(self.fatal(at, first)),
            (Some((at, first)), Some(value)) => {
                Some(self.warning(at, first, (failures.len(), calls.len()), value))
            }
        };
        Ok(Scored { values, warning })
    }

    fn fatal(&self, at: &str, failure: &Failure) -> Box<Diagnostic> {
        let help = match trace(failure) {
            trace if trace.is_empty() => String::new(),
            trace => format!("{trace}\n"),
        };
        let message = format!("`{}` failed on {at}: {}", self.reward.name, said(failure));
        Box::new(
            Diagnostic::error("R403", self.reward.span, message).help(format!(
                "{help}`otherwise: 0` would give such a call a value and let the run go on"
            )),
        )
    }

    fn warning(
        &self,
        at: &str,
        first: &Failure,
        (failed, calls): (usize, usize),
        value: f64,
    ) -> Diagnostic {
        let name = &self.reward.name;
        let message = format!(
            "`{name}` failed on {failed} of {calls} responses (first on {at}: {}); `otherwise: {value}` used",
            said(first)
        );
        let mut warning = Diagnostic::warning("R403", self.reward.span, message);
        let trace = trace(first);
        if !trace.is_empty() {
            warning = warning.help(trace);
        }
        warning
    }
}

/// A number, or true or false as 1 and 0, as the reward declares it; none and what is not finite are
/// failures.
fn number(reward: &Reward, value: &Json) -> std::result::Result<f64, Failure> {
    let found = match (reward.result, value) {
        (Elem::Bool, Json::Bool(b)) => Some(f64::from(*b)),
        (Elem::Int, Json::Number(n)) => n.as_f64().filter(|x| x.fract() == 0.0),
        (Elem::Float, Json::Number(n)) => n.as_f64(),
        (Elem::Float, Json::Bool(b)) => Some(f64::from(*b)),
        _ => None,
    };
    found.filter(|x| x.is_finite()).ok_or_else(|| {
        let shown = match value {
            Json::Null => "none".to_string(),
            other => brief(&other.to_string()),
        };
        Failure::plain(format!("returned {shown}, not {}", reward.result.name()))
    })
}

/// At most 60 characters.
fn brief(text: &str) -> String {
    match text.char_indices().nth(57) {
        Some((end, _)) if text.chars().count() > 60 => format!("{}...", &text[..end]),
        _ => text.into(),
    }
}

/// A call's arguments by their names.
fn object(reward: &Reward, call: &[Json]) -> Json {
    let named = reward.params.iter().zip(call);
    let named: Map<String, Json> = named.map(|((n, _), v)| (n.clone(), v.clone())).collect();
    Json::Object(named)
}

/// All calls fail for one reason.
fn all_fail(calls: usize, failure: &Failure) -> Results {
    (0..calls).map(|i| (i, Err(failure.clone()))).collect()
}

/// The limit of a call.
fn limit(reward: &Reward) -> Option<Duration> {
    let seconds = reward.timeout?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// `line 12, ZeroDivisionError: division by zero`
fn said(failure: &Failure) -> String {
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
