//! `rlhf run` against a script that speaks a rank's protocol.
#![allow(missing_docs)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use common::{PROGRAM, Scene};
use serde_json::Value;

/// Three iterations, two evaluations, a checkpoint.
const GOOD: &str = r#"
echo "a library says something" >&2
echo "this is no event"
echo '{"event":"note","text":"loading policy"}'
echo '{"event":"ready","iterations":3,"done":0}'
echo '{"event":"eval","iteration":0,"metrics":{"accuracy":0.25},"seconds":{},"total_seconds":1.5,"sampled_tokens":8}'
for i in 1 2 3; do
  echo '{"event":"progress","iteration":'$i',"call":"roll","done":4,"total":8}'
  echo '{"event":"iteration","iteration":'$i',"metrics":{"reward":0.'$i',"policy.loss":1.5,"policy.lr":1e-5},"seconds":{"roll":3.0,"train policy":1.0},"total_seconds":4.0,"sampled_tokens":400}'
done
echo '{"event":"eval","iteration":3,"metrics":{"accuracy":0.5},"seconds":{},"total_seconds":1.5,"sampled_tokens":8}'
echo '{"event":"saved","iteration":3,"path":"runs/sums-1/policy"}'
echo '{"event":"done","iteration":3,"stopped":false,"peak_memory":3100000000}'
"#;

#[test]
fn a_run_prints_a_plan_a_line_an_iteration_and_a_summary() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let ran = scene.rlhf(&["run", "sums.rlhf"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[0].starts_with("plan  one rank on cpu, "),
        "{}",
        ran.out
    );
    assert!(
        lines[0].contains("policy 210k f32") || lines[0].contains("policy 210k bf16"),
        "{}",
        lines[0]
    );
    assert!(
        lines[0].contains("4 responses ≤ 8 tokens an iteration"),
        "{}",
        lines[0]
    );
    let table = [
        "run   runs/sums-1",
        "loading policy",
        "eval 0  accuracy 0.25  (1.5 s)",
        " iter   reward   tok/s  seconds",
        "  1/3      0.1     100  4.0 = roll 3.0s + train 1.0s",
        "  2/3      0.2     100  4.0 = roll 3.0s + train 1.0s",
        "  3/3      0.3     100  4.0 = roll 3.0s + train 1.0s",
        "eval 3  accuracy 0.5  (1.5 s)",
    ];
    assert_eq!(lines[1..=table.len()], table);
    let summary = lines[table.len() + 1..].join("\n");
    for part in [
        "3 iterations in ",
        "peak memory 3.1 GB",
        "reward      0.2 → 0.2",
        "accuracy    0.25 → 0.5",
        "checkpoint  runs/sums-1/policy",
        "curves      runs/sums-1/curves.svg",
    ] {
        assert!(summary.contains(part), "{part} is not in:\n{summary}");
    }
    assert!(
        scene
            .read("runs/sums-1/curves.svg")
            .contains("accuracy (eval)")
    );
    let log = scene.read("runs/sums-1/rank.log");
    assert!(log.contains("a library says something") && log.contains("this is no event"));
}

#[test]
fn the_run_directory_holds_what_is_needed_to_run_again() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let ran = scene.rlhf(&[
        "run",
        "sums.rlhf",
        "batch=1",
        "--seed",
        "7",
        "--threads",
        "1",
        "--quiet",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("3 iterations in"), "{}", ran.out);
    let manifest: Value =
        serde_json::from_str(&scene.read("runs/sums-1/manifest.json")).expect("JSON");
    assert_eq!(manifest["format_version"], 1);
    assert_eq!(manifest["program"]["name"], "sums");
    assert_eq!(
        manifest["program"]["sha256"].as_str().map(str::len),
        Some(64)
    );
    assert_eq!(manifest["params"]["batch"], 1);
    assert_eq!(manifest["overridden"], serde_json::json!(["batch"]));
    assert_eq!(
        (&manifest["seed"], &manifest["threads"]),
        (&7.into(), &1.into())
    );
    assert_eq!(manifest["outcome"]["completed"], true);
    assert_eq!(manifest["outcome"]["iteration"], 3);
    assert_eq!(scene.read("runs/sums-1/program.rlhf"), common::PROGRAM);
    let job: Value = serde_json::from_str(&scene.read("runs/sums-1/job.json")).expect("JSON");
    assert_eq!(job["seed"], 7);
    assert!(
        job["checkpoints"][0]
            .as_str()
            .is_some_and(|c| c.ends_with("/model"))
    );
}

