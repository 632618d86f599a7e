//! Writing a model's weights the way Hugging Face stores them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use safetensors::tensor::{Dtype as Stored, View, serialize_to_file};
use tch::{Kind, Tensor};

use super::Model;
use super::weights::Parameter;
use crate::fault::{Fault, Result};

impl Model {
    /// Writes `model.safetensors` into `dir`, in the model's type; a tied head is not stored twice.
    ///
    /// The file is complete or absent: it is written beside its place, synced, and renamed over what
    /// was there, which survives any failure.
    pub fn save(&self, dir: &Path) -> Result<()> {
        let view = |p: &Parameter| (p.name.clone(), p.stored(&self.flat));
        let tensors = self.layout.parameters.iter().map(view).collect();
        write_file(dir, "model.safetensors", tensors)
    }
}

/// Writes tensors of f32 or bf16 as a safetensors file, complete or not at all.
pub(super) fn write_file(dir: &Path, name: &str, tensors: Vec<(String, Tensor)>) -> Result<()> {
    replace(dir, name, |path| {
        let tensors = tensors
            .iter()
            .map(|(name, tensor)| (name, Bytes::of(tensor)));
        let format = HashMap::from([("format".to_string(), "pt".to_string())]);
        serialize_to_file(tensors, Some(format), path).map_err(|e| match e {
            safetensors::SafeTensorError::IoError(e) => e,
            other => std::io::Error::other(other),
        })
    })
}

/// Writes a JSON file, complete or not at all.
pub(super) fn write_text(dir: &Path, name: &str, value: &serde_json::Value) -> Result<()> {
    replace(dir, name, |path| fs::write(path, format!("{value:#}\n")))
}

/// Writes a file beside its place, syncs it, and renames it over what was there.
fn replace(dir: &Path, name: &str, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| unwritable(dir, e))?;
    let path = dir.join(name);
    let partial = dir.join(format!(".{name}.{}", std::process::id()));
    let written = write(&partial).and_then(|()| {
        File::options().write(true).open(&partial)?.sync_all()?;
        fs::rename(&partial, &path)?;
        // The rename itself lasts only once the directory is synced.
        File::open(dir)?.sync_all()
    });
    written.map_err(|e| {
        // What is left of the partial file is of no use; that it cannot be removed is no further news.
        let _ = fs::remove_file(&partial);
        unwritable(&path, e)
    })
}

fn unwritable(path: &Path, error: std::io::Error) -> Fault {
    let fault = Fault::new(format!("cannot write `{}`: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            fault.help("free some space; the file that was there before is intact")
        }
        _ => fault,
    }
}

struct Bytes<'t> {
    tensor: &'t Tensor,
    stored: Stored,
    shape: Vec<usize>,
}

impl<'t> Bytes<'t> {
    fn of(tensor: &'t Tensor) -> Self {
        Bytes {
            tensor,
            // The two types of parameters.
            stored: match tensor.kind() {
                Kind::BFloat16 => Stored::BF16,
                _ => Stored::F32,
            },
            shape: tensor.size().iter().map(|&d| d as usize).collect(),
        }
    }
}

impl View for Bytes<'_> {
    fn dtype(&self) -> Stored {
        self.stored
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut bytes = vec![0; self.data_len()];
        self.tensor.copy_data_u8(&mut bytes, self.tensor.numel());
        bytes.into()
    }

    fn data_len(&self) -> usize {
        self.tensor.numel() * self.stored.bitsize() / 8
    }
}
