//! Which files of a Hugging Face data set are a split of it.
//!
//! As the hub lays them out: `data/train-00000-of-00002.parquet`, `train.jsonl`, `train/part.csv`, each of
//! these below a folder of its own for every configuration. Where one split is there in several formats,
//! the first of parquet, jsonl, json and csv is read.

use std::collections::BTreeSet;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;

use super::FORMATS;
use crate::Result;
use crate::files::alike;

/// The order in which formats are preferred.
const PREFERRED: [&str; 4] = ["parquet", "jsonl", "json", "csv"];

/// Files that describe a data set and hold none of its rows.
const DESCRIBING: [&str; 5] = [
    "config.json",
    "dataset_dict.json",
    "dataset_info.json",
    "dataset_infos.json",
    "state.json",
];

/// What a split is called, first, and by what other words in names of files.
const WORDS: [&[&str]; 3] = [
    &["train", "training"],
    &["validation", "valid", "val", "dev"],
    &["test", "testing", "eval", "evaluation"],
];

/// A file with what its path says.
struct Named<'n> {
    path: &'n str,
    format: &'static str,
    split: String,
    folder: &'n str,
}

/// The files of the split and the configuration that an `hf` data set names, in the order of their
/// names. `names` are the paths of all its files, with `/` between their parts.
///
/// D300 where there is none, or where the names leave a choice.
pub fn select(data: &Data, names: &[String]) -> Result<Vec<String>> {
    let fail = |message: String, help: String| {
        Err(Box::new(
            Diagnostic::error("D300", data.path_span, message).help(help),
        ))
    };
    let id = &data.path;
    let mut files: Vec<Named> = names.iter().filter_map(|n| named(n)).collect();
    if files.is_empty() {
        let saved = names.iter().any(|n| n.ends_with(".arrow"));
        return match saved {
            true => fail(
                format!("`{id}` holds Arrow files of `save_to_disk`, which are not read"),
                "`dataset.to_parquet(\"train.parquet\")` writes a file that is".into(),
            ),
            false => fail(
                format!("`{id}` has no file with rows"),
                format!("files that are read end in .{}", FORMATS.join(", .")),
            ),
        };
    }
    if let Some(config) = &data.config {
        let known: BTreeSet<&str> = files.iter().map(|f| configuration(f.folder)).collect();
        files.retain(|f| f.path.split('/').any(|part| part == config));
        if files.is_empty() {
            return fail(
                format!("`{id}` has no folder `{config}`"),
                one_of("it has", config, &known),
            );
        }
    }
    let splits: BTreeSet<&str> = files.iter().map(|f| f.split.as_str()).collect();
    let split = match (&data.split, splits.iter().next()) {
        (Some(split), _) => split.clone(),
        (None, Some(only)) if splits.len() == 1 => only.to_string(),
        (None, Some(_)) if splits.contains("train") => "train".into(),
        (None, first) => {
            let first = first.copied().unwrap_or_default();
            return fail(
                format!(
                    "`{id}` has the splits {}, and none is named",
                    quoted(&splits)
                ),
                format!("as in `hf(\"{id}\", split: \"{first}\")`"),
            );
        }
    };
    let wanted = |f: &Named| f.split == split || f.split == canonical(&split).unwrap_or("");
    if !files.iter().any(wanted) {
        return fail(
            format!("`{id}` has no split `{split}`"),
            one_of("it has", &split, &splits),
        );
    }
    files.retain(wanted);
    let format = PREFERRED
        .into_iter()
        .find(|p| files.iter().any(|f| f.format == *p));
    files.retain(|f| Some(f.format) == format);
    let folders: BTreeSet<&str> = files.iter().map(|f| configuration(f.folder)).collect();
    if folders.len() > 1 {
        let first = folders.first().unwrap_or(&"");
        return fail(
            format!("`{id}` has the split `{split}` in {}", quoted(&folders)),
            format!("one is named by `hf(\"{id}\", split: \"{split}\", config: \"{first}\")`"),
        );
    }
    let mut paths: Vec<String> = files.iter().map(|f| f.path.to_string()).collect();
    paths.sort();
    Ok(paths)
}

fn named(path: &str) -> Option<Named<'_>> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if DESCRIBING.contains(&file) || path.split('/').any(|part| part.starts_with('.')) {
        return None;
    }
    let bare = file.strip_suffix(".gz").unwrap_or(file);
    let (stem, ending) = bare.rsplit_once('.')?;
    let format = PREFERRED.into_iter().find(|f| *f == ending)?;
    let split = match shard(stem) {
        Some(split) => canonical(split).unwrap_or(split).to_string(),
        None => word(stem)
            .or_else(|| folder.split('/').rev().find_map(word))
            .unwrap_or("train")
            .to_string(),
    };
    Some(Named {
        path,
        format,
        split,
        folder,
    })
}

/// `train` of `train-00000-of-00002`
fn shard(stem: &str) -> Option<&str> {
    let (head, count) = stem.split_once("-of-")?;
    let (split, index) = head.rsplit_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let count = count.split('-').next().unwrap_or(count);
    (digits(index) && digits(count)).then_some(split)
}

/// The split that a word of a name stands for.
fn word(name: &str) -> Option<&'static str> {
    let words = name.split(|c: char| !c.is_alphanumeric());
    words.into_iter().find_map(canonical)
}

fn canonical(word: &str) -> Option<&'static str> {
    let found = WORDS.iter().find(|words| words.contains(&word));
    found.map(|words| words[0])
}

/// The folder that a configuration is: without the parts that name no configuration.
fn configuration(folder: &str) -> &str {
    let own = |part: &&str| *part != "data" && canonical(part).is_none() && !part.is_empty();
    folder.split('/').rev().find(own).unwrap_or("")
}

fn one_of(it_has: &str, wanted: &str, names: &BTreeSet<&str>) -> String {
    match alike(wanted, names.iter().copied()) {
        Some(near) => format!("a similar one: `{near}`"),
        None => format!("{it_has} {}", quoted(names)),
    }
}

fn quoted(names: &BTreeSet<&str>) -> String {
    let shown: Vec<String> = names
        .iter()
        .map(|name| match *name {
            "" => "no folder".to_string(),
            name => format!("`{name}`"),
        })
        .collect();
    shown.join(", ")
}
