//! `rlhf graph`

use rlhf_lang::graph::show;

use crate::args::Graph;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program;

/// Prints the graph; problems go to standard error.
pub fn graph(args: &Graph) -> Outcome<u8> {
    let (program, overrides) = program::one(&args.words)?;
    let compiled = super::compile(&program, &overrides);
    let sound = compiled.diagnostics.is_empty();
    let Some(graph) = compiled.graph.filter(|_| sound) else {
        if sound {
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
    } else if args.mermaid {
        show::mermaid(&graph)
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
