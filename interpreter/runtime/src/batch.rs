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
}
