//! A text as it is drawn: lines too long for the screen are cut around what is marked in them.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use rlhf_lang::source::Source;

/// Stands for what is cut away.
const CUT: &str = "…";
/// Of a mark that is too long itself, so much is kept at least.
const SHORTEST: usize = 8;

/// The text with cut lines.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    text: String,
    /// Where each mark starts in `text`, with its 0-based column in the whole line, in characters.
    columns: Vec<(usize, usize)>,
}

impl Excerpt {
    /// Cuts the lines of `source` to `width` characters. Gives the marks, byte ranges on character
    /// boundaries, as they lie in the cut text.
    pub fn new(source: &Source, marks: &[Range<usize>], width: usize) -> (Self, Vec<Range<usize>>) {
        let mut text = String::new();
        let mut moved: Vec<Range<usize>> = marks.to_vec();
        let mut start = 0;
        for line in source.text.split_inclusive('\n') {
            let end = start + line.len();
            let kept = kept(line, start, marks, width);
            for (mark, moved) in marks.iter().zip(&mut moved) {
                let last = end == source.text.len();
                if (start..end).contains(&mark.start) || (last && mark.start == end) {
                    moved.start = text.len() + place(&kept, mark.start - start);
                }
                if (start < mark.end && mark.end <= end) || (mark.is_empty() && mark.end == start) {
                    moved.end = text.len() + place(&kept, mark.end - start);
                }
            }
            write(&mut text, line, &kept);
            start = end;
        }
        for moved in &mut moved {
            moved.end = moved.end.max(moved.start);
        }
        let column = |mark: &Range<usize>| source.line_column(mark.start as u32).1 - 1;
        let starts = moved.iter().map(|m| m.start);
        let columns = starts.zip(marks.iter().map(column)).collect();
        let name = source.name.clone();
        let excerpt = Excerpt {
            name,
            text,
            columns,
        };
        (excerpt, moved)
    }
}

/// The parts of a line that stay, in order and apart. `start` is where the line is in the text.
fn kept(line: &str, start: usize, marks: &[Range<usize>], width: usize) -> Vec<Range<usize>> {
    let whole = 0..line.len();
    let body = line.trim_end_matches(['\n', '\r']).len();
    if line[..body].chars().count() <= width {
        return vec![whole];
    }
    let inside = |m: &&Range<usize>| m.start < start + body && m.end >= start;
    let mut here: Vec<Range<usize>> = marks
        .iter()
        .filter(inside)
        .map(|m| m.start.saturating_sub(start)..(m.end - start).min(body))
        .collect();
    if here.is_empty() {
        here.push(0..0);
    }
    here.sort_by_key(|m| m.start);
    // Every part may be this long; the cuts beside it take a character each.
    let share = (width / here.len()).saturating_sub(2).max(SHORTEST);
    let mut parts: Vec<Range<usize>> = vec![];
    for mark in here {
        let length = line[mark.clone()].chars().count();
        let part = if length >= share {
            let from = backward(line, mark.start, share / 4);
            from..forward(line, from, share).min(body)
        } else {
            let before = (share - length) / 2;
            let from = backward(line, mark.start, before);
            // What is not needed on one side is given to the other.
            let part = from..forward(line, from, share).min(body);
            backward(line, part.end, share).min(part.start)..part.end
        };
        match parts.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => parts.push(part),
        }
    }
    // The end of the line stays, so that lines stay lines.
    if body < line.len() {
        match parts.last_mut() {
            Some(last) if last.end == body => last.end = line.len(),
            _ => parts.push(body..line.len()),
        }
    }
    parts
}

fn write(text: &mut String, line: &str, kept: &[Range<usize>]) {
    let mut at = 0;
    for part in kept {
        if part.start > at {
            text.push_str(CUT);
        }
        text.push_str(&line[part.clone()]);
        at = part.end;
    }
    if at < line.len() {
        text.push_str(CUT);
    }
}

