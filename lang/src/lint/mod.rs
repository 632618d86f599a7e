//! Rules: what a program that has a meaning can still have wrong, and a page for every code.
//!
//! A rule here reads the finished graph and nothing else, so it sees through functions and names.
//! Codes starting with E are reported where the meaning breaks down, in parsing and lowering; their
//! pages are here too.

mod allow;
mod e024;
mod facts;
mod l006;
mod l009;
mod l010;
mod m101;
mod m102;
mod m103;
mod m104;
mod m105;
mod m106;
mod m108;
mod m109;
mod m111;
mod m112;
mod m113;
mod m114;
mod m115;
mod m116;
mod m117;
mod m118;
mod m121;
mod m122;
mod m123;
mod m124;
mod m125;
mod m126;
mod p205;
mod p206;
mod p207;
mod p210;
mod p214;
mod p217;
mod pages;

pub(crate) use allow::allow;
pub use allow::allowed;
pub(crate) use l010::check as bare_constants;
pub use pages::{codes, explain};

use crate::diag::Diagnostic;
use crate::graph::Graph;
use crate::source::Sources;
use facts::Facts;

/// Every rule over a graph, in the order of their codes.
pub(crate) fn check(graph: &Graph, sources: &Sources) -> Vec<Diagnostic> {
    let facts = Facts::new(graph, sources);
    let rules: [fn(&Facts) -> Vec<Diagnostic>; 31] = [
        e024::check,
        l006::check,
        l009::check,
        m101::check,
        m102::check,
        m103::check,
        m104::check,
        m105::check,
        m106::check,
        m108::check,
        m109::check,
        m111::check,
        m112::check,
        m113::check,
        m114::check,
        m115::check,
        m116::check,
        m117::check,
        m118::check,
        m121::check,
        m122::check,
        m123::check,
        m124::check,
        m125::check,
        m126::check,
        p205::check,
        p206::check,
        p207::check,
        p210::check,
        p214::check,
        p217::check,
    ];
    let mut found: Vec<Diagnostic> = rules.iter().flat_map(|rule| rule(&facts)).collect();
    // A ratio that is wrong holds nothing; once it is mended it may.
    let broken =
        |d: &Diagnostic| matches!(d.code.as_str(), "E024" | "M102" | "M103" | "M105" | "M106");
    if found.iter().any(broken) {
        found.retain(|d| !matches!(d.code.as_str(), "M101" | "M111" | "M112" | "M113"));
    }
    found
}
