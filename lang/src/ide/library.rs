//! The functions of the standard library, for completion and for what is in scope everywhere.

use std::sync::OnceLock;

use crate::source::{FileId, Source};
use crate::syntax::ast::{self, ItemKind};

/// The module that is in scope without an import.
pub(super) const PRELUDE: &str = "std.prelude";

/// A function that can be imported.
pub(super) struct LibraryFunction {
    pub module: &'static str,
    pub name: String,
    pub signature: String,
    pub doc: String,
}

/// Every function of every module, the prelude's among them.
pub(super) fn functions() -> &'static [LibraryFunction] {
    static FUNCTIONS: OnceLock<Vec<LibraryFunction>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let modules = rlhf_stdlib::modules()
            .iter()
            .chain(std::iter::once(&PRELUDE));
        modules.flat_map(|module| of_module(module)).collect()
    })
}

fn of_module(module: &'static str) -> Vec<LibraryFunction> {
    let source = Source::new(module, rlhf_stdlib::module(module).unwrap_or_default());
    let (file, _) = crate::syntax::parse(FileId(0), &source.text);
    of_file(module, &file, &source)
}

/// The functions of one parsed file.
pub(super) fn of_file(
    module: &'static str,
    file: &ast::File,
    source: &Source,
) -> Vec<LibraryFunction> {
    let functions = file.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Fn(f) => Some((item, f)),
        _ => None,
    });
    functions
        .map(|(item, f)| LibraryFunction {
            module,
            name: f.name.text.clone(),
            signature: signature(item, f, source),
            doc: item.doc.clone().unwrap_or_default(),
        })
        .collect()
}

/// `fn f(x: float[..]) -> float[..]` on one line.
pub(super) fn signature(item: &ast::Item, f: &ast::Fn, source: &Source) -> String {
    let head = match &f.result {
        Some(result) => result.span.hi,
        None => {
            let last = f.params.last();
            let from = last.map_or(f.name.span.hi, |p| {
                p.default.as_ref().map_or(p.ty.span.hi, |d| d.span.hi)
            });
            let rest = source.text.get(from as usize..).unwrap_or_default();
            from + rest.find(')').map_or(0, |i| i as u32 + 1)
        }
    };
    let text = source.text.get(item.span.lo as usize..head as usize);
    one_line(text.unwrap_or_default())
}

/// A text with every run of white space as one space.
pub(super) fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Of a head with an argument a line.
    joined.replace("( ", "(").replace(", )", ")")
}
