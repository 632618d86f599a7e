//! Rules over the finished graph.

use crate::diag::Diagnostic;
use crate::graph::Graph;
use crate::source::Sources;

pub(crate) fn check(_graph: &Graph, _sources: &Sources) -> Vec<Diagnostic> {
    vec![]
}
