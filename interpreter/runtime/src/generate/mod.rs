//! Sampling responses to prompts with a key-value cache.
//!
//! A prompt is computed once for its whole group and its keys and values are shared by the samples. Every decoding
//! step is one packed batch of the rows that still run; a row that finished leaves it. What is drawn for a row
//! depends on its tokens and its key alone: neither the rows beside it nor the size of the batch changes a bit.

mod feed_forward;
mod network;
mod wave;
mod weights;

use std::sync::Arc;

use rlhf_kernels::philox::Stream;
use rlhf_kernels::sample::Rule;

use crate::fault::{Fault, Result};
use crate::model::Model;
use network::Network;

/// How responses are drawn and when they end.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the likeliest token, the first of equal ones.
    pub temperature: f64,
    /// Draws from the fewest likeliest tokens whose probability reaches this.
    pub top_p: Option<f64>,
    /// Draws from this many likeliest tokens.
    pub top_k: Option<usize>,
    /// No response ends before it has this many tokens.
    pub min_tokens: usize,
    /// Longest response.
    pub max_tokens: usize,
    /// A response ends when its text contains one of these; the tokens that completed it stay.
    pub stop: Vec<String>,
    /// Whether end-of-sequence tokens are drawn like any other and end nothing: every response has its full length,
    /// for timing.
    pub ignore_eos: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 1.0,
            top_p: None,
            top_k: None,
            min_tokens: 0,
            max_tokens: 64,
            stop: Vec::new(),
            ignore_eos: false,
        }
    }
}

/// What the random numbers of a call depend on, beside row, sample and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleKey {
    /// Seed of the run.
    pub seed: u64,
    /// [`rlhf_kernels::philox::hash`] of the call's name.
    pub call: u64,
    /// Iteration of the run.
    pub iteration: u64,
}

/// What decoding needs to know of a tokenizer.
#[derive(Clone, Copy)]
pub struct Ending<'a> {
    /// Tokens that end a response; the one drawn is part of it.
    pub eos: &'a [u32],
    /// Text of tokens, for stop strings.
    pub decode: &'a (dyn Fn(&[u32]) -> String + Sync),
}

/// The prompts of one call.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Prompt tokens, none empty.
    pub prompts: &'a [Arc<[u32]>],
    /// Number of each prompt in the data of the whole run, below 2^32, and above those bits which of its
    /// row's prompts it is: its part of the random numbers' key.
    pub rows: &'a [u64],
    /// Responses to one prompt.
    pub group: usize,
    /// How they are drawn.
    pub sampling: &'a Sampling,
    /// What their random numbers depend on.
    pub key: SampleKey,
    /// Most responses decoded at a time; a group is never cut. [`MAX_ROWS`] suits most memories. No response depends
    /// on it.
    pub max_rows: usize,
}

/// The row of the data in a prompt's part of the key: above its 32 bits stands which of the row's prompts
/// it is.
fn data_row(key: u64) -> u64 {
    key & u64::from(u32::MAX)
}

/// Responses decoded at a time where nothing else is asked.
pub const MAX_ROWS: usize = 256;

/// Responses and their log-probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// Tokens, `prompts · group` responses; the samples of a prompt are neighbours.
    pub responses: Vec<Vec<u32>>,
    /// Log-probability of every response token under the full softmax at the sampling temperature (1 for greedy),
    /// response after response.
    pub logp: Vec<f32>,
    /// Whether a response ended by an end-of-sequence token or a stop string, not by its length.
    pub finished: Vec<bool>,
    /// Whether the call ran to its end; otherwise it was stopped and responses are cut or empty.
    pub complete: bool,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Responses of the call.
    pub rows: usize,
    /// Responses that ended.
    pub done: usize,
    /// Tokens drawn.
    pub tokens: usize,
}

/// Samples `group` responses to every prompt.
///
/// `poll` is told of every step and answers whether to go on. Errors: an empty prompt, a token the model does not
/// have, prompt and response beyond the model's positions, a sampling parameter out of range, logits that are not
/// finite.
pub fn generate(
    model: &Model,
    ending: Ending,
    request: &Request,
    poll: &mut dyn FnMut(Progress) -> bool,
) -> Result<Generated> {
    check(model, request)?;
    let Request {
        prompts,
        rows,
        group,
        sampling,
        key,
        max_rows,
    } = *request;
    let longest = prompts.iter().map(|p| p.len()).max().unwrap_or(0);
    let mut network = Network::new(model, longest + sampling.max_tokens)?;
    let rule = Rule {
        temperature: sampling.temperature,
        top_k: sampling.top_k,
        top_p: sampling.top_p,
    };
    let stream = Stream::new(key.seed, key.call, key.iteration);
    let mut generated = Generated {
        complete: true,
        ..Generated::default()
    };
    let total = prompts.len() * group;
    let at_once = (max_rows / group).max(1);
    for (prompts, rows) in prompts.chunks(at_once).zip(rows.chunks(at_once)) {
        let wave = wave::Wave {
            prompts,
            rows,
            group,
            sampling,
            rule,
            stream,
            ending,
        };
        let (responses, drawn) = (generated.responses.len(), generated.logp.len());
        let going = generated.complete && sampling.max_tokens > 0;
        let finished = match going {
            true => wave.run(&mut network, &mut |now: Progress| {
                poll(Progress {
                    rows: total,
                    done: responses + now.done,
                    tokens: drawn + now.tokens,
                })
            })?,
            false => wave.empty(),
        };
        generated.complete &= finished.complete;
        generated.responses.extend(finished.responses);
        generated.logp.extend(finished.logp);
        generated.finished.extend(finished.finished);
    }
    Ok(generated)
}

fn check(model: &Model, request: &Request) -> Result<()> {
    let Request {
        prompts,
        rows,
        group,
        sampling,
        ..
    } = *request;
    if prompts.len() != rows.len() {
        let (prompts, rows) = (prompts.len(), rows.len());
        return Err(Fault::new(format!(
            "{prompts} prompts with {rows} row numbers"
        )));
    }
    if group == 0 {
        return Err(Fault::new("a group of 0 responses").help("a group has at least 1"));
    }
    let Sampling {
        temperature,
        top_p,
        top_k,
        max_tokens,
        ..
    } = *sampling;
    if !(temperature >= 0.0 && temperature.is_finite()) {
        return Err(Fault::new(format!(
            "temperature {temperature} is outside `0..`"
        )));
    }
    if let Some(p) = top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
        return Err(Fault::new(format!("top_p {p} is outside `0..1`")));
    }
    if top_k == Some(0) {
        return Err(Fault::new("top_k 0 leaves no token").help("top_k is at least 1"));
    }
    for (prompt, row) in prompts.iter().zip(rows.iter().map(|r| data_row(*r))) {
        if prompt.is_empty() {
            return Err(Fault::new(format!("the prompt of row {row} is empty"))
                .help("a prompt has at least one token; a template or a beginning-of-sequence token gives one"));
        }
        let vocab = model.config.vocab;
        if let Some(token) = prompt.iter().find(|t| **t as usize >= vocab) {
            return Err(Fault::new(format!(
                "the prompt of row {row} has token {token}; the model has {vocab}"
            ))
            .help("is this the model's own tokenizer?"));
        }
        let positions = model.config.positions;
        if prompt.len() + max_tokens > positions {
            return Err(Fault::new(format!(
                "the prompt of row {row} has {} tokens and its response up to {max_tokens}: more than the model's {positions} positions",
                prompt.len()
            )));
        }
    }
    Ok(())
}
