//! Models against transformers' numbers, packing against plain sequences, and broken checkpoints.

mod average;
mod checkpoint;
mod families;
mod lora;
mod packing;
mod parity;
mod scalar;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{Dtype, Model};
use tch::{Kind, Tensor};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const FIXTURES: [&str; 5] = [
    "llama-tied-gqa",
    "llama-untied-biases",
    "llama3-scaled-sharded",
    "qwen2",
    "mistral",
];

/// One checkpoint a family and option, from `tests/reference/family_parity.py`.
const FAMILIES: [&str; 14] = [
    "llama-yarn",
    "llama-linear",
    "llama-dynamic",
    "mistral-window",
    "qwen3",
    "gemma",
    "gemma2",
    "phi3",
    "phi3-longrope",
    "gpt2",
    "gpt-neox",
    "gpt-neox-sequential",
    "mixtral",
    "qwen3-moe",
];

/// The temperature of `tests/reference/llama_parity.py`.
const TEMPERATURE: f64 = 0.7;

fn folder(name: &str) -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("fixtures").join(name)
}

struct Fixture {
    model: Model,
    sequence: Vec<u32>,
    rows: Rows,
    expected: HashMap<String, Tensor>,
}

/// What a fixture holds beside its checkpoint.
struct Expected {
    sequence: Vec<u32>,
    rows: Rows,
    tensors: HashMap<String, Tensor>,
}

fn expected(name: &str) -> Result<Expected, Box<dyn std::error::Error>> {
    let dir = folder(name);
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("rows.json"))?)?;
    let prompts: Vec<Vec<u32>> = serde_json::from_value(json["prompts"].clone())?;
    let rows = Rows {
        prompts: prompts.into_iter().map(Arc::from).collect(),
        group: serde_json::from_value(json["group"].clone())?,
        responses: serde_json::from_value(json["responses"].clone())?,
    };
    let tensors = Tensor::read_safetensors(dir.join("expected.safetensors"))?;
    Ok(Expected {
        sequence: serde_json::from_value(json["sequence"].clone())?,
        rows,
        tensors: tensors.into_iter().collect(),
    })
}

fn fixture(name: &str) -> Result<Fixture, Box<dyn std::error::Error>> {
    let found = expected(name)?;
    Ok(Fixture {
        model: Model::load(&folder(name), Dtype::F32)?,
        sequence: found.sequence,
        rows: found.rows,
        expected: found.tensors,
    })
}

/// The largest absolute difference.
fn apart(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    let difference = a.to_kind(Kind::Double) - b.to_kind(Kind::Double);
    match difference.numel() {
        0 => 0.0,
        _ => difference.abs().max().double_value(&[]),
    }
}

/// The difference's length over the length of `b`.
fn relative(a: &Tensor, b: &Tensor) -> f64 {
    let difference = (a.to_kind(Kind::Double) - b.to_kind(Kind::Double)).norm();
    difference.double_value(&[]) / b.to_kind(Kind::Double).norm().double_value(&[]).max(1e-12)
}
