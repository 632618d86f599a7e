//! `rlhf fmt`

use std::io::Read;
use std::path::Path;

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::{Source, Sources};

use crate::args::Fmt;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::Program;
use crate::replace::replace;
use crate::report::{self, Format};

/// Formats files in place, or tells which are not formatted.
pub fn fmt(args: &Fmt) -> Outcome<u8> {
    let mut failed = false;
    for file in &args.files {
        if file == "-" {
            failed |= !stream(args.check)?;
            continue;
        }
        if !Path::new(file).is_file() {
            // Open reports what is there instead; a shipped program has no file to rewrite.
            Program::open(file)?;
            return Err(Stop::usage(
                format!("`{file}` is a shipped program and has no file to rewrite"),
                "formatting needs a file",
            ));
        }
        let program = Program::open(file)?;
        let Some(text) = formatted(file, &program.text) else {
            failed = true;
            continue;
        };
        if text == program.text {
            continue;
        }
        if args.check {
            output::out(&format!("{file} is not in the standard layout\n"));
            failed = true;
        } else {
            replace(Path::new(file), &text).map_err(|e| {
                Stop::failed(
                    format!("`{file}` cannot be written: {e}"),
                    "it is unchanged",
                )
            })?;
        }
    }
    Ok(u8::from(failed))
}

fn stream(check: bool) -> Outcome<bool> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Stop::failed(format!("standard input: {e}"), "text in UTF-8 is expected"))?;
    let Some(formatted) = formatted("<stdin>", &text) else {
        return Ok(false);
    };
    if check {
        return Ok(formatted == text);
    }
    output::out(&formatted);
    Ok(true)
}

/// The text in the standard layout; none, with the problems printed, when it does not parse.
fn formatted(name: &str, text: &str) -> Option<String> {
    let result = rlhf_lang::fmt::format(text);
    let errors: Vec<Diagnostic> = result
        .diagnostics
        .into_iter()
        .filter(|d| d.level == Level::Error)
        .collect();
    if errors.is_empty() {
        return Some(result.text);
    }
    let mut sources = Sources::default();
    sources.add(Source::new(name, text));
    report::print(Format::Human, &sources, &errors);
    None
}
