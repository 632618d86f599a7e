//! A trained model as a Hugging Face directory: weights, the source's tokenizer, its configuration.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::fault::{Fault, Result};
use crate::model::architecture::classification;
use crate::model::{Dtype, HeadKind, Model};

/// Files of a checkpoint that training does not change.
const COPIED: [&str; 10] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
];

/// Writes what transformers loads into an empty directory; `source` is the checkpoint that the model
/// started from.
pub fn write(dir: &Path, model: &Model, source: &Path) -> Result<()> {
    model.save(dir)?;
    copy_text(dir, source)?;
    write_config(dir, model, source)
}

/// Writes a model's adapters as PEFT loads them, into an empty directory; `base` names their checkpoint.
pub fn write_adapter(dir: &Path, model: &Model, base: &str, source: &Path) -> Result<()> {
    model.save_adapters(dir, base)?;
    copy_text(dir, source)
}

/// The tokenizer and what else concerns text.
fn copy_text(dir: &Path, source: &Path) -> Result<()> {
    for name in COPIED {
        let from = source.join(name);
        if from.exists() {
            let to = dir.join(name);
            fs::copy(&from, &to)?;
            File::open(&to)?.sync_all()?;
        }
    }
    Ok(())
}

/// The source's configuration, with the class of the model and the type in which the weights are
/// stored now.
fn write_config(dir: &Path, model: &Model, source: &Path) -> Result<()> {
    let from = source.join("config.json");
    let text = fs::read_to_string(&from)?;
    let not_json =
        |e: serde_json::Error| Fault::new(format!("`{}` is not JSON: {e}", from.display()));
    let mut config: Value = serde_json::from_str(&text).map_err(not_json)?;
    if let Some(entries) = config.as_object_mut() {
        describe(entries, model);
    }
    write_json(&dir.join("config.json"), &config)
}

fn describe(entries: &mut Map<String, Value>, model: &Model) {
    let dtype = match model.dtype() {
        Dtype::F32 => "float32",
        Dtype::Bf16 => "bfloat16",
    };
    // transformers 5 writes `dtype`, earlier ones `torch_dtype`.
    let key = if entries.contains_key("torch_dtype") {
        "torch_dtype"
    } else {
        "dtype"
    };
    entries.insert(key.into(), dtype.into());
    if model.config.head == HeadKind::Language {
        return;
    }
    let class = classification(model.config.family);
    entries.insert("architectures".into(), json!([class]));
    // transformers counts the labels here; without them it would make a head of two.
    entries.insert("id2label".into(), json!({ "0": "LABEL_0" }));
    entries.insert("label2id".into(), json!({ "LABEL_0": 0 }));
    entries.remove("num_labels");
    // transformers scores the last token that is not padding. Where the end of a sequence doubles as
    // padding that would be the token before it; without a padding token it is the last.
    let end = entries.get("eos_token_id").cloned().unwrap_or_default();
    let padding = entries.get("pad_token_id").cloned().unwrap_or_default();
    let doubles = end == padding || end.as_array().is_some_and(|list| list.contains(&padding));
    if doubles {
        entries.insert("pad_token_id".into(), Value::Null);
    }
}

/// Writes a JSON file and syncs it.
fn write_json(path: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Fault::new(e.to_string()))?;
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(())
}
