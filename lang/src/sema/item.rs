//! The items of a program in their order: first what has a name, then the bodies.

use crate::ast::{self, ItemKind};
use crate::diag::Diagnostic;
use crate::graph::{DataId, ModelId, NodeKind, RewardId, StateId};
use crate::source::Span;

use super::{Def, Sema};

impl Sema<'_> {
    /// Everything of the program but its text: module 0 is parsed, the prelude is module 1.
    pub(crate) fn program(&mut self, overrides: &[(String, String)]) {
        self.imports(0);
        self.params(overrides);
        let file = self.modules[0].file.clone();
        self.declare(&file);
        for item in &file.items {
            match &item.kind {
                ItemKind::Model(m) => self.model(m),
                ItemKind::Place(p) => self.only_place(p, item.span),
                _ => {}
            }
        }
        let steps = file
            .items
            .iter()
            .filter(|i| matches!(i.kind, ItemKind::Step(_)));
        let mut first = None;
        for item in steps {
            match first {
                None => first = Some(item.span),
                Some(at) => self.report(
                    Diagnostic::error("E011", item.span, "a program has one `step`")
                        .label(at, "the first one"),
                ),
            }
        }
        // Evaluations read the models that the step leaves, wherever they stand in the file.
        for item in &file.items {
            if let ItemKind::Step(step) = &item.kind {
                self.step(step, item.span);
                break;
            }
        }
        for item in &file.items {
            if let ItemKind::Eval(eval) = &item.kind {
                self.evaluation(eval, item.span);
            }
        }
        self.uncalled_functions(&file, first.is_some());
        if first.is_some() {
            self.unused_items(&file);
        }
    }

    /// Gives data, rewards and models their names, so that models may refer to each other.
    fn declare(&mut self, file: &ast::File) {
        for item in &file.items {
            match &item.kind {
                ItemKind::Data(d) => {
                    let def = match self.data(d) {
                        Some(data) => {
                            self.graph.data.push(data);
                            Def::Data(DataId(self.graph.data.len() as u32 - 1))
                        }
                        None => Def::Poison,
                    };
                    self.define(0, &d.name, def);
                }
                ItemKind::State(s) => {
                    let def = match self.state(s) {
                        Some(state) => {
                            self.graph.states.push(state);
                            Def::State(StateId(self.graph.states.len() as u32 - 1))
                        }
                        None => Def::Poison,
                    };
                    self.define(0, &s.name, def);
                }
                ItemKind::Reward(r) => {
                    let def = match self.reward(r) {
                        Some(reward) => {
                            self.graph.rewards.push(reward);
                            Def::Reward(RewardId(self.graph.rewards.len() as u32 - 1))
                        }
                        None => Def::Poison,
                    };
                    self.define(0, &r.name, def);
                }
                ItemKind::Model(m) => {
                    let def = match self.model_kind(m) {
                        Some(model) => {
                            self.graph.models.push(model);
                            Def::Model(ModelId(self.graph.models.len() as u32 - 1))
                        }
                        None => Def::Poison,
                    };
                    self.define(0, &m.name, def);
                }
                _ => {}
            }
        }
    }

    fn only_place(&mut self, p: &ast::Place, span: Span) {
        if let Some(first) = &self.graph.place {
            let first = first.span;
            self.report(
                Diagnostic::error("E011", p.program.span, "a program has one `place`")
                    .label(first, "the first one"),
            );
            return;
        }
        self.graph.place = self.plan(p, span);
    }

    /// L001 and L011: states that nothing reads or nothing changes.
    fn idle_states(&mut self) {
        for i in 0..self.graph.states.len() {
            let (name, span) = (self.graph.states[i].name.clone(), self.graph.states[i].span);
            if name.starts_with('_') {
                continue;
            }
            let changes = |n: &crate::graph::Node| matches!(&n.kind, NodeKind::Next { state, .. } if state.0 as usize == i);
            if !self.used.contains(&('s', i)) {
                self.report(
                    Diagnostic::warning("L001", span, format!("`{name}` is never used"))
                        .help("remove it, or begin its name with `_` to keep it"),
                );
            } else if !self.nodes.iter().any(changes) {
                self.report(
                    Diagnostic::warning("L011", span, format!("`{name}` never changes")).help(
                        format!("`next {name} = …` in `step` changes it; a constant is a `param`"),
                    ),
                );
            }
        }
    }

    /// L002 and L003: what is declared and never read.
    fn unused_items(&mut self, file: &ast::File) {
        if self.failed() {
            return;
        }
        for i in 0..self.graph.params.len() {
            let p = &self.graph.params[i];
            if !self.used.contains(&('p', i)) && !p.name.starts_with('_') {
                let d = Diagnostic::warning(
                    "L002",
                    p.span,
                    format!(
                        "`{}` changes nothing; overriding it would have no effect",
                        p.name
                    ),
                )
                .help("use it in the program, or remove it");
                self.report(d);
            }
        }
        for i in 0..self.graph.models.len() {
            let m = &self.graph.models[i];
            if !self.used.contains(&('m', i)) && !m.name.starts_with('_') {
                let d = Diagnostic::warning(
                    "L003",
                    m.span,
                    format!("`{}` is loaded and never called", m.name),
                )
                .help("remove it: its weights take memory for nothing");
                self.report(d);
            }
        }
        self.idle_states();
        for item in &file.items {
            if let ItemKind::Reward(r) = &item.kind
                && let Some((Def::Reward(id), _)) = self.modules[0].names.get(&r.name.text)
                && !self.used.contains(&('r', id.0 as usize))
            {
                let d = Diagnostic::warning(
                    "L001",
                    r.name.span,
                    format!("`{}` is never used", r.name.text),
                )
                .help("remove it, or begin its name with `_` to keep it");
                self.report(d);
            }
        }
    }
}
