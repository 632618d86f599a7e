//! M122: an external reward that may hang or fail.

use super::facts::Facts;
use crate::diag::Diagnostic;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for reward in &facts.graph.rewards {
        let (missing, then, fix) = match (reward.timeout, reward.otherwise) {
            (Some(_), Some(_)) => continue,
            (None, None) => (
                "`timeout` and no `otherwise`",
                "one call that hangs or fails stops the run",
                "timeout: 10, otherwise: 0",
            ),
            (None, Some(_)) => (
                "`timeout`",
                "one call that hangs stops the run",
                "timeout: 10",
            ),
            (Some(_), None) => (
                "`otherwise`",
                "one call that fails stops the run",
                "otherwise: 0",
            ),
        };
        let name = &reward.name;
        found.push(
            Diagnostic::warning(
                "M122",
                reward.span,
                format!("`{name}` has no {missing}; {then}"),
            )
            .help(format!(
                "add `{fix}`: seconds a call may take, and the number that stands for a failed one"
            )),
        );
    }
    found
}
