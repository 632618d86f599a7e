//! P217: pieces that are not as many as devices.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::Placed;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let Some(place) = &facts.graph.place else {
        return vec![];
    };
    // Devices that are not there are P206's.
    let there = facts
        .placed()
        .filter(|call| call.hi <= place.cluster.devices());
    there.filter_map(mismatch).collect()
}

fn mismatch(call: &Placed) -> Option<Diagnostic> {
    let count = call.hi - call.lo;
    let product = call.dp.saturating_mul(call.tp).saturating_mul(call.pp);
    if product == count {
        return None;
    }
    Some(
        Diagnostic::error(
            "P217",
            call.devices,
            format!(
                "`{}` is split into dp {} · tp {} · pp {} = {product} pieces on {count} device{}",
                call.name,
                call.dp,
                call.tp,
                call.pp,
                if count == 1 { "" } else { "s" }
            ),
        )
        .help("the product of the three is the number of devices"),
    )
}
