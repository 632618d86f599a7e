//! A folder with a checkpoint and data, in which the real executables run.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::Checkpoint;

/// A folder that goes away with the value. It holds `model/`, a tiny checkpoint, and the data sets
/// `sums.jsonl` (6 rows) and `held.jsonl` (2 rows) with the columns `question` and `answer`.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; -1 for a process that a signal ended.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Default for Scene {
    fn default() -> Self {
        Scene::new()
    }
}

impl Scene {
    /// The folder with the checkpoint and the data.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let scene = Scene { folder };
        Checkpoint::new(7).write(&scene.path("model"));
        let rows = |sums: &[(u32, u32)]| -> String {
            let row = |(a, b): &(u32, u32)| {
                format!(
                    "{{\"question\": \"{a} + {b} =\", \"answer\": \"{}\"}}\n",
                    a + b
                )
            };
            sums.iter().map(row).collect()
        };
        let sums = [(1, 1), (2, 3), (4, 1), (5, 2), (3, 3), (12, 7)];
        scene.write("sums.jsonl", &rows(&sums));
        scene.write("held.jsonl", &rows(&[(1, 2), (8, 8)]));
        scene
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and the folders it needs.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let parent = path.parent().expect("a path in the folder");
        std::fs::create_dir_all(parent).expect("a folder");
        std::fs::write(path, text).expect("a small file");
    }

    /// The text of a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The bytes of a file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The objects of a file with one a line.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = self.read(name);
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}: {line}"))
        };
        text.lines().map(parse).collect()
    }

    /// The lines of `metrics.jsonl` of a kind, `step` or `eval`.
    pub fn metrics(&self, run: &str, kind: &str) -> Vec<Value> {
        let mut lines = self.lines(&format!("{run}/metrics.jsonl"));
        lines.retain(|line| line["kind"] == kind);
        lines
    }

    /// `rlhf WORDS`, in the folder, without colours and without a hub.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(executable("rlhf"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env("RLHF_CACHE", self.path("cache"))
            .env("HF_HUB_CACHE", self.path("hub"))
            .env("HF_HUB_OFFLINE", "1")
            .env_remove("HF_ENDPOINT")
            .env_remove("RLHF_RANK");
        command
    }

    /// Runs `rlhf WORDS` to its end.
    pub fn rlhf(&self, words: &[&str]) -> Ran {
        let output = self.command(words).output();
        ran(output.expect("rlhf starts"))
    }

    /// Runs `rlhf run WORDS` and expects it to succeed. One thread unless the words say otherwise: on a
    /// tiny model the threads of several tests only wait for each other.
    pub fn train(&self, words: &[&str]) -> Ran {
        let mut words: Vec<&str> = ["run"].iter().chain(words).copied().collect();
        if !words.contains(&"--threads") {
            words.extend(["--threads", "1"]);
        }
        let ran = self.rlhf(&words);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran
    }

    /// Starts `rlhf WORDS` and gives its standard output line by line.
    pub fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("rlhf starts");
        let out = child.stdout.take().expect("the output is a pipe");
        Running {
            child,
            out: BufReader::new(out),
            seen: String::new(),
        }
    }
}

/// A command that has not ended.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    seen: String,
}

impl Running {
    /// Reads standard output up to a line that `wanted` takes.
    pub fn wait_for(&mut self, wanted: impl Fn(&str) -> bool) {
        loop {
            let mut line = String::new();
            let read = self.out.read_line(&mut line).expect("the output is text");
            assert!(read > 0, "the output ended:\n{}", self.seen);
            self.seen += &line;
            if wanted(&line) {
                return;
            }
        }
    }

    /// What Ctrl-C sends.
    pub fn interrupt(&self) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status();
        assert!(status.is_ok_and(|s| s.success()), "the signal is sent");
    }

    /// Waits for the end.
    pub fn end(mut self) -> Ran {
        self.out
            .read_to_string(&mut self.seen)
            .expect("the output is text");
        let output = self.child.wait_with_output().expect("it ends");
        let mut ran = ran(output);
        ran.out = self.seen;
        ran
    }
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into(),
        err: String::from_utf8_lossy(&output.stderr).into(),
    }
}

/// An executable of the workspace: beside the folder of the test's own.
fn executable(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its path");
    let folder = own
        .parent()
        .and_then(Path::parent)
        .expect("target/release/deps");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "`{}` is missing; ./test builds it",
        path.display()
    );
    path
}
