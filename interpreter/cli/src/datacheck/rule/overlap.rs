//! M118: rows that are both trained on and evaluated on.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Graph, NodeKind, Scope};
use rlhf_text::rows::{Row, Rows};

/// The rows of each evaluation's data set that the step reads too: equal in every column that both use.
/// Where both read one file, the program alone shows it, and nothing is said here.
pub fn check(graph: &Graph, rows: &[Option<Arc<Rows>>]) -> Vec<Diagnostic> {
    let (mut trained, mut held) = (vec![], vec![]);
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        let NodeKind::Load { data, columns, .. } = &node.kind else {
            continue;
        };
        let data = data.0 as usize;
        let names = columns.iter().map(|(c, _)| &graph.data[data].columns[*c]);
        let names: BTreeSet<&str> = names.map(|c| c.source.as_str()).collect();
        match node.scope {
            Scope::Step => trained.push((data, names)),
            Scope::Eval(_) => held.push((data, names)),
        }
    }
    let mut found = vec![];
    let mut seen = HashSet::new();
    for (test, used) in &held {
        for (train, names) in &trained {
            let shared: Vec<&str> = used.intersection(names).copied().collect();
            if same_file(graph, *test, *train) || shared.is_empty() || !seen.insert((*test, *train))
            {
                continue;
            }
            if let (Some(a), Some(b)) = (&rows[*test], &rows[*train]) {
                found.extend(common(graph, (*test, a), (*train, b), &shared));
            }
        }
    }
    found
}

fn same_file(graph: &Graph, a: usize, b: usize) -> bool {
    graph.data[a].path == graph.data[b].path
}

fn common(
    graph: &Graph,
    (test, held): (usize, &Rows),
    (train, trained): (usize, &Rows),
    columns: &[&str],
) -> Option<Diagnostic> {
    let state = RandomState::new();
    let hash = |row: &Row| -> Option<u64> {
        let cells: Option<Vec<_>> = columns.iter().map(|c| row.object.get(*c)).collect();
        Some(state.hash_one(serde_json::to_string(&cells?).ok()?))
    };
    let known: HashSet<u64> = trained.rows.iter().filter_map(hash).collect();
    let twice = |row: &&Row| hash(row).is_some_and(|h| known.contains(&h));
    let (count, first) = (
        held.rows.iter().filter(twice).count(),
        held.rows.iter().find(twice)?,
    );
    let (test, train) = (&graph.data[test], &graph.data[train]);
    let (all, of) = (
        held.rows.len(),
        if held.complete { "" } else { "the first " },
    );
    let message = format!(
        "{count} of {of}{all} rows of `{}` are in `{}` too, which the step trains on",
        test.path, train.path
    );
    Some(
        Diagnostic::warning("M118", test.path_span, message)
            .label(train.path_span, "trained on")
            .help(format!(
                "the first is {}; leave them out of one of the files",
                first.place()
            )),
    )
}
