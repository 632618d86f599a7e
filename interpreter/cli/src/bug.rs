//! A mistake of this program rather than of the user: what to attach to a report of it.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::Sources;

use crate::output;
use crate::report::{self, Format};

/// The exit code of a command that ran into a bug.
const BUG: u8 = 3;

/// Runs a command. A panic in it is told as a bug in rlhf, and gives [`BUG`] as exit code.
pub fn guard(command: impl FnOnce() -> u8) -> u8 {
    std::panic::set_hook(Box::new(|info| {
        // What a decoder cannot take of a damaged file is told as that.
        if std::thread::current().name() == Some(rlhf_text::rows::DECODER) {
            return;
        }
        let line: Vec<String> = std::env::args().collect();
        report::print(Format::Human, &Sources::default(), &[describe(info, &line)]);
        if let Some(text) = backtrace() {
            output::err(&text);
        }
    }));
    // Nothing that the command changed is looked at after a panic.
    catch_unwind(AssertUnwindSafe(command)).unwrap_or(BUG)
}

fn describe(info: &PanicHookInfo, line: &[String]) -> Diagnostic {
    let place = info.location().map_or(String::new(), |l| format!(" ({l})"));
    let said = info.payload();
    let said = said.downcast_ref::<&str>().copied().map(String::from);
    let said = said.or_else(|| info.payload().downcast_ref::<String>().cloned());
    let said = said.unwrap_or_else(|| "no message".into());
    let first = said.lines().next().unwrap_or_default();
    Diagnostic::bare("", format!("bug in rlhf: {first}{place}")).help(format!(
        "a report needs three things: the version (rlhf {}), the command line (`{}`), and the program file \
         with the libraries it imports; RUST_BACKTRACE=1 adds where it happened",
        env!("CARGO_PKG_VERSION"),
        line.join(" "),
    ))
}

fn backtrace() -> Option<String> {
    std::env::var_os("RUST_BACKTRACE").filter(|v| v != "0")?;
    let trace = std::backtrace::Backtrace::force_capture();
    Some(format!("{trace}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_exit_code_3_and_anything_else_is_its_own() {
        assert_eq!(guard(|| 1), 1);
        assert_eq!(guard(|| panic!("one\ntwo")), BUG);
        let _ = std::panic::take_hook();
    }
}
