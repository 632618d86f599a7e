//! What a run leaves on disk: metrics, samples, and the trained models as Hugging Face directories.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rlhf_plan::launch::Report;
use serde::Serialize;

use crate::fault::{Fault, Result};

/// Samples of one iteration that are kept; the rest of a large batch is not written.
pub const SAMPLES: usize = 64;

/// The files of a run directory that this rank writes.
pub struct Record {
    out: PathBuf,
    metrics: File,
    samples: File,
}

/// One sampled response.
#[derive(Serialize)]
pub struct Sample<'a> {
    /// Iteration, from 1; evaluations are not sampled here.
    pub iteration: usize,
    /// The call that sampled it.
    pub call: &'a str,
    /// The row of the data set, from 0.
    pub row: usize,
    /// The response's index among those of its row.
    pub sample: usize,
    /// The prompt: text, or messages.
    pub prompt: serde_json::Value,
    /// The response.
    pub response: &'a str,
    /// Ended by EOS or a stop string.
    pub finished: bool,
    /// The program's reward, where it has one.
    pub reward: Option<f64>,
}

impl Record {
    /// Opens the files of an existing run directory for appending.
    pub fn open(out: &Path) -> Result<Self> {
        let append = |name: &str| {
            let path = out.join(name);
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(|e| cannot_write(&path, &e))
        };
        Ok(Record {
            out: out.to_path_buf(),
            metrics: append("metrics.jsonl")?,
            samples: append("samples.jsonl")?,
        })
    }

    /// Appends a line to `metrics.jsonl`. `kind` is `step` or `eval`.
    pub fn metrics(&mut self, kind: &str, report: &Report) -> Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            kind: &'a str,
            #[serde(flatten)]
            report: &'a Report,
        }
        append(
            &mut self.metrics,
            &self.out.join("metrics.jsonl"),
            &Line { kind, report },
        )
    }

    /// Appends a line to `samples.jsonl`.
    pub fn sample(&mut self, sample: &Sample) -> Result<()> {
        append(&mut self.samples, &self.out.join("samples.jsonl"), sample)
    }

    /// Makes a directory `<out>/<name>` of what `write` puts into an empty one. It is written beside its
    /// place and renamed, so an earlier checkpoint survives whatever fails.
    pub fn checkpoint(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let place = self.out.join(name);
        let fresh = self.out.join(format!("{name}.new"));
        let written = empty(&fresh).and_then(|()| {
            write(&fresh)?;
            Ok(File::open(&fresh)?.sync_all()?)
        });
        if let Err(fault) = written {
            // The unfinished directory would only take the space that is missing.
            let _ = fs::remove_dir_all(&fresh);
            let kept = if place.exists() {
                "the earlier checkpoint is still there"
            } else {
                "there is no earlier one"
            };
            let message = format!(
                "cannot save `{}`: {}; {kept}",
                place.display(),
                fault.diagnostic.message
            );
            return Err(
                Fault::new(message).help("free some space, or choose another place with `--out`")
            );
        }
        self.put_in_place(&fresh, &place)
            .map_err(|e| cannot_write(&place, &e))?;
        Ok(place)
    }

    /// Gives `fresh` the name `place`; what was there goes. Where the system can exchange two names at
    /// once, `place` is a complete checkpoint at every moment.
    fn put_in_place(&self, fresh: &Path, place: &Path) -> std::io::Result<()> {
        if !place.exists() {
            fs::rename(fresh, place)?;
        } else if exchange(fresh, place).is_ok() {
            fs::remove_dir_all(fresh)?;
        } else {
            let old = place.with_extension("old");
            if old.exists() {
                fs::remove_dir_all(&old)?;
            }
            fs::rename(place, &old)?;
            if let Err(e) = fs::rename(fresh, place) {
                fs::rename(&old, place)?;
                return Err(e);
            }
            fs::remove_dir_all(&old)?;
        }
        File::open(&self.out)?.sync_all()
    }
}

#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(fs::create_dir_all(dir)?)
}

fn append(file: &mut File, path: &Path, line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(line).map_err(|e| Fault::new(e.to_string()))?;
    text.push('\n');
    file.write_all(text.as_bytes())
        .map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Fault {
    Fault::new(format!("cannot write `{}`: {e}", path.display()))
}
