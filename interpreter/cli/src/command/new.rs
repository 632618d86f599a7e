//! `rlhf new`: a copy of a shipped algorithm, to edit.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use rlhf_lang::compile::Compiled;
use rlhf_lang::graph::RewardSource;

use crate::args::New;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::{self, Program};

/// Copies a program together with the files that it names, or lists the programs there are.
pub fn new(args: &New) -> Outcome<u8> {
    let (file, from) = match (&args.file, &args.from) {
        (Some(file), Some(from)) => (file, from),
        (Some(file), None) => {
            return Err(Stop::usage(
                format!("`rlhf new {file}` does not say what to copy"),
                format!(
                    "`--from` names one of the shipped algorithms: {}",
                    program::algorithms()
                ),
            ));
        }
        (None, Some(from)) => {
            known(from)?;
            return Err(Stop::usage(
                "no file to write is named",
                format!("as in `rlhf new mine.rlhf --from {from}`"),
            ));
        }
        (None, None) => {
            output::out(&list());
            return Ok(0);
        }
    };
    known(from)?;
    let source = Program::open(from)?;
    let path = with_ending(Path::new(file));
    write(&path, source.text.as_bytes()).map_err(|e| unwritten(&path, &e))?;
    output::out(&format!("{}  a copy of {}\n", path.display(), source.name));
    for line in companions(&source, &source.compile(&[]), &program::parent(&path))? {
        output::out(&format!("{line}\n"));
    }
    output::out(&format!("`rlhf check {}` checks it\n", path.display()));
    Ok(0)
}

fn known(name: &str) -> Outcome<()> {
    if program::shipped(name).is_some() {
        return Ok(());
    }
    let all = rlhf_stdlib::algorithms().iter().map(|(n, _)| *n);
    let near = program::similar(name, all);
    let near = near.map_or(String::new(), |near| format!("a similar name: `{near}`; "));
    Err(Stop::usage(
        format!("no shipped algorithm is called `{name}`"),
        format!("{near}these are shipped: {}", program::algorithms()),
    ))
}

fn list() -> String {
    let all = rlhf_stdlib::algorithms();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, program) in all {
        let line = program.lines().next().unwrap_or_default();
        text += &format!(
            "  {name:width$}  {}\n",
            line.trim_start_matches("//!").trim()
        );
    }
    let example = all.first().map_or("grpo", |(name, _)| name);
    text + &format!("\n`rlhf new mine.rlhf --from {example}` copies one.\n")
}

/// `.rlhf` where the name has no ending.
fn with_ending(path: &Path) -> PathBuf {
    match path.extension() {
        Some(_) => path.into(),
        None => path.with_extension("rlhf"),
    }
}

/// Writes a file that was not there; one that was stays.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
}

fn unwritten(path: &Path, error: &std::io::Error) -> Stop {
    let shown = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => Stop::usage(
            format!("`{shown}` is there already"),
            "name another file; this one is not overwritten",
        ),
        ErrorKind::NotFound => Stop::usage(
            format!("`{shown}` cannot be written: its folder is not there"),
            "make the folder first, or name a file in another one",
        ),
        _ => Stop::failed(
            format!("`{shown}` cannot be written: {error}"),
            "name a file in another folder",
        ),
    }
}

/// Puts the data and reward scripts that the program names beside its copy, and says for each what became of
/// it. Paths in the copy count from its own folder.
fn companions(source: &Program, compiled: &Compiled, folder: &Path) -> Outcome<Vec<String>> {
    let facts = &compiled.facts;
    let files = facts.data.iter().filter(|d| d.format != "hf");
    let data = files.map(|d| {
        let columns: Vec<&str> = d.columns.iter().map(|c| c.source.as_str()).collect();
        (d.path.as_str(), format!("with {}", columns.join(", ")))
    });
    let rewards = facts.rewards.iter().filter_map(|r| match &r.source {
        RewardSource::Python { file, function, .. } => {
            Some((file.as_str(), format!("with the function {function}")))
        }
        _ => None,
    });
    let mut lines = vec![];
    for (path, content) in data.chain(rewards) {
        let to = program::within(folder, path);
        if to.exists() {
            lines.push(format!("{}  is there already", to.display()));
            continue;
        }
        let from = program::find(&source.folder, path).filter(|_| is_inside(path));
        let found = from.and_then(|from| Some((std::fs::read(&from).ok()?, from)));
        match found {
            Some((bytes, from)) => {
                std::fs::create_dir_all(program::parent(&to))
                    .and_then(|()| write(&to, &bytes))
                    .map_err(|e| unwritten(&to, &e))?;
                lines.push(format!("{}  a copy of {}", to.display(), from.display()));
            }
            None => lines.push(format!("{}  is expected, {content}", to.display())),
        }
    }
    Ok(lines)
}

/// A path that stays in its folder.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_added_where_there_is_none() {
        let shown = |name: &str| with_ending(Path::new(name)).display().to_string();
        assert_eq!(shown("mine"), "mine.rlhf");
        assert_eq!(shown("a.b/mine"), "a.b/mine.rlhf");
        assert_eq!(shown("mine.txt"), "mine.txt");
    }

    #[test]
    fn only_what_lies_in_the_folder_is_copied() {
        assert!(is_inside("data/sums.jsonl") && is_inside("./sums.jsonl"));
        assert!(!is_inside("../sums.jsonl") && !is_inside("/sums.jsonl"));
    }
}
