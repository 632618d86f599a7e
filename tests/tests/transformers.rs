//! A trained checkpoint in the hands of another reader: transformers loads it and computes the same.

use std::process::Command;

use rlhf_runtime::model::{Dtype, Model};
use rlhf_tests::Scene;
use serde_json::Value;

const PROGRAM: &str = r#"
data sums = jsonl("sums.jsonl") { question: text, answer: text }
model policy = causal("./model", dtype: f32, optim: adamw(1e-3))
step over sums[B: 6], iterations: 2 {
  roll = answer(chat(question), answer)[T: ..8]
  train policy { minimize -mean(logp(policy, roll)) }
}
"#;

/// Prints the logits of a sequence, a greedy continuation, and what the tokenizer makes of a chat.
const READER: &str = r#"
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)
directory, ids = sys.argv[1], json.loads(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(directory)
model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
with torch.no_grad():
    logits = model(torch.tensor([ids])).logits[0]
prompt = tokenizer.apply_chat_template(
    [{"role": "user", "content": "2 + 3 ="}], add_generation_prompt=True, return_dict=False
)
out = model.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)
print(json.dumps({
    "logits": logits.tolist(),
    "prompt": prompt,
    "greedy": out[0, len(prompt):].tolist(),
    "text": tokenizer.decode(prompt),
}))
"#;

fn python() -> String {
    let set = std::env::var("RLHF_PYTHON").ok().filter(|p| !p.is_empty());
    set.expect("RLHF_PYTHON names a Python with transformers; ./test sets it")
}

#[test]
fn transformers_loads_a_trained_checkpoint_and_computes_the_same() {
    let scene = Scene::new();
    scene.write("program.rlhf", PROGRAM);
    scene.train(&["program.rlhf", "--out", "run"]);
    let checkpoint = scene.path("run/policy");

    // Every byte, then the two special tokens.
    let ids: Vec<u32> = (0..60).map(|i| i * 37 % 256).chain([256, 257]).collect();
    let output = Command::new(python())
        .args(["-c", READER])
        .arg(&checkpoint)
        .arg(serde_json::to_string(&ids).expect("numbers"))
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the reader prints JSON");

    let model = Model::load(&checkpoint, Dtype::F32).expect("a saved checkpoint loads");
    let own = model.forward_logits(&ids);
    let rows = answer["logits"].as_array().expect("a list");
    assert_eq!(rows.len(), ids.len());
    for (t, row) in rows.iter().enumerate() {
        let theirs: Vec<f64> = row
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        let ours =
            Vec::<f64>::try_from(own.get(t as i64).to_kind(tch::Kind::Double)).expect("a row");
        assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 2e-4, "position {t}: {a} and {b}");
        }
    }

    let text = answer["text"].as_str().expect("text");
    assert_eq!(
        text,
        "<|im_start|>user\n2 + 3 =<|im_end|>\n<|im_start|>assistant\n"
    );
    let greedy = answer["greedy"].as_array().expect("a list");
    assert!((1..=8).contains(&greedy.len()), "{greedy:?}");
    let ids = |list: &Value| -> Vec<u32> {
        let numbers = list.as_array().into_iter().flatten();
        numbers.filter_map(|id| Some(id.as_u64()? as u32)).collect()
    };
    let mut sequence = ids(&answer["prompt"]);
    for token in ids(&answer["greedy"]) {
        let last = model.forward_logits(&sequence).get(-1);
        assert_eq!(last.argmax(0, false).int64_value(&[]), i64::from(token));
        sequence.push(token);
    }
}
