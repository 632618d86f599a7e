//! What the rules know about a graph: where log-probabilities come from, who uses an expression,
//! and what is live in which `train`.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{
    AxisSize, Binary, Elem, ExprRef, Forward, ForwardOutput, Graph, Member, ModelId, NodeId,
    NodeKind, Op, Reduce, RolloutId, Selection, Train, Unary, ValueId,
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
    /// The temperature a rollout was sampled at.
    pub temperatures: BTreeMap<RolloutId, f64>,
    /// Who has an expression as an operand.
    pub users: Vec<Vec<ExprRef>>,
    /// The node that makes a value.
    pub makers: BTreeMap<ValueId, NodeId>,
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
            temperatures: BTreeMap::new(),
            users,
            makers: BTreeMap::new(),
        };
        for id in graph.dag.order() {
            let kind = &graph.dag.node(id).kind;
            facts.note(kind);
            facts.makers.extend(made(kind).into_iter().map(|v| (v, id)));
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
                self.temperatures.insert(*rollout, temperature);
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
            NodeKind::Select {
                from,
                rollout,
                members,
                ..
            } => {
                let Some(model) = self.samplers.get(from).copied() else {
                    return;
                };
                self.samplers.insert(*rollout, model);
                let temperature = self.temperatures.get(from).copied().unwrap_or(1.0);
                self.temperatures.insert(*rollout, temperature);
                for (_, value) in members.iter().filter(|(m, _)| *m == Member::Logp) {
                    let logp = Logp {
                        value: *value,
                        model,
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
            Op::Binary(Binary::Sub) => Some((self.logp(expr.args[0])?, self.logp(expr.args[1])?)),
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

    /// Everything that a value is computed from, back to data and models: the values that `root` reads,
    /// those that their nodes read, and so on.
    pub(super) fn origins(&self, root: ExprRef) -> BTreeSet<ValueId> {
        self.origins_of(self.values_in(root))
    }

    fn origins_of(&self, values: Vec<ValueId>) -> BTreeSet<ValueId> {
        let mut seen = BTreeSet::new();
        let mut open = values;
        while let Some(v) = open.pop() {
            if !seen.insert(v) {
                continue;
            }
            let Some(id) = self.makers.get(&v) else {
                continue;
            };
            for e in node_reads(&self.graph.dag.node(*id).kind) {
                open.extend(self.values_in(e));
            }
        }
        seen
    }

    /// The values among the parts of an expression.
    pub(super) fn values_in(&self, root: ExprRef) -> Vec<ValueId> {
        let parts = self.parts(root);
        let value = |e: ExprRef| match self.graph.expr(e).op {
            Op::Value(v) => Some(v),
            _ => None,
        };
        parts.into_iter().filter_map(value).collect()
    }

    /// The values that a loss is computed from: what decides which rows it is taken over is none of them.
    fn terms(&self, loss: ExprRef) -> Vec<ValueId> {
        let (mut seen, mut found, mut open) = (BTreeSet::new(), vec![], vec![loss]);
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            let expr = self.graph.expr(e);
            match expr.op {
                Op::Value(v) => found.push(v),
                Op::Restrict(_) => open.extend(&expr.args[..1]),
                _ => open.extend(&expr.args),
            }
        }
        found
    }

    /// Whether a value is a reward: an external one, a score, or a rule over text.
    pub(super) fn is_reward(&self, v: ValueId) -> bool {
        let Some(id) = self.makers.get(&v) else {
            return false;
        };
        match &self.graph.dag.node(*id).kind {
            NodeKind::Reward { .. } => true,
            NodeKind::Forward(f) => f.outputs.contains(&(ForwardOutput::Score, v)),
            NodeKind::Map { expr, .. } => self.parts(*expr).into_iter().any(|e| self.reads_text(e)),
            _ => false,
        }
    }

    fn reads_text(&self, e: ExprRef) -> bool {
        let expr = self.graph.expr(e);
        let text = |a: &ExprRef| self.graph.expr(*a).ty.elem == Elem::Text;
        expr.ty.elem != Elem::Text && expr.args.iter().any(text)
    }

    /// Whether a value is a member of a rollout that a model sampled.
    pub(super) fn is_sampled(&self, v: ValueId) -> bool {
        let maker = self.makers.get(&v).map(|id| &self.graph.dag.node(*id).kind);
        matches!(
            maker,
            Some(NodeKind::Generate { .. } | NodeKind::Select { .. })
        )
    }

    /// Updates that one rollout serves in a `train`.
    pub(super) fn updates(&self, train: &Train) -> usize {
        match (self.rows(train), train.minibatch) {
            (Some(batch), Some(n)) if n > 0 => train.epochs * (batch / n).max(1),
            _ => train.epochs,
        }
    }

    /// The two log-probabilities of an estimator of KL(p‖q) in one of the usual forms: p and q.
    pub(super) fn kl(&self, e: ExprRef) -> Option<(Logp, Logp)> {
        let expr = self.graph.expr(e);
        let one = |e: ExprRef| matches!(self.graph.expr(e).op, Op::Number(v) if v == 1.0);
        match &expr.op {
            // (p - q)^2, with or without a half: the order of the two says nothing.
            Op::Binary(Binary::Pow) => self.log_ratio(expr.args[0]),
            Op::Binary(Binary::Sub) if one(expr.args[1]) => {
                let inner = self.graph.expr(expr.args[0]);
                let (a, b) = (inner.args.first().copied()?, inner.args.get(1).copied()?);
                match inner.op {
                    // exp(q - p) - (q - p) - 1
                    Op::Binary(Binary::Sub) => {
                        let (q, p) = self.exponent(a)?;
                        (self.log_ratio(b)? == (q, p)).then_some((p, q))
                    }
                    // exp(-(p - q)) + (p - q) - 1
                    Op::Binary(Binary::Add) => {
                        let (exp, x) = match self.exponent(a) {
                            Some(found) => (found, b),
                            None => (self.exponent(b)?, a),
                        };
                        let (q, p) = exp;
                        (self.log_ratio(x)? == (p, q)).then_some((p, q))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn exponent(&self, e: ExprRef) -> Option<(Logp, Logp)> {
        let expr = self.graph.expr(e);
        match expr.op {
            Op::Unary(Unary::Exp) => self.log_ratio(expr.args[0]),
            _ => None,
        }
    }

    /// Whether a limit or a smaller-of stands over a live value of a loss: a trust region.
    pub(super) fn is_clipped(&self, train: &Train) -> bool {
        let live = self.live(train, false);
        self.parts(train.loss).into_iter().any(|e| {
            let expr = self.graph.expr(e);
            let limits = match &expr.op {
                Op::Clamp | Op::Binary(Binary::Min | Binary::Max) => true,
                // A soft limit.
                Op::Unary(Unary::Sigmoid | Unary::LogSigmoid | Unary::Tanh) => true,
                _ => false,
            };
            let limited = limits && expr.args.iter().any(|a| live[a.0 as usize]);
            // A KL to what it was at the start of the iteration holds it there too.
            let held = || live[e.0 as usize] && self.kl(e).is_some_and(|(p, q)| p.model == q.model);
            limited || held()
        })
    }

    /// The rollouts that a loss weighs by a reward: live log-probabilities of sampled responses in a
    /// loss that reads a reward.
    pub(super) fn weighed<'t>(&self, train: &'t Train) -> Option<&'t Forward> {
        let origins = self.origins_of(self.terms(train.loss));
        let rewarded = origins.into_iter().any(|v| self.is_reward(v));
        let samples = |f: &&Forward| {
            let logp = f.outputs.iter().any(|(o, _)| *o == ForwardOutput::Logp);
            logp && self.samplers.get(&f.rollout) == Some(&train.model)
        };
        train.forwards.iter().find(samples).filter(|_| rewarded)
    }

    /// The lines of the program's plan.
    pub(super) fn placed(&self) -> impl Iterator<Item = &'g crate::graph::Placed> + use<'g> {
        let graph: &'g Graph = self.graph;
        graph.place.iter().flat_map(|p| &p.calls)
    }

    /// What a bound value is computed by.
    pub(super) fn definition(&self, v: ValueId) -> Option<ExprRef> {
        match &self.graph.dag.node(*self.makers.get(&v)?).kind {
            NodeKind::Map { expr, .. } => Some(*expr),
            _ => None,
        }
    }

    /// Everything that chose the responses of a rollout.
    pub(super) fn choosers(&self, r: RolloutId) -> BTreeSet<ValueId> {
        let mut found = BTreeSet::new();
        for id in self.graph.dag.order() {
            if let NodeKind::Select {
                from, by, rollout, ..
            } = &self.graph.dag.node(id).kind
                && *rollout == r
            {
                let (Selection::Pick { index: e, .. } | Selection::Top { by: e, .. }) = by;
                found.extend(self.origins(*e));
                found.extend(self.choosers(*from));
            }
        }
        found
    }

    /// Rows of the step that a `train` reads.
    pub(super) fn rows(&self, train: &Train) -> Option<usize> {
        let rows = self.graph.rollout(train.forwards.first()?.rollout).rows;
        match self.graph.axis(self.graph.origin(rows)).size {
            AxisSize::Fixed(n) => Some(n),
            _ => None,
        }
    }

    /// Whether a node waits for another, directly or through others.
    pub(super) fn precedes(&self, a: NodeId, b: NodeId) -> bool {
        let mut seen = BTreeSet::from([b]);
        let mut open = vec![b];
        while let Some(id) = open.pop() {
            if id == a {
                return true;
            }
            let inputs = self.graph.dag.inputs(id).map(|(from, _)| from);
            open.extend(inputs.filter(|i| seen.insert(*i)));
        }
        false
    }

    /// The place of a word within a span of the program.
    pub(super) fn word(&self, span: Span, word: &str) -> Option<Span> {
        let text = self.sources.get(span.file).slice(span);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (at, _) = text.match_indices(word).find(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })?;
        let lo = span.lo as usize + at;
        Some(Span::new(span.file, lo, lo + word.len()))
    }

    /// The loss of a `train` statement: an expression shared with earlier lines has its place there,
    /// so then the word before the loss stands for it.
    pub(super) fn loss_place(&self, train: &Train, statement: Span) -> Span {
        let home = self.home(train.loss);
        let word = self.word(statement, "minimize").unwrap_or(statement);
        let inside = home.file == word.file && word.hi <= home.lo && home.hi <= statement.hi;
        if inside { home } else { word }
    }

    /// `train policy` of a statement, without its body.
    pub(super) fn named(&self, span: Span, name: &str) -> Span {
        let word = self.word(span, name);
        word.map_or(span, |w| Span { lo: span.lo, ..w })
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
        Op::Stop | Op::Clamp | Op::Restrict(_) => true,
        Op::Reduce { op, .. } => matches!(op, Reduce::Mean | Reduce::Sum),
        _ => false,
    }
}

/// The values that a node makes for others.
fn made(kind: &NodeKind) -> Vec<ValueId> {
    match kind {
        NodeKind::Load { columns, .. } => columns.iter().map(|(_, v)| *v).collect(),
        NodeKind::Generate { members, .. }
        | NodeKind::Answer { members, .. }
        | NodeKind::Select { members, .. } => members.iter().map(|(_, v)| *v).collect(),
        NodeKind::Forward(f) => f.outputs.iter().map(|(_, v)| *v).collect(),
        NodeKind::Reward { value, .. } | NodeKind::Map { value, .. } => vec![*value],
        NodeKind::Train(_) | NodeKind::Next { .. } | NodeKind::Blend { .. } => vec![],
    }
}

/// The expressions that a node reads.
fn node_reads(kind: &NodeKind) -> Vec<ExprRef> {
    match kind {
        NodeKind::Reward { args, .. } => args.clone(),
        NodeKind::Map { expr, .. } | NodeKind::Next { expr, .. } => vec![*expr],
        NodeKind::Select { by, .. } => match by {
            Selection::Pick { index, .. } => vec![*index],
            Selection::Top { by, .. } => vec![*by],
        },
        NodeKind::Generate { prompt, .. } => vec![*prompt],
        NodeKind::Answer { prompt, text, .. } => vec![*prompt, *text],
        NodeKind::Blend { rate, .. } => vec![*rate],
        NodeKind::Load { .. } | NodeKind::Forward(_) | NodeKind::Train(_) => vec![],
    }
}
