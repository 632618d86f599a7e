//! `// allow(D303): reason` silences a finding about data as it does any other.

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::{FileId, Sources};

/// Drops what a comment on its line, or on the comment lines before it, allows. Whether the comment
/// gives a reason, the language checks.
pub fn silence(found: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut kept = found;
    kept.retain(|d| !allowed(d, sources));
    kept
}

fn allowed(d: &Diagnostic, sources: &Sources) -> bool {
    let Some(span) = d.span().filter(|s| s.file == FileId(0)) else {
        return false;
    };
    let Some((_, program)) = sources.iter().next() else {
        return false;
    };
    let lines: Vec<&str> = program.text.lines().collect();
    let (line, _) = program.line_column(span.lo);
    let own = line.saturating_sub(1);
    let above = (0..own.min(lines.len()))
        .rev()
        .map(|i| lines[i].trim_start())
        .take_while(|l| l.starts_with("//"));
    let on = lines.get(own).copied().unwrap_or_default();
    let word = format!("// allow({})", d.code);
    !d.code.is_empty() && std::iter::once(on).chain(above).any(|l| l.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::source::{Source, Span};

    #[test]
    fn a_comment_on_the_line_or_above_it_silences_one_code() {
        let text = "a // allow(D303): short\n// allow(D309): meant\n// and more\nb\nc\n";
        let mut sources = Sources::default();
        let file = sources.add(Source::new("p.rlhf", text));
        let at = |code: &str, word: char| {
            let lo = text.rfind(word).expect("it is there");
            Diagnostic::warning(code, Span::new(file, lo, lo + 1), "x")
        };
        let b = text.find("\nb\n").expect("it is there") + 1;
        let b = |code: &str| Diagnostic::warning(code, Span::new(file, b, b + 1), "x");
        let first = |code: &str| Diagnostic::warning(code, Span::new(file, 0, 1), "x");
        let found = vec![first("D303"), first("D309"), b("D309"), at("D309", 'c')];
        let kept = silence(found, &sources);
        let left: Vec<u32> = kept.iter().filter_map(|d| Some(d.span()?.lo)).collect();
        assert_eq!(left, [0, text.rfind('c').expect("it is there") as u32]);
    }
}
