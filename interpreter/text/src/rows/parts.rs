//! The files of a data set.

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;

use super::{FORMATS, layout};
use crate::{Result, files};

/// One file of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The declaration as it would be of this file alone: its format and its path as messages show it.
    pub data: Data,
    /// Where it is.
    pub path: PathBuf,
}

/// How deep a data set's directory is looked through.
const DEPTH: usize = 4;

/// The files of a data set in the order of its rows: one, or those of a Hugging Face directory that are the
/// split. A path is looked for in the program's folder and in the working directory.
///
/// D300 when there is none, or what is there is of another kind.
pub fn parts(data: &Data, folder: &Path) -> Result<Vec<Part>> {
    if data.format != "hf" {
        let path = locate(data, folder)?;
        let data = data.clone();
        return Ok(vec![Part { data, path }]);
    }
    let fail = |message: String, help: String| {
        Box::new(Diagnostic::error("D300", data.path_span, message).help(help))
    };
    let Some(root) = files::find(folder, &data.path) else {
        let message = format!("there is no directory `{}`", data.path);
        return Err(fail(message, files::elsewhere(folder, &data.path)));
    };
    if !root.is_dir() {
        let message = format!("`{}` is a file, and `hf` reads a directory", data.path);
        let format = FORMATS.into_iter().find(|f| data.path.ends_with(f));
        let format = format.unwrap_or("jsonl");
        return Err(fail(
            message,
            format!("`{format}(\"{}\")` reads it", data.path),
        ));
    }
    let mut names = vec![];
    walk(&root, "", DEPTH, &mut names);
    let names = layout::select(data, &names)?;
    Ok(names
        .iter()
        .map(|name| of_directory(data, &root, name))
        .collect())
}

fn of_directory(data: &Data, root: &Path, name: &str) -> Part {
    let path = root.join(name);
    let bare = name.strip_suffix(".gz").unwrap_or(name);
    let format = match bare.rsplit('.').next().unwrap_or_default() {
        // On the hub, what ends in .json has either form.
        "json" if one_a_line(&path) => "jsonl",
        other => other,
    };
    let shown = Path::new(&data.path).join(name);
    Part {
        data: Data {
            format: format.into(),
            path: shown.display().to_string(),
            ..data.clone()
        },
        path,
    }
}

/// Whether the text begins with an object rather than with a list of them.
fn one_a_line(path: &Path) -> bool {
    use std::io::Read;
    let Ok(input) = super::input::open(path) else {
        return false;
    };
    let bytes = std::io::BufReader::new(input.bytes)
        .bytes()
        .map_while(std::io::Result::ok);
    let mark = "\u{feff}".as_bytes();
    let mut text = bytes.filter(|b| !b.is_ascii_whitespace() && !mark.contains(b));
    text.next() == Some(b'{')
}

fn walk(root: &Path, below: &str, depth: usize, names: &mut Vec<String>) {
    let entries = std::fs::read_dir(root.join(below)).into_iter().flatten();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = match below {
            "" => name,
            below => format!("{below}/{name}"),
        };
        // Through links, of which the hub's cache is made.
        match root.join(&path).is_dir() {
            true if depth > 0 => walk(root, &path, depth - 1, names),
            true => {}
            false => names.push(path),
        }
    }
    names.sort();
}

/// The file of a data set of one file, looked for in the program's folder and in the working directory.
///
/// D300 when there is none, or when it is a folder or a device.
fn locate(data: &Data, folder: &Path) -> Result<PathBuf> {
    let fail = |message: String, help: String| {
        Box::new(Diagnostic::error("D300", data.path_span, message).help(help))
    };
    let Some(path) = files::find(folder, &data.path) else {
        let message = format!("there is no file `{}`", data.path);
        return Err(fail(message, files::elsewhere(folder, &data.path)));
    };
    if path.is_dir() {
        let message = format!("`{}` is a folder, not a file", data.path);
        let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let mut names: Vec<String> = inside
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|name| FORMATS.iter().any(|f| name.ends_with(&format!(".{f}"))))
            .collect();
        names.sort();
        let help = match names.first() {
            Some(name) => {
                let file = Path::new(&data.path).join(name);
                format!("a data set is one file, such as `{}`", file.display())
            }
            None => "a data set is one file".into(),
        };
        return Err(fail(message, help));
    }
    // A pipe or a device may never come to its end.
    if !path.is_file() {
        let message = format!("`{}` is not a regular file", data.path);
        let help = "a data set is a file on a disk, not a pipe or a device";
        return Err(fail(message, help.into()));
    }
    Ok(path)
}
