//! The parser that `grammar.pest` generates.
#![allow(missing_docs)]

/// Generated from `grammar.pest`.
#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
pub(crate) struct Grammar;
