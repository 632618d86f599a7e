//! Responses from the data: texts with the end token, and messages that continue a chat.

use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisSize, ExprRef, Member, ModelId, RolloutId, ValueId};
use rlhf_text::{Message, Tokens};
use tch::{Device, Kind, Tensor};

use super::context::Context;
use super::pass::{Drawn, Pass};
use crate::batch::Rows;
use crate::fault::{Fault, Result};
use crate::value::{Data, Value};

/// A response before it is cut to its limit.
struct Response {
    ids: Vec<u32>,
    text: Arc<str>,
    /// One a token, of a conversation.
    assistant: Vec<bool>,
}

impl Context<'_> {
    /// Texts of the data as responses with EOS appended, or messages as the template writes them; cut at the
    /// limit with a warning. Gives the rollout its token axis and its members.
    pub fn answer(
        &mut self,
        (model, prompt): (ModelId, ExprRef),
        mut prompts: Vec<Arc<[u32]>>,
        text: ExprRef,
        rollout: RolloutId,
        members: &[(Member, ValueId)],
        pass: &mut Pass,
    ) -> Result<()> {
        let graph = &self.job.graph;
        let tokens = self.tokens[model.0 as usize].clone();
        let value = self.per_prompt(text, rollout, pass)?;
        let AxisSize::Ragged(max) = graph.axis(graph.rollout(rollout).tokens).size else {
            return Err(Fault::new("a response axis is ragged"));
        };
        let mut made = match &value.data {
            Data::Chat(chats) => {
                let value = self.per_prompt(prompt, rollout, pass)?;
                let asked = value.chats()?;
                let rows = pass.prompt_rows(graph, rollout)?;
                let mut made = vec![];
                for (i, (prompt, chat)) in asked.iter().zip(chats).enumerate() {
                    let of_row = |d| in_row(d, rows.get(i).unwrap_or(&i) + 1);
                    let (prompt, response) = messages(&tokens, prompt, chat).map_err(of_row)?;
                    if let Some(place) = prompts.get_mut(i) {
                        *place = prompt;
                    }
                    made.push(response);
                }
                made
            }
            _ => {
                let eos = tokens.eos().first().copied();
                let response = |text: &Option<Arc<str>>| {
                    let text = text.clone().unwrap_or_default();
                    let mut ids = tokens.encode(&text, false)?;
                    ids.extend(eos);
                    let assistant = vec![];
                    Ok(Response {
                        ids,
                        text,
                        assistant,
                    })
                };
                value.texts()?.iter().map(response).collect::<Result<_>>()?
            }
        };
        let finished: Vec<bool> = made.iter().map(|r| r.ids.len() <= max).collect();
        let cut = finished.iter().filter(|whole| !**whole).count();
        if cut > 0 {
            let message = format!(
                "{cut} of {} texts are longer than {max} tokens and were cut",
                made.len()
            );
            self.warn_once(Fault::code("D303", message).at(graph.expr(text).span));
        }
        for response in &mut made {
            response.ids.truncate(max);
            response.assistant.truncate(max);
        }
        let assistant: Vec<bool> = made.iter().flat_map(|r| r.assistant.clone()).collect();
        let texts = made.iter().map(|r| r.text.clone()).collect();
        let rows = Rows {
            prompts,
            group: 1,
            responses: made.into_iter().map(|r| r.ids).collect(),
        };
        let logp = Tensor::zeros([rows.tokens() as i64], (Kind::Float, Device::Cpu));
        let drawn = Drawn {
            rollout,
            rows,
            logp,
            finished,
            texts,
        };
        self.bind_rollout(drawn, members, pass)?;
        for (_, id) in members.iter().filter(|(m, _)| *m == Member::Assistant) {
            let axes = graph.value(*id).ty.axes.clone();
            let value = Value::from_bool(axes, &assistant, &pass.env.shapes)?;
            pass.env.values.insert(*id, value);
        }
        Ok(())
    }
}

fn in_row(mut diagnostic: Box<Diagnostic>, row: usize) -> Fault {
    diagnostic.message = format!("row {row}: {}", diagnostic.message);
    Fault::from(diagnostic)
}

/// The tokens of a prompt and of the messages after it.
fn messages(
    tokens: &Tokens,
    prompt: &[Message],
    chat: &[Message],
) -> rlhf_text::Result<(Arc<[u32]>, Response)> {
    let continued = tokens.continued(prompt, chat)?;
    let text = match chat {
        [one] => one.content.as_str().into(),
        _ => Arc::from(tokens.decode(&continued.response)),
    };
    let response = Response {
        ids: continued.response,
        text,
        assistant: continued.assistant,
    };
    Ok((continued.prompt.into(), response))
}
