//! The manual names every code, every built-in name, every function of the standard library and no
//! command or flag that does not exist; its links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rlhf_lang::lint::{codes, explain};
use rlhf_lang::syntax::ast::ItemKind;
use rlhf_lang::{source::FileId, syntax::parse};

use super::page::{Page, pages};
use super::{none, read, root, updating};

/// What stands between `<!-- name -->` and `<!-- end -->` of a page is written from the sources.
fn written(name: &str, text: &str) {
    let mark = format!("<!-- {name} -->\n");
    for page in pages() {
        let Some(from) = page.text.find(&mark).map(|at| at + mark.len()) else {
            continue;
        };
        let length = page.text[from..].find("<!-- end -->");
        let range = from..from + length.expect("what is written ends");
        if page.text[range.clone()] == *text {
            return;
        }
        let how = "UPDATE_SPEC=1 cargo test -p rlhf-lang --test spec -- --test-threads=1";
        assert!(
            updating(),
            "{}: `{name}` has changed; `{how}` writes it",
            page.name
        );
        page.rewrite(&[(range, text.to_string())]);
        return;
    }
    panic!("no page has `{mark}`");
}

#[test]
fn the_table_of_codes_is_that_of_the_pages() {
    let mut pages = BTreeMap::new();
    for code in codes() {
        let page = explain(code).expect("listed codes have pages");
        let file = format!("lang/src/lint/{}.md", code.to_lowercase());
        pages.insert(code.to_string(), (file, page.to_string()));
    }
    // What the language alone cannot give: data, memory, ranks.
    others(Path::new("interpreter"), &mut pages);
    let mut table = String::from("\n| code | name | |\n|---|---|---|\n");
    for (code, (file, page)) in pages {
        let mut lines = page.lines().filter(|l| !l.is_empty());
        let title = lines.next().unwrap_or_default();
        let name = title.split_once(": ").map_or(title, |(_, name)| name);
        let text = lines.next().unwrap_or_default();
        let first = text.split_inclusive(". ").next().unwrap_or(text).trim_end();
        let first = first.replace('|', "\\|");
        table += &format!("| [{code}](../../{file}) | {name} | {first} |\n");
    }
    table.push('\n');
    written("codes", &table);
}

/// Pages of codes in a folder and those below it, by code.
fn others(folder: &Path, pages: &mut BTreeMap<String, (String, String)>) {
    let entries = std::fs::read_dir(root().join(folder)).expect("rooms are folders");
    for entry in entries {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .to_string();
        let path = folder.join(&name);
        if root().join(&path).is_dir() {
            others(&path, pages);
            continue;
        }
        let Some(code) = name.strip_suffix(".md").filter(|c| c.len() == 4) else {
            continue;
        };
        if code[1..].bytes().all(|b| b.is_ascii_digit()) {
            let file = path.to_string_lossy().replace('\\', "/");
            pages.insert(code.to_uppercase(), (file.clone(), read(&file)));
        }
    }
}

#[test]
fn the_library_is_written_from_its_comments() {
    let mut text = String::new();
    for module in rlhf_stdlib::modules()
        .iter()
        .copied()
        .chain(["std.prelude"])
    {
        let source = rlhf_stdlib::module(module).expect("listed modules exist");
        let (file, _) = parse(FileId(0), source);
        text += &format!("\n## {module}\n\n{}\n", file.doc.trim());
        for item in &file.items {
            let ItemKind::Fn(f) = &item.kind else {
                continue;
            };
            let name = &f.name.text;
            let end = f.result.as_ref().map_or(f.name.span, |r| r.span);
            let head = &source[f.name.span.lo as usize..end.hi as usize];
            let head = one_line(head);
            let doc = item.doc.as_deref().unwrap_or_default();
            let (doc, example) = doc.split_once("Example: ").unwrap_or((doc, ""));
            let (doc, example) = (doc.trim(), example.trim());
            text += &format!("\n### {name}\n\n`fn {head}`\n\n{doc}\n\nExample: {example}\n");
        }
    }
    text.push('\n');
    written("library", &text);
}

/// A head of a function, which may have an argument a line.
fn one_line(head: &str) -> String {
    let lines: Vec<&str> = head.lines().map(str::trim).collect();
    let joined = lines.join(" ");
    joined.replace("( ", "(").replace(", )", ")")
}

/// The words of code: fenced blocks and what stands in backticks.
fn code_words(pages: &[Page]) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for page in pages {
        for (i, part) in page.text.split('`').enumerate() {
            if i % 2 == 1 || part.contains('\n') {
                let found = part.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                words.extend(found.map(str::to_string));
            }
        }
    }
    words
}

