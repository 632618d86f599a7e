//! Reading the safetensors files of a checkpoint directory into a model's buffer.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype as Stored, Metadata, TensorInfo};
use tch::{Kind, Tensor};

use super::architecture::{SCALAR_HEAD, several_labels};
use super::config::Config;
use super::weights::Layout;
use super::{HeadKind, Model};
use crate::fault::{Fault, Result};

/// Fills a model with the tensors stored in `dir`, converting them to its type. `head` is what the
/// checkpoint has; a scalar model leaves a language head out, and its own is then still to be drawn.
///
/// Every parameter must be stored once with its shape, and nothing else may be stored.
pub(super) fn read(dir: &Path, head: HeadKind, model: &Model) -> Result<()> {
    let (config, layout) = (&model.config, &model.layout);
    let mut shards = Vec::new();
    let mut home = HashMap::new();
    for path in files(dir)? {
        let shard = Shard::open(&path)?;
        for name in shard.tensors.keys() {
            let home_of = (shards.len(), name.clone());
            home.insert(full_name(name, config, layout), home_of);
        }
        shards.push(shard);
    }
    refuse_unknown(dir, config, layout, &home)?;
    let drawn = (head != config.head).then(|| format!("{SCALAR_HEAD}.weight"));
    for parameter in &layout.parameters {
        if Some(&parameter.name) == drawn.as_ref() {
            continue;
        }
        let Some((at, name)) = home.get(&parameter.name) else {
            let message = format!("`{}` has no tensor `{}`", dir.display(), parameter.name);
            return Err(match parameter.name.starts_with(config.family.names.head) {
                true => Fault::new(message).help("`tie_word_embeddings: true` in config.json says that the head is the embedding"),
                false => Fault::new(message),
            });
        };
        let shape = parameter.form.shape(&parameter.slot.shape);
        let tensor = parameter.form.read(&shards[*at].read(name, &shape)?);
        parameter.slot.view(&model.flat).copy_(&tensor);
    }
    Ok(())
}

/// The name that a tensor of the body has in the family's class, where the file leaves out what all of
/// the body's names begin with, as files of the bare body do.
fn full_name(name: &str, config: &Config, layout: &Layout) -> String {
    let full = format!("{}{name}", config.family.names.body);
    match layout.parameters.iter().any(|p| p.name == full) {
        true => full,
        false => name.to_string(),
    }
}

/// The files with weights: one, or those that an index names.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let single = dir.join("model.safetensors");
    let index = dir.join("model.safetensors.index.json");
    if single.is_file() {
        return Ok(vec![single]);
    }
    if !index.is_file() {
        let other = dir.join("pytorch_model.bin").is_file();
        let fault = Fault::new(format!("no weights in `{}`", dir.display()));
        return Err(fault.help(match other {
            true => "pytorch_model.bin is not read: save the model again as safetensors",
            false => "expected model.safetensors, or model.safetensors.index.json with its shards",
        }));
    }
    let text = std::fs::read_to_string(&index)?;
    let json: serde_json::Value = serde_json::from_str(&text)
        .map_err(|e| Fault::new(format!("`{}` is not JSON: {e}", index.display())))?;
    let map = json.get("weight_map").and_then(|m| m.as_object());
    let mut paths = BTreeMap::new();
    for file in map.into_iter().flatten().filter_map(|(_, f)| f.as_str()) {
        let path = dir.join(file);
        if !path.is_file() {
            let index = index.display();
            return Err(Fault::new(format!(
                "`{index}` names `{file}`, which is missing"
            )));
        }
        paths.insert(file.to_string(), path);
    }
    match paths.is_empty() {
        true => Err(Fault::new(format!("`{}` names no files", index.display()))),
        false => Ok(paths.into_values().collect()),
    }
}

