//! `rlhf explain`

use crate::args::Explain;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::pages;

/// Prints a code's page.
pub fn explain(args: &Explain) -> Outcome<u8> {
    match pages::explain(args.code.trim()) {
        Some(page) => {
            output::out(&format!("{}\n", page.trim_end()));
            Ok(0)
        }
        None => Err(Stop::usage(
            format!("no diagnostic has the code `{}`", args.code),
            format!("there are pages for {}", pages::codes().join(", ")),
        )),
    }
}
