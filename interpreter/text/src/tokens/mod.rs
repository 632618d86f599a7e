//! A model's tokenizer and chat template.

mod clock;
mod continued;
mod template;

use std::path::Path;

use rlhf_lang::diag::Diagnostic;
use serde_json::{Map, Value as Json};
use tokenizers::Tokenizer;

use crate::{Result, failure};
use template::{Rendered, Template};

pub use continued::Continued;

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or what else the template knows.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// A checkpoint's tokenizer with its chat template.
#[derive(Debug)]
pub struct Tokens {
    tokenizer: Tokenizer,
    eos: Vec<u32>,
    bos: Option<u32>,
    pad: Option<u32>,
    template: Option<Template>,
}

/// How a rendered conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// With the generation prompt: the assistant is about to speak.
    Open,
    /// After the last message.
    Closed,
}

impl Tokens {
    /// Reads `tokenizer.json`, `tokenizer_config.json`, the chat template and the EOS ids of a
    /// checkpoint's folder.
    pub fn load(dir: &Path) -> Result<Tokens> {
        let path = dir.join("tokenizer.json");
        if !path.is_file() {
            let message = format!("`{}` has no tokenizer.json", dir.display());
            return Err(Box::new(failure(message).help(
                "save the tokenizer in its fast form beside the weights, as \
                 `AutoTokenizer.from_pretrained(…).save_pretrained(…)` does",
            )));
        }
        let mut tokenizer = Tokenizer::from_file(&path)
            .map_err(|e| failure(format!("`{}` cannot be read: {e}", path.display())))?;
        // A prompt is never cut or padded, whatever the file says.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|e| failure(e.to_string()))?;
        let config = object(&dir.join("tokenizer_config.json"))?;
        let special = special_tokens(dir, &config)?;
        let eos = eos_ids(dir, &special, &tokenizer)?;
        let template = match template::source(dir, &config)? {
            None => None,
            Some(source) => Some(Template::new(source, &special)?),
        };
        let named = |key: &str| tokenizer.token_to_id(special.get(key)?.as_str()?);
        Ok(Tokens {
            bos: named("bos_token"),
            pad: named("pad_token"),
            tokenizer,
            eos,
            template,
        })
    }

    /// Token ids of a text. `special` adds what the tokenizer puts around a text, such as BOS.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let encoding = self
            .tokenizer
            .encode_fast(text, special)
            .map_err(|e| failure(format!("the tokenizer failed: {e}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of token ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.tokenizer.decode(ids, true).unwrap_or_else(|_| {
            // A decoder that refuses the sequence: the tokens as they are.
            ids.iter()
                .filter_map(|id| self.tokenizer.id_to_token(*id))
                .collect()
        })
    }

    /// The ids that end a response: those of `generation_config.json` (of `config.json` where it names
    /// none), and the tokenizer's own EOS.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The id of `bos_token`.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The id of `pad_token`.
    pub fn pad(&self) -> Option<u32> {
        self.pad
    }

    /// The text of an id, special tokens included.
    pub fn text_of(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }

    /// The texts of the special tokens, longest first.
    pub fn special(&self) -> Vec<String> {
        let tokens = self.tokenizer.get_added_tokens_decoder();
        let special = tokens.into_values().filter(|t| t.special);
        let mut texts: Vec<String> = special.map(|t| t.content).collect();
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        texts
    }

    /// A conversation through the template, with the generation prompt. The template writes every
    /// special token itself, so none is added.
    pub fn chat(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.encode(&self.render(messages, Turn::Open)?, false)
    }

    /// A conversation as text. [`Tokens::chat`] tokenises the open one.
    ///
    /// D310 without a template.
    pub fn render(&self, messages: &[Message], turn: Turn) -> Result<String> {
        Ok(self.marked(messages, turn)?.text)
    }

    fn marked(&self, messages: &[Message], turn: Turn) -> Result<Rendered> {
        match &self.template {
            Some(template) => template.render(messages, turn),
            None => Err(Box::new(
                Diagnostic::bare(
                    "D310",
                    "`chat(…)` needs a chat template and this checkpoint has none",
                )
                .help(
                    "use an instruction-tuned checkpoint, put a chat_template.jinja beside its \
                     weights, or pass the text itself as the prompt",
                ),
            )),
        }
    }

    /// The template's text.
    pub fn template(&self) -> Option<&str> {
        self.template.as_ref().map(Template::text)
    }

    /// Whether [`Tokens::chat`] can work.
    pub fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// Whether token ids mean the same to another tokenizer.
    pub fn same_vocabulary(&self, other: &Tokens) -> bool {
        self.tokenizer.get_vocab(true) == other.tokenizer.get_vocab(true)
    }

    /// The number of token ids.
    pub fn vocab(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }
}

/// A JSON object in a file; empty where there is no file.
fn object(path: &Path) -> Result<Map<String, Json>> {
    if !path.is_file() {
        return Ok(Map::new());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|e| failure(format!("`{}` cannot be read: {e}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|e| failure(format!("`{}` is not a JSON object: {e}", path.display())))
}

/// `bos_token`, `eos_token` and so on, as the template sees them.
fn special_tokens(dir: &Path, config: &Map<String, Json>) -> Result<Map<String, Json>> {
    let mut tokens = Map::new();
    for source in [&object(&dir.join("special_tokens_map.json"))?, config] {
        for (key, value) in source.iter().filter(|(key, _)| key.ends_with("_token")) {
            // Either the text, or an object with the text and how it is matched.
            let text = value.get("content").unwrap_or(value);
            if text.is_string() {
                tokens.insert(key.clone(), text.clone());
            }
        }
    }
    Ok(tokens)
}

fn eos_ids(dir: &Path, special: &Map<String, Json>, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let named = |file: &str| -> Result<Vec<u32>> {
        let config = object(&dir.join(file))?;
        Ok(match config.get("eos_token_id") {
            Some(Json::Array(ids)) => ids.iter().filter_map(id).collect(),
            Some(one) => id(one).into_iter().collect(),
            None => vec![],
        })
    };
    let mut ids = named("generation_config.json")?;
    if ids.is_empty() {
        ids = named("config.json")?;
    }
    let own = special.get("eos_token").and_then(Json::as_str);
    if let Some(own) = own.and_then(|t| tokenizer.token_to_id(t)) {
        ids.push(own);
    }
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
    Ok(ids)
}

fn id(json: &Json) -> Option<u32> {
    json.as_u64().and_then(|id| u32::try_from(id).ok())
}
