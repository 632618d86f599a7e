//! What a name, a word of the language or an expression is.

use crate::facts::What;
use crate::graph::{AxisId, AxisSize, ModelKind, RolloutId};
use crate::reference::{self, Chapter, Entry};
use crate::source::Span;
use crate::syntax::ast::ItemKind;

use super::library::{one_line, signature};
use super::names::{Def, DefId, DefKind, Mention, Place, Target};
use super::{Document, first_word};

/// What is shown beside a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The text that it is about.
    pub span: Span,
    /// Program text: a type, a signature, a declaration.
    pub code: String,
    /// Sentences, as Markdown; may be empty.
    pub doc: String,
}

impl Hover {
    /// All of it as Markdown.
    pub fn markdown(&self) -> String {
        let code = format!("```rlhf\n{}\n```", self.code);
        match self.doc.is_empty() {
            true => code,
            false => format!("{code}\n\n{}", self.doc),
        }
    }
}

impl Document {
    /// What stands at a byte.
    pub fn hover(&self, offset: u32) -> Option<Hover> {
        if self.in_comment(offset) {
            return None;
        }
        let mention = self.names.at(offset);
        let about = mention.and_then(|m| {
            let (code, doc) = self.about(m)?;
            Some(Hover {
                span: m.span,
                code,
                doc,
            })
        });
        about.or_else(|| self.expression(offset))
    }

    pub(super) fn in_comment(&self, offset: u32) -> bool {
        let comments = &self.compiled.file.comments;
        let after = comments.partition_point(|c| c.span.lo < offset);
        comments[..after]
            .last()
            .is_some_and(|c| offset <= c.span.hi)
    }

    fn about(&self, m: &Mention) -> Option<(String, String)> {
        match m.target {
            Target::Def(id) => self.about_def(id, m),
            Target::Word(chapter) => self.about_word(m.span, chapter),
            Target::Label(head) => self.about_label(m.span, head),
            Target::Open => match self.defined(m) {
                Some(at) => self.about_function(at),
                None => self.about_builtin(m.span),
            },
        }
    }

    fn about_def(&self, id: DefId, m: &Mention) -> Option<(String, String)> {
        let def = self.names.def(id);
        match def.kind {
            DefKind::Import => self.about_function(self.imported(def)?),
            DefKind::Function => self.about_function(def.span),
            DefKind::Param | DefKind::Data | DefKind::Reward | DefKind::State => {
                Some((self.declaration(def), self.doc(def)))
            }
            DefKind::Model => {
                let version = self.version(id, m.place);
                Some((self.declaration(def), join(&[&version, &self.doc(def)])))
            }
            DefKind::Column => self.about_column(def, m.span),
            DefKind::Argument => self.about_argument(def),
            DefKind::Axis => {
                let code = match self.meaning(def.span) {
                    Some(What::Axis(a)) => self.axis(*a),
                    _ => format!("axis {}", def.name),
                };
                Some((code, String::new()))
            }
            DefKind::Binding => {
                let what = self.meaning(m.span).or_else(|| self.meaning(def.span));
                let Some(what) = what else {
                    return Some((def.name.clone(), String::new()));
                };
                let doc = match what {
                    What::Rollout(r) => self.about_rollout(*r),
                    _ => String::new(),
                };
                let ty = self.show(what)?;
                Some((format!("{}: {ty}", def.name), doc))
            }
        }
    }

    /// What something is, as a type: `float[B, G, T]`, `rollout[B, G, T]`, `model`.
    pub(super) fn show(&self, what: &What) -> Option<String> {
        let facts = &self.compiled.facts;
        Some(match what {
            What::Value(ty) => facts.show_type(ty),
            What::Axis(a) => self.axis_name(*a).to_string(),
            What::Axes(axes) => {
                let names: Vec<&str> = axes.iter().map(|a| self.axis_name(*a)).collect();
                format!("[{}]", names.join(", "))
            }
            What::Rollout(r) => {
                let axes = self.rollout_axes(*r);
                let names: Vec<&str> = axes.iter().map(|a| self.axis_name(*a)).collect();
                format!("rollout[{}]", names.join(", "))
            }
            What::Prompt => "prompt".into(),
            What::Model(m) => facts.models.get(m.0 as usize)?.name.clone(),
            What::Data(d) => facts.data.get(d.0 as usize)?.name.clone(),
            What::Reward(r) => facts.rewards.get(r.0 as usize)?.name.clone(),
            What::Function | What::Builtin | What::Unknown => return None,
        })
    }

