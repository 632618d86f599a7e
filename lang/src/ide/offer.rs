//! The completions of each context.

use crate::facts::What;
use crate::reference::{self, Chapter, Entry};
use crate::source::Span;
use crate::syntax::ast::{ItemKind, TypeKind, UsePath};

use super::complete::{Completion, CompletionKind};
use super::context::ITEMS;
use super::hover::described;
use super::library::{self, LibraryFunction};
use super::names::{DefId, DefKind, Place, Target};
use super::{Document, first_word};

/// Completions as they are gathered.
pub(super) struct Offers<'d> {
    pub(super) document: &'d Document,
    pub(super) replace: Span,
    found: Vec<Completion>,
}

impl<'d> Offers<'d> {
    pub fn new(document: &'d Document, replace: Span) -> Self {
        Offers {
            document,
            replace,
            found: vec![],
        }
    }

    /// The likeliest first, each once.
    pub fn sorted(mut self) -> Vec<Completion> {
        self.found
            .sort_by(|a, b| (a.rank, &a.label).cmp(&(b.rank, &b.label)));
        let mut seen = std::collections::HashSet::new();
        self.found.retain(|c| seen.insert(c.label.clone()));
        self.found
    }

    pub fn has_axes(&self) -> bool {
        self.found.iter().any(|c| c.kind == CompletionKind::Axis)
    }

