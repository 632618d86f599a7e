//! Programs named on the command line: files, and the algorithms shipped inside the executable.

use std::path::{Path, PathBuf};

use rlhf_lang::compile::{self, Compiled, Request};

pub use rlhf_text::files::{find, nearest, within};

use crate::outcome::{Outcome, Stop};

/// Params and their values, as given.
pub type Overrides = Vec<(String, String)>;

/// A program's text and where it comes from.
#[derive(Clone, Debug)]
pub struct Program {
    /// As diagnostics name it.
    pub name: String,
    /// The file's stem.
    pub stem: String,
    /// The text.
    pub text: String,
    /// Paths in the program are relative to this folder.
    pub folder: PathBuf,
    /// Where the text is; `None` inside this executable.
    pub file: Option<PathBuf>,
}

impl Program {
    /// Reads a program: a file, or else a shipped algorithm by its bare name. The name means the file
    /// in the `algorithms/` of the working directory or of the checkout, so that edits count and its
    /// data is found.
    pub fn open(word: &str) -> Outcome<Program> {
        let path = Path::new(word);
        let error = match read(path) {
            Ok(bytes) => return Program::of_file(path, bytes),
            Err(error) => error,
        };
        let Some(text) = shipped(word) else {
            return Err(unreadable(path, &error));
        };
        let checkout = std::env::var_os("RLHF_ROOT").map(PathBuf::from);
        for folder in std::iter::once(PathBuf::new()).chain(checkout) {
            let path = folder.join("algorithms").join(format!("{word}.rlhf"));
            if let Ok(bytes) = std::fs::read(&path) {
                return Program::of_file(&path, bytes);
            }
        }
        Ok(Program {
            name: format!("{word}.rlhf"),
            stem: word.into(),
            text: text.into(),
            folder: PathBuf::from("."),
            file: None,
        })
    }

    fn of_file(path: &Path, bytes: Vec<u8>) -> Outcome<Program> {
        let name = path.display().to_string();
        let text = String::from_utf8(bytes).map_err(|_| {
            Stop::usage(
                format!("`{name}` is not text in UTF-8"),
                "a program is a text file, such as `grpo.rlhf`",
            )
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Program {
            stem: stem.into(),
            text,
            folder: parent(path),
            file: Some(path.into()),
            name,
        })
    }

    /// Compiles with overrides. Libraries that the program names are read from its folder.
    pub fn compile(&self, overrides: &[(String, String)]) -> Compiled {
        compile::compile(&Request {
            name: &self.name,
            text: &self.text,
            overrides,
            load: &|path| std::fs::read_to_string(within(&self.folder, path)).ok(),
        })
    }
}

/// `name=value` words apart from the others. A name that is given two values is refused: which one counts
/// would be a guess.
pub fn split(words: &[String]) -> Outcome<(Vec<&str>, Overrides)> {
    let mut files = vec![];
    let mut overrides = Overrides::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) else {
            files.push(word.as_str());
            continue;
        };
        if let Some((_, before)) = overrides.iter().find(|(known, _)| known == name) {
            return Err(Stop::usage(
                format!("`{name}` is given twice: `{name}={before}` and `{word}`"),
                "a param has one value; keep one of the two",
            ));
        }
        overrides.push((name.into(), value.into()));
    }
    Ok((files, overrides))
}

/// The one program among words, and its overrides.
pub fn one(words: &[String]) -> Outcome<(Program, Overrides)> {
    let (files, overrides) = split(words)?;
    match files.as_slice() {
        [file] => Ok((Program::open(file)?, overrides)),
        [] => Err(Stop::usage(
            "no program is named",
            format!(
                "name a file, or one of the shipped algorithms: {}",
                algorithms()
            ),
        )),
        [_, second, ..] => Err(Stop::usage(
            format!("`{second}` is a second program; one is expected"),
            "params are set as `name=value`, without spaces",
        )),
    }
}

/// The name most like `wanted`, if one is.
pub fn similar<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let (score, name) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.8).then_some(name)
}

/// The folder a file is in.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.into(),
        _ => PathBuf::from("."),
    }
}

fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// The text of a shipped algorithm.
pub fn shipped(name: &str) -> Option<&'static str> {
    let mut all = rlhf_stdlib::algorithms().iter();
    all.find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// The names of the shipped algorithms.
pub fn algorithms() -> String {
    let names: Vec<&str> = rlhf_stdlib::algorithms().iter().map(|(n, _)| *n).collect();
    names.join(", ")
}

/// The largest program that is read.
const LARGEST: u64 = 64 << 20;

/// A file's bytes; what is no file, such as a pipe, could be waited on for ever.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let facts = std::fs::metadata(path)?;
    if !facts.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    if facts.len() > LARGEST {
        return Err(std::io::Error::other("it is larger than 64 MB"));
    }
    std::fs::read(path)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Stop {
    let shown = path.display();
    if error.kind() != std::io::ErrorKind::NotFound {
        return Stop::usage(
            format!("`{shown}` cannot be read: {error}"),
            "a program is a text file, such as `grpo.rlhf`",
        );
    }
    let help = match nearest(path) {
        Some(near) => format!("a similar name is there: `{}`", near.display()),
        None => format!(
            "programs are files; these are shipped: {} (`rlhf run grpo`)",
            algorithms()
        ),
    };
    Stop::usage(format!("no file `{shown}`"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_told_from_files() {
        let words: Vec<String> = ["a=b.rlhf", "./x=1", "lr=1e-5", "grpo"]
            .map(String::from)
            .into();
        let (files, overrides) = split(&words).expect("each name is given once");
        assert_eq!(files, ["./x=1", "grpo"]);
        assert_eq!(overrides[0], ("a".into(), "b.rlhf".into()));
        assert_eq!(overrides[1], ("lr".into(), "1e-5".into()));
    }
}
