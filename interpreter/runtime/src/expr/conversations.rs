//! Operations on conversations, element by element.

use std::sync::Arc;

use rlhf_lang::graph::{AxisId, TextOp};
use rlhf_text::Message;

use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, align};

/// An operation on conversations over `axes`.
pub(super) fn apply(
    op: TextOp,
    args: &[&Value],
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let full = args
        .iter()
        .map(|a| align(a, axes, shapes))
        .collect::<Result<Vec<_>>>()?;
    let operand = |i: usize| full.get(i).ok_or_else(|| super::missing_operand(i));
    let chats: Vec<Arc<[Message]>> = match op {
        TextOp::CommonPrefix => both(operand(0)?, operand(1)?, &|x, y| {
            let most = x.len().min(y.len()).saturating_sub(1);
            let alike = x.iter().zip(y).take_while(|(a, b)| a == b).count();
            &x[..alike.min(most)]
        })?,
        TextOp::RemovePrefix => both(operand(0)?, operand(1)?, &|x, prefix| {
            x.strip_prefix(prefix).unwrap_or(x)
        })?,
        TextOp::Opening => {
            let opening = |chat: &Arc<[Message]>| {
                let first = chat.iter().position(|m| m.role == "assistant");
                Arc::from(&chat[..first.unwrap_or(chat.len())])
            };
            operand(0)?.chats()?.iter().map(opening).collect()
        }
        TextOp::System => {
            let rest = spoken(operand(1)?)?;
            let systems = operand(0)?.texts()?.iter();
            let whole = systems.zip(rest).map(|(system, rest)| {
                let system = message("system", system.as_deref().unwrap_or_default());
                std::iter::once(system).chain(rest).collect()
            });
            whole.collect()
        }
        _ => return Err(Fault::new("text is expected and a chat is found")),
    };
    Ok(Value {
        axes: axes.to_vec(),
        data: Data::Chat(chats),
    })
}

type Cut<'f> = &'f dyn for<'a> Fn(&'a [Message], &[Message]) -> &'a [Message];

fn both(x: &Value, y: &Value, cut: Cut) -> Result<Vec<Arc<[Message]>>> {
    let pairs = x.chats()?.iter().zip(y.chats()?);
    Ok(pairs.map(|(x, y)| Arc::from(cut(x, y))).collect())
}

/// Conversations, or texts as what the user says.
fn spoken(value: &Value) -> Result<Vec<Vec<Message>>> {
    Ok(match &value.data {
        Data::Chat(chats) => chats.iter().map(|c| c.to_vec()).collect(),
        _ => {
            let texts = value.texts()?.iter();
            texts
                .map(|t| vec![message("user", t.as_deref().unwrap_or_default())])
                .collect()
        }
    })
}

fn message(role: &str, content: &str) -> Message {
    Message {
        role: role.into(),
        content: content.into(),
    }
}
