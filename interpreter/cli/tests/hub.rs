//! A data set by its id: from a small hub on this machine, then from the cache.
#![allow(missing_docs)]

#[allow(dead_code)] // not every test reads all of it
mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use common::{PROGRAM, Scene};
use serde_json::{Value, json};

const ROWS: &str = "{\"question\": \"1 + 1 =\", \"answer\": \"2\"}\n\
                    {\"question\": \"2 + 1 =\", \"answer\": \"3\"}\n";
const DONE: &str =
    "echo '{\"event\":\"done\",\"iteration\":3,\"stopped\":false,\"peak_memory\":1}'";

/// A hub with one data set, and the paths that were asked for.
fn hub() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(vec![]));
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = log.clone();
            std::thread::spawn(move || answer(stream, &log));
        }
    });
    (url, asked)
}

fn answer(stream: TcpStream, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut ranged) = (String::new(), false);
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        ranged |= line.to_lowercase().starts_with("range:");
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_string();
    log.lock().expect("no thread panicked").push(path.clone());
    let files = [
        "README.md",
        "data/train-00000-of-00001.jsonl",
        "data/test.jsonl",
    ];
    let siblings: Vec<Value> = files.iter().map(|f| json!({"rfilename": f})).collect();
    let (status, body) = match path.as_str() {
        "/api/datasets/org/sums/revision/main" => {
            (200, json!({"siblings": siblings, "sha": "abc"}).to_string())
        }
        "/datasets/org/sums/resolve/main/data/train-00000-of-00001.jsonl" => (200, ROWS.into()),
        _ => (404, String::new()),
    };
    // The first request of a file takes one byte, for its size.
    let (status, sent) = match ranged && status == 200 && path.contains("/resolve/") {
        true => (206, body.as_str()),
        false => (status, body.as_str()),
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\ncontent-range: bytes 0-{}/{}\r\n\
         x-repo-commit: abc\r\netag: \"tag\"\r\nconnection: close\r\n\r\n",
        sent.len(),
        sent.len().saturating_sub(1),
        sent.len(),
    );
    let mut stream = reader.into_inner();
    // A client that took one byte may be gone.
    let _ = stream.write_all(format!("{head}{sent}").as_bytes());
}

fn scene(id: &str) -> Scene {
    let scene = Scene::new();
    scene.rank(DONE);
    let source = format!("hf(\"{id}\", split: \"train\")");
    scene.write(
        "sums.rlhf",
        &PROGRAM.replace("jsonl(\"sums.jsonl\")", &source),
    );
    scene
}

#[test]
fn a_data_set_is_downloaded_once_and_then_found_in_the_cache() {
    let (url, asked) = hub();
    let scene = scene("org/sums");
    let online = |words: &[&str]| {
        let mut command = scene.command(words);
        command.env("HF_HUB_OFFLINE", "0").env("HF_ENDPOINT", &url);
        common::ran(command.output().expect("rlhf starts"))
    };
    let ran = online(&["run", "sums.rlhf", "--out", "first"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("downloading org/sums (1 files)"),
        "{}",
        ran.out
    );
    let job: Value = serde_json::from_str(&scene.read("first/job.json")).expect("a job");
    let path = job["graph"]["data"][0]["path"].as_str().expect("a path");
    assert!(
        path.ends_with("datasets--org--sums/snapshots/abc"),
        "{path}"
    );
    let kept = std::path::Path::new(path).join("data/train-00000-of-00001.jsonl");
    assert_eq!(std::fs::read_to_string(kept).expect("a file"), ROWS);
    let count = asked.lock().expect("no thread panicked").len();
    let ran = online(&["run", "sums.rlhf", "--out", "second"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(asked.lock().expect("no thread panicked").len(), count);
    // Its rows are checked like those of a file.
    let wrong = scene
        .read("sums.rlhf")
        .replace("answer: text", "answer: int");
    scene.write(
        "wrong.rlhf",
        &wrong.replace("roll.text == answer", "number(roll.text) == answer"),
    );
    let ran = scene.rlhf(&["check", "wrong.rlhf"]);
    assert!(
        ran.out.contains("D302") || ran.err.contains("D302"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_data_set_that_is_not_here_says_what_was_tried() {
    let scene = scene("org/sums");
    let ran = scene.rlhf(&["run", "sums.rlhf"]);
    assert_eq!(ran.code, 1);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("`org/sums` is not on this machine"), "{said}");
    assert!(said.contains("HF_HUB_OFFLINE forbids it"), "{said}");
    // A check leaves it to the run.
    let ran = scene.rlhf(&["check", "sums.rlhf"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}
