//! P205: two calls that do not wait for each other on devices that both want, while others idle.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{NodeId, Place, Placed};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let place = facts.graph.place.as_ref();
    place.map_or(vec![], |place| conflict(facts, place))
}

fn conflict(facts: &Facts, place: &Place) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let ids: Vec<(NodeId, &Placed)> = place
        .calls
        .iter()
        .filter_map(|call| {
            let id = graph
                .dag
                .order()
                .find(|id| graph.dag.node(*id).name == call.name)?;
            Some((id, call))
        })
        .collect();
    let mut found = vec![];
    for (i, (a, first)) in ids.iter().enumerate() {
        for (b, second) in ids.iter().skip(i + 1) {
            let (lo, hi) = (first.lo.max(second.lo), first.hi.min(second.hi));
            let used = (first.hi - first.lo) + (second.hi - second.lo) - hi.saturating_sub(lo);
            let same_scope = graph.dag.node(*a).scope == graph.dag.node(*b).scope;
            if lo >= hi || used >= place.cluster.devices() || !same_scope {
                continue;
            }
            if facts.precedes(*a, *b) || facts.precedes(*b, *a) {
                continue;
            }
            found.push(
                Diagnostic::warning(
                    "P205",
                    second.devices,
                    format!(
                        "`{}` and `{}` could run together but share gpus {lo}..{}",
                        first.name,
                        second.name,
                        hi - 1
                    ),
                )
                .label(first.devices, format!("`{}` runs here", first.name))
                .help("move one of them to devices that both leave free"),
            );
        }
    }
    found
}
