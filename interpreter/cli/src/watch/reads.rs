//! The paths that a check of a program looks at, whether or not something is there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rlhf_lang::compile::Compiled;
use rlhf_lang::graph::{Data, ModelKind, RewardSource};
use rlhf_text::rows;

use crate::program::{self, Program};

/// What is read of a checkpoint's directory besides its weights.
const CHECKPOINT: [&str; 7] = [
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
];

/// A source of data that names no single file.
const HUB: &str = "hf";

/// The program, what it imports, its data, its reward scripts, and the tokenizers of local checkpoints. A
/// relative path counts from the program's folder and from the working directory.
pub fn reads(program: &Program, compiled: &Compiled) -> BTreeSet<PathBuf> {
    let mut paths: BTreeSet<PathBuf> = program.file.iter().cloned().collect();
    let imports = compiled.imports.iter();
    paths.extend(imports.map(|path| program::within(&program.folder, path)));
    let facts = &compiled.facts;
    let scripts = facts
        .rewards
        .iter()
        .filter_map(|reward| match &reward.source {
            RewardSource::Python { file, .. } => Some(file),
            _ => None,
        });
    let (sets, data): (Vec<&Data>, Vec<&Data>) = facts.data.iter().partition(|d| d.format == HUB);
    for set in sets {
        // A directory is watched with the files of its split; what the hub holds does not change here.
        if let Some(directory) = program::find(&program.folder, &set.path) {
            paths.insert(directory);
            let parts = rows::parts(set, &program.folder).unwrap_or_default();
            paths.extend(parts.into_iter().map(|part| part.path));
        }
    }
    for path in data.iter().map(|d| &d.path).chain(scripts) {
        paths.insert(program::within(&program.folder, path));
        paths.insert(PathBuf::from(path));
    }
    for model in &facts.models {
        let (ModelKind::Causal { checkpoint, .. } | ModelKind::Scalar { checkpoint, .. }) =
            &model.kind
        else {
            continue;
        };
        if let Some(directory) = program::find(&program.folder, checkpoint) {
            paths.extend(CHECKPOINT.iter().map(|name| directory.join(name)));
        }
    }
    paths
}
