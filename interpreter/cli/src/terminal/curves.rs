//! The metrics of a run as one picture: a small panel each.

use std::fmt::Write;

use super::number::number;
use super::{History, summary};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 200.0;
const COLUMNS: usize = 3;
/// Around the plot of a panel: left, right, top, bottom.
const MARGIN: (f64, f64, f64, f64) = (52.0, 14.0, 30.0, 26.0);
/// More points than this cannot be told apart in a panel.
const POINTS: usize = 400;

struct Panel {
    title: String,
    points: Vec<(f64, f64)>,
    /// Few points, each worth a dot.
    dots: bool,
}

/// An SVG with a panel a metric; none when nothing was reported.
pub fn svg(title: &str, history: &History) -> Option<String> {
    let series = |reports: &[rlhf_plan::launch::Report], name: &str| {
        let points = reports.iter().filter_map(|r| {
            let y = (*r.metrics.get(name)?)?;
            y.is_finite().then_some((r.iteration as f64, y))
        });
        points.collect::<Vec<_>>()
    };
    let evals = summary::names(&history.evals).map(|name| Panel {
        points: series(&history.evals, &name),
        title: format!("{name} (eval)"),
        dots: true,
    });
    let steps = summary::names(&history.steps).map(|name| Panel {
        points: thin(series(&history.steps, &name)),
        title: name,
        dots: false,
    });
    let panels: Vec<Panel> = evals
        .chain(steps)
        .filter(|p| !p.points.is_empty())
        .collect();
    if panels.is_empty() {
        return None;
    }
    let columns = COLUMNS.min(panels.len());
    let rows = panels.len().div_ceil(columns);
    let (width, height) = (columns as f64 * WIDTH, rows as f64 * HEIGHT + 34.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"22\" font-size=\"14\" font-weight=\"bold\" fill=\"#222\">{}</text>\n",
        escape(title)
    );
    for (i, panel) in panels.iter().enumerate() {
        let x = (i % columns) as f64 * WIDTH;
        let y = (i / columns) as f64 * HEIGHT + 34.0;
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        draw(&mut svg, panel);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn draw(svg: &mut String, panel: &Panel) {
    let (left, right, top, bottom) = (MARGIN.0, WIDTH - MARGIN.1, MARGIN.2, HEIGHT - MARGIN.3);
    let (x_low, x_high) = extent(panel.points.iter().map(|p| p.0));
    let (y_low, y_high) = extent(panel.points.iter().map(|p| p.1));
    let x = |v: f64| left + (v - x_low) / (x_high - x_low) * (right - left);
    let y = |v: f64| bottom - (v - y_low) / (y_high - y_low) * (bottom - top);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"18\" font-size=\"12\" fill=\"#222\">{}</text>",
        escape(&panel.title)
    );
    for tick in ticks(y_low, y_high) {
        let at = y(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            left - 6.0,
            at + 4.0,
            number(tick)
        );
    }
    for tick in ticks(x_low, x_high)
        .into_iter()
        .filter(|t| t.fract() == 0.0)
    {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            x(tick),
            bottom + 16.0,
            number(tick)
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>"
    );
    let line = |points: &[(f64, f64)]| {
        let places = points
            .iter()
            .map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1)));
        places.collect::<Vec<_>>().join(" ")
    };
    let raw = line(&panel.points);
    if panel.dots || panel.points.len() < 4 {
        let _ = writeln!(
            svg,
            "<polyline points=\"{raw}\" fill=\"none\" stroke=\"#b3541e\" stroke-width=\"1.5\"/>"
        );
        for (px, py) in &panel.points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#b3541e\"/>",
                x(*px),
                y(*py)
            );
        }
        return;
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{raw}\" fill=\"none\" stroke=\"#9dbbe0\" stroke-width=\"1\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\"/>",
        line(&smooth(&panel.points))
    );
}

/// Exponential moving average over about a tenth of the run, without the pull of its start.
fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let span = (points.len() as f64 / 10.0).max(2.0);
    let keep = 1.0 - 2.0 / (span + 1.0);
    let (mut sum, mut weight) = (0.0, 0.0);
    let averaged = points.iter().map(|(x, y)| {
        sum = sum * keep + y;
        weight = weight * keep + 1.0;
        (*x, sum / weight)
    });
    averaged.collect()
}

/// Means of neighbours when there are more points than can be seen.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        let sum = part.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        (sum.0 / n, sum.1 / n)
    };
    points.chunks(size).map(mean).collect()
}

/// The range of values, widened where it would be empty.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    let gap = high - low;
    if gap > 1e-12 * high.abs().max(low.abs()) && gap > 0.0 {
        return (low, high);
    }
    let half = match high.abs() {
        0.0 => 0.5,
        size => size * 0.1,
    };
    (low - half, high + half)
}

/// Round numbers inside a range: three to six of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let unit = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * unit)
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last.min(first + 10))
        .map(|i| i as f64 * step)
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_plan::launch::Report;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.5, 1.0]);
        assert_eq!(ticks(1.0, 60.0), [20.0, 40.0, 60.0]);
        for (low, high) in [(-3.0, 7.5), (1e-6, 3e-6), (1e8, 3e8)] {
            let ticks = ticks(low, high);
            assert!((2..=6).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.iter().all(|t| *t >= low && *t <= high), "{ticks:?}");
        }
    }

    #[test]
    fn every_metric_has_a_panel_and_a_constant_one_is_drawn_too() {
        let report = |i: usize| Report {
            iteration: i,
            metrics: [
                ("reward".to_string(), Some(i as f64)),
                ("a<b".to_string(), Some(1.0)),
                ("none".to_string(), None),
            ]
            .into(),
            ..Report::default()
        };
        let history = History {
            steps: (1..=2000).map(report).collect(),
            evals: vec![report(0)],
            ..History::default()
        };
        let text = svg("grpo", &history).unwrap_or_default();
        assert_eq!(text.matches("<g transform").count(), 4);
        assert!(text.contains("a&lt;b (eval)") && !text.contains("NaN") && !text.contains("inf"));
        assert!(text.len() < 100_000, "{}", text.len());
        assert_eq!(svg("grpo", &History::default()), None);
    }
}
