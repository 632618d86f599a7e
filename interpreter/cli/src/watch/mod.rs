//! Waiting until something that a check read has changed.

mod inputs;
mod reads;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};

use crate::inbox::Message;
use crate::outcome::{Outcome, Stop};
use crate::program;
use inputs::{Content, Inputs};

pub use reads::reads;

/// Of a file so much is hashed, together with its length: a data set may be far larger.
const HASHED: u64 = 64 << 20;

/// The files that a check read, and the folders where changes to them are noticed.
#[derive(Debug)]
pub struct Watch {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    inputs: Inputs,
}

impl Watch {
    /// Watches nothing yet. Changes are sent as [`Message::Touched`].
    pub fn new(send: Sender<Message>) -> Outcome<Watch> {
        let notice = move |event: notify::Result<notify::Event>| {
            let touched = match event {
                Ok(event) if is_read(&event.kind) => return,
                Ok(event) => event.paths,
                // Some events were lost: anything may have changed.
                Err(_) => vec![],
            };
            // A command that no longer waits has no use for it.
            let _ = send.send(Message::Touched(touched));
        };
        let watcher = notify::recommended_watcher(notice).map_err(unwatchable)?;
        Ok(Watch {
            watcher,
            folders: BTreeSet::new(),
            inputs: Inputs::default(),
        })
    }

    /// Watches exactly these paths from now on. True when one of them was not watched before: what was read
    /// of it may be older than the watch, so it has to be read again.
    pub fn follow(&mut self, paths: &BTreeSet<PathBuf>) -> Outcome<bool> {
        let absolute = paths.iter().filter_map(|p| std::path::absolute(p).ok());
        let fresh = self.inputs.replace(absolute.collect(), &canonical);
        self.arm()?;
        // Read only now, so that no change falls between the reading and the watch.
        self.inputs.read(&fresh, &content);
        Ok(!fresh.is_empty())
    }

    /// Whether the content of a watched file is another one, given the paths where something happened; any
    /// path when there are none.
    pub fn changed(&mut self, touched: &BTreeSet<PathBuf>) -> Outcome<bool> {
        if self.inputs.moved(touched) {
            // A folder that came back under its name is another folder.
            for folder in std::mem::take(&mut self.folders) {
                // It may be gone, and its watch with it.
                let _ = self.watcher.unwatch(&folder);
            }
            self.inputs.resolve(&canonical);
            self.arm()?;
        }
        Ok(self.inputs.changed(touched, &content))
    }

    /// How many files are watched.
    pub fn count(&self) -> usize {
        self.inputs.count()
    }

    fn arm(&mut self) -> Outcome<()> {
        let wanted = self.inputs.folders(&|path| path.is_dir());
        for folder in self.folders.difference(&wanted) {
            let _ = self.watcher.unwatch(folder);
        }
        for folder in wanted.difference(&self.folders) {
            let watched = self.watcher.watch(folder, RecursiveMode::NonRecursive);
            match watched {
                Ok(()) => {}
                // Gone in this moment: its parent tells.
                Err(_) if !folder.is_dir() => {}
                Err(error) => return Err(unwatchable(error)),
            }
        }
        self.folders = wanted;
        Ok(())
    }
}

fn is_read(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}

fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

fn content(path: &Path) -> Content {
    if path.is_dir() {
        return Content::Folder;
    }
    hash(path).map_or(Content::Missing, Content::File)
}

fn hash(path: &Path) -> std::io::Result<[u8; 32]> {
    let file = File::open(path)?;
    let mut hasher = Sha256::new();
    hasher.update(file.metadata()?.len().to_le_bytes());
    let mut head = file.take(HASHED);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match head.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// A program that has a file, since only a file can change.
pub fn watchable(program: &program::Program) -> Outcome<()> {
    match program.file {
        Some(_) => Ok(()),
        None => Err(Stop::usage(
            format!(
                "`{}` is a shipped program and has no file to watch",
                program.stem
            ),
            format!(
                "copy it first: `rlhf new mine.rlhf --from {}`",
                program.stem
            ),
        )),
    }
}

fn unwatchable(error: notify::Error) -> Stop {
    let help = match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the system's limit of watches is reached; close another program that watches files"
        }
        _ => "leave `--watch` away to check once",
    };
    Stop::failed(format!("changes of files cannot be watched: {error}"), help)
}
