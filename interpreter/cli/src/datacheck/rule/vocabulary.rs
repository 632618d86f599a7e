//! M120: tokens that another model's tokenizer made.

use rlhf_text::Tokens;

use crate::datacheck::finding::{Finding, Place};
use crate::datacheck::view::View;

/// The reader of this index, with its own tokenizer and that of the model whose tokens it reads.
pub fn check(view: &View, index: usize, own: &Tokens, makers: &Tokens) -> Option<Finding> {
    let reader = view.readers.get(index)?;
    let call = view.calls.get(reader.call)?;
    (!own.same_vocabulary(makers)).then(|| {
        Finding::error(
            "M120",
            Place::Reader(index),
            format!(
                "`{}` uses another tokenizer than `{}`, whose tokens `{}` holds",
                reader.model, call.model, call.name
            ),
            "take both models from checkpoints of one family",
        )
    })
}
