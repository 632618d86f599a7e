//! M106: a loss that does not depend on the model it trains.

use super::facts::Facts;
use crate::diag::Diagnostic;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        if facts.live(train, false)[train.loss.0 as usize] {
            continue;
        }
        let name = facts.model_name(train.model);
        let behind_stop = facts.live(train, true)[train.loss.0 as usize];
        let help = if behind_stop {
            "everything live stands behind `stop`".to_string()
        } else {
            format!(
                "inside `train {name}`, `logp({name}, roll)` and `entropy({name}, roll)` are live"
            )
        };
        found.push(
            Diagnostic::error(
                "M106",
                facts.home(train.loss),
                format!("this loss does not depend on `{name}`; every gradient is zero"),
            )
            .help(help),
        );
    }
    found
}
