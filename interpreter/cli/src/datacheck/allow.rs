//! `// allow(D303): reason` silences a finding about data as it does any other.

use std::collections::HashMap;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::lint;
use rlhf_lang::source::{FileId, Sources};

/// Drops what the program allows. Whether the comment gives a reason, the language checks.
pub fn silence(found: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let Some((_, program)) = sources.iter().next() else {
        return found;
    };
    // Reading the comments costs a pass over the program, and many findings share a line.
    let mut known: HashMap<(usize, String), bool> = HashMap::new();
    let mut kept = found;
    kept.retain(|d| {
        let Some(span) = d.span().filter(|s| s.file == FileId(0)) else {
            return true;
        };
        let (line, _) = program.line_column(span.lo);
        let allowed = known
            .entry((line, d.code.clone()))
            .or_insert_with(|| lint::allowed(program, line, &d.code));
        !*allowed
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::source::{Source, Span};

    #[test]
    fn a_comment_on_the_line_or_above_it_silences_one_code() {
        let text = "a = 1 // allow(D303): short\n//allow(D309): meant\n// and more\nb = 2\nc = 3\n";
        let mut sources = Sources::default();
        let file = sources.add(Source::new("p.rlhf", text));
        let at = |code: &str, part: &str| {
            let lo = text.find(part).expect("it is there");
            Diagnostic::warning(code, Span::new(file, lo, lo + 1), "x")
        };
        let found = vec![
            at("D303", "a = 1"),
            at("D309", "a = 1"),
            at("D309", "b = 2"),
            at("D309", "c = 3"),
        ];
        let kept = silence(found, &sources);
        let left: Vec<u32> = kept.iter().filter_map(|d| Some(d.span()?.lo)).collect();
        let place = text.find("c = 3").expect("it is there") as u32;
        assert_eq!(left, [0, place]);
    }
}
