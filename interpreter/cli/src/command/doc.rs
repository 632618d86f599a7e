//! `rlhf doc`

use rlhf_lang::reference::{self, Chapter, Entry};
use rlhf_lang::source::FileId;
use rlhf_lang::syntax::{ast, parse};

use crate::args::Doc;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program;

/// Lines of text are broken here.
const WIDTH: usize = 100;
/// The module that every program has without importing it.
const PRELUDE: &str = "std.prelude";

/// Prints what a name is, or every name there is.
pub fn doc(args: &Doc) -> Outcome<u8> {
    let Some(name) = &args.name else {
        output::out(&overview());
        return Ok(0);
    };
    let name = name.trim();
    let found = lookup(name);
    if !found.is_empty() {
        output::out(&found.join("\n"));
        return Ok(0);
    }
    let functions: Vec<Function> = modules().flat_map(|m| m.functions).collect();
    let bare = functions.iter().map(|f| f.name.clone());
    let paths = functions.iter().map(|f| f.path());
    let modules = modules().map(|m| m.path.to_string());
    let entries = reference::entries().iter().map(|e| e.name.to_string());
    let names: Vec<String> = bare.chain(paths).chain(modules).chain(entries).collect();
    let near = program::similar(name, names.iter().map(String::as_str));
    Err(Stop::usage(
        format!("nothing is called `{name}`"),
        match near {
            Some(near) => format!("a similar name is there: `rlhf doc {near}`"),
            None => "`rlhf doc` lists what there is".into(),
        },
    ))
}

/// A module of the standard library.
struct Module {
    path: &'static str,
    doc: String,
    functions: Vec<Function>,
}

/// A function of the standard library.
struct Function {
    module: &'static str,
    name: String,
    /// From `fn` to the result's type.
    signature: String,
    doc: String,
    /// `= expression` or a block.
    body: String,
    /// A call with what has to be given.
    call: String,
}

impl Function {
    fn path(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }

    fn page(&self) -> String {
        let mut text = format!("{}\n\n", signature(&self.signature));
        text += &paragraphs(&self.doc);
        text += "\n";
        if self.module == PRELUDE {
            text += "    // in scope everywhere\n";
        } else {
            text += &format!("    use {} {{ {} }}\n", self.module, self.name);
        }
        text += &format!("    x = {}\n", self.call);
        text + &format!(
            "\nDefined in {} as\n\n{}",
            self.module,
            indented(&self.body)
        )
    }
}

fn modules() -> impl Iterator<Item = Module> {
    let paths = rlhf_stdlib::modules().iter().copied();
    std::iter::once(PRELUDE).chain(paths).filter_map(module)
}

fn module(path: &'static str) -> Option<Module> {
    let text = rlhf_stdlib::module(path)?;
    let (file, _) = parse(FileId(0), text);
    let functions = file.items.iter().filter_map(|item| match &item.kind {
        ast::ItemKind::Fn(f) => Some(function(path, text, item, f)),
        _ => None,
    });
    Some(Module {
        path,
        doc: file.doc.trim().into(),
        functions: functions.collect(),
    })
}

fn function(module: &'static str, text: &str, item: &ast::Item, f: &ast::Fn) -> Function {
    let source = text.get(item.span.range()).unwrap_or_default();
    // The result's type ends the signature, or else the arguments do.
    let last = f.params.iter().map(|p| match &p.default {
        Some(default) => default.span.hi,
        None => p.ty.span.hi,
    });
    let end = f.result.as_ref().map(|ty| ty.span.hi).or(last.max());
    let end = end.unwrap_or(f.name.span.hi).saturating_sub(item.span.lo) as usize;
    let (head, body) = source.split_at_checked(end).unwrap_or((source, ""));
    let given = f.params.iter().filter(|p| p.default.is_none());
    let given: Vec<String> = given
        .map(|p| match text.get(p.ty.span.range()) {
            Some("axis" | "axes") => p.name.text.to_uppercase(),
            _ => p.name.text.clone(),
        })
        .collect();
    Function {
        module,
        name: f.name.text.clone(),
        signature: head.split_whitespace().collect::<Vec<_>>().join(" "),
        doc: item.doc.clone().unwrap_or_default(),
        body: body.trim().into(),
        call: format!("{}({})", f.name.text, given.join(", ")),
    }
}

