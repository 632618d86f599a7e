//! D313: a reward in Python, or of a program, that gives nothing even for the answer of the data.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Reward;
use rlhf_text::reward::{Pool, Python};
use rlhf_text::rows::{self, Row, Rows};
use serde_json::Value as Json;

use crate::datacheck::finding::{Finding, Place};
use crate::datacheck::view::{Argument, Scoring, View};

/// So many rows are tried.
const ROWS: usize = 64;
/// So many calls are made before the time is looked at.
const SLICE: usize = 8;
/// So many entries of folders are looked at for what a script imports.
const FILES: usize = 1024;
/// So many folders below the script's own.
const DEPTH: usize = 2;
/// A reward that takes longer to import or to call is left to the run.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names under which data sets keep the right answer.
const GOLD: [&str; 8] = [
    "answer",
    "solution",
    "target",
    "label",
    "gold",
    "reference",
    "expected",
    "truth",
];

/// What a trial of a reward shows.
#[derive(Debug)]
pub enum Trial {
    /// Nothing is wrong.
    Sound,
    /// Something is.
    Wrong(Finding),
    /// The reward was too slow, or there is no Python: another time it may show more.
    Unknown,
}

/// Calls the reward with the right answer as the response.
pub fn check(
    view: &View,
    scoring: &Scoring,
    reward: &Reward,
    tables: &[Option<Arc<Rows>>],
    folder: &Path,
    python: &str,
) -> Trial {
    let Some((name, source, data)) = gold(view, scoring) else {
        return Trial::Sound;
    };
    let Some(rows) = tables.get(data).and_then(Option::as_ref) else {
        return Trial::Sound;
    };
    let calls: Vec<(&Row, Vec<Json>)> = rows
        .rows
        .iter()
        .filter_map(|row| Some((row, arguments(scoring, row, source)?)))
        .take(ROWS)
        .collect();
    let Some((first, _)) = calls.first() else {
        return Trial::Sound;
    };
    let place = Place::Reward(scoring.reward.0 as usize);
    let start = Instant::now();
    let values = match score(reward, &calls, folder, python, start) {
        Ok(Some(values)) => values,
        Ok(None) => return Trial::Unknown,
        // A slow reward is no wrong one.
        Err(_) if start.elapsed() >= PATIENCE => return Trial::Unknown,
        Err(failed) => return failure(*failed, place, &name),
    };
    if !values.iter().all(|v| *v <= 0.0 && *v == values[0]) {
        return Trial::Sound;
    }
    let shown = first.object.get(source).map(brief).unwrap_or_default();
    let (reward, value) = (&reward.name, values[0]);
    Trial::Wrong(Finding::warning(
        "D313",
        place,
        format!(
            "on {} with `{name}` as the response, `{reward}` is always {value}",
            rows::count(values.len())
        ),
        format!(
            "{} has {shown}; does the reward read it in this form?",
            first.place()
        ),
    ))
}

/// The Python files that a script may import, itself included: in its folder and in the folders there,
/// at most [`FILES`] of them.
pub fn scripts(script: &Path) -> Vec<PathBuf> {
    let mut scripts = vec![script.to_path_buf()];
    // Of a file without a folder the folder is this one.
    let own = script.parent().filter(|p| !p.as_os_str().is_empty());
    let mut folders = VecDeque::from([(own.unwrap_or(Path::new(".")).to_path_buf(), 0)]);
    let mut left = FILES;
    while let Some((folder, depth)) = folders.pop_front() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut entries: Vec<DirEntry> = entries.take(left).collect();
        left -= entries.len();
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.as_encoded_bytes().starts_with(b".") || name == "__pycache__";
            match entry.file_type() {
                Ok(t) if t.is_dir() && depth < DEPTH && !hidden => {
                    folders.push_back((path, depth + 1))
                }
                _ if path.extension().is_some_and(|e| e == "py") => scripts.push(path),
                _ => {}
            }
        }
    }
    scripts
}

fn brief(cell: &Json) -> String {
    let text = cell.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The values; nothing when they take too long.
fn score(
    reward: &Reward,
    calls: &[(&Row, Vec<Json>)],
    folder: &Path,
    python: &str,
    start: Instant,
) -> Result<Option<Vec<f64>>, Box<Diagnostic>> {
    let limit = PATIENCE.as_secs_f64();
    let alone = Reward {
        workers: Some(1),
        // The first failure ends the trial.
        otherwise: None,
        timeout: Some(reward.timeout.map_or(limit, |t| t.min(limit))),
        ..reward.clone()
    };
    let python = Python {
        executable: PathBuf::from(python),
        log: None,
        start: PATIENCE,
    };
    let pool = Pool::start(&alone, folder, &python)?;
    let mut values = vec![];
    for slice in calls.chunks(SLICE) {
        if start.elapsed() >= PATIENCE {
            return Ok(None);
        }
        let arguments: Vec<Vec<Json>> = slice.iter().map(|(_, args)| args.clone()).collect();
        let place = |i: usize| slice.get(i).map_or("a row".into(), |(row, _)| row.place());
        values.extend(pool.score(&arguments, &place)?.values);
    }
    Ok(Some(values))
}

fn failure(d: Diagnostic, place: Place, name: &str) -> Trial {
    match d.code.as_str() {
        // Without a Python nothing is known.
        "" => Trial::Unknown,
        "R403" => {
            let message = format!("with `{name}` as the response, {}", d.message);
            let help = d.help.unwrap_or_default();
            Trial::Wrong(Finding::warning("R403", place, message, help))
        }
        _ => Trial::Wrong(Finding::told(d, place)),
    }
}

/// The column with the right answer: an argument that is no part of the prompt, by its name or because
/// it is the only one.
fn gold<'a>(view: &View, scoring: &'a Scoring) -> Option<(String, &'a str, usize)> {
    let call = scoring.args.iter().find_map(|a| match a {
        Argument::Response { call } => Some(*call),
        _ => None,
    })?;
    let prompt = view.calls.get(call)?.prompt.as_ref();
    let columns = scoring.args.iter().filter_map(|a| match a {
        Argument::Column { data, name, source } => Some((name, source.as_str(), *data)),
        _ => None,
    });
    let others: Vec<_> = columns
        .filter(|(_, source, _)| !prompt.is_some_and(|p| p.columns().contains(source)))
        .collect();
    let named = others.iter().find(|(name, ..)| {
        let name = name.to_lowercase();
        GOLD.iter().any(|g| name.contains(g))
    });
    let (name, source, data) = match (named, &others[..]) {
        (Some(named), _) => *named,
        (None, [only]) => *only,
        _ => return None,
    };
    Some((name.clone(), source, data))
}

/// The arguments of a call for a row, its right answer as the response.
fn arguments(scoring: &Scoring, row: &Row, gold: &str) -> Option<Vec<Json>> {
    let response = match row.object.get(gold)? {
        Json::String(text) => Json::String(text.clone()),
        number @ Json::Number(_) => Json::String(number.to_string()),
        _ => return None,
    };
    let args = scoring.args.iter().map(|arg| match arg {
        Argument::Response { .. } => Some(response.clone()),
        Argument::Column { source, .. } => row.object.get(source).cloned(),
        Argument::Made(recipe) => recipe.text(row).map(Json::String),
    });
    args.collect()
}