    /// The axes of a rollout, outermost first.
    pub(super) fn rollout_axes(&self, r: RolloutId) -> Vec<AxisId> {
        let Some(r) = self.compiled.facts.rollouts.get(r.0 as usize) else {
            return vec![];
        };
        let mut axes = vec![r.rows];
        axes.extend(r.group);
        axes.push(r.tokens);
        axes
    }

    pub(super) fn axis_name(&self, a: AxisId) -> &str {
        let axis = self.compiled.facts.axes.get(a.0 as usize);
        match axis.map_or("", |a| a.name.as_str()) {
            "" => "rows",
            name => name,
        }
    }

    /// `axis T: ..64 over [B, G]`
    fn axis(&self, a: AxisId) -> String {
        let name = self.axis_name(a);
        let facts = &self.compiled.facts;
        let Some(axis) = facts.axes.get(a.0 as usize) else {
            return format!("axis {name}");
        };
        match axis.size {
            AxisSize::Fixed(n) => format!("axis {name}: {n}"),
            AxisSize::Rows(d) => match facts.data.get(d.0 as usize) {
                Some(data) => format!("axis {name}: every row of {}", data.name),
                None => format!("axis {name}"),
            },
            AxisSize::Subset(limit) => {
                let of = axis.of.map_or("rows", |a| self.axis_name(a));
                let limit = limit.map_or(String::new(), |n| format!(", at most {n}"));
                format!("axis {name}: rows of {of}{limit}")
            }
            AxisSize::Ragged(n) => {
                let names: Vec<&str> = axis.parents.iter().map(|a| self.axis_name(*a)).collect();
                format!("axis {name}: ..{n} over [{}]", names.join(", "))
            }
        }
    }

    fn about_rollout(&self, r: RolloutId) -> String {
        let axes = self.rollout_axes(r);
        let lines: Vec<String> = axes
            .iter()
            .map(|a| format!("`{}`", self.axis(*a)))
            .collect();
        lines.join("  \n")
    }

    /// A function of any file, with its documentation and where it is from.
    fn about_function(&self, at: Span) -> Option<(String, String)> {
        let (item, f) = self.function(at)?;
        let source = self.compiled.sources.get(at.file);
        let doc = item.doc.clone().unwrap_or_default();
        let from = match at.file == self.compiled.file.id {
            true => String::new(),
            false => format!("From `{}`.", source.name),
        };
        Some((signature(item, f, source), join(&[&doc, &from])))
    }

    fn declaration(&self, def: &Def) -> String {
        let item = self.compiled.file.items.get(def.item);
        item.map_or(String::new(), |i| one_line(self.text(i.span)))
    }

    fn doc(&self, def: &Def) -> String {
        let item = self.compiled.file.items.get(def.item);
        let doc = item.and_then(|i| i.doc.clone()).unwrap_or_default();
        let params = self.compiled.params.iter();
        let mut given = params.filter(|p| p.overridden && p.span == def.span);
        match given.next() {
            Some(_) => join(&[&doc, "Given on the command line."]),
            None => doc,
        }
    }

    /// Which weights are read where a model is named.
    fn version(&self, id: DefId, place: Place) -> String {
        let def = self.names.def(id);
        let name = &def.name;
        let models = &self.compiled.facts.models;
        let frozen = models.iter().find(|m| m.span == def.span);
        if let Some(ModelKind::Frozen(of)) = frozen.map(|m| &m.kind) {
            let of = models
                .get(of.0 as usize)
                .map_or("another model", |m| &m.name);
            return format!("`{name}`: the initial weights of `{of}`, never trained.");
        }
        match place {
            Place::Train(Some(trained)) if trained == id => {
                format!("`{name}`, live in `train {name}`: gradients flow through it.")
            }
            Place::Step | Place::Train(_) => format!("`{name}`, as the step started."),
            Place::Eval => format!("`{name}`, as the last training left it."),
            Place::Items | Place::Function => String::new(),
        }
    }

