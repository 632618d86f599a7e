//! M118: rows that are both trained on and evaluated on.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Elem, Graph, NodeKind, Scope};
use rlhf_text::rows::{Row, Rows};

use crate::datacheck::recipe::Recipe;
use crate::datacheck::view::View;

/// One data set as the step or an evaluation reads it.
struct Use<'a> {
    data: usize,
    scope: Scope,
    /// The columns in use, by their names in the file.
    columns: BTreeSet<&'a str>,
}

/// The rows of each evaluation's data set that the step reads too: equal in every column that both use.
/// Where both read one file, the program alone shows it, and nothing is said here.
pub fn check(graph: &Graph, view: &View, rows: &[Option<Arc<Rows>>]) -> Vec<Diagnostic> {
    let (mut trained, mut held) = (vec![], vec![]);
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        let NodeKind::Load { data, columns, .. } = &node.kind else {
            continue;
        };
        let data = data.0 as usize;
        let names = columns.iter().map(|(c, _)| &graph.data[data].columns[*c]);
        let read = Use {
            data,
            scope: node.scope,
            columns: names.map(|c| c.source.as_str()).collect(),
        };
        match node.scope {
            Scope::Step => trained.push(read),
            Scope::Eval(_) => held.push(read),
        }
    }
    let mut found = vec![];
    let mut seen = HashSet::new();
    for test in &held {
        for train in &trained {
            let pair = (test.data, train.data);
            let Some(shared) = shared(graph, view, test, train) else {
                continue;
            };
            if same_file(graph, test.data, train.data) || !seen.insert(pair) {
                continue;
            }
            if let (Some(a), Some(b)) = (&rows[test.data], &rows[train.data]) {
                found.extend(common(graph, (test.data, a), (train.data, b), &shared));
            }
        }
    }
    found
}

/// The columns that both use, where they tell rows apart: other questions may have the same answer, so
/// all that a prompt is made of is among them. Where that is not known, they are all the columns that
/// either uses, more than one, and one of them is a text.
fn shared<'a>(graph: &Graph, view: &View, test: &Use<'a>, train: &Use<'a>) -> Option<Vec<&'a str>> {
    let both: Vec<&str> = test.columns.intersection(&train.columns).copied().collect();
    let prompts = [told(view, test), told(view, train)].concat();
    let enough = match prompts.is_empty() {
        false => prompts.iter().all(|column| both.contains(column)),
        true => {
            let columns = graph.data[test.data].columns.iter();
            let mut texts = columns.filter(|c| matches!(c.elem, Elem::Text | Elem::Chat));
            test.columns == train.columns
                && both.len() > 1
                && texts.any(|c| both.contains(&c.source.as_str()))
        }
    };
    (enough && !both.is_empty()).then_some(both)
}

/// The columns of which the prompts are made; of which the responses are, where no prompt reads any.
fn told<'v>(view: &'v View, of: &Use) -> Vec<&'v str> {
    let calls = view.calls.iter().filter(|c| c.scope == of.scope);
    let read = |recipe: Option<&'v Recipe>| {
        let recipe = recipe.filter(|r| r.data() == Some(of.data));
        recipe.map_or(vec![], Recipe::columns)
    };
    let prompts = calls.clone().flat_map(|c| read(c.prompt.as_ref()));
    let prompts: Vec<&str> = prompts.collect();
    match prompts.is_empty() {
        false => prompts,
        true => {
            // A prompt that is not known may read any column.
            let constant = calls.filter(|c| c.prompt.is_some());
            constant.flat_map(|c| read(c.response.as_ref())).collect()
        }
    }
}

fn same_file(graph: &Graph, a: usize, b: usize) -> bool {
    let (a, b) = (&graph.data[a], &graph.data[b]);
    (&a.path, &a.split, &a.config) == (&b.path, &b.split, &b.config)
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
