//! Notes for editors: what each name stands for, taken down in passing.

use crate::ast::{Expr, Name};
use crate::facts::{Facts, Occurrence, What};
use crate::graph::Type;
use crate::source::Span;

use super::builtin::builtin;
use super::{Def, Sema, Val};

impl Sema<'_> {
    /// Notes a name, defined at `def`.
    pub(crate) fn note(&mut self, span: Span, def: Option<Span>, what: What) {
        self.facts.names.push(Occurrence { span, def, what });
    }

    /// Notes a name by its value.
    pub(crate) fn note_val(&mut self, span: Span, def: Option<Span>, val: &Val) {
        let what = match val {
            Val::Expr(x) => What::Value(self.ty(*x).clone()),
            Val::Axis(a) => What::Axis(*a),
            Val::Axes(axes) => What::Axes(axes.clone()),
            Val::Model(m) => What::Model(*m),
            Val::Rollout(r) => What::Rollout(*r),
            Val::Prompt(_) => What::Prompt,
            Val::Poison => What::Unknown,
        };
        self.note(span, def, what);
    }

    /// Notes an item's name, introduced at `at`; an import leads to the function itself.
    pub(crate) fn note_def(&mut self, span: Span, at: Span, def: &Def) {
        let at = match def {
            Def::Fn { module, item } => self.function_name(*module, *item).map_or(at, |n| n.span),
            _ => at,
        };
        let what = match def {
            Def::Param(i) => match self.graph.params.get(*i) {
                Some(p) => What::Value(Type::scalar(p.value.elem())),
                None => What::Unknown,
            },
            Def::Data(d) => What::Data(*d),
            Def::Model(m) => What::Model(*m),
            Def::Reward(r) => What::Reward(*r),
            Def::State(s) => match self.graph.states.get(s.0 as usize) {
                Some(s) => What::Value(Type::scalar(s.elem)),
                None => What::Unknown,
            },
            Def::Fn { .. } => What::Function,
            Def::Poison => What::Unknown,
        };
        self.note(span, Some(at), what);
    }

    /// Notes what is called.
    pub(crate) fn note_callee(&mut self, callee: &Name, module: usize) {
        match self.item_at(&callee.text, module) {
            Some((def, at)) => self.note_def(callee.span, at, &def),
            None if builtin(&callee.text).is_some() => {
                self.note(callee.span, None, What::Builtin);
            }
            None => {}
        }
    }

    /// Notes the value of an expression of the tree.
    pub(crate) fn note_value(&mut self, e: &Expr, val: &Option<Val>) {
        if let Some(Val::Expr(x)) = val {
            let ty = self.ty(*x).clone();
            self.facts.values.push((e.span, ty));
        }
    }

    /// The notes, with what their types refer to.
    pub(crate) fn take_facts(&mut self) -> Facts {
        Facts {
            axes: self.graph.axes.clone(),
            models: self.graph.models.clone(),
            data: self.graph.data.clone(),
            rewards: self.graph.rewards.clone(),
            rollouts: self.graph.rollouts.clone(),
            ..std::mem::take(&mut self.facts)
        }
    }
}
