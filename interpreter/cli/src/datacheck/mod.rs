//! The data that a program names, held against what the program declares: the files exist, the rows
//! parse, the columns are there and have their types.

mod columns;
mod rows;

use std::path::Path;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisSize, Data, Graph, NodeKind, Reward, RewardSource};
use rlhf_lang::source::Sources;

use crate::program;

/// How much of each file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The first 256 rows.
    Head,
    /// Every row.
    All,
}

/// Checks every data set of the graph. Texts of data files that diagnostics point into are added to
/// `sources`.
pub fn check(
    graph: &Graph,
    folder: &Path,
    extent: Extent,
    sources: &mut Sources,
) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (index, data) in graph.data.iter().enumerate() {
        if !matches!(data.format.as_str(), "jsonl" | "json") {
            continue;
        }
        let Some(path) = program::find(folder, &data.path) else {
            found.push(missing(data, folder));
            continue;
        };
        match rows::read(&path, data, extent, sources) {
            Ok(rows) => {
                found.extend(columns::check(data, &rows));
                found.extend(too_few(graph, index, data, &rows));
            }
            Err(diagnostic) => found.push(*diagnostic),
        }
    }
    let rewards = graph.rewards.iter();
    found.extend(rewards.filter_map(|r| unresolvable(r, folder)));
    found
}

/// D312: the script of a reward is not there. What is in it, only Python knows.
fn unresolvable(reward: &Reward, folder: &Path) -> Option<Diagnostic> {
    let RewardSource::Python { file, span, .. } = &reward.source else {
        return None;
    };
    if program::find(folder, file).is_some() {
        return None;
    }
    let d = Diagnostic::error("D312", *span, format!("there is no file `{file}`"));
    Some(elsewhere(d, file, folder))
}

fn missing(data: &Data, folder: &Path) -> Diagnostic {
    let d = Diagnostic::error("", data.path_span, format!("no file `{}`", data.path));
    elsewhere(d, &data.path, folder)
}

/// Offers the nearest name, or says where the file was looked for.
fn elsewhere(d: Diagnostic, path: &str, folder: &Path) -> Diagnostic {
    match program::nearest(&program::within(folder, path)) {
        Some(near) => d.help(format!("a similar name is there: `{}`", near.display())),
        None => d.help(format!(
            "looked in the program's folder (`{}`) and in the working directory",
            folder.display()
        )),
    }
}

/// D314: the file, read whole, has fewer rows than one iteration takes.
fn too_few(graph: &Graph, index: usize, data: &Data, rows: &rows::Rows) -> Option<Diagnostic> {
    if rows.rows.is_empty() {
        let message = format!("`{}` has no rows", data.path);
        return Some(
            Diagnostic::error("D314", data.path_span, message)
                .help("write one JSON object a line, with the declared columns"),
        );
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
        let message = format!("{count} rows cannot fill one batch of {batch}");
        Diagnostic::error("D314", data.path_span, message)
            .label(span, format!("takes {batch} rows at a time"))
            .help(format!("add rows, or take at most {count} at a time"))
    })
}
