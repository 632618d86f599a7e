//! One line an iteration.

use indexmap::IndexMap;
use rlhf_plan::launch::Report;

use super::number;

/// Columns that stay the same for the whole run.
#[derive(Clone, Debug)]
pub struct Table {
    metrics: Vec<(String, usize)>,
    count: usize,
    calls: usize,
}

/// What every trained model reports beside the program's own metrics.
const GENERIC: [&str; 3] = [".loss", ".grad_norm", ".lr"];

/// Narrower columns make the eye jump.
const NARROWEST: usize = 7;

impl Table {
    /// Columns for the program's own metrics, taken from the first report.
    pub fn new(first: &Report, iterations: usize) -> Self {
        let own = first.metrics.keys().filter(|name| is_own(name));
        Table {
            metrics: own
                .map(|name| (name.clone(), name.chars().count().max(NARROWEST)))
                .collect(),
            count: iterations.to_string().len(),
            calls: trained(&first.seconds),
        }
    }

    /// The names of the columns.
    pub fn header(&self) -> String {
        let mut line = format!("{:>1$}", "iter", (2 * self.count + 1).max(5));
        for (name, width) in &self.metrics {
            line += &format!("  {name:>width$}");
        }
        line + "   tok/s  seconds"
    }

    /// An iteration, cut to `width` columns when the terminal has so many.
    pub fn row(&self, report: &Report, iterations: usize, width: Option<usize>) -> String {
        let counter = format!("{}/{iterations}", report.iteration);
        let mut line = format!("{counter:>0$}", (2 * self.count + 1).max(5));
        for (name, columns) in &self.metrics {
            let value = number::maybe(report.metrics.get(name).copied().flatten());
            line += &format!("  {value:>columns$}");
        }
        let rate = match report.total_seconds > 0.0 {
            true => report.sampled_tokens as f64 / report.total_seconds,
            false => 0.0,
        };
        line += &format!("  {rate:>6.0}  {:.1}", report.total_seconds);
        let calls: Vec<String> = report
            .seconds
            .iter()
            .filter(|(_, seconds)| **seconds >= 0.01 * report.total_seconds)
            .map(|(name, seconds)| format!("{} {seconds:.1}s", self.call(name)))
            .collect();
        if !calls.is_empty() {
            line += &format!(" = {}", calls.join(" + "));
        }
        match width {
            Some(width) => line.chars().take(width).collect(),
            None => line,
        }
    }

    /// With one trained model, `train` says it.
    fn call<'a>(&self, name: &'a str) -> &'a str {
        match name.starts_with("train ") && self.calls == 1 {
            true => "train",
            false => name,
        }
    }
}

/// An evaluation, as one line.
pub fn evaluation(report: &Report) -> String {
    let mut line = format!("eval {}", report.iteration);
    for (name, value) in &report.metrics {
        line += &format!("  {name} {}", number::maybe(*value));
    }
    line + &format!("  ({})", number::duration(report.total_seconds))
}

/// A metric that the program logs, rather than one that comes with training.
pub fn is_own(name: &str) -> bool {
    !GENERIC.iter().any(|ending| name.ends_with(ending))
}

fn trained(seconds: &IndexMap<String, f64>) -> usize {
    let names = seconds.keys();
    names.filter(|name| name.starts_with("train ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            iteration: 1,
            metrics: [
                ("reward".to_string(), Some(0.0156)),
                ("kl".to_string(), None),
                ("policy.loss".to_string(), Some(0.1)),
            ]
            .into(),
            seconds: [
                ("roll".to_string(), 3.1),
                ("r".to_string(), 0.001),
                ("train policy".to_string(), 5.2),
            ]
            .into(),
            total_seconds: 8.3,
            sampled_tokens: 830,
        }
    }

    #[test]
    fn columns_stand_under_their_names() {
        let table = Table::new(&report(), 60);
        let (header, row) = (table.header(), table.row(&report(), 60, None));
        assert_eq!(header, " iter   reward       kl   tok/s  seconds");
        assert_eq!(
            row,
            " 1/60   0.0156        -     100  8.3 = roll 3.1s + train 5.2s"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_end() {
        let table = Table::new(&report(), 60);
        assert_eq!(table.row(&report(), 60, Some(12)), " 1/60   0.01");
    }
}
