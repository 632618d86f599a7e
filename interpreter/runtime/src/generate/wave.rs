//! One batch of prompts: prefill, then decoding until every sample has ended.

use std::sync::Arc;

use rlhf_kernels::attention::{Cache, Place, Span};
use rlhf_kernels::panel::Panels;
use rlhf_kernels::parallel;
use rlhf_kernels::philox::Stream;
use rlhf_kernels::sample::{self, Draw, Rule};

use super::network::Network;
use super::{Ending, Generated, Progress, Sampling};
use crate::fault::{Fault, Result};

/// Prompt tokens computed at a time: enough to use the processor fully, few enough for their activations to be small.
const PREFILL: usize = 512;
/// Rows whose logits exist at a time.
const HEAD: usize = 64;
/// Tokens decoded beyond a stop string's bytes when looking for it: a token's text can depend on its neighbours.
const MARGIN: usize = 8;

/// Prompts that are decoded together.
pub(super) struct Wave<'a> {
    pub(super) prompts: &'a [Arc<[u32]>],
    pub(super) rows: &'a [u64],
    pub(super) group: usize,
    pub(super) sampling: &'a Sampling,
    pub(super) rule: Rule,
    pub(super) stream: Stream,
    pub(super) ending: Ending<'a>,
}

/// A response so far.
#[derive(Clone, Default)]
struct Sample {
    tokens: Vec<u32>,
    logp: Vec<f32>,
    finished: bool,
}

