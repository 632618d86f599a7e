//! Mistakes of a program, its data, its checkpoint and its reward script: each is said in a line that
//! names what is wrong, where, and what would work.

use std::process::Command;

use rlhf_tests::{Checkpoint, Scene};

const PROGRAM: &str = r#"param base: checkpoint = "./model"
param clip: float in 0..1 = 0.2
data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal(base, dtype: f32, optim: adamw(1e-3))
step over sums[B: 2], iterations: 1 {
  roll = generate(policy, chat(question), temperature: 1)[G: 2, T: ..4]
  r    = if contains(roll.text, answer) then 1 else 0
  train policy {
    minimize -mean(mean((r - clip) * logp(policy, roll), T), [B, G])
  }
  log reward: mean(r)
}
"#;

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("p.rlhf", PROGRAM);
    scene
}

/// Runs the program and expects exit code 1 and all `words` in what is said.
fn fails(scene: &Scene, arguments: &[&str], words: &[&str]) {
    let all: Vec<&str> = ["run", "p.rlhf", "--threads", "1", "--out", "run"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    let ran = scene.rlhf(&all);
    let said = plain(&format!("{}{}", ran.out, ran.err));
    assert_eq!(ran.code, 1, "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not said:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// One line without the frame around it: long messages are wrapped.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "│");
    words.collect::<Vec<_>>().join(" ")
}

/// The program with a part replaced.
fn edited(from: &str, to: &str) -> Scene {
    let scene = scene();
    assert!(PROGRAM.contains(from), "{from}");
    scene.write("p.rlhf", &PROGRAM.replace(from, to));
    scene
}

/// The checkpoint after a change.
fn with_checkpoint(change: impl Fn(&mut Checkpoint)) -> Scene {
    let scene = scene();
    let mut checkpoint = Checkpoint::new(7);
    change(&mut checkpoint);
    checkpoint.write(&scene.path("model"));
    scene
}

fn without(file: &str) -> Scene {
    let scene = scene();
    std::fs::remove_file(scene.path("model").join(file)).expect("the file was there");
    scene
}

/// The program with a reward in Python, whose file has this text.
fn with_reward(options: &str, script: &str) -> Scene {
    let declared = format!(
        "reward points(response: text) -> float = python(\"reward.py:score\"{options})\nstep over"
    );
    let scene = scene();
    let text = PROGRAM.replace("step over", &declared).replace(
        "if contains(roll.text, answer) then 1 else 0",
        "points(roll.text)",
    );
    scene.write("p.rlhf", &text);
    scene.write("reward.py", script);
    scene
}

#[test]
fn a_param_without_a_value_is_asked_for() {
    let scene = edited(
        "param clip: float in 0..1 = 0.2",
        "param clip: float in 0..1",
    );
    fails(&scene, &[], &["`clip`", "p.rlhf:2:7", "clip="]);
}

#[test]
fn a_misspelt_param_gets_the_nearest_name() {
    fails(
        &scene(),
        &["clpi=0.1"],
        &["no parameter `clpi`", "similar: `clip: float in 0..1"],
    );
}

#[test]
fn a_param_out_of_range_shows_the_range() {
    fails(
        &scene(),
        &["clip=3"],
        &["`clip=3` is outside `0..1`", "p.rlhf:2:"],
    );
}

#[test]
fn a_param_of_another_type_shows_its_type() {
    fails(
        &scene(),
        &["clip=wide"],
        &["`clip=wide` is not a number", "p.rlhf:2:7"],
    );
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    let scene = edited("log reward: mean(r)", "log reward: mean(rol.finished)");
    fails(
        &scene,
        &[],
        &["no `rol` in this step", "`roll`", "p.rlhf:11:"],
    );
}

#[test]
fn an_unknown_column_is_named_with_those_there_are() {
    let scene = edited("answer: text }", "anser: text }");
    scene.write(
        "p.rlhf",
        &scene
            .read("p.rlhf")
            .replace("roll.text, answer", "roll.text, anser"),
    );
    let words = [
        "`sums.jsonl` has no column `anser`",
        "`answer`",
        "p.rlhf:3:",
    ];
    fails(&scene, &[], &words);
}

#[test]
fn a_malformed_row_is_shown_with_its_file_and_line() {
    let scene = scene();
    let text = scene.read("sums.jsonl") + "{\"question\": \"9 + 9 =\", answer: 18}\n";
    scene.write("sums.jsonl", &text);
    fails(&scene, &[], &["sums.jsonl:7", "not a JSON object"]);
}

#[test]
fn a_row_of_another_type_far_down_is_found_before_training() {
    let scene = scene();
    let rows = "{\"question\": \"1 + 1 =\", \"answer\": \"2\"}\n".repeat(300);
    scene.write("sums.jsonl", &(rows + "{\"question\": 4}\n"));
    fails(&scene, &[], &["sums.jsonl", "301"]);
}

#[test]
fn an_empty_data_set_is_refused() {
    let scene = scene();
    scene.write("sums.jsonl", "");
    fails(&scene, &[], &["sums.jsonl", "no rows", "p.rlhf:3:"]);
}

#[test]
fn a_data_file_that_is_not_there_is_named() {
    let scene = edited("sums.jsonl", "summs.jsonl");
    fails(
        &scene,
        &[],
        &["no file `summs.jsonl`", "`sums.jsonl`", "p.rlhf:3:"],
    );
}

#[test]
fn a_checkpoint_that_is_not_there_is_named() {
    fails(
        &scene(),
        &["base=./modle"],
        &["no directory `./modle`", "`./model`", "p.rlhf:4:"],
    );
}

#[test]
fn a_checkpoint_without_a_part_says_which() {
    for (file, words) in [
        ("config.json", "config.json"),
        ("model.safetensors", "weights (model.safetensors, or"),
        ("tokenizer.json", "tokenizer.json"),
    ] {
        fails(&without(file), &[], &[words, "p.rlhf:"]);
    }
}

#[test]
fn weights_that_are_cut_off_are_refused() {
    let scene = scene();
    let bytes = scene.bytes("model/model.safetensors");
    let short = &bytes[..bytes.len() - 100];
    std::fs::write(scene.path("model/model.safetensors"), short).expect("a small file");
    fails(&scene, &[], &["model.safetensors", "p.rlhf:"]);
}

#[test]
fn a_tensor_that_the_model_does_not_have_is_named() {
    let extra = "model.layers.0.self_attn.gate.weight";
    let scene = with_checkpoint(|c| {
        c.tensors.insert(extra.into(), (vec![2], vec![0.0, 1.0]));
    });
    fails(&scene, &[], &[extra, "LlamaForCausalLM", "p.rlhf:"]);
}

#[test]
fn a_tensor_that_is_missing_is_named() {
    let scene = with_checkpoint(|c| {
        c.tensors.remove("model.norm.weight");
    });
    fails(&scene, &[], &["model.norm.weight", "p.rlhf:"]);
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both_shapes() {
    let scene = with_checkpoint(|c| {
        c.tensors
            .insert("model.norm.weight".into(), (vec![31], vec![1.0; 31]));
    });
    fails(&scene, &[], &["model.norm.weight", "31", "32"]);
}

#[test]
fn an_architecture_that_is_not_supported_is_answered_with_those_that_are() {
    let scene =
        with_checkpoint(|c| c.config["architectures"] = serde_json::json!(["MambaForCausalLM"]));
    fails(
        &scene,
        &[],
        &[
            "MambaForCausalLM",
            "not supported",
            "LlamaForCausalLM",
            "p.rlhf:",
        ],
    );
}

#[test]
fn a_chat_without_a_template_is_refused() {
    let scene = with_checkpoint(|c| {
        let config = c.tokenizer_config.as_object_mut().expect("an object");
        config.remove("chat_template");
    });
    fails(
        &scene,
        &[],
        &[
            "needs a chat template and this checkpoint has none",
            "p.rlhf:6:",
        ],
    );
}

#[test]
fn prompt_and_response_beyond_the_positions_are_refused_before_training() {
    let scene = edited("T: ..4", "T: ..120");
    fails(&scene, &[], &["128 positions", "p.rlhf:6:"]);
    assert!(!scene.path("run").exists());
}

#[test]
fn a_reward_script_that_is_not_there_is_named() {
    let scene = with_reward("", "");
    std::fs::remove_file(scene.path("reward.py")).expect("it was there");
    fails(&scene, &[], &["no file `reward.py`", "p.rlhf:5:"]);
}

#[test]
fn a_reward_function_that_is_not_there_gets_the_nearest_name() {
    let scene = with_reward("", "def scores(response):\n    return 1.0\n");
    fails(
        &scene,
        &[],
        &["no function `score`", "`scores`", "p.rlhf:5:"],
    );
}

#[test]
fn a_reward_script_that_cannot_be_imported_shows_why() {
    let script = "import no_such_module_at_all\n\ndef score(response):\n    return 1\n";
    let scene = with_reward("", script);
    fails(
        &scene,
        &[],
        &["reward.py", "line 1", "no_such_module_at_all", "p.rlhf:5:"],
    );
}

#[test]
fn a_reward_that_raises_shows_its_line() {
    let scene = with_reward("", "def score(response):\n    return 1 / 0\n");
    fails(
        &scene,
        &[],
        &[
            "points",
            "line 2",
            "ZeroDivisionError",
            "otherwise",
            "p.rlhf:",
        ],
    );
}

#[test]
fn a_reward_that_hangs_ends_at_its_timeout() {
    let script = "import time\ndef score(response):\n    time.sleep(1000)\n";
    let scene = with_reward(", timeout: 1", script);
    fails(&scene, &[], &["points", "1 s", "p.rlhf:"]);
}

#[test]
fn a_reward_of_another_type_shows_what_it_returned() {
    let scene = with_reward("", "def score(response):\n    return 'good'\n");
    fails(&scene, &[], &["points", "'good'", "float", "p.rlhf:"]);
}

#[test]
fn a_reward_that_raises_is_replaced_where_the_program_says_so() {
    let scene = with_reward(", otherwise: 0", "def score(response):\n    return 1 / 0\n");
    let ran = scene.train(&["p.rlhf", "--out", "run"]);
    let said = plain(&ran.err);
    assert!(said.contains("failed on 4 of 4 responses"), "{said}");
    assert_eq!(scene.metrics("run", "step")[0]["metrics"]["reward"], 0.0);
}

#[test]
fn a_run_directory_that_is_not_empty_is_left_alone() {
    let scene = scene();
    scene.write("full/notes.txt", "mine");
    let ran = scene.rlhf(&["run", "p.rlhf", "--out", "full"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let said = plain(&ran.err);
    assert!(
        said.contains("`full` is not empty") && said.contains("--out"),
        "{said}"
    );
    let entries = std::fs::read_dir(scene.path("full")).expect("it is there");
    assert_eq!(entries.count(), 1);
}

#[test]
fn a_config_that_is_not_json_is_named() {
    let scene = scene();
    scene.write("model/config.json", "{\"architectures\": [");
    fails(&scene, &[], &["config.json", "p.rlhf:"]);
}

#[test]
fn a_tokenizer_that_is_not_one_is_named() {
    let scene = scene();
    scene.write("model/tokenizer.json", "{}");
    fails(&scene, &[], &["tokenizer.json", "p.rlhf:"]);
}

#[test]
fn a_model_that_does_not_fit_in_memory_is_refused_before_it_is_loaded() {
    let scene = with_checkpoint(|c| {
        c.config["num_hidden_layers"] = 100_000.into();
        c.config["intermediate_size"] = (1 << 20).into();
    });
    let words = [
        "this run needs about",
        "is available",
        "p.rlhf:4:",
        "smaller checkpoint",
    ];
    fails(&scene, &[], &words);
    assert!(!scene.path("run").exists());
}

#[test]
fn a_save_without_room_is_told_and_leaves_no_half_of_a_checkpoint() {
    let scene = scene();
    // No file may pass 100 kB: the weights have 143.
    let limits = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    let run = scene.command(&["run", "p.rlhf", "--threads", "1", "--out", "run"]);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", limits, "bash"])
        .arg(run.get_program())
        .args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell
        .current_dir(scene.path(""))
        .output()
        .expect("bash starts");
    let said = plain(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in ["cannot save `run/policy`", "free some space"] {
        assert!(said.contains(word), "`{word}` is not said:\n{said}");
    }
    assert_eq!(scene.metrics("run", "step").len(), 1);
    for left in ["run/policy", "run/policy.new"] {
        assert!(!scene.path(left).exists(), "{left}");
    }
}