#[test]
fn the_libraries_of_a_program_are_kept_with_its_run() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let library = "fn twice(x: float[..]) -> float[..] = 2 * x\n";
    scene.write("lib/mine.rlhf", library);
    let program = PROGRAM
        .replace("data sums", "use \"lib/mine.rlhf\" { twice }\n\ndata sums")
        .replace("log reward: mean(r)", "log reward: mean(twice(r))");
    scene.write("sums.rlhf", &program);
    let ran = scene.rlhf(&["run", "sums.rlhf", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let manifest: Value =
        serde_json::from_str(&scene.read("runs/sums-1/manifest.json")).expect("JSON");
    let libraries = manifest["libraries"].as_array().map_or(0, Vec::len);
    assert_eq!(libraries, 1, "{}", manifest["libraries"]);
    let kept = &manifest["libraries"][0];
    assert_eq!(kept["file"], "lib/mine.rlhf");
    assert_eq!(kept["copy"], "libraries/1-mine.rlhf");
    assert_eq!(kept["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(scene.read("runs/sums-1/libraries/1-mine.rlhf"), library);
}

#[test]
fn a_group_beyond_all_sense_is_refused_in_words() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let program = PROGRAM.replace("G: 2", "G: 1000000000000");
    scene.write("sums.rlhf", &program);
    let ran = scene.rlhf(&["run", "sums.rlhf"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("E018"), "{}", ran.err);
    assert!(ran.err.contains("sums.rlhf:"), "{}", ran.err);
}

#[test]
fn runs_are_numbered_and_a_full_directory_is_refused() {
    let scene = Scene::new();
    scene.rank(GOOD);
    for _ in 0..2 {
        assert_eq!(scene.rlhf(&["run", "sums.rlhf", "--quiet"]).code, 0);
    }
    assert!(scene.exists("runs/sums-2/manifest.json"));
    let ran = scene.rlhf(&["run", "sums.rlhf", "--out", "runs/sums-2"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("`runs/sums-2` is not empty"),
        "{}",
        ran.err
    );
    let ran = scene.rlhf(&["run", "sums.rlhf", "--out", "deep/new", "--quiet"]);
    assert_eq!(ran.code, 0);
    assert!(scene.exists("deep/new/manifest.json"));
}

#[test]
fn json_gives_one_object_a_line_and_leaves_people_to_standard_error() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let ran = scene.rlhf(&["run", "sums.rlhf", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let events: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line))
        // A warning of the check may come first.
        .filter(|e| e["event"] != "diagnostic")
        .map(|e| e["event"].as_str().unwrap_or_default().into())
        .collect();
    let expected = [
        "eval",
        "iteration",
        "iteration",
        "iteration",
        "eval",
        "saved",
        "done",
    ];
    assert_eq!(events, expected);
    assert!(ran.err.contains("plan  one rank on cpu"), "{}", ran.err);
}

#[test]
fn a_dead_rank_is_reported_with_its_call_and_its_last_words() {
    let scene = Scene::new();
    scene.rank(
        r#"echo '{"event":"ready","iterations":3,"done":0}'
echo '{"event":"progress","iteration":1,"call":"roll","done":1,"total":8}'
echo "terminate called after throwing" >&2
kill -9 $$"#,
    );
    let ran = scene.rlhf(&["run", "sums.rlhf"]);
    assert_eq!(ran.code, 1);
    for part in [
        "R402",
        "during `roll` of iteration 1",
        "signal 9: likely out of host memory",
        "terminate called after throwing",
        "sums.rlhf:13",
    ] {
        assert!(ran.err.contains(part), "{part} is not in:\n{}", ran.err);
    }
    let manifest: Value =
        serde_json::from_str(&scene.read("runs/sums-1/manifest.json")).expect("JSON");
    assert_eq!(manifest["outcome"]["completed"], false);
}

#[test]
fn a_diagnostic_of_the_rank_is_drawn_once() {
    let scene = Scene::new();
    scene.rank(
        r#"echo '{"event":"diagnostic","code":"R401","level":"error","message":"the loss became NaN","labels":[{"span":{"file":0,"lo":0,"hi":9},"text":""}],"help":"a smaller step","fix":null}'
exit 1"#,
    );
    let ran = scene.rlhf(&["run", "sums.rlhf", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err.matches("the loss became NaN").count(),
        1,
        "{}",
        ran.err
    );
    assert!(
        !ran.err.contains("R402") && ran.err.contains("a smaller step"),
        "{}",
        ran.err
    );
    let last: Value =
        serde_json::from_str(ran.out.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!((&last["code"], &last["line"]), (&"R401".into(), &1.into()));
    assert_eq!(last["file"], "sums.rlhf");
}

#[test]
fn an_interrupt_asks_the_rank_to_stop_and_the_run_ends_in_good_order() {
    let scene = Scene::new();
    scene.rank(
        r#"echo '{"event":"ready","iterations":3,"done":0}'
echo '{"event":"eval","iteration":0,"metrics":{"accuracy":0.25},"seconds":{},"total_seconds":1.5,"sampled_tokens":8}'
read word
echo '{"event":"iteration","iteration":1,"metrics":{"reward":0.5},"seconds":{},"total_seconds":4.0,"sampled_tokens":400}'
echo '{"event":"done","iteration":1,"stopped":true,"peak_memory":0}'
test "$word" = stop"#,
    );
    let mut command = scene.command(&["run", "sums.rlhf"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rlhf starts");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    // Once the first event is shown, the interrupt has a listener.
    while !line.starts_with("eval") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("text"), 0);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("the child lives");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    let ran = common::ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{rest}{}", ran.err);
    assert!(
        ran.err.contains("stopping after the current call"),
        "{}",
        ran.err
    );
    assert!(rest.contains("stopped early"), "{rest}");
}

#[test]
fn what_cannot_be_found_is_said_with_a_way_out() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let refused = |words: &[&str], code: i32, parts: &[&str]| {
        let ran = scene.rlhf(words);
        assert_eq!(ran.code, code, "{words:?}\n{}", ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "{part} is not in:\n{}", ran.err);
        }
    };
    refused(
        &["run", "sums.rlhf", "--device", "cuda"],
        2,
        &["no device `cuda`"],
    );
    refused(
        &["run", "sum.rlhf"],
        2,
        &["no file `sum.rlhf`", "`sums.rlhf`"],
    );
    refused(&["run"], 2, &["no program is named", "grpo"]);
    refused(&["run", "sums.rlhf", "--threads", "0"], 2, &["threads"]);
    refused(
        &["run", "sums.rlhf", "base=./modle"],
        1,
        &["no directory `./modle`", "./model"],
    );
    refused(
        &["run", "sums.rlhf", "base=nobody/nothing"],
        1,
        &["HF_HUB_OFFLINE", "base=path/to/directory"],
    );
    scene.write("half/config.json", "{}");
    refused(
        &["run", "sums.rlhf", "base=./half"],
        1,
        &["no weights (model.safetensors, or", "no tokenizer.json"],
    );
    assert!(!scene.exists("runs"));
}

#[test]
fn a_model_larger_than_memory_is_refused_before_it_is_loaded() {
    let scene = Scene::new();
    scene.rank("echo started > started");
    scene.write(
        "model/config.json",
        r#"{"hidden_size": 65536, "num_attention_heads": 512, "num_hidden_layers": 1000,
            "intermediate_size": 262144, "vocab_size": 1000000}"#,
    );
    let ran = scene.rlhf(&["run", "sums.rlhf"]);
    assert_eq!(ran.code, 1);
    for part in [
        "P201",
        "is available",
        "master weights and Adam",
        "dtype: bf16",
    ] {
        assert!(ran.err.contains(part), "{part} is not in:\n{}", ran.err);
    }
    assert!(!scene.exists("started") && !scene.exists("runs"));
}

#[test]
fn a_missing_libtorch_or_rank_is_named_with_its_remedy() {
    let scene = Scene::new();
    scene.rank(GOOD);
    let output = scene
        .command(&["run", "sums.rlhf"])
        .env("LIBTORCH", scene.path("nowhere"))
        .output();
    let ran = common::ran(output.expect("rlhf starts"));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("LIBTORCH="), "{}", ran.err);
    let output = scene
        .command(&["run", "sums.rlhf"])
        .env("RLHF_RANK", scene.path("nowhere"))
        .output();
    let ran = common::ran(output.expect("rlhf starts"));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("RLHF_RANK names no file"), "{}", ran.err);
}