    pub(super) fn push(&mut self, rank: u8, kind: CompletionKind, label: &str) -> &mut Completion {
        self.found.push(Completion {
            label: label.into(),
            kind,
            detail: String::new(),
            doc: String::new(),
            insert: label.into(),
            replace: self.replace,
            rank,
            also: vec![],
        });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn entry(&mut self, rank: u8, kind: CompletionKind, entry: &Entry) -> &mut Completion {
        let (detail, doc) = described(entry);
        let offer = self.push(rank, kind, entry.name);
        offer.detail = detail.lines().next().unwrap_or_default().to_string();
        offer.doc = doc;
        offer
    }

    pub fn words(&mut self, words: &[&str]) {
        for w in words {
            let kind = match *w {
                "minibatch" | "epochs" | "shuffle" | "iterations" => CompletionKind::Label,
                "adamw" => CompletionKind::Operator,
                _ => CompletionKind::Keyword,
            };
            let offer = self.push(0, kind, w);
            if kind == CompletionKind::Label {
                offer.insert = format!("{w}: ");
            }
        }
    }

    pub fn item_keywords(&mut self) {
        for word in ITEMS {
            if let Some(entry) = reference::within(word, Chapter::Item) {
                self.entry(0, CompletionKind::Keyword, entry);
            }
        }
    }

    pub fn statement(&mut self, body: &str) {
        let words: &[&str] = match body {
            "step" => &["train", "log", "next", "rows"],
            "train" => &["minimize", "log"],
            "eval" => &["log", "rows"],
            _ => &["return"],
        };
        for word in words {
            if let Some(entry) = reference::within(word, Chapter::Statement) {
                self.entry(0, CompletionKind::Keyword, entry);
            }
        }
    }

    pub fn types(&mut self) {
        for entry in reference::entries() {
            if entry.chapter == Chapter::Type {
                self.entry(0, CompletionKind::Type, entry);
            }
        }
        for word in ["chat", "model"] {
            self.push(0, CompletionKind::Type, word);
        }
    }

    /// Axes that can be read, for a bracket that names some.
    pub fn axes(&mut self) {
        self.push(0, CompletionKind::Keyword, "..");
        self.named(&[CompletionKind::Axis]);
    }

    pub fn kinds(&mut self, item: &str) {
        let (chapter, data) = match item {
            "model" => (Chapter::Model, false),
            _ => (Chapter::Source, item == "data"),
        };
        let of_data = |name: &str| !matches!(name, "python" | "http" | "command");
        for entry in reference::entries() {
            let fits = entry.chapter == chapter
                && entry.name != "adamw"
                && (chapter == Chapter::Model || of_data(entry.name) == data);
            if fits {
                self.entry(0, CompletionKind::Operator, entry);
            }
        }
    }

    /// The cases of the param that the cursor is in.
    pub fn choices(&mut self) {
        let at = self.replace.lo;
        let items = self.document.compiled.file.items.iter();
        let mut params = items.filter_map(|i| match &i.kind {
            ItemKind::Param(p) if i.span.lo <= at && at <= i.span.hi + 1 => Some(p),
            _ => None,
        });
        let cases = match params.next().map(|p| &p.ty.kind) {
            Some(TypeKind::Enum(cases)) => cases.iter().map(|(c, _)| c.clone()).collect(),
            Some(TypeKind::Name(n)) if n == "bool" => {
                self.words(&["true", "false"]);
                return;
            }
            Some(_) => return self.named(&[CompletionKind::Param]),
            None => self.written_cases(),
        };
        let before = self.document.source().text.get(..at as usize);
        let quoted = before.is_some_and(|t| t.ends_with('"'));
        for case in cases {
            let offer = self.push(0, CompletionKind::Choice, &case);
            if !quoted {
                offer.insert = format!("\"{case}\"");
            }
        }
    }

    /// The choices of a param that does not parse yet: the texts between `:` and `=` on its line.
    fn written_cases(&self) -> Vec<String> {
        let text = &self.document.source().text;
        let before = text.get(..self.replace.lo as usize).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let types = line
            .split_once(':')
            .and_then(|(_, rest)| rest.rsplit_once('='))
            .map_or("", |(types, _)| types);
        let quoted = types.split('"').skip(1).step_by(2);
        quoted.map(String::from).collect()
    }

    pub fn modules(&mut self) {
        let text = &self.document.source().text;
        let before = text.get(..self.replace.lo as usize).unwrap_or_default();
        let dotted = before.ends_with('.');
        for module in rlhf_stdlib::modules() {
            let name = match dotted {
                true => module.strip_prefix("std.").unwrap_or(module),
                false => module,
            };
            let doc = rlhf_stdlib::module(module).unwrap_or_default();
            let first = doc.lines().next().and_then(|l| l.strip_prefix("//! "));
            let offer = self.push(0, CompletionKind::Module, name);
            offer.doc = first.unwrap_or_default().to_string();
        }
    }

    /// The functions that a `use` may name, those apart that it names already.
    pub fn functions_of(&mut self, path: &str) {
        let document = self.document;
        let mut sources = document.compiled.sources.iter();
        let own = document.compiled.file.id;
        let file = sources.find(|(id, s)| s.name == path && *id != own);
        let standard = library::functions().iter().filter(|f| f.module == path);
        for f in standard {
            self.function(0, f);
        }
        if let Some((id, source)) = file
            && rlhf_stdlib::module(path).is_none()
            && let Some(tree) = document.tree(id)
        {
            for f in library::of_file("", tree, source) {
                self.function(0, &f);
            }
        }
        let named: Vec<String> = self.imported(path);
        self.found.retain(|c| !named.contains(&c.label));
    }

    /// What the imports of a path name, except what the cursor is in.
    fn imported(&self, path: &str) -> Vec<String> {
        let document = self.document;
        let items = document.compiled.file.items.iter();
        let uses = items.filter_map(|i| match &i.kind {
            ItemKind::Use(u) => Some(u),
            _ => None,
        });
        let same = uses.filter(|u| match &u.path {
            UsePath::File(p, _) => p == path,
            UsePath::Dotted(names) => {
                let names: Vec<&str> = names.iter().map(|n| n.text.as_str()).collect();
                names.join(".") == path
            }
        });
        same.flat_map(|u| &u.names)
            .filter(|n| n.span.lo != self.replace.lo)
            .map(|n| n.text.clone())
            .collect()
    }

    fn function(&mut self, rank: u8, f: &LibraryFunction) -> &mut Completion {
        let offer = self.push(rank, CompletionKind::Function, &f.name);
        offer.detail = f.signature.clone();
        offer.doc = f.doc.clone();
        offer
    }

    /// The members of what ends at a byte.
    pub fn members(&mut self, dot: u32) {
        let document = self.document;
        let base = document.names.at(dot).filter(|m| m.span.hi == dot);
        let what = base.and_then(|m| {
            let def = match m.target {
                Target::Def(id) => Some(document.names.def(id).span),
                _ => None,
            };
            document.meaning(m.span).or_else(|| document.meaning(def?))
        });
        // The statement at the cursor may not parse, so the name is looked up where it is bound.
        let named = what.or_else(|| self.bound_before(dot));
        match named {
            Some(What::Rollout(r)) => {
                let sampled = document
                    .compiled
                    .facts
                    .rollouts
                    .get(r.0 as usize)
                    .is_none_or(|r| !self.is_answer(&r.name));
                for name in [".text", ".logp", ".finished"] {
                    if sampled || name != ".logp" {
                        self.member(name);
                    }
                }
            }
            Some(What::Value(ty)) if !ty.axes.is_empty() && self.is_call_of("value", dot) => {
                self.member(".end");
            }
            Some(_) => {}
            None => {
                for name in [".text", ".logp", ".finished", ".end"] {
                    self.member(name);
                }
            }
        }
    }

    fn member(&mut self, name: &str) {
        if let Some(entry) = reference::builtin(name) {
            let offer = self.entry(0, CompletionKind::Member, entry);
            offer.label = name.trim_start_matches('.').into();
            offer.insert = offer.label.clone();
        }
    }

    fn bound_before(&self, dot: u32) -> Option<&'d What> {
        let id = self.named_before(dot)?;
        self.document.meaning(self.document.names.def(id).span)
    }

