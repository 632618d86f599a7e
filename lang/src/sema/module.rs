//! Files and what they import.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ast::{self, ItemKind, Name, Use, UsePath};
use crate::diag::Diagnostic;
use crate::graph::{DataId, ModelId, RewardId, StateId};
use crate::source::{Source, Span};
use crate::syntax::library::Library;

use super::{Sema, nearest};

/// What an item's name refers to.
#[derive(Clone, Debug)]
pub(crate) enum Def {
    Param(usize),
    Data(DataId),
    Model(ModelId),
    Reward(RewardId),
    State(StateId),
    /// A function of a module: an item of its file, or the function of this index of a library.
    Fn {
        module: usize,
        item: usize,
    },
    /// Something with an error of its own.
    Poison,
}

/// A parsed file and the names visible in it.
pub(crate) struct Module {
    /// `std.kl`, or a path as written.
    pub name: String,
    pub file: Rc<ast::File>,
    /// Items and imports, with the place that introduced them.
    pub names: BTreeMap<String, (Def, Span)>,
    /// Its imports are being read: meeting it again is a cycle.
    pub open: bool,
    /// The standard library's modules are read as they are used.
    pub library: Option<Library<'static>>,
    /// Functions that were called.
    pub functions: BTreeMap<usize, Rc<ast::Fn>>,
}

