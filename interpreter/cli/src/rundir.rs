//! The directory of a run and its manifest.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rlhf_lang::graph::{Dtype, Param};
use rlhf_lang::source::Source;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::outcome::{Outcome, Stop};
use crate::program::Program;

/// The libtorch that ranks are built for.
const LIBTORCH: &str = "2.11";

/// Makes the directory: `wanted`, which must be absent or empty, or the next free
/// `runs/<program>-<n>` under the working directory.
pub fn create(wanted: Option<&Path>, program: &str) -> Outcome<PathBuf> {
    let fail = |path: &Path, error: std::io::Error| {
        Stop::failed(
            format!(
                "the run directory `{}` cannot be made: {error}",
                path.display()
            ),
            "`--out DIR` names another place",
        )
    };
    if let Some(path) = wanted {
        let mut entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(path).map_err(|e| fail(path, e))?;
                return Ok(path.into());
            }
            Err(e) => return Err(fail(path, e)),
        };
        return match entries.next() {
            None => Ok(path.into()),
            Some(_) => Err(Stop::usage(
                format!("the run directory `{}` is not empty", path.display()),
                "name another with `--out`, or leave `--out` away for the next free one in `runs/`",
            )),
        };
    }
    let runs = Path::new("runs");
    std::fs::create_dir_all(runs).map_err(|e| fail(runs, e))?;
    for n in last_number(runs, program) + 1.. {
        let path = runs.join(format!("{program}-{n}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            // Another run took the number in this moment.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(fail(&path, e)),
        }
    }
    Err(Stop::failed(
        "every number is taken in `runs/`",
        "name a directory with `--out`",
    ))
}

fn last_number(runs: &Path, program: &str) -> u32 {
    let entries = std::fs::read_dir(runs).into_iter().flatten();
    let numbers = entries.filter_map(|e| {
        let name = e.ok()?.file_name().into_string().ok()?;
        name.strip_prefix(program)?.strip_prefix('-')?.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// What a run was: enough to start it again.
#[derive(Debug)]
pub struct Manifest {
    object: Map<String, Value>,
    path: PathBuf,
}

/// What the manifest records beside the program.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The libraries of the program's folder that it imports.
    pub libraries: Vec<&'a Source>,
    /// Params with their values.
    pub params: &'a [Param],
    /// The seed.
    pub seed: u64,
    /// Iterations asked for on the command line.
    pub iterations: Option<usize>,
    /// Parameter type of models that do not say.
    pub dtype: Dtype,
    /// Threads.
    pub threads: usize,
    /// Name and directory of each model.
    pub checkpoints: Vec<(String, PathBuf)>,
}

impl Manifest {
    /// Writes `manifest.json` and, beside it, the texts of the program and of its libraries.
    pub fn write(dir: &Path, program: &Program, facts: &Facts) -> std::io::Result<Manifest> {
        std::fs::write(dir.join("program.rlhf"), &program.text)?;
        let mut libraries = vec![];
        for (i, library) in facts.libraries.iter().enumerate() {
            // Numbered, since two folders may each have a library of the same name.
            let stem = Path::new(&library.name).file_name().unwrap_or_default();
            let copy = format!("{}-{}", i + 1, stem.to_string_lossy());
            std::fs::create_dir_all(dir.join("libraries"))?;
            std::fs::write(dir.join("libraries").join(&copy), &library.text)?;
            libraries.push(json!({
                "file": library.name,
                "copy": format!("libraries/{copy}"),
                "sha256": sha256(&library.text),
            }));
        }
        let mut params = Map::new();
        let mut overridden = vec![];
        for param in facts.params {
            params.insert(param.name.clone(), json!(param.value));
            if param.overridden {
                overridden.push(param.name.clone());
            }
        }
        let checkpoints: Map<String, Value> = facts
            .checkpoints
            .iter()
            .map(|(name, path)| (name.clone(), path.display().to_string().into()))
            .collect();
        let object = json!({
            "format_version": 1,
            "program": { "name": program.stem, "file": program.name, "sha256": sha256(&program.text) },
            "libraries": libraries,
            "params": params,
            "overridden": overridden,
            "seed": facts.seed,
            "iterations": facts.iterations,
            "device": "cpu",
            "dtype": facts.dtype,
            "threads": facts.threads,
            "checkpoints": checkpoints,
            "versions": { "rlhf": env!("CARGO_PKG_VERSION"), "libtorch": LIBTORCH },
            "started": now(),
        });
        let manifest = Manifest {
            object: match object {
                Value::Object(object) => object,
                _ => Map::new(),
            },
            path: dir.join("manifest.json"),
        };
        manifest.save()?;
        Ok(manifest)
    }

    /// Adds how the run ended.
    pub fn finish(&mut self, outcome: Value) -> std::io::Result<()> {
        self.object.insert("ended".into(), now().into());
        self.object.insert("outcome".into(), outcome);
        self.save()
    }

    fn save(&self) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(&self.object)?;
        std::fs::write(&self.path, text + "\n")
    }
}

fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_follows_the_largest() {
        let runs = tempfile::tempdir().expect("a temporary directory");
        for name in ["grpo-2", "grpo-10", "grpo-big-77", "ppo-30", "grpo-x"] {
            std::fs::create_dir(runs.path().join(name)).expect("a folder");
        }
        assert_eq!(last_number(runs.path(), "grpo"), 10);
        assert_eq!(last_number(runs.path(), "dpo"), 0);
    }
}
