//! `rlhf graph`

use rlhf_lang::diag::Level;
use rlhf_lang::graph::show;

use crate::args::Graph;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program;
use crate::report::{self, Format};

/// Prints the graph; problems go to standard error.
pub fn graph(args: &Graph) -> Outcome<u8> {
    let (program, overrides) = program::one(&args.words)?;
    let compiled = program.compile(&overrides);
    let errors: Vec<_> = compiled
        .diagnostics
        .into_iter()
        .filter(|d| d.level == Level::Error)
        .collect();
    report::print(Format::Human, &compiled.sources, &errors);
    let Some(graph) = compiled.graph.filter(|_| errors.is_empty()) else {
        if errors.is_empty() {
            return Err(Stop::failed(
                format!("`{}` has no step, so it has no graph", program.name),
                "a library can be imported by a program",
            ));
        }
        return Ok(1);
    };
    let text = if args.svg {
        show::svg(&graph)
    } else if args.dot {
        show::dot(&graph)
    } else {
        show::text(&graph)
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Stop::failed(
                format!("`{}` cannot be written: {e}", path.display()),
                "name a file in a folder that exists",
            )
        })?,
        None => output::out(&text),
    }
    Ok(0)
}
