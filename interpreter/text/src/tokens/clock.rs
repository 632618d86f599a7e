//! Today's date for the templates that write it into the system prompt.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// The current time in UTC by a `strftime` format: `%d %m %b %B %y %Y %H %M %S %a %A %j %%`, and a
/// `-` after `%` for no leading zero. Other codes are written as they are.
pub(super) fn now(format: &str) -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    at(seconds, format)
}

fn at(seconds: u64, format: &str) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day, of_year) = date(days);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = chars.next();
        let bare = code == Some('-');
        if bare {
            code = chars.next();
        }
        let number = |n: u64, width: usize| match bare {
            true => n.to_string(),
            false => format!("{n:0width$}"),
        };
        let weekday = DAYS[(days % 7) as usize];
        let name = MONTHS[month as usize - 1];
        out.push_str(&match code {
            Some('d') => number(day, 2),
            Some('m') => number(month, 2),
            Some('y') => number(year % 100, 2),
            Some('Y') => year.to_string(),
            Some('H') => number(of_day / 3600, 2),
            Some('M') => number(of_day / 60 % 60, 2),
            Some('S') => number(of_day % 60, 2),
            Some('j') => number(of_year, 3),
            Some('b') => name[..3].to_string(),
            Some('B') => name.to_string(),
            Some('a') => weekday[..3].to_string(),
            Some('A') => weekday.to_string(),
            Some('%') => "%".to_string(),
            Some(other) => format!("%{other}"),
            None => "%".to_string(),
        });
    }
    out
}

/// Year, month, day of the month and day of the year, from 1, of days since 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64, u64) {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let of_year = days + 1;
    let february = if leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1, of_year)
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn dates_are_written_as_strftime_writes_them() {
        assert_eq!(
            at(0, "%A %d %B %Y, %H:%M:%S"),
            "Thursday 01 January 1970, 00:00:00"
        );
        assert_eq!(at(951_782_400, "%d %b %Y"), "29 Feb 2000");
        assert_eq!(
            at(1_735_689_599, "%-d/%m/%y day %j at 100%%"),
            "31/12/24 day 366 at 100%"
        );
        assert_eq!(at(1_735_689_600, "%a %Y-%m-%d %q"), "Wed 2025-01-01 %q");
    }
}
