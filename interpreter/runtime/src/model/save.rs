//! Writing a model's weights the way Hugging Face stores them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use safetensors::tensor::{Dtype as Stored, View, serialize_to_file};
use tch::Tensor;

use super::{Dtype, Model};
use crate::fault::{Fault, Result};

impl Model {
    /// Writes `model.safetensors` into `dir`, in the model's type; a tied head is not stored twice.
    ///
    /// The file is complete or absent: it is written beside its place, synced, and renamed over what
    /// was there, which survives any failure.
    pub fn save(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).map_err(|e| unwritable(dir, e))?;
        let path = dir.join("model.safetensors");
        let partial = dir.join(format!(".model.safetensors.{}", std::process::id()));
        let written = self.write(&partial).and_then(|()| {
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

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let stored = match self.dtype {
            Dtype::F32 => Stored::F32,
            Dtype::Bf16 => Stored::BF16,
        };
        let tensors = self.layout.parameters.iter().map(|parameter| {
            let shape = parameter.slot.shape.iter().map(|&d| d as usize).collect();
            let tensor = parameter.slot.view(&self.flat);
            (
                parameter.name.as_str(),
                Bytes {
                    tensor,
                    stored,
                    shape,
                },
            )
        });
        let format = HashMap::from([("format".to_string(), "pt".to_string())]);
        serialize_to_file(tensors, Some(format), path).map_err(|e| match e {
            safetensors::SafeTensorError::IoError(e) => e,
            other => std::io::Error::other(other),
        })?;
        File::options().write(true).open(path)?.sync_all()
    }
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

struct Bytes {
    tensor: Tensor,
    stored: Stored,
    shape: Vec<usize>,
}

impl View for Bytes {
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