fn refuse_unknown(
    dir: &Path,
    config: &Config,
    layout: &Layout,
    home: &HashMap<String, (usize, String)>,
) -> Result<()> {
    let names = config.family.names;
    let tied_head = format!("{}.weight", names.head);
    let spare_head = config.tied || config.head == HeadKind::Scalar;
    let mut unknown: Vec<&String> = home
        .keys()
        .filter(|name| !layout.parameters.iter().any(|p| p.name == **name))
        .filter(|name| !(spare_head && **name == tied_head))
        .filter(|name| !names.ignored.iter().any(|end| name.ends_with(end)))
        .collect();
    unknown.sort();
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let others = match unknown.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let architecture = config.family.architecture;
    Err(Fault::new(format!(
        "`{}` holds a tensor `{first}`{others} that {architecture} does not have",
        dir.display()
    )))
}

/// An open safetensors file.
pub(super) struct Shard {
    path: PathBuf,
    file: File,
    /// Bytes before the first tensor.
    start: u64,
    tensors: HashMap<String, TensorInfo>,
}

impl Shard {
    /// Reads the header; an error says how the file is broken.
    pub(super) fn open(path: &Path) -> Result<Shard> {
        let broken = |why: String| {
            let fault = Fault::new(format!("`{}` {why}", path.display()));
            fault.help("copy or download the file again")
        };
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length)
            .map_err(|_| broken(format!("is cut off: {size} bytes")))?;
        let header = u64::from_le_bytes(length);
        if header.checked_add(8).is_none_or(|end| end > size) {
            return Err(broken(format!(
                "is cut off: it has {size} bytes and its header alone should have {header}"
            )));
        }
        let mut bytes = vec![0; header as usize];
        file.read_exact(&mut bytes)?;
        let metadata: Metadata = serde_json::from_slice(&bytes)
            .map_err(|e| broken(format!("is not a safetensors file: {e}")))?;
        let start = 8 + header;
        let end = start + metadata.data_len() as u64;
        if end > size {
            return Err(broken(format!(
                "is cut off: it has {size} bytes and its tensors need {end}"
            )));
        }
        let tensors = metadata.tensors();
        Ok(Shard {
            path: path.to_path_buf(),
            file,
            start,
            tensors: tensors.into_iter().map(|(n, t)| (n, t.clone())).collect(),
        })
    }

    /// Names of its tensors, in no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Rows of a stored matrix.
    pub(super) fn rows(&self, name: &str) -> Option<i64> {
        match self.tensors.get(name)?.shape.as_slice() {
            [rows, _] => Some(*rows as i64),
            _ => None,
        }
    }

    /// A tensor that is in the file, of the shape that is asked for.
    pub(super) fn read(&mut self, name: &str, shape: &[i64]) -> Result<Tensor> {
        let info = &self.tensors[name];
        if !info
            .shape
            .iter()
            .map(|&d| d as i64)
            .eq(shape.iter().copied())
        {
            let stored = &info.shape;
            let path = self.path.display();
            if let (true, [labels, _]) = (name.starts_with(SCALAR_HEAD), stored.as_slice())
                && *labels != 1
            {
                return Err(several_labels(&format!(" in `{path}`"), *labels));
            }
            let fault = Fault::new(format!(
                "tensor `{name}` in `{path}` has shape {stored:?}; config.json asks for {shape:?}"
            ));
            return Err(fault);
        }
        let kind = match info.dtype {
            Stored::F32 => Kind::Float,
            Stored::BF16 => Kind::BFloat16,
            Stored::F16 => Kind::Half,
            other => {
                let path = self.path.display();
                let fault = Fault::new(format!(
                    "tensor `{name}` in `{path}` is stored as {other:?}"
                ));
                return Err(fault.help("supported: F32, BF16, F16"));
            }
        };
        let (from, to) = info.data_offsets;
        let mut bytes = vec![0; to - from];
        self.file.seek(SeekFrom::Start(self.start + from as u64))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Tensor::f_from_data_size(&bytes, shape, kind)?)
    }
}
