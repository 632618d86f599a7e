//! The data, the tokenizers and the rewards that a program names, held against what it does with them.
//!
//! What needs a tokenizer or runs a reward takes time and is remembered between commands; a session
//! keeps rows and tokenizers too.

mod allow;
mod case;
mod finding;
mod memory;
mod recipe;
mod rule;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Data, Elem, Graph, RewardSource};
use rlhf_lang::source::Sources;
use rlhf_text::rows::{self, Rows};
use rlhf_text::{Tokens, files};

use crate::{hub, launch};
use case::Case;
use finding::{Finding, Place};
use memory::{Memory, stamp};
use rule::gold::Trial;
use view::View;

pub use rlhf_text::rows::Extent;

/// The files that make a tokenizer, and the model's shape.
const TOKENIZER: [&str; 7] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "config.json",
];

type Loaded = Result<Arc<Tokens>, Box<Diagnostic>>;
type Stamp = Option<(PathBuf, u64, u128)>;
/// Files as they are read: where they are, their source, their columns and how far.
type Reading = (Vec<PathBuf>, String, Vec<(String, Elem)>, Extent);
type Tables = HashMap<Reading, (Vec<Stamp>, Arc<Rows>)>;

/// The rows of a data set and when they were written.
#[derive(Default)]
struct Table {
    rows: Option<Arc<Rows>>,
    stamps: Vec<Stamp>,
}

/// Whether rewards written in Python are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripts {
    /// They are called on the answers of the data.
    Run,
    /// They are looked at without running them, as an editor must.
    LeaveOut,
}

/// What is known from one check to the next: the rows and the tokenizers that the last one used, and
/// findings that took time.
#[derive(Debug)]
pub struct Session {
    memory: Memory,
    tables: Tables,
    tokenizers: HashMap<(PathBuf, Vec<Stamp>), Loaded>,
    scripts: Scripts,
}

/// One check that nothing is kept of but what the cache directory holds.
pub fn check(
    graph: &Graph,
    folder: &Path,
    extent: Extent,
    sources: &mut Sources,
) -> Vec<Diagnostic> {
    Session::new(Scripts::Run).check(graph, folder, extent, sources)
}

impl Session {
    /// Knows what the cache directory holds.
    pub fn new(scripts: Scripts) -> Session {
        Session::with(Memory::of_user(), scripts)
    }

    fn with(memory: Memory, scripts: Scripts) -> Session {
        Session {
            memory,
            tables: HashMap::new(),
            tokenizers: HashMap::new(),
            scripts,
        }
    }

    /// Everything that is wrong with the data, the tokenizers and the rewards of a graph. Texts of data
    /// files that diagnostics point into are added to `sources`.
    pub fn check(
        &mut self,
        graph: &Graph,
        folder: &Path,
        extent: Extent,
        sources: &mut Sources,
    ) -> Vec<Diagnostic> {
        let mut found = vec![];
        let mut tables = vec![];
        let before = std::mem::take(&mut self.tables);
        for (index, data) in graph.data.iter().enumerate() {
            let table = match self.table(data, folder, extent, &before, sources) {
                Ok(table) => table,
                Err(d) => {
                    found.push(*d);
                    Table::default()
                }
            };
            if let Some(rows) = &table.rows {
                found.extend(rule::columns::check(data, rows));
                found.extend(rule::amount::check(graph, index, data, rows));
            }
            tables.push(table);
        }
        let stamps: Vec<Vec<Stamp>> = tables.iter().map(|t| t.stamps.clone()).collect();
        let all: Vec<Option<Arc<Rows>>> = tables.into_iter().map(|t| t.rows).collect();
        let view = View::of(graph, folder);
        found.extend(rule::overlap::check(graph, &view, &all));
        let rewards = graph.rewards.iter();
        let unresolved: Vec<Option<Diagnostic>> =
            rewards.map(|r| rule::reward::check(r, folder)).collect();
        let resolved: Vec<bool> = unresolved.iter().map(Option::is_none).collect();
        found.extend(unresolved.into_iter().flatten());

        let mut findings = self.tokens(graph, &view, &all, &stamps, extent);
        if self.scripts == Scripts::Run {
            findings.extend(self.gold(graph, &view, &all, &stamps, &resolved, folder));
        }
        let mut said = HashSet::new();
        findings.retain(|f| said.insert((f.code.clone(), f.message.clone())));
        found.extend(findings.iter().map(|f| f.diagnostic(&view)));
        allow::silence(found, sources)
    }

    /// The rows of a data set, as they were `before` where its files are the same; none of a data set on the
    /// hub that is not on this machine.
    fn table(
        &mut self,
        data: &Data,
        folder: &Path,
        extent: Extent,
        before: &Tables,
        sources: &mut Sources,
    ) -> Result<Table, Box<Diagnostic>> {
        let mut data = data.clone();
        if data.format == "hf" {
            match hub::local_dataset(&data, folder) {
                Some(directory) => data.path = directory.display().to_string(),
                None => return Ok(Table::default()),
            }
        }
        let parts = rows::parts(&data, folder)?;
        let paths: Vec<PathBuf> = parts.iter().map(|p| p.path.clone()).collect();
        let stamps: Vec<Stamp> = paths.iter().map(|p| stamp(p)).collect();
        // Cells of a csv file are read as the program declares them.
        let columns = data.columns.iter().map(|c| (c.source.clone(), c.elem));
        let known = (paths, data.format.clone(), columns.collect(), extent);
        let kept = before.get(&known).filter(|(at, _)| *at == stamps);
        let rows = match kept {
            Some((_, rows)) => rows.clone(),
            None => {
                let rows = rows::read_parts(&parts, extent);
                Arc::new(rows.map_err(|wrong| {
                    let (part, unreadable) = *wrong;
                    unreadable.drawn(&part, sources)
                })?)
            }
        };
        self.tables.insert(known, (stamps.clone(), rows.clone()));
        let rows = Some(rows);
        Ok(Table { rows, stamps })
    }

