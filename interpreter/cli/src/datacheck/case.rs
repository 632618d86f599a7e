//! A call with its rows as texts and tokens.

use std::path::Path;

use rlhf_lang::diag::Diagnostic;
use rlhf_text::rows::{Row, Rows};
use rlhf_text::{Message, Tokens, Turn};

use super::recipe::Made;
use super::view::Call;

/// What one call does with the rows that were read.
pub struct Case<'a> {
    /// Its index in the view.
    pub index: usize,
    /// The call.
    pub call: &'a Call,
    /// Its model's tokenizer.
    pub tokens: &'a Tokens,
    /// The positions its model has, where its configuration says so.
    pub positions: Option<usize>,
    /// The data set's path; empty where it reads none.
    pub path: &'a str,
    /// Every row was read.
    pub complete: bool,
    /// Prompts, of the rows that have one.
    pub prompts: Vec<Prompt<'a>>,
    /// The first row whose conversation the template refuses.
    pub refused: Option<(&'a Row, Vec<Message>, Box<Diagnostic>)>,
    /// Responses from the data, of the rows that have one.
    pub responses: Vec<Response<'a>>,
}

/// A prompt.
pub struct Prompt<'a> {
    /// Its row.
    pub row: &'a Row,
    /// What the template is given; empty for a plain text.
    pub messages: Vec<Message>,
    /// The text that is tokenised.
    pub text: String,
    /// Its tokens.
    pub ids: Vec<u32>,
}

/// A response from the data.
pub struct Response<'a> {
    /// Its row.
    pub row: &'a Row,
    /// Its text.
    pub text: String,
    /// Its tokens with the one that ends it, uncut.
    pub ids: Vec<u32>,
}

impl<'a> Case<'a> {
    /// Tokenises the rows. Without a template, calls that need one have no prompts.
    pub fn new(
        index: usize,
        call: &'a Call,
        tokens: &'a Tokens,
        folder: &Path,
        data: Option<(&'a str, &'a Rows)>,
    ) -> Case<'a> {
        let mut case = Case {
            index,
            call,
            tokens,
            positions: positions(folder),
            path: data.map_or("", |(path, _)| path),
            complete: data.is_some_and(|(_, rows)| rows.complete),
            prompts: vec![],
            refused: None,
            responses: vec![],
        };
        for row in data.into_iter().flat_map(|(_, rows)| &rows.rows) {
            case.prompt(row);
            case.response(row);
        }
        case
    }

    /// `row 3 of `train.jsonl``
    pub fn place(&self, row: &Row) -> String {
        format!("{} of `{}`", row.place(), row.file(self.path))
    }

    /// What messages call the prompt.
    pub fn prompt_name(&self) -> String {
        let prompt = self.call.prompt.as_ref();
        prompt.map_or("the prompt".into(), |p| p.named("the prompt"))
    }

    /// What messages call the response.
    pub fn response_name(&self) -> String {
        let response = self.call.response.as_ref();
        response.map_or("the response".into(), |r| r.named("the response"))
    }

    /// `of the first ` where rows are left, else `of `.
    pub fn of(&self) -> &'static str {
        match self.complete {
            true => "of ",
            false => "of the first ",
        }
    }

    /// The response of a row, where it has one.
    pub fn response_of(&self, row: &Row) -> Option<&Response<'a>> {
        // Rows come in their order.
        let found = self
            .responses
            .binary_search_by_key(&row.number, |r| r.row.number);
        self.responses.get(found.ok()?)
    }

    fn prompt(&mut self, row: &'a Row) {
        let made = self.call.prompt.as_ref().and_then(|p| p.make(row));
        let messages = match (made, self.call.chat) {
            (Some(Made::Chat(messages)), _) => messages,
            (Some(Made::Text(content)), true) => vec![Message {
                role: "user".into(),
                content,
            }],
            (Some(Made::Text(text)), false) => {
                // What a tokenizer refuses, a rank reports.
                if let Ok(ids) = self.tokens.encode(&text, true) {
                    self.prompts.push(Prompt {
                        row,
                        messages: vec![],
                        text,
                        ids,
                    });
                }
                return;
            }
            (None, _) => return,
        };
        if !self.tokens.has_template() {
            return;
        }
        match self.tokens.render(&messages, Turn::Open) {
            Ok(text) => {
                if let Ok(ids) = self.tokens.encode(&text, false) {
                    self.prompts.push(Prompt {
                        row,
                        messages,
                        text,
                        ids,
                    });
                }
            }
            Err(why) => {
                self.refused.get_or_insert((row, messages, why));
            }
        }
    }

    fn response(&mut self, row: &'a Row) {
        let text = self.call.response.as_ref().and_then(|r| r.text(row));
        let ids = text
            .as_ref()
            .and_then(|t| self.tokens.encode(t, false).ok());
        if let (Some(text), Some(mut ids)) = (text, ids) {
            ids.extend(self.tokens.eos().first());
            self.responses.push(Response { row, text, ids });
        }
    }
}

fn positions(folder: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(folder.join("config.json")).ok()?;
    let config: serde_json::Value = serde_json::from_str(&text).ok()?;
    let count = config
        .get("max_position_embeddings")
        .or_else(|| config.get("n_positions"))?;
    usize::try_from(count.as_u64()?).ok()
}
