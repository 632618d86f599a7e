//! A running rank: its events, and how it ended.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Launcher, library};
use crate::inbox::Message;

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Code(code) => write!(f, "exit code {code}"),
            End::Signal(9) => f.write_str("signal 9: likely out of host memory"),
            End::Signal(11) => f.write_str("signal 11: invalid memory reference"),
            End::Signal(6) => f.write_str("signal 6: aborted"),
            End::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A rank that was started. Dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    log: PathBuf,
}

/// How libtorch's threads wait for each other: asleep rather than spinning. Where something else needs a
/// core, spinning threads keep the one they wait for from running. What the user set wins.
fn waiting() -> Option<(&'static str, &'static str)> {
    const POLICY: &str = "OMP_WAIT_POLICY";
    std::env::var_os(POLICY)
        .is_none()
        .then_some((POLICY, "PASSIVE"))
}

impl Launcher {
    /// Starts `rlhf-rank VERB JOB` in a process group of its own, so that Ctrl-C reaches this process
    /// alone. Its events go to `send`, the last of them [`Message::Silent`]; its standard error, and what is
    /// no event on its standard output, go to `log`.
    pub fn start(
        &self,
        verb: &str,
        job: &Path,
        log: &Path,
        threads: usize,
        send: Sender<Message>,
    ) -> std::io::Result<Running> {
        let mut child = Command::new(&self.rank)
            .arg(verb)
            .arg(job)
            .env(library::variable(), self.library_path())
            .env("OMP_NUM_THREADS", threads.to_string())
            .envs(waiting())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .process_group(0)
            .spawn()?;
        if let Some(output) = child.stdout.take() {
            let log = log.to_path_buf();
            std::thread::spawn(move || listen(BufReader::new(output), &send, &log));
        }
        Ok(Running {
            input: child.stdin.take(),
            child,
            log: log.into(),
        })
    }

    fn library_path(&self) -> OsString {
        let before = std::env::var_os(library::variable()).unwrap_or_default();
        let all = self
            .libraries
            .iter()
            .cloned()
            .chain(std::env::split_paths(&before));
        // Only a folder with a colon in its name cannot be joined; nothing could be found in it.
        std::env::join_paths(all).unwrap_or(before)
    }
}

impl Running {
    /// Asks the rank to end after its current call.
    pub fn stop(&mut self) {
        // A rank that is gone cannot be asked; its end is noticed elsewhere.
        if let Some(input) = &mut self.input {
            let _ = input.write_all(b"stop\n").and_then(|()| input.flush());
        }
    }

    /// Ends the rank and its reward workers now.
    pub fn kill(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> std::io::Result<End> {
        self.input = None;
        let status = self.child.wait()?;
        Ok(match status.signal() {
            Some(signal) => End::Signal(signal),
            None => End::Code(status.code().unwrap_or(1)),
        })
    }

    /// The last lines that the rank's libraries wrote.
    pub fn last_words(&self, lines: usize) -> Vec<String> {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let from = all.len().saturating_sub(lines);
        all[from..].iter().map(|l| l.to_string()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn listen(output: impl BufRead, send: &Sender<Message>, log: &Path) {
    for line in output.split(b'\n') {
        let Ok(line) = line else { break };
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(event) => {
                if send.send(Message::Event(Box::new(event))).is_err() {
                    return;
                }
            }
            Err(_) => {
                // A library printed to standard output: keep it, it is nobody's event.
                if let Ok(mut file) = OpenOptions::new().append(true).open(log) {
                    let _ = file.write_all(&[line.as_slice(), b"\n"].concat());
                }
            }
        }
    }
    let _ = send.send(Message::Silent);
}
