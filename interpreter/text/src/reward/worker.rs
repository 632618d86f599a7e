//! One child process that runs the user's function.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

const DRIVER: &str = include_str!("driver.py");

/// Lines of the user's output kept for the report of a crash.
const TAIL: usize = 20;

/// What a worker runs.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub python: PathBuf,
    pub file: PathBuf,
    pub function: String,
    /// What the program declares, by name.
    pub params: Vec<String>,
    /// `float`, `int` or `bool`.
    pub result: &'static str,
    /// Where the user's output goes; nowhere without it.
    pub log: Option<PathBuf>,
    /// How long the import may take.
    pub start: Duration,
}

/// Why a call has no result.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Failure {
    /// The line of the user's file.
    pub line: Option<u64>,
    /// In a few words: `ZeroDivisionError: division by zero`.
    pub what: String,
    /// The traceback, or the last output of a process that died; may be empty.
    pub trace: String,
}

impl Failure {
    /// A failure without a traceback.
    pub(super) fn plain(what: String) -> Failure {
        Failure {
            line: None,
            what,
            trace: String::new(),
        }
    }
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Style {
    /// Once a response.
    Each,
    /// Once for all, with lists.
    Batch,
}

/// Why a worker did not start.
pub(super) enum Unready {
    /// No process: the interpreter could not be started.
    NoPython(std::io::Error),
    /// The file failed while it was imported.
    Import(Failure),
    /// No such function; those there are.
    Missing(Vec<String>),
    /// The function wants an argument that the program does not declare: what it takes.
    Arguments(String),
}

#[derive(Deserialize)]
struct Reply {
    ready: Option<Style>,
    wants: Option<String>,
    value: Option<Json>,
    values: Option<Vec<Json>>,
    error: Option<Failure>,
    missing: Option<Vec<String>>,
}

/// A running process. Dropping it ends the process.
pub(super) struct Worker {
    child: Child,
    calls: ChildStdin,
    replies: Receiver<String>,
    tail: Arc<Mutex<VecDeque<String>>>,
    style: Style,
}

impl Worker {
    /// Starts the process and waits until the user's file is imported.
    pub(super) fn start(target: &Target) -> Result<Worker, Unready> {
        let mut child = Command::new(&target.python)
            .args(["-u", "-c", DRIVER])
            .arg(&target.file)
            .args([&target.function, target.result])
            .args(&target.params)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the interpreter, which decides when its workers end.
            .process_group(0)
            .spawn()
            .map_err(Unready::NoPython)?;
        let (Some(calls), Some(out), Some(err)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Unready::NoPython(std::io::Error::other("no pipes")));
        };
        let (send, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let keep = tail.clone();
        let log = target.log.clone();
        std::thread::spawn(move || drain(BufReader::new(err), &keep, log));
        let mut worker = Worker {
            child,
            calls,
            replies,
            tail,
            style: Style::Each,
        };
        match worker.receive(Some(target.start)) {
            Err(failure)
            | Ok(Reply {
                error: Some(failure),
                ..
            }) => Err(Unready::Import(failure)),
            Ok(Reply {
                missing: Some(names),
                ..
            }) => Err(Unready::Missing(names)),
            Ok(Reply {
                wants: Some(what), ..
            }) => Err(Unready::Arguments(what)),
            Ok(reply) => {
                worker.style = reply.ready.unwrap_or(Style::Each);
                Ok(worker)
            }
        }
    }

    /// How its function is called.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// One call. After a failure the process may be gone: ask [`Worker::alive`].
    pub(super) fn call(&mut self, args: &[Json], limit: Option<Duration>) -> Result<Json, Failure> {
        match self.ask(args, limit)? {
            Reply {
                error: Some(failure),
                ..
            } => Err(failure),
            reply => Ok(reply.value.unwrap_or(Json::Null)),
        }
    }

    /// One call for a whole batch.
    pub(super) fn batch(
        &mut self,
        calls: &[Vec<Json>],
        limit: Option<Duration>,
    ) -> Result<Vec<Json>, Failure> {
        match self.ask(calls, limit)? {
            Reply {
                error: Some(failure),
                ..
            } => Err(failure),
            reply => reply
                .values
                .ok_or_else(|| Failure::plain("returned no list".into())),
        }
    }

    fn ask<T: serde::Serialize + ?Sized>(
        &mut self,
        call: &T,
        limit: Option<Duration>,
    ) -> Result<Reply, Failure> {
        let mut line = serde_json::to_string(call).map_err(|e| Failure::plain(e.to_string()))?;
        line.push('\n');
        let sent = self.calls.write_all(line.as_bytes());
        if sent.and_then(|()| self.calls.flush()).is_err() {
            return Err(self.died());
        }
        self.receive(limit)
    }

    /// Whether another call can be made.
    pub(super) fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn receive(&mut self, limit: Option<Duration>) -> Result<Reply, Failure> {
        let line = match limit {
            Some(limit) => match self.replies.recv_timeout(limit) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    self.end();
                    return Err(Failure::plain(format!(
                        "no answer within {} s",
                        limit.as_secs_f64()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
            },
            None => match self.replies.recv() {
                Ok(line) => line,
                Err(_) => return Err(self.died()),
            },
        };
        serde_json::from_str(&line).map_err(|e| {
            self.end();
            Failure::plain(format!("the worker's reply is not JSON: {e}"))
        })
    }

    /// How the process ended, once its pipe is closed.
    fn died(&mut self) -> Failure {
        let how = match self.end() {
            None => "was lost".to_string(),
            Some(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("died of signal {signal}"),
                (None, code) => format!("ended with exit status {}", code.unwrap_or(-1)),
            },
        };
        // What it wrote before is read by another thread; a poisoned lock still holds the lines.
        let tail = self.tail.lock().unwrap_or_else(|e| e.into_inner());
        Failure {
            line: None,
            what: format!("the worker process {how}"),
            trace: tail.iter().cloned().collect::<Vec<_>>().join("\n"),
        }
    }

    /// Ends the process if it still runs.
    fn end(&mut self) -> Option<ExitStatus> {
        // A process that closed its pipe is about to end by itself; its own status says why.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drain(mut lines: impl BufRead, tail: &Mutex<VecDeque<String>>, log: Option<PathBuf>) {
    let open = |path: PathBuf| File::options().create(true).append(true).open(path).ok();
    let mut log = log.and_then(open);
    let mut bytes = Vec::new();
    while matches!(lines.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
        if let Some(log) = &mut log {
            // The log is a convenience: a full disk does not stop the run here.
            let _ = log.write_all(&bytes);
        }
        let mut tail = tail.lock().unwrap_or_else(|e| e.into_inner());
        tail.push_back(String::from_utf8_lossy(&bytes).trim_end().to_string());
        if tail.len() > TAIL {
            tail.pop_front();
        }
        bytes.clear();
    }
}
