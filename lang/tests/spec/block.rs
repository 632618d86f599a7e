//! What a block says must be found in it, and what is found.

use std::collections::BTreeMap;

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::diag::{Diagnostic, Level};

use super::wrap::wrap;

/// A line of the block, a level and a code; line 0 is a diagnostic that blames no text.
pub type Found = (usize, &'static str, String);

/// A program of the manual.
pub struct Program {
    /// Its text without the expectations.
    pub text: String,
    /// `// error: E010` at the ends of its lines.
    pub expected: Vec<Found>,
    /// `// with: group=1` in its first line.
    overrides: Vec<(String, String)>,
    /// Whether it stands in the small program.
    fragment: bool,
}

/// A program and what was found in it.
pub struct Checked {
    /// All there is.
    pub compiled: Compiled,
    /// Lines of the small program before the fragment.
    before: usize,
}

const LEVELS: [&str; 3] = ["error", "warning", "hint"];

/// The word for a level.
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Error => LEVELS[0],
        Level::Warning => LEVELS[1],
        Level::Hint => LEVELS[2],
    }
}

/// `error: E010, hint: L010` behind the last `//` of a line, and the line without it.
pub fn expectations(line: &str) -> (&str, Vec<(&'static str, String)>) {
    let Some((code, comment)) = line.rsplit_once("//") else {
        return (line, vec![]);
    };
    let mut all = vec![];
    for part in comment.split(',') {
        let Some((word, code)) = part.trim().split_once(": ") else {
            return (line, vec![]);
        };
        let Some(level) = LEVELS.iter().find(|l| **l == word) else {
            return (line, vec![]);
        };
        all.push((*level, code.to_string()));
    }
    (code.trim_end(), all)
}

impl Program {
    /// Reads a block.
    pub fn new(block: &str, fragment: bool) -> Self {
        let mut program = Program {
            text: String::new(),
            expected: vec![],
            overrides: vec![],
            fragment,
        };
        for (i, line) in block.lines().enumerate() {
            let (code, expected) = expectations(line);
            let with = code.strip_prefix("// with: ").filter(|_| i == 0);
            let number = if with.is_some() { 0 } else { i + 1 };
            for (level, code) in expected {
                program.expected.push((number, level, code));
            }
            for (name, value) in with
                .into_iter()
                .flat_map(|w| w.split(' '))
                .filter_map(|p| p.split_once('='))
            {
                program.overrides.push((name.into(), value.into()));
            }
            program.text += code;
            program.text.push('\n');
        }
        program.expected.sort();
        program
    }

    /// Checks it under a name; `files` are what it can import.
    pub fn check(&self, name: &str, files: &BTreeMap<String, String>) -> Checked {
        let (text, before) = match self.fragment {
            true => wrap(&self.text),
            false => (self.text.clone(), 0),
        };
        let request = Request {
            name,
            text: &text,
            overrides: &self.overrides,
            load: &|path| files.get(path).cloned(),
        };
        Checked {
            compiled: compile(&request),
            before,
        }
    }
}

impl Checked {
    /// The diagnostics that a block answers for: hints, and what a fragment leaves unused, only where
    /// they are expected.
    pub fn told(&self, program: &Program) -> Vec<(Found, &Diagnostic)> {
        let mut told: Vec<(Found, &Diagnostic)> = vec![];
        for d in &self.compiled.diagnostics {
            let found = (self.line(d), level(d.level), d.code.clone());
            let unused = matches!(d.code.as_str(), "L001" | "L002" | "L003");
            let optional = d.level == Level::Hint || (program.fragment && unused);
            if !optional || program.expected.contains(&found) {
                told.push((found, d));
            }
        }
        told
    }

    fn line(&self, d: &Diagnostic) -> usize {
        let Some(span) = d.span() else {
            return 0;
        };
        let (line, _) = self.compiled.sources.get(span.file).line_column(span.lo);
        line.saturating_sub(self.before)
    }

    /// `mine.rlhf:3:9: error[E031]: …`, as `rlhf check --format concise` prints it.
    pub fn concise(&self, d: &Diagnostic) -> String {
        let place = d.span().map_or(String::new(), |span| {
            let source = self.compiled.sources.get(span.file);
            let (_, column) = source.line_column(span.lo);
            format!("{}:{}:{column}: ", source.name, self.line(d))
        });
        format!("{place}{}[{}]: {}\n", level(d.level), d.code, d.message)
    }
}
