//! What the rules know about a graph: where log-probabilities come from, who uses an expression,
//! and what is live in which `train`.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{
    ExprRef, ForwardOutput, Graph, Member, ModelId, NodeKind, Op, Reduce, RolloutId, Train, Unary,
    ValueId,
};
use crate::source::{FileId, Sources, Span};

/// Where a log-probability comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Logp {
    pub value: ValueId,
    pub model: ModelId,
    pub rollout: RolloutId,
    pub temperature: f64,
}

pub(super) struct Facts<'g> {
    pub graph: &'g Graph,
    pub sources: &'g Sources,
    /// Provenance by value.
    pub logps: BTreeMap<ValueId, Logp>,
    /// The model that sampled a rollout; absent for text of the data.
    pub samplers: BTreeMap<RolloutId, ModelId>,
    /// Who has an expression as an operand.
    pub users: Vec<Vec<ExprRef>>,
}

impl<'g> Facts<'g> {
    pub(super) fn new(graph: &'g Graph, sources: &'g Sources) -> Self {
        let mut users = vec![vec![]; graph.exprs.len()];
        for (i, e) in graph.exprs.iter().enumerate() {
            for a in &e.args {
                users[a.0 as usize].push(ExprRef(i as u32));
            }
        }
        let mut facts = Facts {
            graph,
            sources,
            logps: BTreeMap::new(),
            samplers: BTreeMap::new(),
            users,
        };
        for id in graph.dag.order() {
            facts.note(&graph.dag.node(id).kind);
        }
        facts
    }

    fn note(&mut self, kind: &NodeKind) {
        let passes = match kind {
            NodeKind::Generate {
                model,
                rollout,
                members,
                sampling,
                ..
            } => {
                self.samplers.insert(*rollout, *model);
                // Greedy responses carry their log-probability at temperature 1.
                let temperature = match sampling.temperature {
                    0.0 => 1.0,
                    t => t,
                };
                for (_, value) in members.iter().filter(|(m, _)| *m == Member::Logp) {
                    let logp = Logp {
                        value: *value,
                        model: *model,
                        rollout: *rollout,
                        temperature,
                    };
                    self.logps.insert(*value, logp);
                }
                return;
            }
            NodeKind::Forward(f) => std::slice::from_ref(f),
            NodeKind::Train(t) => &t.forwards,
            _ => return,
        };
        for f in passes {
            for (_, value) in f.outputs.iter().filter(|(o, _)| *o == ForwardOutput::Logp) {
                let logp = Logp {
                    value: *value,
                    model: f.model,
                    rollout: f.rollout,
                    temperature: f.temperature,
                };
                self.logps.insert(*value, logp);
            }
        }
    }

    /// Every `train` with the span of its statement.
    pub(super) fn trains(&self) -> impl Iterator<Item = (&'g Train, Span)> + '_ {
        self.graph.dag.order().filter_map(|id| {
            let node = self.graph.dag.node(id);
            match &node.kind {
                NodeKind::Train(t) => Some((t, node.span)),
                _ => None,
            }
        })
    }

    /// The values that a `train` computes anew for every update.
    pub(super) fn live_values(train: &Train) -> BTreeSet<ValueId> {
        let outputs = train.forwards.iter().flat_map(|f| &f.outputs);
        outputs.map(|(_, v)| *v).collect()
    }

    /// For every expression, whether it depends on a live value; `through_stop` looks behind `stop`.
    pub(super) fn live(&self, train: &Train, through_stop: bool) -> Vec<bool> {
        let values = Self::live_values(train);
        let mut live = vec![false; self.graph.exprs.len()];
        for (i, e) in self.graph.exprs.iter().enumerate() {
            live[i] = match &e.op {
                Op::Value(v) => values.contains(v),
                Op::Stop if !through_stop => false,
                _ => e.args.iter().any(|a| live[a.0 as usize]),
            };
        }
        live
    }

    /// The expressions that make up `root`, itself included, in ascending order.
    pub(super) fn parts(&self, root: ExprRef) -> BTreeSet<ExprRef> {
        let mut parts = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            let args = &self.graph.expr(e).args;
            open.extend(args.iter().copied().filter(|a| parts.insert(*a)));
        }
        parts
    }

    /// The log-probability an expression is, reductions over tokens and limits aside.
    pub(super) fn logp(&self, e: ExprRef) -> Option<Logp> {
        let expr = self.graph.expr(e);
        match &expr.op {
            Op::Value(v) => self.logps.get(v).copied(),
            op if passes(op) => self.logp(expr.args[0]),
            _ => None,
        }
    }

    /// The log-probabilities whose difference an expression is: numerator and denominator.
    pub(super) fn log_ratio(&self, e: ExprRef) -> Option<(Logp, Logp)> {
        let expr = self.graph.expr(e);
        match &expr.op {
            Op::Binary(crate::graph::Binary::Sub) => {
                Some((self.logp(expr.args[0])?, self.logp(expr.args[1])?))
            }
            Op::Unary(Unary::Neg) => {
                let (a, b) = self.log_ratio(expr.args[0])?;
                Some((b, a))
            }
            op if passes(op) => self.log_ratio(expr.args[0]),
            _ => None,
        }
    }

    /// The ratio an expression is, limits aside.
    pub(super) fn ratio(&self, e: ExprRef) -> Option<(Logp, Logp)> {
        let expr = self.graph.expr(e);
        match &expr.op {
            Op::Unary(Unary::Exp) => self.log_ratio(expr.args[0]),
            Op::Clamp => self.ratio(expr.args[0]),
            _ => None,
        }
    }

    /// A place in the program for an expression: its own, or where what it is made of is used.
    pub(super) fn home(&self, e: ExprRef) -> Span {
        let here = self.graph.expr(e).span;
        if here.file == FileId(0) {
            return here;
        }
        let up = self.users[e.0 as usize]
            .iter()
            .map(|u| self.graph.expr(*u).span)
            .find(|s| s.file == FileId(0));
        let down = || {
            let parts = self.parts(e);
            let spans = parts.iter().rev().map(|p| self.graph.expr(*p));
            spans
                .filter(|p| !p.args.is_empty() || matches!(p.op, Op::Value(_)))
                .map(|p| p.span)
                .find(|s| s.file == FileId(0))
        };
        up.or_else(down).unwrap_or(here)
    }

    pub(super) fn model_name(&self, m: ModelId) -> &str {
        &self.graph.model(m).name
    }

    pub(super) fn value_name(&self, v: ValueId) -> &str {
        &self.graph.value(v).name
    }

    pub(super) fn quote(&self, span: Span) -> String {
        let text = self.sources.get(span.file).slice(span);
        if text.is_empty() || text.len() > 48 || text.contains('\n') {
            return "this".into();
        }
        format!("`{text}`")
    }
}

/// Operations after which a log-probability still counts as one.
fn passes(op: &Op) -> bool {
    match op {
        Op::Stop | Op::Clamp => true,
        Op::Reduce { op, .. } => matches!(op, Reduce::Mean | Reduce::Sum),
        _ => false,
    }
}
