//! One module a verb.

pub mod check;
pub mod eval;
pub mod explain;
pub mod fmt;
pub mod graph;
pub mod run;
