//! `rlhf check`

use std::time::Instant;

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;

use crate::args::{Check, Deny};
use crate::datacheck::{self, Extent};
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program::{self, Program};
use crate::report::{self, Format};

/// Checks every file; the exit code is 1 when one of them has an error (or, when asked, a warning).
pub fn check(args: &Check) -> Outcome<u8> {
    let (files, overrides) = program::split(&args.words);
    if files.is_empty() {
        return Err(Stop::usage(
            "no program is named",
            "as in `rlhf check grpo.rlhf`",
        ));
    }
    let extent = match args.all_rows {
        true => Extent::All,
        false => Extent::Head,
    };
    let programs: Vec<Program> = files
        .into_iter()
        .map(Program::open)
        .collect::<Outcome<_>>()?;
    let mut failed = false;
    for program in &programs {
        let start = Instant::now();
        let (sources, diagnostics) = problems(program, &overrides, extent);
        report::print(args.format, &sources, &diagnostics);
        let count = |level| diagnostics.iter().filter(|d| d.level == level).count();
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        failed |= errors > 0 || (args.deny == Some(Deny::Warnings) && warnings > 0);
        if args.format == Format::Human {
            let milliseconds = start.elapsed().as_millis();
            output::err(&format!(
                "{}: {} ({milliseconds} ms)\n",
                program.name,
                verdict(errors, warnings, count(Level::Hint))
            ));
        }
    }
    Ok(u8::from(failed))
}

fn problems(
    program: &Program,
    overrides: &[(String, String)],
    extent: Extent,
) -> (Sources, Vec<Diagnostic>) {
    let compiled = program.compile(overrides);
    let (mut sources, mut diagnostics) = (compiled.sources, compiled.diagnostics);
    if let Some(graph) = &compiled.graph {
        diagnostics.extend(datacheck::check(
            graph,
            &program.folder,
            extent,
            &mut sources,
        ));
    }
    (sources, diagnostics)
}

fn verdict(errors: usize, warnings: usize, hints: usize) -> String {
    let several = |n: usize, word: &str| match n {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let parts: Vec<String> = [
        several(errors, "error"),
        several(warnings, "warning"),
        several(hints, "hint"),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.is_empty() {
        true => "no problems".into(),
        false => parts.join(", "),
    }
}