/// Where a byte of a line lies among its kept parts; one that was cut away lies where it was cut.
fn place(kept: &[Range<usize>], byte: usize) -> usize {
    let (mut out, mut at) = (0, 0);
    for part in kept {
        if part.start > at {
            if byte < part.start {
                return out;
            }
            out += CUT.len();
        }
        if byte <= part.end {
            return out + byte - part.start;
        }
        out += part.len();
        at = part.end;
    }
    out
}

/// The boundary `count` characters before a byte.
fn backward(line: &str, from: usize, count: usize) -> usize {
    let mut before = line[..from].char_indices().rev();
    match count {
        0 => from,
        n => before.nth(n - 1).map_or(0, |(i, _)| i),
    }
}

/// The boundary `count` characters after a byte.
fn forward(line: &str, from: usize, count: usize) -> usize {
    let mut after = line[from..].char_indices();
    after.nth(count).map_or(line.len(), |(i, _)| from + i)
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        // The heading names the place in the whole line.
        let whole = self.columns.iter().find(|(at, _)| *at == span.offset());
        let column = match whole {
            Some((_, column)) if before == 0 => *column,
            _ => found.column(),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            found.data(),
            *found.span(),
            found.line(),
            column,
            found.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, mark: Range<usize>, width: usize) -> (String, String) {
        let source = Source::new("a.rlhf", text);
        let (excerpt, moved) = Excerpt::new(&source, std::slice::from_ref(&mark), width);
        let marked = excerpt.text[moved[0].clone()].to_string();
        (excerpt.text, marked)
    }

    #[test]
    fn short_lines_stay_as_they_are() {
        let text = "one\ntwo three\r\n";
        assert_eq!(excerpt(text, 4..7, 20), (text.into(), "two".into()));
        assert_eq!(excerpt("", 0..0, 20), ("".into(), "".into()));
        assert_eq!(excerpt("ab", 2..2, 20), ("ab".into(), "".into()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("short\n{}here{}\nend\n", "a".repeat(500), "ä".repeat(500));
        let (cut, marked) = excerpt(&text, 506..510, 40);
        assert_eq!(marked, "here");
        let lines: Vec<&str> = cut.lines().collect();
        assert_eq!((lines[0], lines[2]), ("short", "end"));
        assert_eq!(lines[1].chars().count(), 40);
        assert!(
            lines[1].starts_with("…a") && lines[1].ends_with("ä…"),
            "{cut}"
        );
    }

    #[test]
    fn a_mark_at_an_end_of_the_line_has_more_of_the_other_side() {
        let text = format!("here{}\n{}there", "a".repeat(500), "b".repeat(500));
        let (cut, marked) = excerpt(&text, 0..4, 40);
        assert_eq!((marked.as_str(), cut.lines().count()), ("here", 2));
        assert!(cut.lines().all(|l| l.chars().count() <= 40), "{cut}");
        let (cut, marked) = excerpt(&text, text.len() - 5..text.len(), 40);
        assert_eq!(marked, "there");
        assert!(cut.lines().all(|l| l.chars().count() <= 40), "{cut}");
    }

    #[test]
    fn a_mark_longer_than_the_screen_keeps_its_beginning() {
        let text = format!("x = {}", "a".repeat(500));
        let (cut, marked) = excerpt(&text, 4..504, 40);
        assert!(cut.chars().count() <= 40, "{cut}");
        assert!(marked.len() >= 30 && marked.starts_with("aaa"), "{marked}");
    }

    #[test]
    fn marks_far_apart_on_one_line_are_all_there() {
        let text = format!(
            "{}one{}two{}",
            " ".repeat(300),
            "-".repeat(300),
            " ".repeat(300)
        );
        let source = Source::new("a.rlhf", text);
        let (excerpt, moved) = Excerpt::new(&source, &[603..606, 300..303], 60);
        assert_eq!(&excerpt.text[moved[0].clone()], "two");
        assert_eq!(&excerpt.text[moved[1].clone()], "one");
        assert!(excerpt.text.chars().count() <= 60, "{}", excerpt.text);
        let contents = excerpt.read_span(&moved[0].clone().into(), 0, 0);
        assert_eq!(contents.expect("it is inside").column(), 603);
    }
}
