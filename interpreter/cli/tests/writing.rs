//! The commands that write programs, and those that only read out what is known.
#![allow(missing_docs)]

mod common;

use std::fs::File;
use std::os::unix::fs::PermissionsExt;

use common::{PROGRAM, Scene, ran};
use serde_json::Value;

#[test]
fn safe_changes_are_made_in_the_file_and_what_is_left_is_reported() {
    let scene = Scene::new();
    let wrong = PROGRAM
        .replace("temperature: 1", "temperature= 1")
        .replace("== answer then", "== answer && True then")
        .replace("mean(r)\n}", "mean(q)\n}");
    scene.write("wrong.rlhf", &wrong);
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(scene.path("wrong.rlhf"), mode).expect("it is there");
    std::os::unix::fs::symlink("wrong.rlhf", scene.path("link.rlhf")).expect("a link");
    let ran = scene.rlhf(&["check", "--fix", "link.rlhf"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("link.rlhf: 3 problems mended"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("link.rlhf: 1 error"), "{}", ran.err);
    let right = PROGRAM
        .replace("== answer then", "== answer and true then")
        .replace("mean(r)\n}", "mean(q)\n}");
    assert_eq!(scene.read("wrong.rlhf"), right);
    let link = scene.path("link.rlhf").symlink_metadata();
    assert!(link.expect("it is there").is_symlink());
    let metadata = scene.path("wrong.rlhf").metadata().expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    let ran = scene.rlhf(&["check", "--fix", "wrong.rlhf"]);
    assert!(!ran.err.contains("mended"), "{}", ran.err);
}

#[test]
fn only_files_that_are_named_are_changed() {
    let scene = Scene::new();
    let library = "fn twice(x: float[..]) -> float[..] = 2 ** x\n";
    scene.write("mine.rlhf", library);
    let program = PROGRAM
        .replace("data sums", "use \"mine.rlhf\" { twice }\n\ndata sums")
        .replace("log reward: mean(r)", "log reward: mean(twice(r))");
    scene.write("sums.rlhf", &program);
    scene.rlhf(&["check", "--fix", "sums.rlhf"]);
    assert_eq!(scene.read("mine.rlhf"), library);
    let ran = scene.rlhf(&["check", "--fix", "sums.rlhf", "mine.rlhf"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("mine.rlhf: 1 problem mended"),
        "{}",
        ran.err
    );
    assert_eq!(scene.read("mine.rlhf"), library.replace("**", "^"));
    assert_eq!(scene.read("sums.rlhf"), program);
}

#[test]
fn a_shipped_program_has_no_file_to_mend() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["check", "--fix", "grpo"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("rlhf new mine.rlhf --from grpo"),
        "{}",
        ran.err
    );
}

#[test]
fn a_missing_file_does_not_keep_the_others_from_being_checked() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["check", "sums.rlhf", "nothing.rlhf", "sums.rlhf"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert_eq!(ran.err.matches("no problems").count(), 2, "{}", ran.err);
    assert!(ran.err.contains("no file `nothing.rlhf`"), "{}", ran.err);
}

#[test]
fn a_param_that_is_given_twice_is_refused_with_both_values() {
    let scene = Scene::new();
    for verb in ["check", "run", "graph"] {
        let ran = scene.rlhf(&[verb, "sums.rlhf", "batch=1", "batch=2"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(
            ran.err
                .contains("`batch` is given twice: `batch=1` and `batch=2`"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_code_host_gets_one_command_a_problem() {
    let scene = Scene::new();
    scene.write("bad.rlhf", &PROGRAM.replace("mean(r)\n}", "mean(rr)\n}"));
    let ran = scene.rlhf(&["check", "bad.rlhf", "--format", "github"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let start =
        "::error file=bad.rlhf,line=20,col=20,endLine=20,endColumn=22,title=E010 unknown-name::";
    assert!(ran.out.starts_with(start), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn a_line_of_thousands_of_characters_is_shown_around_the_mistake() {
    let scene = Scene::new();
    let text = "a".repeat(1500);
    let long = format!(
        "mean(if answer == \"{text}\" then rr else 0 * {}1)\n}}",
        " ".repeat(900)
    );
    scene.write("bad.rlhf", &PROGRAM.replace("mean(r)\n}", &long));
    let ran = scene.rlhf(&["check", "bad.rlhf"]);
    assert!(
        ran.err.contains("…aaa") && ran.err.contains("then rr else"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("bad.rlhf:20:1541"), "{}", ran.err);
    let wide = ran.err.lines().find(|l| l.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn the_graph_is_drawn_with_versions_axes_prompts_and_stops() {
    let scene = Scene::new();
    let program = PROGRAM.replace(
        "question, temperature: 1",
        "\"Sum: \" + question, temperature: 1, stop: \"\\n\"",
    );
    scene.write("sums.rlhf", &program);
    let text = scene.rlhf(&["graph", "sums.rlhf"]).out;
    for part in [
        "step, 3 iterations",
        "generate by policy@start, from \"Sum: \" + question",
        "stop \"\\n\"",
        "roll: tokens[B, G, T]",
        "policy@start after roll",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let mermaid = scene.rlhf(&["graph", "sums.rlhf", "--mermaid"]);
    assert_eq!(mermaid.code, 0, "{}", mermaid.err);
    for part in [
        "flowchart TB",
        "subgraph step[\"step\"]",
        "-. \"policy@start\" .->",
        "r: int[B, G]",
        "from #34;Sum: #34; + question",
    ] {
        assert!(
            mermaid.out.contains(part),
            "{part} is not in:\n{}",
            mermaid.out
        );
    }
    assert_eq!(
        scene
            .rlhf(&["graph", "sums.rlhf", "--mermaid", "--svg"])
            .code,
        2
    );
    for form in ["--dot", "--svg"] {
        let drawn = scene.rlhf(&["graph", "sums.rlhf", form]).out;
        assert!(
            drawn.contains("policy@start") && drawn.contains("[B, G, T]"),
            "{drawn}"
        );
    }
}

#[test]
fn one_of_something_is_not_several() {
    let scene = Scene::new();
    let program = PROGRAM.replace("iterations: 3", "iterations: 1");
    scene.write("sums.rlhf", &program);
    let text = scene.rlhf(&["graph", "sums.rlhf", "batch=1"]).out;
    assert!(text.contains("step, 1 iteration\n"), "{text}");
    assert!(text.contains("load 1 row of"), "{text}");
}

#[test]
fn a_full_disk_is_an_error_and_a_reader_that_went_away_is_not() {
    let scene = Scene::new();
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        let full = File::options()
            .write(true)
            .open(full)
            .expect("it can be opened");
        let output = scene.command(&["graph", "sums.rlhf"]).stdout(full).output();
        let ran = ran(output.expect("rlhf starts"));
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("standard output is incomplete"),
            "{}",
            ran.err
        );
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = scene
        .command(&["graph", "sums.rlhf"])
        .stdout(writer)
        .output();
    let ran = ran(output.expect("rlhf starts"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn doc_has_a_page_for_functions_modules_and_verbs() {
    let scene = Scene::new();
    let page = |words: &[&str]| {
        let ran = scene.rlhf(&[&["doc"], words].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let k3 = page(&["k3"]);
    for part in [
        "fn k3(p: float[..], q: float[..], limit: float = 1e30, cap: float = 1e30) -> float[..]",
        "unbiased, never negative.",
        "use std.kl { k3 }",
        "k3(p, q)",
    ] {
        assert!(k3.contains(part), "{part} is not in:\n{k3}");
    }
    assert_eq!(page(&["std.kl.k3"]), k3);
    let module = page(&["std.kl"]);
    assert!(
        module.contains("k1  ") && module.contains("k3  "),
        "{module}"
    );
    let verb = page(&["generate"]);
    assert!(
        verb.contains("generate(") && verb.contains("greedy"),
        "{verb}"
    );
    let all = page(&[]);
    for part in ["std.grpo", "generate", "logp", "suffix_sum"] {
        assert!(all.contains(part), "{part} is not in:\n{all}");
    }
    let ran = scene.rlhf(&["doc", "genrate"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("rlhf doc generate"), "{}", ran.err);
}

#[test]
fn explain_lists_the_codes_by_letter() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["explain"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let at = |part: &str| ran.out.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(at("E010  unknown-name") < at("M  machine learning"));
    assert!(at("M  machine learning") < at("M102  "));
    assert!(at("M102  ") < at("D301  missing-column"));
    let ran = scene.rlhf(&["explain", "E31"]);
    assert!(ran.code == 2 && ran.err.contains("`E031`"), "{}", ran.err);
}

#[test]
fn new_copies_a_shipped_program_and_names_the_data_it_expects() {
    let scene = Scene::new();
    let ran = scene.rlhf(&["new"]);
    assert!(
        ran.code == 0 && ran.out.contains("  grpo          Group"),
        "{}",
        ran.out
    );
    let ran = scene.rlhf(&["new", "mine", "--from", "grpo"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("mine.rlhf  a copy of grpo.rlhf"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("data/sums.jsonl  is expected"),
        "{}",
        ran.out
    );
    let mut shipped = rlhf_stdlib::algorithms().iter();
    let grpo = shipped.find(|(name, _)| *name == "grpo");
    assert_eq!(
        Some(scene.read("mine.rlhf").as_str()),
        grpo.map(|(_, t)| *t)
    );
    scene.write("mine.rlhf", "edited");
    let ran = scene.rlhf(&["new", "mine.rlhf", "--from", "grpo"]);
    assert!(
        ran.code == 2 && ran.err.contains("is there already"),
        "{}",
        ran.err
    );
    assert_eq!(scene.read("mine.rlhf"), "edited");
    let ran = scene.rlhf(&["new", "other", "--from", "gpro"]);
    assert!(
        ran.code == 2 && ran.err.contains("similar name: `grpo`"),
        "{}",
        ran.err
    );
    let ran = scene.rlhf(&["new", "other"]);
    assert!(ran.code == 2 && ran.err.contains("--from"), "{}", ran.err);
    assert!(!scene.exists("other.rlhf"));
}

#[test]
fn new_copies_the_data_where_it_is_at_hand() {
    let scene = Scene::new();
    let rows = scene.read("sums.jsonl");
    scene.write("checkout/algorithms/grpo.rlhf", PROGRAM);
    scene.write("checkout/algorithms/sums.jsonl", &rows);
    std::fs::create_dir(scene.path("mine")).expect("a folder");
    let copy = |file: &str| {
        let mut command = scene.command(&["new", file, "--from", "grpo"]);
        let command = command.env("RLHF_ROOT", scene.path("checkout"));
        ran(command.output().expect("rlhf starts"))
    };
    let ran = copy("mine/a.rlhf");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("mine/sums.jsonl  a copy of"),
        "{}",
        ran.out
    );
    assert_eq!(scene.read("mine/sums.jsonl"), rows);
    scene.write("mine/sums.jsonl", "mine");
    let ran = copy("mine/b.rlhf");
    assert!(
        ran.out.contains("mine/sums.jsonl  is there already"),
        "{}",
        ran.out
    );
    assert_eq!(scene.read("mine/sums.jsonl"), "mine");
}

#[test]
fn numbers_of_a_run_are_passed_on_as_they_came() {
    let scene = Scene::new();
    // A number that a fast reader rounds to its neighbour.
    let number = "1.0715086071862673e-301";
    let awkward = "0.013671875000000001";
    scene.rank(&format!(
        r#"echo '{{"event":"iteration","iteration":1,"metrics":{{"a":{number},"b":{awkward}}},"seconds":{{}},"total_seconds":1.0,"sampled_tokens":1}}'
echo '{{"event":"done","iteration":1,"stopped":false,"peak_memory":1}}'"#
    ));
    let ran = scene.rlhf(&["run", "sums.rlhf", "--json", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = ran.out.lines().next().unwrap_or_default();
    let event: Value = serde_json::from_str(line).expect(line);
    for (name, text) in [("a", number), ("b", awkward)] {
        let wanted: f64 = text.parse().expect("a number");
        assert_eq!(event["metrics"][name].as_f64(), Some(wanted), "{line}");
    }
}
