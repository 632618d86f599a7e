//! P207: tensor parallelism across machines.

use super::facts::Facts;
use crate::diag::Diagnostic;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let Some(place) = &facts.graph.place else {
        return vec![];
    };
    let gpus = place.cluster.gpus;
    let wide = facts.placed().filter(|call| call.tp > gpus);
    wide.map(|call| {
        let nodes = call.tp.div_ceil(gpus);
        Diagnostic::warning(
            "P207",
            call.at("tp"),
            format!(
                "`tp: {}` spans {nodes} nodes of {gpus}; its all-reduces leave the fast links",
                call.tp
            ),
        )
        .label(place.cluster.span, format!("{gpus} devices a node"))
        .help(format!(
            "`tp: {gpus}` stays within a node; `pp` splits further"
        ))
    })
    .collect()
}
