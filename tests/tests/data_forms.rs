//! Data and rewards in the forms that other trainers use, through whole runs of a tiny model.

use std::path::Path;

use rlhf_tests::Scene;

/// A program that trains on rows and logs.
fn program(data: &str, body: &str, loss: &str) -> String {
    format!(
        "param base: checkpoint = \"./model\"\n{data}\n\
         model policy = causal(base, dtype: f32, optim: adamw(lr: 1e-3))\n\
         step over rows[B: 2], iterations: 1 {{\n{body}\n  train policy {{\n    {loss}\n  }}\n}}\n"
    )
}

fn metric(scene: &Scene, run: &str, name: &str) -> f64 {
    let line = &scene.metrics(run, "step")[0];
    line["metrics"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}` in {line}"))
}

const TALKS: &str = r#"{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "So long"}]}
{"messages": [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "2"}]}
"#;

#[test]
fn a_conversation_trains_on_what_the_assistant_says() {
    let scene = Scene::new();
    scene.write("talks.jsonl", TALKS);
    let text = program(
        "data rows = jsonl(\"talks.jsonl\") { messages: chat }",
        "  talk = answer(messages)[W: ..80]\n  \
           log said: count(talk.assistant), all: count(talk.assistant or not talk.assistant)",
        "lp = logp(policy, talk)\n    \
         minimize -sum(if talk.assistant then lp else 0) / count(talk.assistant)",
    );
    scene.write("sft.rlhf", &text);
    scene.train(&["sft.rlhf", "--out", "run"]);
    // Bytes, and an end token for each turn; then the line ends, and the user's turn between two answers.
    let said = (5 + 1) + (7 + 1) + (1 + 1);
    assert_eq!(metric(&scene, "run", "said"), f64::from(said));
    let user = 1 + "user\n".len() + 3 + 1 + 1 + 1 + "assistant\n".len();
    assert_eq!(
        metric(&scene, "run", "all"),
        (said as usize + 3 + user) as f64
    );
}

#[test]
fn an_implicit_prompt_is_the_explicit_one() {
    let scene = Scene::new();
    let message =
        |role: &str, text: &str| format!("{{\"role\": \"{role}\", \"content\": \"{text}\"}}");
    let (mut explicit, mut implicit) = (String::new(), String::new());
    for (q, good, bad) in [("1 + 1", "2", "3"), ("2 + 2", "four", "five")] {
        let (q, good, bad) = (
            message("user", q),
            message("assistant", good),
            message("assistant", bad),
        );
        explicit +=
            &format!("{{\"prompt\": [{q}], \"chosen\": [{good}], \"rejected\": [{bad}]}}\n");
        implicit += &format!("{{\"chosen\": [{q}, {good}], \"rejected\": [{q}, {bad}]}}\n");
    }
    scene.write("explicit.jsonl", &explicit);
    scene.write("implicit.jsonl", &implicit);
    let loss = "w = sum(logp(policy, win), W)\n    l = sum(logp(policy, lose), L)\n    \
                minimize -mean(log_sigmoid(w - l))\n    log margin: mean(w - l)";
    let explicit = program(
        "data rows = jsonl(\"explicit.jsonl\") { prompt: chat, chosen: chat, rejected: chat }",
        "  win = answer(prompt, chosen)[W: ..32]\n  lose = answer(prompt, rejected)[L: ..32]\n  \
           log length: mean(len(win, W))",
        loss,
    );
    let implicit = program(
        "data rows = jsonl(\"implicit.jsonl\") { chosen: chat, rejected: chat }",
        "  p = common_prefix(chosen, rejected)\n  \
           win = answer(p, remove_prefix(chosen, p))[W: ..32]\n  \
           lose = answer(p, remove_prefix(rejected, p))[L: ..32]\n  log length: mean(len(win, W))",
        loss,
    );
    scene.write("explicit.rlhf", &explicit);
    scene.write("implicit.rlhf", &implicit);
    for name in ["explicit", "implicit"] {
        scene.train(&[&format!("{name}.rlhf"), "--out", name]);
    }
    for name in ["margin", "length", "policy.loss"] {
        let (a, b) = (
            metric(&scene, "explicit", name),
            metric(&scene, "implicit", name),
        );
        assert_eq!(a, b, "{name}");
    }
    // One byte and four bytes, each with the end token and the line end.
    assert_eq!(metric(&scene, "explicit", "length"), (3.0 + 6.0) / 2.0);
}

#[test]
fn shards_of_parquet_are_trained_on() {
    let scene = Scene::new();
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interpreter/text/tests/fixtures/hub");
    let data = format!("data rows = hf({hub:?}, split: \"train\") {{ c: chat }}");
    let body = "  talk = answer(opening(c), remove_prefix(c, opening(c)))[W: ..32]\n  \
                log length: mean(len(talk, W))";
    scene.write(
        "sft.rlhf",
        &program(&data, body, "minimize -mean(logp(policy, talk))"),
    );
    scene.train(&["sft.rlhf", "--out", "run"]);
    // `a0` to `a9`, the end token, the line end.
    assert_eq!(metric(&scene, "run", "length"), 4.0);
}

#[test]
fn rewards_of_a_program_and_of_a_trl_function_are_summed_with_weights() {
    let scene = Scene::new();
    scene.write(
        "score.py",
        "import json, sys\nfor line in sys.stdin:\n    print(len(json.loads(line)['answer']))\n",
    );
    scene.write(
        "rules.py",
        "def right(prompts, completions, answer, **kwargs):\n\
         \x20   assert all(p[0]['role'] == 'user' for p in prompts)\n\
         \x20   return [None if len(a) == 1 else 1.0 for a in answer]\n",
    );
    let data = "data rows = jsonl(\"sums.jsonl\") { question: text, answer: text }\n\
                reward long(response: text, answer: text) -> float = command(\"python3 score.py\", timeout: 60)\n\
                reward right(prompt: chat, completion: text, answer: text) -> float = \
                python(\"rules.py:right\", timeout: 60, otherwise: 0)";
    let body = "  roll = generate(policy, question)[G: 2, T: ..4]\n  \
                r = 0.5 * long(roll.text, answer) + 2 * right(question, roll.text, answer)\n  \
                want = if number(answer) > 9 then 0.5 * 2 + 2 else 0.5\n  \
                log off: mean(abs(r - want)), r: mean(r)";
    let loss = "ratio = exp(logp(policy, roll) - roll.logp)\n    minimize -mean(mean(ratio * r, T), [B, G])";
    scene.write(
        "pg.rlhf",
        &program(data, body, loss).replace("B: 2", "B: 6"),
    );
    scene.train(&["pg.rlhf", "--out", "run"]);
    assert_eq!(metric(&scene, "run", "off"), 0.0);
    // One of six sums has two digits.
    let mean = (5.0 * 0.5 + 3.0) / 6.0;
    assert!((metric(&scene, "run", "r") - mean).abs() < 1e-9);
}

#[test]
fn a_conversation_without_an_answer_ends_the_run_at_its_row() {
    let scene = Scene::new();
    let text = TALKS.replace(", {\"role\": \"assistant\", \"content\": \"2\"}", "");
    scene.write("talks.jsonl", &text);
    let text = program(
        "data rows = jsonl(\"talks.jsonl\") { messages: chat }",
        "  talk = answer(messages)[W: ..80]",
        "minimize -mean(logp(policy, talk))",
    );
    scene.write("sft.rlhf", &text);
    let ran = scene.rlhf(&["run", "sft.rlhf", "--threads", "1"]);
    assert_eq!(ran.code, 1);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(
        said.contains("row 2: the response has no messages"),
        "{said}"
    );
}