impl Wave<'_> {
    /// The result of drawing nothing: every response empty.
    pub(super) fn empty(&self) -> Generated {
        let samples = vec![Sample::default(); self.prompts.len() * self.group];
        self.collect(samples, self.sampling.max_tokens == 0)
    }

    /// Decodes all samples; `max_tokens` is at least 1.
    pub(super) fn run(
        &self,
        network: &mut Network,
        poll: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Generated> {
        let prompts = self.prompts.len();
        let count = prompts * self.group;
        // The last token of a response is never computed, so its keys and values need no room.
        let own = self.sampling.max_tokens - 1;
        let capacities = self.prompts.iter().map(|p| p.len());
        let capacities = capacities.chain(std::iter::repeat_n(own, count));
        let mut cache = Cache::new(network.shape(), capacities);
        let mut samples = vec![Sample::default(); count];
        let mut logits = Vec::new();
        let mut progress = Progress {
            rows: count,
            done: 0,
            tokens: 0,
        };

        // A prompt's samples all follow its last token.
        let mut hidden = parallel::run(|| self.prefill(network, &mut cache));
        let mut live: Vec<usize> = (0..count).collect();
        let mut sources: Vec<usize> = live.iter().map(|s| s / self.group).collect();
        loop {
            let draws = parallel::run(|| {
                self.draw(network, &hidden, &live, &sources, &samples, &mut logits)
            });
            for (&s, draw) in live.iter().zip(draws) {
                let draw = draw.map_err(|fault| self.explain(fault, s, &samples[s]))?;
                self.push(&mut samples[s], draw);
            }
            progress.tokens += live.len();
            live.retain(|&s| {
                !samples[s].finished && samples[s].tokens.len() < self.sampling.max_tokens
            });
            progress.done = count - live.len();
            if !poll(progress) {
                return Ok(self.collect(samples, live.is_empty()));
            }
            if live.is_empty() {
                return Ok(self.collect(samples, true));
            }
            let (tokens, places) = self.step(&live, &samples);
            hidden = parallel::run(|| {
                network.forward(&mut cache, &tokens, &places);
                network.hidden(&(0..live.len()).collect::<Vec<_>>())
            });
            sources = (0..live.len()).collect();
        }
    }

    /// Computes all prompts, packed one after another; returns the hidden state of each one's last token.
    fn prefill(&self, network: &mut Network, cache: &mut Cache) -> Panels {
        let packed = self.prompts.iter().enumerate().flat_map(|(slot, prompt)| {
            prompt.iter().enumerate().map(move |(position, &token)| {
                let own = Span {
                    slot,
                    len: position + 1,
                };
                let place = Place {
                    position,
                    context: None,
                    own,
                };
                (token, place)
            })
        });
        let (tokens, places): (Vec<u32>, Vec<Place>) = packed.unzip();
        let mut last = Vec::with_capacity(self.prompts.len());
        for (tokens, places) in tokens.chunks(PREFILL).zip(places.chunks(PREFILL)) {
            network.forward(cache, tokens, places);
            let ends = places
                .iter()
                .enumerate()
                .filter(|(_, place)| place.own.len == self.prompts[place.own.slot].len());
            let ends: Vec<usize> = ends.map(|(r, _)| r).collect();
            last.extend(network.hidden(&ends).to_rows());
        }
        let features = last.len() / self.prompts.len();
        Panels::from_rows(&last, features)
    }

    /// The last token of each live sample and where it stands.
    fn step(&self, live: &[usize], samples: &[Sample]) -> (Vec<u32>, Vec<Place>) {
        let rows = live.iter().map(|&s| {
            let slot = s / self.group;
            let prompt = self.prompts[slot].len();
            let drawn = &samples[s].tokens;
            let place = Place {
                position: prompt + drawn.len() - 1,
                context: Some(Span { slot, len: prompt }),
                own: Span {
                    slot: self.prompts.len() + s,
                    len: drawn.len(),
                },
            };
            (drawn[drawn.len() - 1], place)
        });
        rows.unzip()
    }

    /// A token for each live sample; `sources[i]` is the hidden row that sample `live[i]` follows.
    fn draw(
        &self,
        network: &mut Network,
        hidden: &Panels,
        live: &[usize],
        sources: &[usize],
        samples: &[Sample],
        logits: &mut Vec<f32>,
    ) -> Vec<std::result::Result<Draw, sample::Fault>> {
        let mut draws = Vec::with_capacity(live.len());
        let mut at = 0;
        while at < live.len() {
            // Sources ascend, so a chunk of them is a range of hidden rows.
            let first = sources[at];
            let end = at + sources[at..].partition_point(|&source| source < first + HEAD);
            let rows: Vec<usize> = (first..=sources[end - 1]).collect();
            network.logits(&hidden.gather(&rows), logits);
            let requests: Vec<sample::Request> = live[at..end]
                .iter()
                .zip(&sources[at..end])
                .map(|(&s, source)| {
                    let position = samples[s].tokens.len();
                    let early = position < self.sampling.min_tokens && !self.sampling.ignore_eos;
                    let row = self.rows[s / self.group];
                    let sample = (s % self.group) as u32;
                    sample::Request {
                        row: source - first,
                        banned: if early { self.ending.eos } else { &[] },
                        u: self.stream.uniform(row, sample, position as u32),
                    }
                })
                .collect();
            let vocabulary = network.vocabulary();
            draws.extend(sample::sample_rows(
                logits, vocabulary, &self.rule, &requests,
            ));
            at = end;
        }
        draws
    }

    /// Adds a token and decides whether the response has ended.
    fn push(&self, sample: &mut Sample, draw: Draw) {
        sample.tokens.push(draw.token);
        sample.logp.push(draw.logp);
        let ended = !self.sampling.ignore_eos && self.ending.eos.contains(&draw.token);
        sample.finished =
            ended || sample.tokens.len() >= self.sampling.min_tokens && self.stops(&sample.tokens);
    }

    /// Whether a stop string is in the text of the last tokens, which hold at least its length in bytes.
    fn stops(&self, tokens: &[u32]) -> bool {
        let Some(longest) = self.sampling.stop.iter().map(String::len).max() else {
            return false;
        };
        let tail = &tokens[tokens.len().saturating_sub(longest + MARGIN)..];
        let text = (self.ending.decode)(tail);
        self.sampling
            .stop
            .iter()
            .any(|stop| text.contains(stop.as_str()))
    }

    fn explain(&self, fault: sample::Fault, s: usize, sample: &Sample) -> Fault {
        let place = format!(
            "at token {} of response {} to row {}",
            sample.tokens.len(),
            s % self.group,
            super::data_row(self.rows[s / self.group])
        );
        match fault {
            sample::Fault::NotFinite { token } => Fault::code(
                "R401",
                format!("the logit of token {token} is not finite {place}"),
            ),
            sample::Fault::NothingLeft => Fault::code(
                "R401",
                format!("no token has a probability above 0 {place}"),
            ),
        }
    }

    fn collect(&self, samples: Vec<Sample>, complete: bool) -> Generated {
        let mut generated = Generated {
            complete,
            ..Generated::default()
        };
        for sample in samples {
            generated.responses.push(sample.tokens);
            generated.logp.extend(sample.logp);
            generated.finished.push(sample.finished);
        }
        generated
    }
}
