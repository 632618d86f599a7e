//! `--watch`: what is read is checked again when its content changes. The tests wait for output, not for time.
#![allow(missing_docs)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{PROGRAM, Scene};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that runs until it is interrupted, and what it says on both streams.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(scene: &Scene, words: &[&str]) -> Self {
        let mut child = scene
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rlhf starts");
        let (send, lines) = channel();
        let out = child.stdout.take().expect("it is piped");
        let err = child.stderr.take().expect("it is piped");
        let streams: [Box<dyn BufRead + Send>; 2] =
            [Box::new(BufReader::new(out)), Box::new(BufReader::new(err))];
        for stream in streams {
            let send = send.clone();
            std::thread::spawn(move || {
                for line in stream.lines().map_while(Result::ok) {
                    // Nobody reads on once a test is over.
                    let _ = send.send(line);
                }
            });
        }
        Watching { child, lines }
    }

    /// Waits for a line that contains `part`; gives everything up to it.
    fn until(&self, part: &str) -> String {
        let mut all = String::new();
        // What never comes would be waited for without end; how long an answer takes decides nothing.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            all += &format!("{line}\n");
            if line.contains(part) {
                return all;
            }
        }
        panic!("`{part}` is not said:\n{all}");
    }

    fn interrupt(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
    }

    /// Interrupts it; the exit code and what it said since.
    fn end(mut self) -> (Option<i32>, String) {
        self.interrupt();
        let status = self.child.wait().expect("it ends");
        let rest: Vec<String> = self.lines.iter().collect();
        (status.code(), rest.join("\n"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes beside and renames, as editors do.
fn save(scene: &Scene, name: &str, text: &str) {
    scene.write("beside", text);
    std::fs::rename(scene.path("beside"), scene.path(name)).expect("it is there");
}

#[test]
fn a_program_is_checked_again_whichever_way_it_is_saved() {
    let scene = Scene::new();
    let watching = Watching::start(&scene, &["check", "--watch", "sums.rlhf"]);
    let said = watching.until("watching");
    assert!(said.contains("sums.rlhf: no problems ("), "{said}");
    assert!(!said.contains('\u{1b}'), "nothing is cleared in a pipe");
    scene.write("sums.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    let said = watching.until("watching");
    assert!(
        said.contains("E010") && said.contains("sums.rlhf: 1 error"),
        "{said}"
    );
    save(&scene, "sums.rlhf", PROGRAM);
    let said = watching.until("watching");
    assert!(said.contains("no problems"), "{said}");
    assert_eq!(watching.end(), (Some(0), String::new()));
}

#[test]
fn a_save_of_the_same_text_is_no_reason_to_check() {
    let scene = Scene::new();
    let watching = Watching::start(&scene, &["check", "--watch", "sums.rlhf"]);
    watching.until("watching");
    save(&scene, "sums.rlhf", PROGRAM);
    scene.write("other.rlhf", "not looked at");
    // What is said next is about the change that follows.
    save(&scene, "sums.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    let said = watching.until("watching");
    assert!(said.contains("1 error"), "{said}");
    assert_eq!(watching.end(), (Some(0), String::new()));
}

#[test]
fn files_that_are_not_there_are_waited_for() {
    let scene = Scene::new();
    let rows = scene.read("sums.jsonl");
    let program = PROGRAM
        .replace("sums.jsonl", "deep/data/sums.jsonl")
        .replace("data sums", "use \"lib/mine.rlhf\" { twice }\n\ndata sums")
        .replace("log reward: mean(r)", "log reward: mean(twice(r))");
    scene.write("sums.rlhf", &program);
    let watching = Watching::start(&scene, &["check", "--watch", "sums.rlhf"]);
    let said = watching.until("watching");
    assert!(said.contains("lib/mine.rlhf"), "{said}");
    scene.write(
        "lib/mine.rlhf",
        "fn twice(x: float[..]) -> float[..] = 2 * x\n",
    );
    let said = watching.until("deep/data/sums.jsonl");
    assert!(!said.contains("no problems"), "{said}");
    watching.until("watching");
    scene.write("deep/data/sums.jsonl", &rows);
    watching.until("no problems");
    // A folder that goes away and comes back is another folder.
    std::fs::remove_dir_all(scene.path("lib")).expect("it is there");
    watching.until("1 error");
    scene.write(
        "lib/mine.rlhf",
        "fn twice(x: float[..]) -> float[..] = 3 * x\n",
    );
    watching.until("no problems");
    scene.write("lib/mine.rlhf", "fn twice(x: float[..]) -> float[..] = y\n");
    watching.until("error");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn a_program_that_goes_away_is_waited_for() {
    let scene = Scene::new();
    let watching = Watching::start(&scene, &["check", "--watch", "sums.rlhf"]);
    watching.until("watching");
    std::fs::remove_file(scene.path("sums.rlhf")).expect("it is there");
    watching.until("no file `sums.rlhf`");
    scene.write("sums.rlhf", PROGRAM);
    watching.until("no problems");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn a_link_is_watched_where_it_leads() {
    let scene = Scene::new();
    scene.write("store/real.rlhf", PROGRAM);
    std::os::unix::fs::symlink("store/real.rlhf", scene.path("link.rlhf")).expect("a link");
    let watching = Watching::start(&scene, &["check", "--watch", "link.rlhf"]);
    watching.until("no problems");
    scene.write("store/real.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    watching.until("1 error");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn what_cannot_be_watched_is_a_usage_error() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["check", "--watch", "nothing.rlhf"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    for verb in ["check", "run"] {
        let ran = scene.rlhf(&[verb, "--watch", "grpo"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(
            ran.err.contains("rlhf new mine.rlhf --from grpo"),
            "{}",
            ran.err
        );
    }
    let ran = scene.rlhf(&["run", "--watch", "sums.rlhf", "--out", "here"]);
    assert!(ran.code == 2 && ran.err.contains("--out"), "{}", ran.err);
}

/// A rank that says its process id and runs until it is told to stop.
const PATIENT: &str = r#"
echo '{"event":"note","text":"rank '$$' is running"}'
echo '{"event":"ready","iterations":3}'
read word
echo '{"event":"done","iteration":1,"stopped":true,"peak_memory":1}'
"#;

fn rank_of(said: &str) -> Pid {
    let line = said.lines().find(|l| l.starts_with("rank ")).expect(said);
    let number = line.split(' ').nth(1).and_then(|n| n.parse().ok());
    number.and_then(Pid::from_raw).expect(line)
}

#[test]
fn a_run_starts_anew_in_a_fresh_directory_when_its_program_changes() {
    let scene = Scene::new();
    scene.rank(PATIENT);
    let watching = Watching::start(&scene, &["run", "--watch", "sums.rlhf"]);
    let first = rank_of(&watching.until(" is running"));
    // A program that does not check is shown, and the run goes on.
    scene.write("sums.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    let said = watching.until("help:");
    assert!(said.contains("E010"), "{said}");
    assert!(test_kill_process(first).is_ok(), "the first rank runs on");
    let changed = PROGRAM.replace("temperature: 1", "temperature: 0.5");
    save(&scene, "sums.rlhf", &changed);
    let said = watching.until(" is running");
    assert!(said.contains("stopping after the current call"), "{said}");
    assert!(said.contains("run   runs/sums-2"), "{said}");
    let second = rank_of(&said);
    assert!(test_kill_process(first).is_err(), "the first rank ended");
    assert_eq!(scene.read("runs/sums-1/program.rlhf"), PROGRAM);
    assert_eq!(scene.read("runs/sums-2/program.rlhf"), changed);
    assert!(
        scene
            .read("runs/sums-1/manifest.json")
            .contains("\"stopped\": true")
    );
    assert_eq!(watching.end().0, Some(0));
    assert!(test_kill_process(second).is_err(), "no rank is left");
    assert!(!scene.exists("runs/sums-3"));
}

#[test]
fn a_run_that_ended_or_cannot_begin_waits_for_a_change() {
    let scene = Scene::new();
    scene.rank("echo '{\"event\":\"done\",\"iteration\":3,\"stopped\":false,\"peak_memory\":1}'");
    scene.write("sums.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    let watching = Watching::start(&scene, &["run", "--watch", "sums.rlhf"]);
    let said = watching.until("watching");
    assert!(said.contains("E010"), "{said}");
    save(&scene, "sums.rlhf", PROGRAM);
    let said = watching.until("watching");
    assert!(said.contains("run   runs/sums-1"), "{said}");
    scene.write("sums.jsonl", &scene.read("sums.jsonl").repeat(2));
    watching.until("run   runs/sums-2");
    watching.until("watching");
    assert_eq!(watching.end().0, Some(0));
}
