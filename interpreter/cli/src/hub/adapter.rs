//! PEFT adapters in the place of a checkpoint: a directory that names the checkpoint under it.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Whether a directory is an adapter rather than a whole checkpoint.
pub fn is_adapter(dir: &Path) -> bool {
    dir.join(CONFIG).is_file() && !dir.join("config.json").is_file()
}

/// The checkpoint that an adapter stands on: a hub id, or a path that is absolute or relative to the
/// adapter's own directory or to the working directory.
pub fn base(dir: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(dir.join(CONFIG)).map_err(|e| e.to_string())?;
    let config: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let named = config["base_model_name_or_path"].as_str();
    let named = named.filter(|n| !n.is_empty());
    let named = named.ok_or("it names no `base_model_name_or_path`")?;
    let beside: PathBuf = dir.join(named);
    Ok(match beside.is_dir() {
        true => beside.display().to_string(),
        false => named.to_string(),
    })
}

const CONFIG: &str = "adapter_config.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_names_its_base() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let dir = folder.path().join("adapter");
        std::fs::create_dir_all(folder.path().join("base")).expect("a folder");
        std::fs::create_dir_all(&dir).expect("a folder");
        assert!(!is_adapter(&dir));
        let write = |text: &str| std::fs::write(dir.join(CONFIG), text).expect("a small file");
        write(r#"{"base_model_name_or_path": "org/model"}"#);
        assert!(is_adapter(&dir));
        assert_eq!(base(&dir).as_deref(), Ok("org/model"));
        write(r#"{"base_model_name_or_path": "../base"}"#);
        let found = base(&dir).expect("it is beside the adapter");
        assert!(Path::new(&found).is_dir(), "{found}");
        write("{}");
        assert!(base(&dir).is_err());
    }
}
