//! Every program of the manual: what it expects is found, where it says, and nothing else.

use std::collections::BTreeMap;

use super::block::{Checked, Program};
use super::diff::apply;
use super::page::{Block, Page, pages};
use super::{none, updating};

/// What a page has told so far.
#[derive(Default)]
struct Reader {
    /// Files that later blocks of the page import.
    files: BTreeMap<String, String>,
    /// Programs that later blocks of the page change.
    named: BTreeMap<String, String>,
    wrong: Vec<String>,
    rewritten: Vec<(std::ops::Range<usize>, String)>,
}

#[test]
fn every_program_of_the_manual_is_as_it_says() {
    let mut wrong = vec![];
    for page in pages() {
        let mut reader = Reader::default();
        reader.read(&page);
        if !reader.rewritten.is_empty() {
            page.rewrite(&reader.rewritten);
        }
        wrong.extend(reader.wrong);
    }
    none("blocks of the manual", &wrong);
}

#[test]
fn every_block_says_what_it_is() {
    let mut wrong = vec![];
    for page in pages() {
        for block in page.blocks() {
            let known = match block.language() {
                "rlhf" => block.info[1..].iter().all(|w| {
                    matches!(w.as_str(), "fragment" | "expr" | "shows")
                        || w.starts_with("file=")
                        || w.starts_with("name=")
                }),
                "diff" => block.option("from").is_some(),
                "text" | "sh" | "json" | "yaml" | "python" => block.info.len() == 1,
                _ => false,
            };
            if !known {
                wrong.push(format!("{}: ```{}", block.place, block.info.join(" ")));
            }
        }
    }
    none("fences that say nothing the runner knows", &wrong);
}

impl Reader {
    fn read(&mut self, page: &Page) {
        let blocks = page.blocks();
        for (i, block) in blocks.iter().enumerate() {
            let text = match block.language() {
                "rlhf" if !block.is("expr") => block.text.clone(),
                "diff" => match self.changed(block) {
                    Ok(text) => text,
                    Err(why) => {
                        self.wrong.push(format!("{}: {why}", block.place));
                        continue;
                    }
                },
                _ => continue,
            };
            let program = Program::new(&text, block.is("fragment"));
            if let Some(file) = block.option("file") {
                self.files.insert(file.into(), program.text.clone());
            }
            if let Some(name) = block.option("name").or(block.option("as")) {
                self.named.insert(name.into(), text.clone());
            }
            let name = block.option("file").unwrap_or("mine.rlhf");
            let checked = program.check(name, &self.files);
            self.compare(block, &program, &checked);
            self.layout(block, &program);
            self.wording(block, &checked);
            if block.is("shows") {
                self.shown(block, &program, &checked, blocks.get(i + 1));
            }
        }
    }

    /// A base with its lines changed.
    fn changed(&self, block: &Block) -> Result<String, String> {
        let from = block.option("from").unwrap_or_default();
        let shipped = rlhf_stdlib::algorithms().iter().find(|(n, _)| *n == from);
        let base = match (self.named.get(from), shipped) {
            (Some(text), _) => text.as_str(),
            (None, Some((_, text))) => text,
            (None, None) => return Err(format!("no program `{from}`")),
        };
        apply(base, &block.text)
    }

    fn compare(&mut self, block: &Block, program: &Program, checked: &Checked) {
        let told = checked.told(program);
        let mut found: Vec<_> = told.iter().map(|(f, _)| f.clone()).collect();
        found.sort();
        if found == program.expected {
            return;
        }
        let said: String = told.iter().map(|(_, d)| checked.concise(d)).collect();
        let wants = &program.expected;
        self.wrong.push(format!(
            "{}: expected {wants:?}, found\n{said}",
            block.place
        ));
    }

    /// Whole programs without errors are written as `rlhf fmt` writes them.
    fn layout(&mut self, block: &Block, program: &Program) {
        let broken = program
            .expected
            .iter()
            .any(|(_, level, _)| *level == "error");
        if broken || block.is("fragment") || block.language() == "diff" {
            return;
        }
        let formatted = rlhf_lang::fmt::format(&program.text).text;
        if formatted != program.text {
            self.wrong.push(format!(
                "{}: `rlhf fmt` writes it as\n{formatted}",
                block.place
            ));
        }
    }

    /// Messages fit a line, and speak of the program rather than of its reader.
    fn wording(&mut self, block: &Block, checked: &Checked) {
        for d in &checked.compiled.diagnostics {
            let long = d.message.chars().count() > 100;
            let all = format!("{} {}", d.message, d.help.as_deref().unwrap_or_default());
            let mut words = all.split(|c: char| !c.is_alphabetic());
            let reader =
                words.any(|w| matches!(w.to_lowercase().as_str(), "you" | "your" | "please"));
            if long || reader || all.contains('!') && !all.contains("!=") {
                self.wrong.push(format!("{}: {}", block.place, d.message));
            }
        }
    }

    /// The messages of a block stand in the `text` block behind it.
    fn shown(&mut self, block: &Block, program: &Program, checked: &Checked, next: Option<&Block>) {
        let Some(next) = next.filter(|b| b.language() == "text") else {
            self.wrong
                .push(format!("{}: no `text` block follows", block.place));
            return;
        };
        let told = checked.told(program);
        let said: String = told.iter().map(|(_, d)| checked.concise(d)).collect();
        if said == next.text {
            return;
        }
        match updating() {
            true => self.rewritten.push((next.range.clone(), said)),
            false => self.wrong.push(format!(
                "{}: shows\n{}instead of\n{said}",
                next.place, next.text
            )),
        }
    }
}
