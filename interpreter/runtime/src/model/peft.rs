//! Reading a PEFT adapter: its low-rank changes are added to the weights it was trained on.

use std::path::Path;

use serde_json::Value;
use tch::Kind;

use super::Model;
use super::stored::Shard;
use crate::fault::{Fault, Result};

/// What comes before a module's name in an adapter's tensors.
const PREFIX: &str = "base_model.model.";

impl Model {
    /// Adds the LoRA adapter in `dir` to the weights: W + alpha/rank · B·A, rounded once. Modules that the
    /// adapter holds whole, such as the head of a classifier, replace the model's.
    ///
    /// Errors: no adapter, one of another kind than LoRA with a single rank, a tensor for a layer that
    /// this model does not have.
    pub fn merge_adapter(&mut self, dir: &Path) -> Result<()> {
        let scale = scale(dir)?;
        let path = dir.join("adapter_model.safetensors");
        if !path.is_file() {
            let message = format!("no adapter weights `{}`", path.display());
            return Err(Fault::new(message).help("save the adapter again as safetensors"));
        }
        let mut shard = Shard::open(&path)?;
        let mut names: Vec<String> = shard.names().map(str::to_string).collect();
        names.sort();
        for name in &names {
            let module = name.strip_prefix(PREFIX).unwrap_or(name);
            if module.ends_with(".lora_B.weight") {
                // Read with its A.
                continue;
            }
            let low_rank = module.strip_suffix(".lora_A.weight");
            let wanted = match low_rank {
                Some(module) => format!("{module}.weight"),
                None => module.to_string(),
            };
            let found = self.layout.parameters.iter().find(|p| p.name == wanted);
            let Some(parameter) = found else {
                let architecture = self.config.family.architecture;
                return Err(Fault::new(format!(
                    "`{}` adapts `{wanted}`, which {architecture} does not have",
                    path.display()
                )));
            };
            let mut place = parameter.slot.view(&self.flat);
            let shape = parameter.slot.shape.clone();
            if low_rank.is_none() {
                place.copy_(&shard.read(name, &shape)?);
                continue;
            }
            let b = name.replace("lora_A", "lora_B");
            let rank = shard.rows(name).filter(|_| shard.names().any(|n| n == b));
            let (Some(rank), [output, input]) = (rank, shape.as_slice()) else {
                let message = format!("`{}` has no pair for `{name}`", path.display());
                return Err(Fault::new(message));
            };
            let a = shard.read(name, &[rank, *input])?.to_kind(Kind::Float);
            let b = shard.read(&b, &[*output, rank])?.to_kind(Kind::Float);
            let merged = place.to_kind(Kind::Float) + b.mm(&a) * scale;
            place.copy_(&merged);
        }
        Ok(())
    }
}

/// alpha/rank, or alpha/√rank where the adapter says so.
fn scale(dir: &Path) -> Result<f64> {
    let path = dir.join("adapter_config.json");
    let unreadable = |why: String| Fault::new(format!("`{}`: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|e| unreadable(e.to_string()))?;
    let config: Value = serde_json::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
    let kind = config["peft_type"].as_str().unwrap_or("unknown");
    let patterns = ["rank_pattern", "alpha_pattern"];
    let patterned = |key: &&&str| config[**key].as_object().is_some_and(|o| !o.is_empty());
    let other = match patterns.iter().find(patterned) {
        Some(key) => Some(format!("LoRA with `{key}`")),
        None if config["use_dora"] == true => Some("DoRA".to_string()),
        None if config["fan_in_fan_out"] == true => Some("`fan_in_fan_out`".to_string()),
        None if kind != "LORA" => Some(kind.to_string()),
        None => None,
    };
    if let Some(other) = other {
        let help = "merge it with PEFT's `merge_and_unload()` and name the merged checkpoint";
        return Err(unreadable(format!("{other} adapters are not read")).help(help));
    }
    let number = |key: &str| {
        let found = config[key].as_f64().filter(|n| *n > 0.0);
        found.ok_or_else(|| unreadable(format!("no positive number `{key}`")))
    };
    let (rank, alpha) = (number("r")?, number("lora_alpha")?);
    Ok(match config["use_rslora"] == true {
        true => alpha / rank.sqrt(),
        false => alpha / rank,
    })
}