/// The pages of everything that has the name.
fn lookup(name: &str) -> Vec<String> {
    let mut found = vec![];
    for module in modules() {
        if module.path == name {
            found.push(contents(&module));
        }
        let named = |f: &&Function| f.name == name || f.path() == name;
        found.extend(module.functions.iter().filter(named).map(Function::page));
    }
    let entries = reference::entries().iter().filter(|e| e.name == name);
    found.extend(entries.map(entry));
    found
}

fn entry(entry: &Entry) -> String {
    let mut text = String::new();
    for line in entry.signature.lines() {
        text += &format!("{}\n", signature(line));
    }
    text += "\n";
    text += &paragraphs(entry.doc);
    if !entry.example.is_empty() {
        text += &format!("\n{}", indented(&entry.example));
    }
    text
}

fn contents(module: &Module) -> String {
    let mut text = format!("{}\n\n{}", module.path, paragraphs(&module.doc));
    let functions = module.functions.iter();
    let rows: Vec<(&str, &str)> = functions.map(|f| (f.name.as_str(), f.doc.trim())).collect();
    text += &format!("\n{}", table(&rows));
    text
}

fn overview() -> String {
    let mut text = String::from("Modules\n");
    let all: Vec<Module> = modules().collect();
    let rows: Vec<(&str, &str)> = all.iter().map(|m| (m.path, m.doc.as_str())).collect();
    text += &table(&rows);
    text += "\nVerbs\n";
    let verbs = of_chapter(Chapter::Verb).filter(|e| !e.name.starts_with('.'));
    let rows: Vec<(&str, &str)> = verbs.map(|e| (e.name, e.doc)).collect();
    text += &table(&rows);
    for (title, chapter) in [
        ("Operators", Chapter::Operator),
        ("Items", Chapter::Item),
        ("Statements", Chapter::Statement),
        ("Models", Chapter::Model),
        ("Sources", Chapter::Source),
        ("Types", Chapter::Type),
    ] {
        let names: Vec<&str> = of_chapter(chapter).map(|e| e.name).collect();
        let names = textwrap::fill(&names.join(" "), options("  ", "  "));
        text += &format!("\n{title}\n{names}\n");
    }
    text + "\n`rlhf doc NAME` says more of each.\n"
}

fn of_chapter(chapter: Chapter) -> impl Iterator<Item = &'static Entry> {
    let entries = reference::entries().iter();
    entries.filter(move |e| e.chapter == chapter)
}

/// Names with the first sentence of what they are.
fn table(rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for (name, doc) in rows {
        let head = format!("  {name:width$}  ");
        let rest = " ".repeat(width + 4);
        text += &textwrap::fill(&sentence(doc), options(&head, &rest));
        text += "\n";
    }
    text
}

/// The first sentence of a paragraph. A point inside brackets or a number ends none.
fn sentence(doc: &str) -> String {
    let joined = doc.split("\n\n").next().unwrap_or_default();
    let joined = joined.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut depth = 0usize;
    let mut chars = joined.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 && chars.peek().is_none_or(|(_, next)| *next == ' ') => {
                return joined[..i].into();
            }
            _ => {}
        }
    }
    joined
}

fn paragraphs(doc: &str) -> String {
    let paragraphs = doc.trim().split("\n\n").map(|paragraph| {
        let joined = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        textwrap::fill(&joined, options("", ""))
    });
    paragraphs.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn signature(line: &str) -> String {
    textwrap::fill(line, options("", "    "))
}

fn indented(block: &str) -> String {
    block.lines().map(|l| format!("    {l}\n")).collect()
}

fn options<'a>(first: &'a str, rest: &'a str) -> textwrap::Options<'a> {
    textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(rest)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_library_has_a_page_with_its_text_and_a_call() {
        for module in modules() {
            assert!(!module.functions.is_empty(), "{}", module.path);
            for f in &module.functions {
                assert!(!f.doc.is_empty(), "{}", f.path());
                assert!(f.signature.starts_with("fn ") && f.signature.contains("->"));
                assert!(f.body.starts_with(['=', '{']), "{}: {}", f.path(), f.body);
                let page = f.page();
                let wide = page.lines().find(|l| l.chars().count() > WIDTH + 4);
                assert_eq!(wide, None, "{}", f.path());
            }
        }
    }

    #[test]
    fn a_point_ends_a_sentence_where_a_space_follows() {
        assert_eq!(
            sentence("p - q (Schulman, 2017,\narXiv:1707. x) of 1.5. More."),
            "p - q (Schulman, 2017, arXiv:1707. x) of 1.5"
        );
        assert_eq!(sentence("one"), "one");
    }
}
