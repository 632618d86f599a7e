//! P210: replicas that cannot take equal shares of an update.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{NodeKind, Placed};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    facts
        .placed()
        .filter_map(|call| divides(facts, call))
        .collect()
}

fn divides(facts: &Facts, call: &Placed) -> Option<Diagnostic> {
    let node = facts
        .graph
        .dag
        .order()
        .map(|id| facts.graph.dag.node(id))
        .find(|n| n.name == call.name)?;
    // Pieces that are not as many as devices are P217's.
    if call.dp.saturating_mul(call.tp).saturating_mul(call.pp) != call.hi - call.lo {
        return None;
    }
    let NodeKind::Train(train) = &node.kind else {
        return None;
    };
    let rows = facts.rows(train)?;
    let minibatch = train.minibatch.unwrap_or(rows);
    if minibatch.is_multiple_of(call.dp) {
        return None;
    }
    let near: Vec<String> = (1..=minibatch)
        .filter(|d| minibatch.is_multiple_of(*d) && *d <= call.dp.saturating_mul(4))
        .map(|d| d.to_string())
        .collect();
    Some(
        Diagnostic::error(
            "P210",
            call.at("dp"),
            format!(
                "`dp: {}` does not divide a minibatch of {minibatch}",
                call.dp
            ),
        )
        .label(node.span, format!("{minibatch} rows an update"))
        .help(format!("these do: {}", near.join(", "))),
    )
}
