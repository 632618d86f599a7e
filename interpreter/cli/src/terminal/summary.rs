//! What is left to say when a run is over.

use std::path::Path;

use rlhf_plan::launch::Report;

use super::{History, number, table};

/// The summary, one line an entry.
pub fn lines(history: &History, dir: &Path, seconds: f64) -> Vec<String> {
    let mut head = format!(
        "{} in {}",
        number::count(history.steps.len(), "iteration"),
        number::duration(seconds)
    );
    if let Some(peak) = history.peak_memory {
        head += &format!(" · peak memory {}", number::bytes(peak));
    }
    if history.stopped {
        head += " · stopped early";
    }
    let mut rows = vec![];
    for name in names(&history.steps).filter(|name| table::is_own(name)) {
        let (first, last) = ends(&history.steps, &name);
        let row = format!("{} → {}", number::maybe(first), number::maybe(last));
        rows.push((name, row));
    }
    for name in names(&history.evals) {
        let at = |report: Option<&Report>| report.and_then(|r| *r.metrics.get(&name)?);
        let (first, last) = (at(history.evals.first()), at(history.evals.last()));
        let row = format!(
            "{} → {}  (eval: first → last)",
            number::maybe(first),
            number::maybe(last)
        );
        rows.push((name, row));
    }
    for path in &history.checkpoints {
        rows.push(("checkpoint".into(), path.clone()));
    }
    for (what, file) in [
        ("metrics", "metrics.jsonl"),
        ("samples", "samples.jsonl"),
        ("curves", "curves.svg"),
    ] {
        let path = dir.join(file);
        if path.exists() {
            rows.push((what.into(), path.display().to_string()));
        }
    }
    let width = rows.iter().map(|(n, _)| n.chars().count()).max();
    let width = width.unwrap_or(0);
    let rows = rows.iter().map(|(n, text)| format!("  {n:width$}  {text}"));
    std::iter::once(head).chain(rows).collect()
}

/// The mean of the first 5 and of the last 10 values of a metric; one number of a short run may be in
/// both.
pub fn ends(steps: &[Report], name: &str) -> (Option<f64>, Option<f64>) {
    let values: Vec<f64> = steps.iter().filter_map(|r| *r.metrics.get(name)?).collect();
    let mean = |part: &[f64]| {
        let count = part.len() as f64;
        (!part.is_empty()).then(|| part.iter().sum::<f64>() / count)
    };
    let first = &values[..values.len().min(5)];
    let last = &values[values.len().saturating_sub(10)..];
    (mean(first), mean(last))
}

/// The names of all metrics, in the order of the first report.
pub fn names(reports: &[Report]) -> impl Iterator<Item = String> + use<> {
    let first = reports.first().map(|r| r.metrics.keys().cloned());
    first
        .map(Iterator::collect::<Vec<_>>)
        .unwrap_or_default()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(values: &[f64]) -> Vec<Report> {
        let report = |(i, value): (usize, &f64)| Report {
            iteration: i + 1,
            metrics: [("reward".to_string(), Some(*value))].into(),
            ..Report::default()
        };
        values.iter().enumerate().map(report).collect()
    }

    #[test]
    fn the_summary_compares_the_first_five_with_the_last_ten() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(ends(&steps(&values), "reward"), (Some(2.0), Some(24.5)));
        assert_eq!(ends(&steps(&[1.0]), "reward"), (Some(1.0), Some(1.0)));
        assert_eq!(ends(&[], "reward"), (None, None));
    }
}