    /// The definition of the word that ends at a byte.
    fn named_before(&self, end: u32) -> Option<DefId> {
        let text = &self.document.source().text;
        let before = text.get(..end as usize)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = &before[before.trim_end_matches(is_word).len()..];
        let names = &self.document.names;
        let visible = names.visible(end);
        visible.into_iter().find(|d| names.def(*d).name == word)
    }

    /// Whether the value of a binding is a call of this verb.
    fn is_call_of(&self, verb: &str, dot: u32) -> bool {
        let Some(id) = self.named_before(dot) else {
            return false;
        };
        self.bound_to(&self.document.names.def(id).span, verb)
    }

    fn is_answer(&self, name: &str) -> bool {
        let defs = self.document.names.defs.iter();
        let mut bound = defs.filter(|d| d.kind == DefKind::Binding && d.name == name);
        bound.any(|d| self.bound_to(&d.span, "answer"))
    }

    fn bound_to(&self, name: &Span, verb: &str) -> bool {
        let rest = self.document.text_after(*name);
        let value = rest.strip_prefix('=').unwrap_or_default().trim_start();
        first_word(value) == verb
    }

    /// Visible names of some kinds.
    pub fn named(&mut self, kinds: &[CompletionKind]) {
        let names = &self.document.names;
        for id in names.visible(self.replace.lo) {
            let kind = kind_of(names.def(id).kind);
            if kinds.contains(&kind) {
                self.def(id, 0);
            }
        }
    }

    pub(super) fn def(&mut self, id: DefId, rank: u8) {
        let document = self.document;
        let def = document.names.def(id);
        let what = document.meaning(def.span);
        let shown = what.and_then(|w| document.show(w)).unwrap_or_default();
        let mut doc = String::new();
        let detail = match def.kind {
            DefKind::Function | DefKind::Import => {
                let at = match def.kind {
                    DefKind::Import => document.imported(def),
                    _ => Some(def.span),
                };
                match at.and_then(|at| Some((at, document.function(at)?))) {
                    Some((at, (item, f))) => {
                        doc = item.doc.clone().unwrap_or_default();
                        let source = document.compiled.sources.get(at.file);
                        library::signature(item, f, source)
                    }
                    None => String::new(),
                }
            }
            DefKind::Column | DefKind::Argument if shown.is_empty() => {
                def.ty.map_or("", |t| document.text(t)).to_string()
            }
            DefKind::Param => {
                let item = document.compiled.file.items.get(def.item);
                doc = item.and_then(|i| i.doc.clone()).unwrap_or_default();
                shown
            }
            DefKind::Axis => String::new(),
            _ => shown,
        };
        let name = def.name.clone();
        let offer = self.push(rank, kind_of(def.kind), &name);
        (offer.detail, offer.doc) = (detail, doc);
    }

