//! The commands that start no rank, and `eval` against a script in a rank's place.
#![allow(missing_docs)]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{PROGRAM, Scene};
use serde_json::Value;

#[test]
fn check_of_a_good_program_is_one_line() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["check", "sums.rlhf"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "");
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("sums.rlhf: ") && last.ends_with(" ms)"),
        "{last}"
    );
}

#[test]
fn shipped_programs_are_checked_by_name() {
    let scene = Scene::new();
    // Their data is looked for in the working directory, where it is not.
    let ran = scene.rlhf(&["check", "grpo"]);
    assert!(ran.err.contains("grpo.rlhf"), "{}", ran.err);
    assert!(!ran.err.contains("no file `grpo`"), "{}", ran.err);
}

#[test]
fn a_shipped_name_means_the_checkouts_file_from_anywhere() {
    let scene = Scene::new();
    scene.write("checkout/algorithms/grpo.rlhf", PROGRAM);
    scene.write("checkout/algorithms/sums.jsonl", &scene.read("sums.jsonl"));
    std::fs::remove_file(scene.path("sums.jsonl")).expect("it exists");
    let mut command = scene.command(&["check", "grpo"]);
    let command = command.env("RLHF_ROOT", scene.path("checkout"));
    let ran = common::ran(command.output().expect("rlhf starts"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("checkout/algorithms/grpo.rlhf"));
}

#[test]
fn problems_come_in_three_formats() {
    let scene = Scene::new();
    scene.write("bad.rlhf", &PROGRAM.replace("mean(r)", "mean(rr)"));
    let ran = scene.rlhf(&["check", "bad.rlhf"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err.contains("E010") && ran.err.contains("bad.rlhf:20"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains('\u{1b}'), "no colours in a pipe");
    let ran = scene.rlhf(&["check", "bad.rlhf", "--format", "concise"]);
    assert!(
        ran.out.starts_with("bad.rlhf:20:20: error[E010]: "),
        "{}",
        ran.out
    );
    let ran = scene.rlhf(&["check", "bad.rlhf", "--format", "json"]);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let d = lines
        .iter()
        .find(|d| d["level"] == "error")
        .expect("an error");
    assert_eq!(
        (&d["code"], &d["line"], &d["column"]),
        (&"E010".into(), &20.into(), &20.into())
    );
    assert_eq!((&d["end_line"], &d["end_column"]), (&20.into(), &22.into()));
    assert_eq!(
        (&d["file"], &d["format_version"]),
        (&"bad.rlhf".into(), &1.into())
    );
    for key in ["help", "labels", "fix"] {
        assert!(d.get(key).is_some(), "{key}");
    }
}

#[test]
fn overrides_are_checked_like_the_program() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["check", "sums.rlhf", "batch=0", "--format", "concise"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("E013"), "{}", ran.out);
    let ran = scene.rlhf(&["check", "sums.rlhf", "bach=1", "--format", "concise"]);
    assert!(ran.code == 1 && ran.out.contains("E012"), "{}", ran.out);
}

#[test]
fn the_data_is_held_against_its_declaration() {
    let scene = Scene::new();
    let refused = |rows: &str, parts: &[&str]| {
        scene.write("sums.jsonl", rows);
        let ran = scene.rlhf(&["check", "sums.rlhf"]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "{part} is not in:\n{}", ran.err);
        }
    };
    let good = "{\"question\": \"a\", \"answer\": \"b\"}\n";
    refused(
        &good.replace("answer", "anwser").repeat(2),
        &["D301", "no column `answer`", "similar one: `anwser`"],
    );
    refused(
        &format!("{good}{{\"question\": \"a\", \"answer\": 3}}\n"),
        &["D302", "row 2", "`answer` is a number", "declares `text`"],
    );
    refused(
        &format!("{good}{{\"question\": \"a\" \"answer\": 3}}\n"),
        &[
            "sums.jsonl:2",
            "line 2 of `sums.jsonl` is not a JSON object",
            "declared here",
        ],
    );
    refused(
        &format!("\n{good}\n{{\"question\": \"a\", \"answer\": 3}}\n"),
        &["D302", "row 2 (line 4)"],
    );
    refused("", &["`sums.jsonl` has no rows"]);
    refused(good, &["D314", "cannot fill one batch of 2"]);
    std::fs::rename(scene.path("sums.jsonl"), scene.path("sum.jsonl")).expect("it exists");
    let ran = scene.rlhf(&["check", "sums.rlhf"]);
    assert!(
        ran.err.contains("no file `sums.jsonl`") && ran.err.contains("sum.jsonl"),
        "{}",
        ran.err
    );
}

#[test]
fn null_is_none_for_text_and_a_byte_order_mark_is_skipped() {
    let scene = Scene::new();
    let good = "{\"question\": \"a\", \"answer\": null}\n";
    scene.write("sums.jsonl", &format!("\u{feff}{}", good.repeat(2)));
    let ran = scene.rlhf(&["check", "sums.rlhf"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let flagged = PROGRAM.replace("answer: text", "answer: text, sure: bool");
    scene.write("flagged.rlhf", &flagged);
    scene.write(
        "sums.jsonl",
        &good.replace("null", "null, \"sure\": null").repeat(2),
    );
    let ran = scene.rlhf(&["check", "flagged.rlhf"]);
    assert!(ran.err.contains("`sure` is null"), "{}", ran.err);
}

#[test]
fn only_the_head_is_read_unless_all_rows_are_wanted() {
    let scene = Scene::new();
    let good = "{\"question\": \"a\", \"answer\": \"b\"}\n";
    scene.write("sums.jsonl", &(good.repeat(256) + "{}\n"));
    assert_eq!(scene.rlhf(&["check", "sums.rlhf"]).code, 0);
    let ran = scene.rlhf(&["check", "sums.rlhf", "--all-rows", "--format", "concise"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("row 257"), "{}", ran.out);
}

#[test]
fn usage_errors_are_2_and_help_is_0() {
    let scene = Scene::new();
    assert_eq!(scene.rlhf(&[]).code, 2);
    assert_eq!(scene.rlhf(&["chek", "sums.rlhf"]).code, 2);
    assert_eq!(
        scene.rlhf(&["check", "sums.rlhf", "--fromat", "json"]).code,
        2
    );
    assert_eq!(scene.rlhf(&["explain", "E999"]).code, 2);
    assert_eq!(
        scene.rlhf(&["run", "sums.rlhf", "--iterations", "0"]).code,
        2
    );
    let ran = scene.rlhf(&["run", "sums.rlhf", "--threads", "0"]);
    assert!(
        ran.code == 2 && ran.err.contains("--threads"),
        "{}",
        ran.err
    );
    assert_eq!(scene.rlhf(&["--help"]).code, 0);
    let ran = scene.rlhf(&["--version"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (0, concat!("rlhf ", env!("CARGO_PKG_VERSION")))
    );
    assert!(scene.rlhf(&["run", "--help"]).out.contains("--iterations"));
}

#[test]
fn a_programs_params_are_its_help() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["run", "sums.rlhf", "--help"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in [
        "Sums, by policy gradient.",
        "Usage: rlhf run sums.rlhf",
        "batch  int in 1.. = 2",
        "Prompts per iteration.",
        "--seed <N>",
    ] {
        assert!(ran.out.contains(part), "{part} is not in:\n{}", ran.out);
    }
}

#[test]
fn fmt_rewrites_checks_and_filters() {
    let scene = Scene::new();
    let ugly = PROGRAM.replace("param batch: int in 1.. = 2", "param   batch:int in 1..=2");
    scene.write("ugly.rlhf", &ugly);
    let ran = scene.rlhf(&["fmt", "--check", "ugly.rlhf"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("ugly.rlhf"), "{}", ran.out);
    assert_eq!(scene.read("ugly.rlhf"), ugly);
    assert_eq!(scene.rlhf(&["fmt", "ugly.rlhf"]).code, 0);
    let formatted = scene.read("ugly.rlhf");
    assert!(
        formatted.contains("param batch: int in 1.. = 2"),
        "{formatted}"
    );
    assert_eq!(scene.rlhf(&["fmt", "--check", "ugly.rlhf"]).code, 0);
    let mut child = scene
        .command(&["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rlhf starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(ugly.as_bytes()).expect("it reads");
    drop(input);
    let ran = common::ran(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.out), (0, formatted));
}

#[test]
fn graph_prints_text_dot_or_svg() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["graph", "sums.rlhf"]);
    assert!(
        ran.code == 0 && ran.out.contains("roll"),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = scene.rlhf(&["graph", "sums.rlhf", "--dot"]);
    assert!(ran.out.contains("digraph"), "{}", ran.out);
    let ran = scene.rlhf(&["graph", "sums.rlhf", "--svg", "-o", "g.svg"]);
    assert!(ran.code == 0 && ran.out.is_empty(), "{}", ran.err);
    assert!(scene.exists("g.svg") && scene.read("g.svg").contains("<svg"));
    assert_eq!(
        scene.rlhf(&["graph", "sums.rlhf", "--svg", "--dot"]).code,
        2
    );
}

#[test]
fn explain_prints_a_page() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["explain", "e010"]);
    assert!(
        scene
            .rlhf(&["explain", "D301"])
            .out
            .contains("missing-column")
    );
    assert!(
        ran.code == 0 && ran.out.contains("E010"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn eval_sends_the_expression_and_prints_the_answer() {
    let scene = Scene::new();
    scene.rank(
        r#"test "$1" = eval && cp "$2" job.json
echo '{"event":"value","value":1.5,"grad":[[0.5,0.5],[1.0]]}'"#,
    );
    let words = [
        "eval",
        "mean(mean(lp, T) * eps, B)",
        "--let",
        "lp[B,T]=[[1, 2], [3]]",
        "--let",
        "eps=0.2",
    ];
    let ran = scene.rlhf(&[words.as_slice(), &["--grad", "lp"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, "{\"value\":1.5,\"grad\":[[0.5,0.5],[1.0]]}\n");
    let job: Value = serde_json::from_str(&scene.read("job.json")).expect("JSON");
    assert_eq!(job["inputs"], serde_json::json!([[[1, 2], [3]], 0.2]));
    assert_eq!(job["grad"], serde_json::json!([0]));
    scene.rank(r#"echo '{"event":"value","value":[1,2]}'"#);
    let ran = scene.rlhf(&words);
    assert_eq!((ran.code, ran.out.as_str()), (0, "[1,2]\n"));
}

#[test]
fn eval_says_what_is_wrong_with_an_expression_and_with_an_input() {
    let scene = Scene::new();
    scene.rank("exit 3");
    let ran = scene.rlhf(&["eval", "mean(lq)", "--let", "lp=1", "--format", "concise"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("E010"), "{}{}", ran.out, ran.err);
    let ran = scene.rlhf(&["eval", "lp", "--let", "lp[B]=[1,"]);
    assert_eq!(ran.code, 2);
    let ran = scene.rlhf(&["eval", "lp", "--let", "lp=1", "--grad", "lq"]);
    assert!(
        ran.code == 2 && ran.err.contains("inputs: lp"),
        "{}",
        ran.err
    );
    let ran = scene.rlhf(&["eval", "lp + 1", "--let", "lp=1"]);
    assert!(
        ran.code == 1 && ran.err.contains("exit code 3"),
        "{}",
        ran.err
    );
}
