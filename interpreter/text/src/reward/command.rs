//! Rewards by a program of its own: one JSON object a line in, one number a line out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Reward;
use rlhf_lang::source::Span;
use serde_json::Value as Json;

use super::worker::Failure;
use super::{Python, Results, all_fail, brief, limit, number, object};
use crate::Result;
use crate::files::{elsewhere, find};

/// The last of what a program wrote to its standard error is shown.
const TAIL: usize = 2000;

/// A program with its arguments. It is started for every batch, gets the end of its input after the last
/// call, and so may write its answers as late as it likes.
pub(super) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    log: Option<PathBuf>,
}

impl Program {
    /// Splits the words as a shell does, without running one. A path is looked for in the program's folder
    /// and in the working directory, a bare name by the system.
    pub(super) fn find(command: &str, span: Span, base: &Path, python: &Python) -> Result<Program> {
        let fail = |message: String, help: String| {
            Box::new(Diagnostic::error("D312", span, message).help(help))
        };
        let words = shell_words::split(command).unwrap_or_default();
        let Some((first, arguments)) = words.split_first() else {
            let message = format!("`{command}` is not a command");
            let help = "words as a shell splits them; every quote is closed";
            return Err(fail(message, help.into()));
        };
        let path = match first.contains('/') {
            false => PathBuf::from(first),
            true => find(base, first)
                .and_then(|p| p.canonicalize().ok())
                .ok_or_else(|| {
                    fail(
                        format!("there is no program `{first}`"),
                        elsewhere(base, first),
                    )
                })?,
        };
        // What names a file of the program's folder is that file, wherever the run was started.
        let argument = |word: &String| match base.join(word).is_file() {
            true => base.join(word).display().to_string(),
            false => word.clone(),
        };
        Ok(Program {
            path,
            arguments: arguments.iter().map(argument).collect(),
            log: python.log.clone(),
        })
    }

    /// The results of the calls: contiguous shares of them to as many processes as the program says, one
    /// without that.
    pub(super) fn score(&self, reward: &Reward, calls: &[Vec<Json>]) -> Results {
        let workers = reward.workers.unwrap_or(1).clamp(1, calls.len().max(1));
        let size = calls.len().div_ceil(workers).max(1);
        let shares = std::thread::scope(|scope| {
            let threads: Vec<_> = calls
                .chunks(size)
                .map(|share| (share.len(), scope.spawn(|| self.share(reward, share))))
                .collect();
            let shares = threads.into_iter().map(|(count, thread)| {
                let lost = Failure::plain("the thread that runs it panicked".into());
                thread.join().unwrap_or_else(|_| all_fail(count, &lost))
            });
            shares.collect::<Vec<Results>>()
        });
        let numbered = shares.into_iter().enumerate();
        numbered
            .flat_map(|(k, share)| share.into_iter().map(move |(i, r)| (k * size + i, r)))
            .collect()
    }

    fn share(&self, reward: &Reward, calls: &[Vec<Json>]) -> Results {
        let lines: Vec<String> = calls
            .iter()
            .map(|call| format!("{}\n", object(reward, call)))
            .collect();
        let ran = match self.run(lines.concat(), limit(reward)) {
            Ok(ran) => ran,
            Err(failure) => return all_fail(calls.len(), &failure),
        };
        let answers: Vec<&str> = ran.out.lines().collect();
        let result = |i: usize| match answers.get(i) {
            Some(line) => answer(reward, line),
            None => {
                let count = answers.len();
                let lines = if count == 1 { "line" } else { "lines" };
                Err(Failure {
                    line: None,
                    what: format!(
                        "the program {} after {count} {lines} for {} calls",
                        ran.how,
                        calls.len()
                    ),
                    trace: ran.err.clone(),
                })
            }
        };
        (0..calls.len()).map(|i| (i, result(i))).collect()
    }

    fn run(&self, input: String, limit: Option<Duration>) -> std::result::Result<Ran, Failure> {
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the interpreter, which decides when its programs end.
            .process_group(0)
            .spawn();
        let program = self.path.display();
        let mut child =
            child.map_err(|e| Failure::plain(format!("`{program}` cannot be started: {e}")))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (send, receive) = channel();
        std::thread::spawn(move || {
            // A program that does not read everything is judged by its answers.
            let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
        });
        let err = std::thread::spawn(move || whole(stderr));
        std::thread::spawn(move || send.send(whole(stdout)));
        let out = match limit {
            Some(limit) => receive.recv_timeout(limit).ok(),
            None => receive.recv().ok(),
        };
        let Some(out) = out else {
            end(&mut child);
            let seconds = limit.unwrap_or_default().as_secs_f64();
            return Err(Failure::plain(format!("no answer within {seconds} s")));
        };
        let how = match child.wait() {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("died of signal {signal}"),
                (None, code) => format!("ended with exit status {}", code.unwrap_or(-1)),
            },
            Err(error) => format!("was lost ({error})"),
        };
        let err = err.join().unwrap_or_default();
        self.note(&err);
        let start = err.char_indices().rev().nth(TAIL).map_or(0, |(at, _)| at);
        let err = err[start..].to_string();
        Ok(Ran { out, err, how })
    }

    fn note(&self, text: &str) {
        let open = |path: &PathBuf| File::options().create(true).append(true).open(path).ok();
        if let Some(mut log) = self.log.as_ref().and_then(open) {
            // The log is a convenience: a full disk does not stop the run here.
            let _ = log.write_all(text.as_bytes());
        }
    }
}

/// What a program did.
struct Ran {
    out: String,
    err: String,
    how: String,
}

fn whole(pipe: Option<impl Read>) -> String {
    let mut bytes = vec![];
    if let Some(mut pipe) = pipe {
        // What was read before a failure counts.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn answer(reward: &Reward, line: &str) -> std::result::Result<f64, Failure> {
    let word = line.trim();
    let value = match word {
        "" | "none" | "None" | "nan" | "NaN" => Json::Null,
        _ => match serde_json::from_str(word) {
            Ok(value) => value,
            Err(_) => {
                let said = brief(&format!("{word:?}"));
                return Err(Failure::plain(format!("wrote {said}, not a number")));
            }
        },
    };
    number(reward, &value)
}