    /// Everything that may stand in an expression.
    pub fn values(&mut self) {
        let document = self.document;
        let at = self.replace.lo;
        let text = document.source().text.get(..at as usize);
        let line = text.and_then(|t| t.rfind('\n')).map_or(0, |n| n as u32);
        for id in document.names.visible(at) {
            let def = document.names.def(id);
            // What this line binds cannot be read in it.
            if def.kind == DefKind::Binding && def.span.lo >= line {
                continue;
            }
            let rank = match def.kind {
                DefKind::Binding | DefKind::Argument | DefKind::Column => 2,
                DefKind::Axis => 3,
                DefKind::Data => continue,
                _ => 3,
            };
            self.def(id, rank);
        }
        let block = document.names.block(at).map(|b| b.place);
        let verbs = matches!(block, Some(Place::Step | Place::Eval | Place::Train(_)));
        for entry in reference::entries() {
            match entry.chapter {
                Chapter::Operator => {
                    self.entry(5, CompletionKind::Operator, entry);
                }
                Chapter::Verb if verbs && !entry.name.starts_with('.') => {
                    self.entry(4, CompletionKind::Verb, entry);
                }
                _ => {}
            }
        }
        for word in ["if", "iteration", "iterations"] {
            if let Some(entry) = reference::within(word, Chapter::Statement) {
                self.entry(6, CompletionKind::Keyword, entry);
            }
        }
        for word in ["then", "else", "and", "or", "not", "true", "false"] {
            self.push(7, CompletionKind::Keyword, word);
        }
        for f in library::functions() {
            let visible = self.found.iter().any(|c| c.label == f.name);
            match f.module == library::PRELUDE {
                true => {
                    self.function(4, f);
                }
                false if !visible => {
                    let also = self.import(f);
                    let offer = self.function(8, f);
                    offer.also = vec![also];
                    offer.detail = format!("{} (from {})", f.signature, f.module);
                }
                false => {}
            }
        }
    }

    /// The edit that imports a function: into the `use` of its module, or as a new line at the top.
    fn import(&self, f: &LibraryFunction) -> (Span, String) {
        let own = self.document.compiled.file.id;
        let file = &self.document.compiled.file;
        let mut last_use = None;
        for item in &file.items {
            let ItemKind::Use(u) = &item.kind else {
                continue;
            };
            last_use = Some(item.span.hi);
            let UsePath::Dotted(path) = &u.path else {
                continue;
            };
            let path: Vec<&str> = path.iter().map(|n| n.text.as_str()).collect();
            if path.join(".") == f.module
                && let Some(last) = u.names.last()
            {
                let at = last.span.hi as usize;
                return (Span::new(own, at, at), format!(", {}", f.name));
            }
        }
        let line = format!("use {} {{ {} }}", f.module, f.name);
        match last_use {
            Some(end) => (
                Span::new(own, end as usize, end as usize),
                format!("\n{line}"),
            ),
            None => {
                let doc = file.comments.iter();
                let mut doc = doc.filter(|c| c.kind == crate::syntax::ast::CommentKind::Module);
                match doc.next_back() {
                    Some(c) => {
                        let end = c.span.hi as usize;
                        (Span::new(own, end, end), format!("\n{line}"))
                    }
                    None => (Span::new(own, 0, 0), format!("{line}\n")),
                }
            }
        }
    }

    /// Where calls run: their names, and the options of a layout.
    pub fn plan(&mut self) {
        for word in ["on", "train", "gpus", "cluster"] {
            self.push(1, CompletionKind::Keyword, word);
        }
        for word in ["dp", "tp", "pp", "zero", "micro", "offload", "recompute"] {
            let offer = self.push(2, CompletionKind::Label, word);
            offer.insert = format!("{word}: ");
        }
        let names = &self.document.names;
        for (i, def) in names.defs.iter().enumerate() {
            if matches!(def.kind, DefKind::Binding | DefKind::Model) {
                self.def(DefId(i), 0);
            }
        }
    }
}

fn kind_of(kind: DefKind) -> CompletionKind {
    match kind {
        DefKind::Import | DefKind::Function => CompletionKind::Function,
        DefKind::Param => CompletionKind::Param,
        DefKind::Data => CompletionKind::Data,
        DefKind::Column => CompletionKind::Column,
        DefKind::Model => CompletionKind::Model,
        DefKind::Reward => CompletionKind::Reward,
        DefKind::State => CompletionKind::State,
        DefKind::Argument => CompletionKind::Argument,
        DefKind::Axis => CompletionKind::Axis,
        DefKind::Binding => CompletionKind::Binding,
    }
}
