//! Every shipped program runs: two iterations and its evaluations on a tiny model.

use std::path::Path;

use rlhf_tests::{Checkpoint, Scene};
use serde_json::Value;

/// Names of params that take a checkpoint, and the tiny one for each.
const CHECKPOINTS: [(&str, &str); 3] = [
    ("base", "./model"),
    ("judge_at", "./judge"),
    ("teacher_at", "./model"),
];

fn scene() -> Scene {
    let scene = Scene::new();
    let mut model = Checkpoint::new(7);
    // A byte is a token, so the shipped rows are long.
    model.config["max_position_embeddings"] = 512.into();
    model.write(&scene.path("model"));
    model.with_scalar_head().write(&scene.path("judge"));
    std::fs::create_dir(scene.path("data")).expect("a folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../algorithms/data");
    for entry in std::fs::read_dir(data).expect("the shipped data") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(stem) = name.strip_suffix(".jsonl") {
            let text = std::fs::read_to_string(&path).expect("rows are text");
            // Evaluations read every row of their file.
            let rows = if stem.ends_with(".held") { 4 } else { 40 };
            let head: Vec<&str> = text.lines().take(rows).collect();
            scene.write(&format!("data/{name}"), &(head.join("\n") + "\n"));
        }
    }
    scene
}

#[test]
fn every_shipped_program_runs_and_logs_numbers() {
    let scene = scene();
    for (name, text) in rlhf_stdlib::algorithms() {
        let file = format!("{name}.rlhf");
        scene.write(&file, text);
        let given = CHECKPOINTS
            .iter()
            .filter(|(param, _)| text.contains(&format!("param {param}: checkpoint")))
            .map(|(param, path)| format!("{param}={path}"));
        let given: Vec<String> = given.collect();
        let mut args = vec![file.as_str(), "--iterations", "2", "--out", name];
        args.extend(given.iter().map(String::as_str));
        scene.train(&args);
        let steps = scene.metrics(name, "step");
        assert_eq!(steps.len(), 2, "{name}");
        for line in &steps {
            let metrics = line["metrics"].as_object().expect("metrics");
            assert!(!metrics.is_empty(), "{name}");
            // A skipped update has no loss; nothing else may be missing.
            let missing =
                |(key, value): &(&String, &Value)| value.is_null() && !key.starts_with("policy.");
            assert_eq!(metrics.iter().find(missing), None, "{name}");
        }
    }
}
