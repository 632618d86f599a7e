//! Rules: what a program that has a meaning can still have wrong, and a page for every code.
//!
//! A rule here reads the finished graph and nothing else, so it sees through functions and names.
//! Codes starting with E are reported where the meaning breaks down, in parsing and lowering; their
//! pages are here too.

mod allow;
mod e024;
mod facts;
mod m102;
mod m103;
mod m105;
mod m106;
mod m108;
mod m109;
mod pages;

pub(crate) use allow::allow;
pub use pages::{codes, explain};

use crate::diag::Diagnostic;
use crate::graph::Graph;
use crate::source::Sources;
use facts::Facts;

/// Every rule over a graph, in the order of their codes.
pub(crate) fn check(graph: &Graph, sources: &Sources) -> Vec<Diagnostic> {
    let facts = Facts::new(graph, sources);
    let rules: [fn(&Facts) -> Vec<Diagnostic>; 7] = [
        e024::check,
        m102::check,
        m103::check,
        m105::check,
        m106::check,
        m108::check,
        m109::check,
    ];
    rules.iter().flat_map(|rule| rule(&facts)).collect()
}
