//! What a checkpoint directory must hold.

use std::collections::BTreeSet;
use std::path::Path;

/// The parts that are not there, in words.
pub fn missing(dir: &Path) -> Vec<String> {
    let mut missing = vec![];
    if !dir.join("config.json").is_file() {
        missing.push("config.json".to_string());
    }
    let index = dir.join("model.safetensors.index.json");
    if index.is_file() {
        let shards = shards(&index);
        missing.extend(shards.into_iter().filter(|s| !dir.join(s).is_file()));
    } else if !has(dir, ".safetensors") {
        missing.push("weights (*.safetensors)".to_string());
    }
    if !dir.join("tokenizer.json").is_file() {
        missing.push("tokenizer.json".to_string());
    }
    missing
}

/// How to get the parts.
pub fn advice(dir: &Path) -> String {
    if !dir.is_dir() {
        return "a checkpoint is a directory, not a file".into();
    }
    if has(dir, ".bin") || has(dir, ".pt") || has(dir, ".pth") {
        return "weights are read as safetensors; convert with \
                `AutoModelForCausalLM.from_pretrained(dir).save_pretrained(dir)`"
            .into();
    }
    if has(dir, ".gguf") {
        return "GGUF files are not read; a checkpoint has config.json, *.safetensors and \
                tokenizer.json"
            .into();
    }
    "a checkpoint directory has config.json, *.safetensors and tokenizer.json".into()
}

/// The files that a sharded checkpoint's index names.
pub fn shards(index: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(index).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let map = value["weight_map"].as_object();
    map.into_iter()
        .flat_map(|map| map.values())
        .filter_map(|file| Some(file.as_str()?.to_string()))
        .collect()
}

fn has(dir: &Path, ending: &str) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().ends_with(ending)))
    })
}
