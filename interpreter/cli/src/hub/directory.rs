//! What a checkpoint directory must hold.

use std::collections::BTreeSet;
use std::path::Path;

/// The weights that a rank reads.
const WEIGHTS: &str =
    "weights (model.safetensors, or model.safetensors.index.json with its shards)";

/// What of a checkpoint a model needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Configuration, tokenizer and weights.
    All,
    /// Configuration and tokenizer: the weights are drawn.
    Shape,
}

/// The parts that are needed and not there, in words.
pub fn missing(dir: &Path, parts: Parts) -> Vec<String> {
    let mut missing = vec![];
    if !dir.join("config.json").is_file() {
        missing.push("config.json".to_string());
    }
    let index = dir.join("model.safetensors.index.json");
    // The rank reads the whole file where both are there.
    if parts == Parts::All && !dir.join("model.safetensors").is_file() {
        let shards = shards(&index);
        if shards.is_empty() {
            missing.push(WEIGHTS.to_string());
        }
        missing.extend(shards.into_iter().filter(|s| !dir.join(s).is_file()));
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
    if has(dir, ".safetensors") {
        return "the weights are one file `model.safetensors`, or the shards that \
                `model.safetensors.index.json` names"
            .into();
    }
    if has(dir, ".bin") || has(dir, ".pt") || has(dir, ".pth") {
        return "weights are read as safetensors; convert with \
                `AutoModelForCausalLM.from_pretrained(dir).save_pretrained(dir)`"
            .into();
    }
    if has(dir, ".gguf") {
        return "GGUF files are not read; a checkpoint has config.json, model.safetensors and \
                tokenizer.json"
            .into();
    }
    "a checkpoint directory has config.json, model.safetensors and tokenizer.json".into()
}

/// The files that a sharded checkpoint's index names; none where there is no index.
fn shards(index: &Path) -> BTreeSet<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_found_by_the_names_that_a_rank_reads() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let dir = folder.path();
        let write = |name: &str, text: &str| {
            std::fs::write(dir.join(name), text).expect("a small file");
        };
        write("config.json", "{}");
        write("tokenizer.json", "{}");
        write("a.safetensors", "");
        assert_eq!(missing(dir, Parts::All), [WEIGHTS]);
        assert!(missing(dir, Parts::Shape).is_empty());
        assert!(advice(dir).contains("`model.safetensors`"));
        let index = r#"{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}"#;
        write("model.safetensors.index.json", index);
        assert_eq!(missing(dir, Parts::All), ["b.safetensors"]);
        write("b.safetensors", "");
        assert!(missing(dir, Parts::All).is_empty());
        write("model.safetensors.index.json", "{}");
        assert_eq!(missing(dir, Parts::All), [WEIGHTS]);
        write("model.safetensors", "");
        assert!(missing(dir, Parts::All).is_empty());
    }
}
