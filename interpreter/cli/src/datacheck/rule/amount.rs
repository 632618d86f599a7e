//! D314: rows enough for one batch.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisSize, Data, Graph, NodeKind};
use rlhf_text::rows::{self, Rows};

/// The file has no rows; or, read whole, fewer than one iteration takes.
pub fn check(graph: &Graph, index: usize, data: &Data, rows: &Rows) -> Option<Diagnostic> {
    if rows.rows.is_empty() {
        return Some(rows::no_rows(data));
    }
    if !rows.complete {
        return None;
    }
    let batch = graph.dag.order().find_map(|id| {
        let node = graph.dag.node(id);
        match &node.kind {
            NodeKind::Load { data, axis, .. } if data.0 as usize == index => {
                match graph.axis(*axis).size {
                    AxisSize::Fixed(n) => Some((n, node.span)),
                    _ => None,
                }
            }
            _ => None,
        }
    });
    let (batch, span) = batch?;
    let count = rows.rows.len();
    (count < batch).then(|| {
        let rows = rows::count(count);
        let message = format!("{rows} cannot fill one batch of {batch}");
        Diagnostic::error("D314", data.path_span, message)
            .label(span, format!("takes {batch} rows at a time"))
            .help(format!("add rows, or take at most {count} at a time"))
    })
}
