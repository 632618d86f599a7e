//! `rlhf explain`

use rlhf_lang::lint;

use crate::args::Explain;
use crate::outcome::{Outcome, Stop};
use crate::output;

/// Prints a code's page.
pub fn explain(args: &Explain) -> Outcome<u8> {
    let code = args.code.trim().to_uppercase();
    match lint::explain(&code) {
        Some(page) => {
            output::out(&format!("{}\n", page.trim_end()));
            Ok(0)
        }
        None => Err(Stop::usage(
            format!("no diagnostic has the code `{}`", args.code),
            "a code is the word in brackets beside a message, such as E031",
        )),
    }
}
