//! Messages of the data as the response to a chat: what the template writes after the prompt.

use std::ops::Range;

use rlhf_lang::diag::Diagnostic;

use super::template::Rendered;
use super::{Message, Tokens, Turn};
use crate::{Result, failure};

/// A chat and the messages that continue it, as token ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Continued {
    /// The prompt; it asks for the assistant where the assistant comes next.
    pub prompt: Vec<u32>,
    /// All that the template writes after it.
    pub response: Vec<u32>,
    /// Whether each response token is one that the assistant says.
    pub assistant: Vec<bool>,
}

impl Tokens {
    /// What the template writes of `messages` after `prompt`. The assistant's tokens are those between the
    /// template's `{% generation %}` marks; of a template without them, what it writes after asking for an
    /// answer, up to the end token.
    ///
    /// D310 without a template; an error where it does not write the prompt alone as the beginning of the
    /// whole conversation.
    pub fn continued(&self, prompt: &[Message], messages: &[Message]) -> Result<Continued> {
        let Some(first) = messages.first() else {
            return Err(Box::new(failure("the response has no messages").help(
                "a response is one message of the assistant, or the messages after a prompt",
            )));
        };
        let turn = match first.role.as_str() {
            "assistant" => Turn::Open,
            _ => Turn::Closed,
        };
        let whole: Vec<Message> = prompt.iter().chain(messages).cloned().collect();
        let before = self.render(prompt, turn)?;
        let Rendered { text, said } = self.marked(&whole, Turn::Closed)?;
        let Some(rest) = text.strip_prefix(&before) else {
            return Err(Box::new(no_continuation()));
        };
        let said = match said.is_empty() {
            false => said,
            true => self.answers(&whole, prompt.len(), &text)?,
        };
        let start = before.len();
        let encoding = self
            .tokenizer
            .encode(rest, false)
            .map_err(|e| failure(format!("the tokenizer failed: {e}")))?;
        let within = |(lo, hi): &(usize, usize)| {
            let (lo, hi) = (lo + start, hi + start);
            lo < hi && said.iter().any(|s| lo < s.end && s.start < hi)
        };
        Ok(Continued {
            prompt: self.encode(&before, false)?,
            response: encoding.get_ids().to_vec(),
            assistant: encoding.get_offsets().iter().map(within).collect(),
        })
    }

    /// The bytes that each message of the assistant, from the `from`th message on, adds to a conversation
    /// that asked for it, up to its end token.
    fn answers(&self, whole: &[Message], from: usize, text: &str) -> Result<Vec<Range<usize>>> {
        let ends: Vec<String> = self.eos.iter().filter_map(|id| self.text_of(*id)).collect();
        let mut found = vec![];
        for (i, message) in whole.iter().enumerate().skip(from) {
            if message.role != "assistant" {
                continue;
            }
            let asked = self.render(&whole[..i], Turn::Open)?;
            let said = self.render(&whole[..=i], Turn::Closed)?;
            let answer = said
                .strip_prefix(&asked)
                .filter(|_| text.starts_with(&said));
            let answer = answer.ok_or_else(no_continuation)?;
            let end = ends.iter().filter_map(|e| Some(answer.find(e)? + e.len()));
            let length = end.min().unwrap_or(answer.len());
            found.push(asked.len()..asked.len() + length);
        }
        Ok(found)
    }
}

fn no_continuation() -> Diagnostic {
    failure("the template writes this prompt in another way when an answer follows").help(
        "a template that leaves out or moves earlier messages gives no response; another \
         chat_template.jinja beside the weights is read first",
    )
}
