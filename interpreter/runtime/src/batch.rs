//! Prompts and responses as token ids: what every model call reads.

use std::ops::Range;
use std::sync::Arc;

/// `prompts.len() × group` responses; response `r` answers prompt `r / group`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Prompt tokens, never empty.
    pub prompts: Vec<Arc<[u32]>>,
    /// Responses to one prompt, at least 1.
    pub group: usize,
    /// Response tokens; a response may be empty.
    pub responses: Vec<Vec<u32>>,
}

impl Rows {
    /// Response tokens in all rows.
    pub fn tokens(&self) -> usize {
        self.responses.iter().map(Vec::len).sum()
    }

    /// Where each response starts in a flat per-token tensor, and the end: `rows + 1` numbers.
    pub fn offsets(&self) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(self.responses.len() + 1);
        let mut at = 0;
        offsets.push(at);
        for response in &self.responses {
            at += response.len();
            offsets.push(at);
        }
        offsets
    }

    /// The prompts of a range with all their responses. A group is never cut.
    pub fn select_prompts(&self, range: Range<usize>) -> Rows {
        let responses = range.start * self.group..range.end * self.group;
        Rows {
            prompts: self.prompts[range].to_vec(),
            group: self.group,
            responses: self.responses[responses].to_vec(),
        }
    }

    /// The given prompts with all their responses, in that order.
    pub fn select(&self, prompts: &[usize]) -> Rows {
        let responses = self.responses_of(prompts);
        Rows {
            prompts: prompts.iter().map(|p| self.prompts[*p].clone()).collect(),
            group: self.group,
            responses: responses.map(|r| self.responses[r].clone()).collect(),
        }
    }

    /// The responses to some prompts, by their places among all.
    pub fn responses_of<'a>(&self, prompts: &'a [usize]) -> impl Iterator<Item = usize> + use<'a> {
        let group = self.group;
        prompts.iter().flat_map(move |p| p * group..(p + 1) * group)
    }

    /// Some responses, each with its prompt, in groups of `group`. Where a group would have several
    /// prompts every response is a group of its own.
    pub fn select_responses(&self, responses: &[usize], group: usize) -> Rows {
        let prompt = |r: &usize| &self.prompts[r / self.group];
        let group = group.max(1);
        let alike = |of: &[usize]| of.iter().all(|r| prompt(r) == prompt(&of[0]));
        let group = match responses.chunks(group).all(alike) {
            true => group,
            false => 1,
        };
        Rows {
            prompts: responses
                .chunks(group)
                .map(|c| prompt(&c[0]).clone())
                .collect(),
            group,
            responses: responses
                .iter()
                .map(|r| self.responses[*r].clone())
                .collect(),
        }
    }

    /// Ranges of prompts that each hold at most `budget` tokens, prompts and responses together, and at
    /// least one prompt. One range, perhaps empty, where everything fits.
    pub fn portions(&self, budget: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let (mut start, mut held) = (0, 0);
        for (i, prompt) in self.prompts.iter().enumerate() {
            let responses = &self.responses[i * self.group..(i + 1) * self.group];
            let more = prompt.len() + responses.iter().map(Vec::len).sum::<usize>();
            if i > start && held + more > budget {
                ranges.push(start..i);
                (start, held) = (i, 0);
            }
            held += more;
        }
        ranges.push(start..self.prompts.len());
        ranges
    }
}