impl Sema<'_> {
    /// Adds a text as a module, with its functions and imports as names.
    pub(crate) fn add_module(&mut self, name: &str, text: &str) -> usize {
        let id = self.sources.add(Source::new(name, text));
        let (file, diagnostics) = crate::syntax::parse(id, text);
        self.diagnostics.extend(diagnostics);
        self.adopt(name, file)
    }

    /// Adds a parsed file as a module; its imports are read by [`Sema::imports`].
    pub(crate) fn adopt(&mut self, name: &str, file: ast::File) -> usize {
        let index = self.modules.len();
        self.modules.push(Module {
            name: name.into(),
            file: Rc::new(file),
            names: BTreeMap::new(),
            open: true,
            library: None,
            functions: BTreeMap::new(),
        });
        let file = self.modules[index].file.clone();
        for (i, item) in file.items.iter().enumerate() {
            if let ItemKind::Fn(f) = &item.kind {
                let def = Def::Fn {
                    module: index,
                    item: i,
                };
                self.define(index, &f.name, def);
            }
            if let ItemKind::Bad(Some(name)) = &item.kind
                && !self.modules[index].names.contains_key(&name.text)
            {
                self.define(index, name, Def::Poison);
            }
        }
        index
    }

    /// The functions of the prelude, in scope everywhere. It is always module 1.
    pub(crate) fn add_prelude(&mut self) {
        let text = rlhf_stdlib::module("std.prelude").unwrap_or_default();
        let index = self.add_library("std.prelude", text);
        self.modules[index].open = false;
    }

    /// Adds a module of the standard library.
    fn add_library(&mut self, name: &str, text: &'static str) -> usize {
        let id = self.sources.add(Source::new(name, text));
        let library = Library::scan(id, text);
        let index = self.adopt(name, library.rest.clone());
        for (item, name) in library.names().enumerate() {
            let def = Def::Fn {
                module: index,
                item,
            };
            self.modules[index]
                .names
                .insert(name.text.clone(), (def, name.span));
        }
        self.modules[index].library = Some(library);
        index
    }

    /// A function's tree.
    pub(crate) fn function(&mut self, module: usize, item: usize) -> Option<Rc<ast::Fn>> {
        let m = self.modules.get_mut(module)?;
        if let Some(known) = m.functions.get(&item) {
            return Some(known.clone());
        }
        let made = match &m.library {
            Some(library) => library.function(item)?,
            None => match &m.file.items.get(item)?.kind {
                ItemKind::Fn(f) => f.clone(),
                _ => return None,
            },
        };
        let made = Rc::new(made);
        m.functions.insert(item, made.clone());
        Some(made)
    }

    /// Reads what a module imports.
    pub(crate) fn imports(&mut self, index: usize) {
        let file = self.modules[index].file.clone();
        for item in &file.items {
            if let ItemKind::Use(u) = &item.kind {
                self.import(index, u);
            }
        }
        self.modules[index].open = false;
    }

    fn import(&mut self, index: usize, u: &Use) {
        let target = match &u.path {
            UsePath::Dotted(names) => {
                let path: Vec<&str> = names.iter().map(|n| n.text.as_str()).collect();
                let span = match (names.first(), names.last()) {
                    (Some(a), Some(b)) => a.span.to(b.span),
                    _ => return,
                };
                self.standard(&path.join("."), span)
            }
            UsePath::File(path, span) => self.other_file(path, *span),
        };
        for name in &u.names {
            let def = match target {
                None => Def::Poison,
                Some(t) => self.exported(t, name),
            };
            self.define(index, name, def);
        }
    }

    /// A module of the standard library.
    pub(crate) fn standard(&mut self, path: &str, span: Span) -> Option<usize> {
        if let Some(known) = self.modules.iter().position(|m| m.name == path) {
            return Some(known);
        }
        let Some(text) = rlhf_stdlib::module(path) else {
            let modules = rlhf_stdlib::modules();
            let mut d = Diagnostic::error("E040", span, format!("no module `{path}`"));
            d = match nearest(path, modules.iter().copied()) {
                Some(near) => d
                    .help(format!("a similar one: `{near}`"))
                    .guess(format!("use `{near}`"), vec![(span, near.to_string())]),
                None => d.help(format!("the modules are {}", modules.join(", "))),
            };
            return self.fail(d);
        };
        let index = self.add_library(path, text);
        self.imports(index);
        Some(index)
    }

    /// A library beside the program.
    pub(crate) fn other_file(&mut self, path: &str, span: Span) -> Option<usize> {
        if let Some(known) = self.modules.iter().position(|m| m.name == path) {
            if self.modules[known].open {
                let open = self.modules[known..].iter().filter(|m| m.open);
                let mut names: Vec<String> = open.map(|m| format!("`{}`", m.name)).collect();
                names.push(format!("`{path}`"));
                let around = names.join(" → ");
                return self.fail(
                    Diagnostic::error("E014", span, format!("imports in a circle: {around}"))
                        .help("move what both need into a file that imports neither"),
                );
            }
            return Some(known);
        }
        if !self.imported.iter().any(|p| p == path) {
            self.imported.push(path.into());
        }
        let Some(text) = (self.load)(path) else {
            return self.fail(
                Diagnostic::error("E040", span, format!("no file `{path}`"))
                    .help("the path is taken from the folder of the program"),
            );
        };
        let index = self.add_module(path, &text);
        let file = self.modules[index].file.clone();
        if file
            .items
            .iter()
            .any(|i| matches!(i.kind, ItemKind::Step(_)))
        {
            return self.fail(
                Diagnostic::error(
                    "E040",
                    span,
                    format!("`{path}` is a program, not a library"),
                )
                .help("only files without `step` can be imported"),
            );
        }
        self.imports(index);
        Some(index)
    }

    /// Brings every function of a module or file into the scope of an expression.
    pub(crate) fn use_all(&mut self, path: &str, span: Span) {
        let target = if path.ends_with(".rlhf") {
            self.other_file(path, span)
        } else {
            self.standard(path, span)
        };
        let Some(module) = target else {
            return;
        };
        // A later module wins, as a later `--use` was meant to.
        let names = self.modules[module].names.clone();
        self.modules[0].names.extend(names);
    }

    fn exported(&mut self, module: usize, name: &Name) -> Def {
        // What a library imports can be taken from it too.
        if let Some((def @ Def::Fn { .. }, _)) = self.modules[module].names.get(&name.text) {
            return def.clone();
        }
        let path = self.modules[module].name.clone();
        let mut d = Diagnostic::error(
            "E040",
            name.span,
            format!("`{path}` has no function `{}`", name.text),
        );
        let names: Vec<String> = self.modules[module].names.keys().cloned().collect();
        d = match nearest(&name.text, names.iter().map(String::as_str)) {
            Some(near) => d
                .help(format!("a similar one: `{near}`"))
                .guess(format!("use `{near}`"), vec![(name.span, near.to_string())]),
            None => d.help(format!("it has {}", names.join(", "))),
        };
        self.report(d);
        Def::Poison
    }

    /// Gives a module a name.
    pub(crate) fn define(&mut self, module: usize, name: &Name, def: Def) {
        if let Some((_, first)) = self.modules[module].names.get(&name.text) {
            let first = *first;
            self.duplicate(name, first);
            return;
        }
        self.note_def(name.span, name.span, &def);
        self.modules[module]
            .names
            .insert(name.text.clone(), (def, name.span));
    }

    /// A function's name, where it is declared.
    pub(crate) fn function_name(&self, module: usize, item: usize) -> Option<&Name> {
        let m = self.modules.get(module)?;
        if let Some(library) = &m.library {
            return library.name(item);
        }
        match &m.file.items.get(item)?.kind {
            ItemKind::Fn(f) => Some(&f.name),
            _ => None,
        }
    }

    pub(crate) fn duplicate(&mut self, name: &Name, first: Span) {
        let message = if first.file == name.span.file {
            let line = self.line(first);
            format!("`{}` is already bound on line {line}", name.text)
        } else {
            format!("`{}` is already bound", name.text)
        };
        self.report(
            Diagnostic::error("E011", name.span, message)
                .label(first, "bound here")
                .help("names are bound once; take another name"),
        );
    }
}
