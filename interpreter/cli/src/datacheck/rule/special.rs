//! D306 and D307: special tokens written twice, or with two meanings.

use crate::datacheck::case::Case;
use crate::datacheck::finding::{Finding, Place};

/// What is wrong with the special tokens of one call.
pub fn check(case: &Case) -> Vec<Finding> {
    let all = [double_bos(case), pad_is_eos(case)];
    all.into_iter().flatten().collect()
}

/// D306
fn double_bos(case: &Case) -> Option<Finding> {
    let bos = case.tokens.bos()?;
    let twice = |ids: &[u32]| matches!(ids, [a, b, ..] if *a == bos && *b == bos);
    let count = case.prompts.iter().filter(|p| twice(&p.ids)).count();
    let first = case.prompts.iter().find(|p| twice(&p.ids))?;
    let mark = case.tokens.text_of(bos).unwrap_or_default();
    let rows = format!("{count} {}{} rows", case.of(), case.prompts.len());
    let (message, help) = match case.call.chat {
        true => (
            format!("the template writes `{mark}` twice at the start of a prompt ({rows})"),
            format!("the template writes one itself: leave `{mark}` out of the messages"),
        ),
        false => (
            format!(
                "{} starts with `{mark}` and the tokenizer adds another ({rows})",
                case.prompt_name()
            ),
            format!(
                "the tokenizer writes one before every plain prompt: leave `{mark}` out of the data"
            ),
        ),
    };
    Some(Finding::warning(
        "D306",
        Place::Prompt(case.index),
        message,
        format!(
            "the first two ids of {} are {bos}, {bos}; {help}",
            first.row.place()
        ),
    ))
}

/// D307, where responses of the data are learnt from: elsewhere the sampler decides where they end.
fn pad_is_eos(case: &Case) -> Option<Finding> {
    let pad = case.tokens.pad()?;
    let learns = case.call.response.is_some() && case.call.trained;
    (learns && case.tokens.eos().contains(&pad)).then(|| {
        Finding::hint(
            "D307",
            Place::Call(case.index),
            format!("padding and EOS share id {pad}; responses here are ragged, so EOS stays supervised"),
            "tools that mask padding by its id would mask EOS too, and a model trained so never stops",
        )
    })
}
