//! Numbers, durations and sizes in as few characters as they are read with.

/// Four significant digits, three of a number below 0.01; very small and very large numbers with an
/// exponent.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e7).contains(&size) {
        let text = format!("{x:.2e}");
        return text.replace(".00e", "e");
    }
    let significant = if size < 0.01 { 2 } else { 3 };
    let decimals = significant - size.log10().floor() as i32;
    let text = format!("{x:.*}", decimals.clamp(0, 5) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// A number, or a dash where there is none.
pub fn maybe(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), number)
}

/// `4.2 s`, `8 min 12 s`, `3 h 5 min`.
pub fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `1 file`, `2 files`.
pub fn count(n: usize, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}

/// Gigabytes with one decimal, or megabytes.
pub fn bytes(n: u64) -> String {
    match n {
        0..1_000_000_000 => format!("{} MB", n / 1_000_000),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// `135M`, `1.7B`.
pub fn parameters(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{:.0}k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0}M", n as f64 / 1e6),
        _ => format!("{:.1}B", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let shown: Vec<String> = [
            0.0, 0.5, 0.123456, 0.0012345, -1.0, 21.34, 12345.6, 1.234e-4, 2e9,
        ]
        .map(number)
        .into();
        assert_eq!(
            shown,
            [
                "0", "0.5", "0.1235", "0.00123", "-1", "21.34", "12346", "1.23e-4", "2e9"
            ]
        );
    }

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
        assert_eq!(duration(4.25), "4.2 s");
        assert_eq!(duration(492.0), "8 min 12 s");
        assert_eq!(duration(11_100.0), "3 h 5 min");
        assert_eq!(bytes(3_140_000_000), "3.1 GB");
        assert_eq!(parameters(134_515_008), "135M");
    }
}