    /// The rules that need a tokenizer, remembered under everything they look at.
    fn tokens(
        &mut self,
        graph: &Graph,
        view: &View,
        rows: &[Option<Arc<Rows>>],
        data: &[Vec<Stamp>],
        extent: Extent,
    ) -> Vec<Finding> {
        let folders: BTreeSet<&PathBuf> = view
            .calls
            .iter()
            .filter_map(|c| c.folder.as_ref())
            .chain(view.readers.iter().map(|r| &r.folder))
            .collect();
        let parts: Vec<(PathBuf, Vec<Stamp>)> = folders
            .into_iter()
            .map(|f| (f.clone(), tokenizer(f)))
            .collect();
        self.tokenizers.retain(|of, _| parts.contains(of));
        if parts.is_empty() {
            return vec![];
        }
        let paths: Vec<&str> = graph.data.iter().map(|d| d.path.as_str()).collect();
        let formats: Vec<&str> = graph.data.iter().map(|d| d.format.as_str()).collect();
        let all = extent == Extent::All;
        let looked_at = (
            "tokens",
            (&view.calls, &view.readers),
            (&parts, &paths, &formats, data),
            all,
        );
        let Some(key) = memory::key(&looked_at) else {
            return vec![];
        };
        let tokenizers = &mut self.tokenizers;
        self.memory.recall(&key, || {
            let mut load = |folder: &PathBuf| {
                let entry = tokenizers.entry((folder.clone(), tokenizer(folder)));
                entry
                    .or_insert_with(|| Tokens::load(folder).map(Arc::new))
                    .clone()
            };
            Some(look(view, rows, &paths, &mut load))
        })
    }

    /// The rule that runs rewards.
    fn gold(
        &mut self,
        graph: &Graph,
        view: &View,
        rows: &[Option<Arc<Rows>>],
        data: &[Vec<Stamp>],
        resolved: &[bool],
        folder: &Path,
    ) -> Vec<Finding> {
        let python = launch::python();
        let mut found = vec![];
        for scoring in &view.scorings {
            let index = scoring.reward.0 as usize;
            if resolved.get(index) != Some(&true) {
                continue;
            }
            let reward = &graph.rewards[index];
            let (code, scripts) = match &reward.source {
                RewardSource::Python { file, function, .. } => {
                    // An edited module is another reward, though the script is the same.
                    let scripts = files::find(folder, file).map(|p| rule::gold::scripts(&p));
                    (
                        (file.as_str(), function.as_str()),
                        scripts.unwrap_or_default(),
                    )
                }
                RewardSource::Command { command, .. } => {
                    let words = command.split_whitespace();
                    let scripts = words.filter_map(|word| files::find(folder, word));
                    ((command.as_str(), ""), scripts.collect())
                }
                // A service may be far away or count its calls.
                RewardSource::Http { .. } => continue,
            };
            let scripts: Vec<Stamp> = scripts.iter().map(|p| stamp(p)).collect();
            let looked_at = (
                ("gold", &reward.name, &reward.params, reward.result),
                (code, scripts, reward.timeout, &python),
                (&view.calls, scoring, index, data),
            );
            let Some(key) = memory::key(&looked_at) else {
                continue;
            };
            found.extend(self.memory.recall(&key, || {
                match rule::gold::check(view, scoring, reward, rows, folder, &python) {
                    Trial::Sound => Some(vec![]),
                    Trial::Wrong(finding) => Some(vec![finding]),
                    Trial::Unknown => None,
                }
            }));
        }
        found
    }
}

/// Every rule that needs a tokenizer.
fn look(
    view: &View,
    rows: &[Option<Arc<Rows>>],
    paths: &[&str],
    load: &mut dyn FnMut(&PathBuf) -> Loaded,
) -> Vec<Finding> {
    let mut found = vec![];
    let mut loaded: Vec<Option<Arc<Tokens>>> = vec![];
    for (index, call) in view.calls.iter().enumerate() {
        let tokens = call.folder.as_ref().map(&mut *load);
        loaded.push(match tokens {
            Some(Ok(tokens)) => Some(tokens),
            Some(Err(d)) => {
                found.push(Finding::told(*d, Place::Call(index)));
                None
            }
            None => None,
        });
    }
    let mut cases = vec![];
    for (index, (call, tokens)) in view.calls.iter().zip(&loaded).enumerate() {
        let (Some(tokens), Some(folder)) = (tokens, &call.folder) else {
            continue;
        };
        let recipes = [&call.prompt, &call.response];
        let data = recipes
            .into_iter()
            .flatten()
            .find_map(|recipe| recipe.data());
        let data = data.and_then(|i| Some((paths[i], rows[i].as_deref()?)));
        cases.push(Case::new(index, call, tokens, folder, data));
    }
    for case in &cases {
        found.extend(rule::template::check(case));
        found.extend(rule::length::check(case));
        found.extend(rule::special::check(case));
    }
    rule::length::pairs(&cases, &mut found);
    for (index, reader) in view.readers.iter().enumerate() {
        let makers = &loaded[reader.call];
        if let (Ok(own), Some(makers)) = (load(&reader.folder), makers) {
            found.extend(rule::vocabulary::check(view, index, &own, makers));
        }
    }
    found
}

fn tokenizer(folder: &Path) -> Vec<Stamp> {
    TOKENIZER.iter().map(|f| stamp(&folder.join(f))).collect()
}
