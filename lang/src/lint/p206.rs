//! P206: devices that the cluster does not have.

use super::facts::Facts;
use crate::diag::Diagnostic;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let Some(place) = &facts.graph.place else {
        return vec![];
    };
    let total = place.cluster.devices();
    let beyond = facts.placed().filter(|call| call.hi > total);
    beyond
        .map(|call| {
            Diagnostic::error(
                "P206",
                call.devices,
                format!(
                    "`gpus({}, {})` reaches past the {total} devices of the cluster",
                    call.lo, call.hi
                ),
            )
            .label(
                place.cluster.span,
                format!("{total} devices, 0 to {}", total - 1),
            )
            .help("the second number is one past the last device")
        })
        .collect()
}
