//! Text to tree.
//!
//! [`parse()`] never fails and never stops at a mistake: the text becomes tokens, the tokens are cut
//! into items and statements, and each piece is parsed alone. A piece that does not parse gives one
//! diagnostic and a `Bad` node.

pub mod ast;
mod blocks;
mod build;
mod explain;
mod grammar;
mod items;
pub(crate) mod library;
mod memo;
mod mistakes;
pub mod parse;
mod scan;
mod shift;
mod split;
pub(crate) mod tokens;

pub use memo::forget;
pub use parse::{parse, parse_expression};
