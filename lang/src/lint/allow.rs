//! `// allow(M109): reason` silences a rule on its own line or on the next line with code.

use crate::ast::{CommentKind, File};
use crate::diag::{Diagnostic, Level};
use crate::source::{FileId, Source, Sources, Span};

struct Allow {
    code: String,
    span: Span,
    /// The line it speaks for.
    line: usize,
    reason: bool,
    used: bool,
}

/// Drops what is allowed and reports allowances without a reason (L007) or an effect (L008).
/// Errors whose code starts with E stay: such a program has no meaning.
pub(crate) fn allow(file: &File, sources: &Sources, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut allows = allowances(file, sources);
    if allows.is_empty() {
        return found;
    }
    let text = sources.get(file.id);
    let failed = found
        .iter()
        .any(|d| d.level == Level::Error && d.code.starts_with('E'));
    let mut kept: Vec<Diagnostic> = found
        .into_iter()
        .filter(|d| {
            let Some(span) = d.span().filter(|s| s.file == file.id) else {
                return true;
            };
            let (line, _) = text.line_column(span.lo);
            let allowed = allows
                .iter_mut()
                .find(|a| a.code == d.code && a.line == line && !d.code.starts_with('E'));
            match allowed {
                Some(a) => {
                    a.used = true;
                    false
                }
                None => true,
            }
        })
        .collect();
    for a in allows {
        if !a.reason {
            kept.push(
                Diagnostic::warning(
                    "L007",
                    a.span,
                    format!("`allow({})` gives no reason", a.code),
                )
                .help(format!("as in `// allow({}): the reason`", a.code)),
            );
        }
        // Rules over the graph do not run while it has errors, and those over data run elsewhere.
        if !a.used && !failed && !is_elsewhere(&a.code) {
            kept.push(
                Diagnostic::warning(
                    "L008",
                    a.span,
                    format!("`allow({})` silences nothing here", a.code),
                )
                .help("remove it, or move it to the line above the one it is for"),
            );
        }
    }
    kept
}

/// Rules that need the data, a checkpoint or a run: what they allow is held against them there.
fn is_elsewhere(code: &str) -> bool {
    code.starts_with(['D', 'R']) || matches!(code, "M118" | "M119" | "M120")
}

fn allowances(file: &File, sources: &Sources) -> Vec<Allow> {
    let text = sources.get(file.id);
    let mut allows = vec![];
    for c in file.comments.iter().filter(|c| c.kind == CommentKind::Line) {
        let Some(rest) = c.text.trim().strip_prefix("allow(") else {
            continue;
        };
        let Some((code, reason)) = rest.split_once(')') else {
            continue;
        };
        let (own, _) = text.line_column(c.span.lo);
        let mut line = own;
        let is_comment = |n: usize| {
            text.line(n)
                .is_some_and(|l| l.trim_start().starts_with("//") || l.trim().is_empty())
        };
        while is_comment(line) {
            line += 1;
        }
        allows.push(Allow {
            code: code.trim().into(),
            span: c.span,
            line,
            reason: !reason.trim_start_matches(':').trim().is_empty(),
            used: false,
        });
    }
    allows
}

/// Whether a comment on a line, counted from 1, or on the comment lines above it, allows a code.
pub fn allowed(source: &Source, line: usize, code: &str) -> bool {
    let (file, _) = crate::syntax::parse(FileId(0), &source.text);
    let mut sources = Sources::default();
    sources.add(source.clone());
    let mut allows = allowances(&file, &sources).into_iter();
    allows.any(|a| a.code == code && a.line == line)
}
