//! Data sets by their Hugging Face id.

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use rlhf_text::rows::{self, layout};

use super::download::{Kind, Name, Remote};
use super::{cache, home, is_path};
use crate::program;

/// The directory of an `hf` data set, found or fetched; what is there holds the split. `say` is told what
/// takes time.
///
/// D300 when there is none, or its files leave no answer to which is the split.
pub fn dataset(data: &Data, folder: &Path, say: &dyn Fn(&str)) -> Result<PathBuf, Box<Diagnostic>> {
    let fail = |message: String, help: String| {
        Box::new(Diagnostic::error("D300", data.path_span, message).help(help))
    };
    if let Some(directory) = local_dataset(data, folder) {
        return Ok(directory);
    }
    let id = &data.path;
    let name = match Name::parse(id, Kind::Dataset) {
        Some(name) if !is_path(id) => name,
        // What the path lacks, the reading of it says.
        _ => return rows::parts(data, folder).map(|_| PathBuf::from(id)),
    };
    let root = cache::root();
    let unreached = |tried: String| {
        let place = match &root {
            Some(root) => format!("not in the cache ({})", root.display()),
            None => "no cache directory".into(),
        };
        fail(
            format!("`{id}` is not on this machine and cannot be downloaded: {tried}"),
            format!(
                "`hf` also reads a local directory; HF_ENDPOINT names a mirror that can be reached; {place}"
            ),
        )
    };
    let remote = Remote::open(root.as_deref(), &name).map_err(&unreached)?;
    let files = layout::select(data, &remote.files)?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    remote.download(&files, say).map_err(&unreached)?;
    let snapshot = root.and_then(|root| cache::snapshot(&root, &name));
    snapshot.ok_or_else(|| {
        fail(
            format!("`{id}` was downloaded and is not in the cache"),
            "HF_HUB_CACHE names another place for the cache".into(),
        )
    })
}

/// The directory of an `hf` data set that is on this machine already; from the cache only where the split
/// is there.
pub fn local_dataset(data: &Data, folder: &Path) -> Option<PathBuf> {
    let expanded = home(&data.path);
    if let Some(path) = program::find(folder, &expanded) {
        return Some(path);
    }
    let name = Name::parse(&data.path, Kind::Dataset).filter(|_| !is_path(&data.path))?;
    let snapshot = cache::snapshot(&cache::root()?, &name)?;
    let there = Data {
        path: snapshot.display().to_string(),
        ..data.clone()
    };
    rows::parts(&there, folder).is_ok().then_some(snapshot)
}