#[test]
fn the_manual_names_all_that_is_built_in() {
    let source = read("lang/src/sema/builtin.rs");
    let list = source
        .split_once("const NAMES: &[&str] = &[")
        .map(|(_, rest)| rest);
    let list = list.and_then(|l| l.split_once("];")).map_or("", |(l, _)| l);
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(names.len() > 50, "{} names", names.len());
    let words = code_words(&pages());
    let missing: Vec<String> = names
        .into_iter()
        .filter(|n| !words.contains(*n))
        .map(str::to_string)
        .collect();
    none("built-in names that no page has", &missing);
}

/// The commands and flags of the command line, as its source declares them.
fn command_line() -> (BTreeSet<String>, BTreeSet<String>) {
    let source = read("interpreter/cli/src/args.rs");
    let body = source
        .split_once("pub enum Command {")
        .map(|(_, rest)| rest);
    let body = body
        .and_then(|b| b.split_once("\n}"))
        .map_or("", |(b, _)| b);
    let variants = body.lines().map(str::trim);
    let variants = variants.filter(|l| l.starts_with(char::is_uppercase));
    let commands = variants.filter_map(|l| l.split(['(', ',', ' ']).next());
    let commands = commands.map(str::to_lowercase).collect();
    let mut flags = BTreeSet::from(["version".to_string(), "help".into()]);
    for field in source.split("#[arg(").skip(1) {
        let (head, rest) = field.split_once(")]").unwrap_or((field, ""));
        let named = head
            .split_once("long = \"")
            .and_then(|(_, n)| n.split_once('"'));
        let own = rest.split_once("pub ").and_then(|(_, n)| n.split_once(':'));
        match (named, own) {
            (Some((name, _)), _) => flags.insert(name.to_string()),
            (None, Some((name, _))) if head.contains("long") => {
                flags.insert(name.replace('_', "-"))
            }
            _ => false,
        };
    }
    (commands, flags)
}

/// Lines of `sh` blocks and pieces in backticks that begin with the command.
fn command_lines(page: &Page) -> Vec<String> {
    let mut lines = vec![];
    for block in page.blocks().iter().filter(|b| b.language() == "sh") {
        lines.extend(block.text.lines().map(str::to_string));
    }
    let outside = page.text.lines().filter(|l| !l.starts_with("```"));
    for line in outside {
        lines.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
    }
    lines.retain(|l| l.starts_with("rlhf ") || l.starts_with("./rlhf "));
    lines
}

#[test]
fn every_command_of_the_manual_exists() {
    let (commands, flags) = command_line();
    assert!(
        commands.contains("check") && flags.contains("format"),
        "{commands:?} {flags:?}"
    );
    let mut wrong = vec![];
    let mut named = BTreeSet::new();
    for page in pages() {
        for line in command_lines(&page) {
            let words: Vec<&str> = line.split_whitespace().collect();
            named.insert(words[1].to_string());
            let unknown = words[1..]
                .iter()
                .enumerate()
                .find(|(i, w)| match w.strip_prefix("--") {
                    Some(flag) => !flags.contains(flag),
                    None => *i == 0 && !commands.contains(**w),
                });
            if let Some((_, word)) = unknown {
                wrong.push(format!("{}: `{word}` in `{line}`", page.name));
            }
        }
    }
    none("words that the command line does not know", &wrong);
    let missing: Vec<String> = commands.difference(&named).cloned().collect();
    none("commands that no page shows", &missing);
}

#[test]
fn every_link_leads_to_a_file() {
    let mut wrong = vec![];
    let readme = |path: &str| (path.to_string(), read(path));
    let mut texts = vec![readme("README.md"), readme("docs/README.md")];
    texts.extend(
        pages()
            .into_iter()
            .map(|p| (format!("tests/spec/{}", p.name), p.text)),
    );
    for (path, text) in &texts {
        let folder = root().join(Path::new(path).parent().unwrap_or(Path::new("")));
        for link in text.split("](").skip(1).filter_map(|l| l.split(')').next()) {
            let file = link.split('#').next().unwrap_or(link);
            if !file.is_empty() && !file.contains("://") && !folder.join(file).exists() {
                wrong.push(format!("{path}: {link}"));
            }
        }
    }
    none("links that lead nowhere", &wrong);
}

#[test]
fn the_manual_lists_its_pages_in_order() {
    let index = read("docs/README.md");
    let links = index.split("](../tests/spec/").skip(1);
    let listed: Vec<&str> = links.filter_map(|l| l.split(')').next()).collect();
    let pages = pages();
    let names: Vec<&str> = pages.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(listed, names, "docs/README.md");
}
