//! The rules, one file a rule or a small group that looks at the same things.

pub mod amount;
pub mod columns;
pub mod gold;
pub mod length;
pub mod overlap;
mod python;
pub mod reward;
pub mod special;
pub mod template;
pub mod vocabulary;