    fn about_column(&self, def: &Def, at: Span) -> Option<(String, String)> {
        let item = self.compiled.file.items.get(def.item)?;
        let ItemKind::Data(data) = &item.kind else {
            return None;
        };
        let column = data.columns.iter().find(|c| c.name.span == def.span)?;
        let ty = match self.meaning(at) {
            Some(What::Value(ty)) => self.compiled.facts.show_type(ty),
            _ => self.text(column.ty.span).to_string(),
        };
        let doc = match &column.from {
            Some((from, _)) => format!("Column `{from}` of `{}`.", data.name.text),
            None => format!("A column of `{}`.", data.name.text),
        };
        Some((format!("{}: {ty}", def.name), doc))
    }

    fn about_argument(&self, def: &Def) -> Option<(String, String)> {
        let declared = one_line(self.text(def.ty?));
        let doc = match self.meaning(def.span).and_then(|w| self.show(w)) {
            Some(shown) if shown != declared => format!("`{shown}` in the first call."),
            _ => String::new(),
        };
        Some((format!("{}: {declared}", def.name), doc))
    }

    fn about_word(&self, span: Span, chapter: Chapter) -> Option<(String, String)> {
        let word = self.text(span);
        let lo = span.lo.checked_sub(1)?;
        let is_member = self.text(Span {
            lo,
            hi: span.lo,
            ..span
        }) == ".";
        let entry = match is_member {
            true => {
                let entry = reference::builtin(&format!(".{word}"))?;
                return Some(match self.meaning(span).and_then(|w| self.show(w)) {
                    Some(ty) => (format!(".{word}: {ty}"), entry.doc.to_string()),
                    None => described(entry),
                });
            }
            false => reference::within(word, chapter)?,
        };
        Some(described(entry))
    }

    fn about_builtin(&self, span: Span) -> Option<(String, String)> {
        // A name alone that only looks like a call is no use of it.
        let called = self.text_after(span).starts_with('(');
        let entry = reference::builtin(self.text(span))?;
        called.then(|| described(entry))
    }

    pub(super) fn text_after(&self, span: Span) -> &str {
        let text = &self.compiled.sources.get(span.file).text;
        text.get(span.hi as usize..)
            .unwrap_or_default()
            .trim_start()
    }

    fn about_label(&self, span: Span, head: Span) -> Option<(String, String)> {
        let label = self.text(span);
        if let Some((_, f)) = self.called(head) {
            let p = f.params.iter().find(|p| p.name.text == label)?;
            let end = p.default.as_ref().map_or(p.ty.span.hi, |d| d.span.hi);
            let code = self.text(Span {
                hi: end,
                ..p.name.span
            });
            return Some((one_line(code), format!("Of `{}`.", f.name.text)));
        }
        let word = first_word(self.text(head));
        let mut entries = reference::entries().iter().filter(|e| e.name == word);
        let entry = entries.find(|e| e.signature.contains(label))?;
        let argument = entry.arguments().into_iter().find(|a| a.label == label);
        Some(match argument {
            Some(a) => (format!("{label}: {}", a.rest), entry.doc.to_string()),
            None => described(entry),
        })
    }

    /// The innermost expression at a byte with its type.
    fn expression(&self, offset: u32) -> Option<Hover> {
        let own = self.compiled.file.id;
        let values = self.compiled.facts.values.iter();
        let around = values.filter(|(s, _)| s.file == own && s.lo <= offset && offset < s.hi);
        let (span, _) = around.min_by_key(|(s, _)| s.hi - s.lo)?;
        let ty = self.value(*span)?;
        Some(Hover {
            span: *span,
            code: self.compiled.facts.show_type(ty),
            doc: String::new(),
        })
    }
}

/// An entry's signature, and its text with the example.
pub(super) fn described(entry: &Entry) -> (String, String) {
    let doc = match entry.example.is_empty() {
        true => entry.doc.to_string(),
        false => format!("{}\n\n```rlhf\n{}\n```", entry.doc, entry.example),
    };
    (entry.signature.clone(), doc)
}

fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join("\n\n")
}
