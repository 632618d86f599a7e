//! Completion inside a call: its labels, and the axes of what it works on.

use crate::facts::What;
use crate::graph::{AxisId, AxisSize};
use crate::reference::{self, Entry};
use crate::source::Span;

use super::Document;
use super::complete::CompletionKind;
use super::context::Call;
use super::names::DefKind;
use super::offer::Offers;

impl Offers<'_> {
    /// The labels a call takes and, where it takes them, the axes of what it works on.
    pub fn arguments(&mut self, call: &Call) {
        let document = self.document;
        let declared = document
            .names
            .at(call.at)
            .and_then(|m| document.defined(m))
            .or_else(|| self.callable(&call.callee))
            .and_then(|at| document.function(at));
        let mut takes: Vec<(String, String)> = vec![];
        if let Some((_, f)) = declared {
            for p in &f.params {
                let end = p.default.as_ref().map_or(p.ty.span.hi, |d| d.span.hi);
                let rest = Span {
                    lo: p.ty.span.lo,
                    hi: end,
                    ..p.ty.span
                };
                takes.push((p.name.text.clone(), document.text(rest).to_string()));
            }
        } else {
            let entries = reference::entries().iter();
            let entry = entries.filter(|e| e.name == call.callee);
            let entry = entry.max_by_key(|e| !e.arguments().is_empty());
            for a in entry.map(Entry::arguments).unwrap_or_default() {
                takes.push((a.label.into(), a.rest.into()));
            }
        }
        let wanted = match &call.label {
            Some(l) => takes.iter().find(|(name, _)| name == l),
            None => takes.get(call.index),
        };
        let axes = wanted.is_some_and(|(_, rest)| rest.starts_with("ax"));
        if axes {
            self.operand_axes(call);
        }
        if call.front {
            for (i, (label, rest)) in takes.iter().enumerate() {
                // An argument before the cursor is given by its position.
                if call.given.contains(label) || i < call.index.min(takes.len()) {
                    continue;
                }
                let offer = self.push(1, CompletionKind::Label, label);
                offer.insert = format!("{label}: ");
                offer.detail = rest.clone();
            }
        }
    }

    fn callable(&self, name: &str) -> Option<Span> {
        let document = self.document;
        match document.names.item(name) {
            Some(id) => {
                let def = document.names.def(id);
                match def.kind {
                    DefKind::Import => document.imported(def),
                    _ => Some(def.span),
                }
            }
            None => document.prelude(name),
        }
    }

    /// The axes of a call's first argument; without one that is known, all that can be read.
    fn operand_axes(&mut self, call: &Call) {
        let document = self.document;
        let ragged_only = call.callee == "at_last" || call.callee == "index";
        let mut axes: Vec<AxisId> = vec![];
        if let Some((lo, hi)) = call.first.filter(|_| !ragged_only) {
            let span = Span {
                lo,
                hi,
                ..self.replace
            };
            axes = match document.value(span) {
                Some(ty) => ty.axes.clone(),
                None => self.axes_within(span),
            };
        }
        let listed = call.list.as_deref().unwrap_or_default();
        if axes.is_empty() {
            let names = &document.names;
            for id in names.visible(self.replace.lo) {
                let def = names.def(id);
                let ragged = match document.meaning(def.span) {
                    Some(What::Axis(a)) => document.is_ragged(*a),
                    _ => true,
                };
                let fits = def.kind == DefKind::Axis && (ragged || !ragged_only);
                if fits && !listed.contains(&def.name) {
                    self.def(id, 0);
                }
            }
            return;
        }
        for a in axes {
            let name = document.axis_name(a).to_string();
            if !listed.contains(&name) {
                self.push(0, CompletionKind::Axis, &name);
            }
        }
    }

    /// The axes of every name in a text that does not parse yet.
    fn axes_within(&self, span: Span) -> Vec<AxisId> {
        let document = self.document;
        let text = document.text(span);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names = &document.names;
        let visible = names.visible(self.replace.lo);
        let mut axes = vec![];
        for word in text.split(|c| !is_word(c)) {
            let def = visible.iter().map(|d| names.def(*d));
            let def = def.into_iter().find(|d| d.name == word);
            match def.and_then(|d| document.meaning(d.span)) {
                Some(What::Value(ty)) => axes.extend(&ty.axes),
                Some(What::Rollout(r)) => axes.extend(document.rollout_axes(*r)),
                _ => {}
            }
        }
        axes.sort();
        axes.dedup();
        axes
    }
}

impl Document {
    fn is_ragged(&self, a: AxisId) -> bool {
        let axis = self.compiled.facts.axes.get(a.0 as usize);
        axis.is_none_or(|a| matches!(a.size, AxisSize::Ragged(_)))
    }
}
