//! Generation: transformers' greedy tokens, the distribution that is sampled, and what a response may depend on.

mod draws;
mod endings;
mod greedy;

use std::path::PathBuf;
use std::sync::Arc;

use rlhf_runtime::fault::Fault;
use rlhf_runtime::generate::{Ending, Generated, MAX_ROWS, Request, SampleKey, Sampling, generate};
use rlhf_runtime::model::{Dtype, Model};

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

const KEY: SampleKey = SampleKey {
    seed: 11,
    call: 5,
    iteration: 2,
};

fn load(name: &str, dtype: Dtype) -> Result<Model, Fault> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    Model::load(&tests.join("fixtures").join(name), dtype)
}

/// Token `n` reads as the letter `n` places after `a`, wrapping round.
fn letters(ids: &[u32]) -> String {
    ids.iter()
        .map(|n| char::from(b'a' + (n % 26) as u8))
        .collect()
}

fn prompts(ids: &[&[u32]]) -> Vec<Arc<[u32]>> {
    ids.iter().map(|ids| Arc::from(*ids)).collect()
}

/// Prompts numbered from 0, decoded in one batch, with token 2 as the end of a sequence.
fn run(
    model: &Model,
    prompts: &[Arc<[u32]>],
    group: usize,
    sampling: &Sampling,
) -> Result<Generated, Fault> {
    let rows: Vec<u64> = (0..prompts.len() as u64).collect();
    let request = Request {
        prompts,
        rows: &rows,
        group,
        sampling,
        key: KEY,
        max_rows: MAX_ROWS,
    };
    ask(model, &request)
}

fn ask(model: &Model, request: &Request) -> Result<Generated, Fault> {
    let ending = Ending {
        eos: &[2],
        decode: &letters,
    };
    generate(model, ending, request, &mut |_| true)
}
