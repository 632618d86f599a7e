//! The last pass: what nothing reads is dropped, the rest is numbered anew and joined by edges.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{
    AxisId, Edge, ExprRef, Forward, Graph, Metric, ModelId, Node, NodeId, NodeKind, Op, RolloutId,
    Scope, Selection, ValueId,
};

use super::Sema;

/// What a node or a metric reads.
#[derive(Default)]
struct Reads {
    values: BTreeSet<ValueId>,
    rollouts: BTreeSet<RolloutId>,
}

impl Sema<'_> {
    /// The finished graph. Called without errors only.
    pub(crate) fn finish(mut self) -> (Graph, crate::source::Sources) {
        let mut nodes = std::mem::take(&mut self.nodes);
        let graph = &mut self.graph;
        give_tokenizers(&mut nodes);
        let kept = live_nodes(&mut nodes, graph);
        let nodes: Vec<Node> = nodes
            .into_iter()
            .zip(kept)
            .filter_map(|(n, keep)| keep.then_some(n))
            .collect();
        let nodes = compact(nodes, graph);
        connect(nodes, graph);
        (self.graph, self.sources)
    }
}

/// The texts of an `answer` are read by the tokenizer of the model that scores them.
fn give_tokenizers(nodes: &mut [Node]) {
    let mut reader: BTreeMap<RolloutId, ModelId> = BTreeMap::new();
    for node in nodes.iter() {
        for f in forwards(&node.kind) {
            reader.entry(f.rollout).or_insert(f.model);
        }
    }
    // Who reads a selection reads what it is of.
    for node in nodes.iter().rev() {
        if let NodeKind::Select { from, rollout, .. } = &node.kind
            && let Some(model) = reader.get(rollout).copied()
        {
            reader.entry(*from).or_insert(model);
        }
    }
    for node in nodes {
        if let NodeKind::Answer { model, rollout, .. } = &mut node.kind {
            *model = reader.get(rollout).copied().unwrap_or(*model);
        }
    }
}

fn forwards(kind: &NodeKind) -> &[Forward] {
    match kind {
        NodeKind::Forward(f) => std::slice::from_ref(f),
        NodeKind::Train(t) => &t.forwards,
        _ => &[],
    }
}

/// Marks nodes that a `train` or a metric needs, and drops their outputs that nothing reads.
fn live_nodes(nodes: &mut [Node], graph: &Graph) -> Vec<bool> {
    let mut reads = Reads::default();
    let evals = graph.evals.iter().flat_map(|e| &e.metrics);
    for m in graph.metrics.iter().chain(evals) {
        read(graph, m.expr, &mut reads);
    }
    let mut kept = vec![false; nodes.len()];
    for (node, keep) in nodes.iter_mut().zip(&mut kept).rev() {
        let used = |v: &ValueId| reads.values.contains(v);
        *keep = match &mut node.kind {
            NodeKind::Load { columns, .. } => {
                columns.retain(|(_, v)| used(v));
                true
            }
            NodeKind::Generate {
                members, rollout, ..
            }
            | NodeKind::Answer {
                members, rollout, ..
            }
            | NodeKind::Select {
                members, rollout, ..
            } => {
                members.retain(|(_, v)| used(v));
                !members.is_empty() || reads.rollouts.contains(rollout)
            }
            NodeKind::Forward(f) => {
                f.outputs.retain(|(_, v)| used(v));
                !f.outputs.is_empty()
            }
            NodeKind::Reward { value, .. } | NodeKind::Map { value, .. } => used(value),
            NodeKind::Train(t) => {
                // Its own outputs are read by its loss and metrics alone.
                let mut own = Reads::default();
                read(graph, t.loss, &mut own);
                t.metrics.iter().for_each(|m| read(graph, m.expr, &mut own));
                for f in &mut t.forwards {
                    f.outputs.retain(|(_, v)| own.values.contains(v));
                }
                t.forwards.retain(|f| !f.outputs.is_empty());
                true
            }
            NodeKind::Next { .. } | NodeKind::Blend { .. } => true,
        };
        if *keep {
            node_reads(graph, &node.kind, &mut reads);
        }
    }
    kept
}

fn node_reads(graph: &Graph, kind: &NodeKind, reads: &mut Reads) {
    for e in exprs(kind) {
        read(graph, e, reads);
    }
    for f in forwards(kind) {
        reads.rollouts.insert(f.rollout);
    }
    if let NodeKind::Select { from, .. } = kind {
        reads.rollouts.insert(*from);
    }
}

/// Every expression a node holds.
fn exprs(kind: &NodeKind) -> Vec<ExprRef> {
    match kind {
        NodeKind::Load { .. } | NodeKind::Forward(_) => vec![],
        NodeKind::Generate { prompt, .. } => vec![*prompt],
        NodeKind::Answer { prompt, text, .. } => vec![*prompt, *text],
        NodeKind::Reward { args, .. } => args.clone(),
        NodeKind::Map { expr, .. } | NodeKind::Next { expr, .. } => vec![*expr],
        NodeKind::Blend { rate, .. } => vec![*rate],
        NodeKind::Select { by, .. } => match by {
            Selection::Pick { index, .. } => vec![*index],
            Selection::Top { by, .. } => vec![*by],
        },
        NodeKind::Train(t) => {
            let metrics = t.metrics.iter().map(|m| m.expr);
            std::iter::once(t.loss).chain(metrics).collect()
        }
    }
}

/// Adds the values an expression reads, and the rollouts whose lengths it needs.
fn read(graph: &Graph, root: ExprRef, reads: &mut Reads) {
    let mut open = vec![root];
    let mut seen = BTreeSet::new();
    while let Some(e) = open.pop() {
        let expr = graph.expr(e);
        match expr.op {
            Op::Value(v) => {
                reads.values.insert(v);
            }
            Op::Index(a) | Op::AtLast(a) => {
                reads.rollouts.extend(rollout_of(graph, a));
            }
            _ => {}
        }
        open.extend(expr.args.iter().copied().filter(|a| seen.insert(*a)));
    }
}

fn rollout_of(graph: &Graph, axis: AxisId) -> Option<RolloutId> {
    let mut axis = axis;
    loop {
        if let Some(at) = graph.rollouts.iter().position(|r| r.tokens == axis) {
            return Some(RolloutId(at as u32));
        }
        // The tokens of a part are those of the whole.
        axis = graph.axis(axis).of?;
    }
}

/// Numbers expressions and values without gaps.
fn compact(mut nodes: Vec<Node>, graph: &mut Graph) -> Vec<Node> {
    let mut roots: Vec<ExprRef> = nodes.iter().flat_map(|n| exprs(&n.kind)).collect();
    roots.extend(
        graph
            .models
            .iter()
            .filter_map(|m| m.optim.as_ref())
            .map(|o| o.lr),
    );
    roots.extend(graph.metrics.iter().map(|m| m.expr));
    roots.extend(graph.evals.iter().flat_map(|e| &e.metrics).map(|m| m.expr));
    let mut seen: BTreeSet<ExprRef> = roots.iter().copied().collect();
    while let Some(e) = roots.pop() {
        let args = &graph.expr(e).args;
        roots.extend(args.iter().copied().filter(|a| seen.insert(*a)));
    }
    let new_expr: BTreeMap<ExprRef, ExprRef> = seen
        .iter()
        .enumerate()
        .map(|(i, e)| (*e, ExprRef(i as u32)))
        .collect();
    let made: BTreeSet<ValueId> = nodes.iter().flat_map(|n| outputs(&n.kind)).collect();
    let new_value: BTreeMap<ValueId, ValueId> = made
        .iter()
        .enumerate()
        .map(|(i, v)| (*v, ValueId(i as u32)))
        .collect();
    // Both maps hold every reference that is left: `seen` is closed over operands, and a value that
    // an expression reads is made by a kept node.
    let expr = |e: &mut ExprRef| *e = new_expr.get(e).copied().unwrap_or(*e);
    let value = |v: &mut ValueId| *v = new_value.get(v).copied().unwrap_or(*v);
    let exprs = seen.iter().map(|e| {
        let mut e = graph.expr(*e).clone();
        e.args.iter_mut().for_each(expr);
        if let Op::Value(v) = &mut e.op {
            value(v);
        }
        e
    });
    graph.exprs = exprs.collect();
    graph.values = made.iter().map(|v| graph.value(*v).clone()).collect();
    for node in &mut nodes {
        renumber(&mut node.kind, &expr, &value);
    }
    let metrics = |list: &mut Vec<Metric>| list.iter_mut().for_each(|m| expr(&mut m.expr));
    metrics(&mut graph.metrics);
    graph.evals.iter_mut().for_each(|e| metrics(&mut e.metrics));
    for m in &mut graph.models {
        if let Some(o) = &mut m.optim {
            expr(&mut o.lr);
        }
    }
    nodes
}

/// Every value a node makes, for itself or for others.
fn outputs(kind: &NodeKind) -> Vec<ValueId> {
    match kind {
        NodeKind::Load { columns, .. } => columns.iter().map(|(_, v)| *v).collect(),
        NodeKind::Generate { members, .. }
        | NodeKind::Answer { members, .. }
        | NodeKind::Select { members, .. } => members.iter().map(|(_, v)| *v).collect(),
        NodeKind::Next { .. } | NodeKind::Blend { .. } => vec![],
        NodeKind::Forward(_) | NodeKind::Train(_) => forwards(kind)
            .iter()
            .flat_map(|f| f.outputs.iter().map(|(_, v)| *v))
            .collect(),
        NodeKind::Reward { value, .. } | NodeKind::Map { value, .. } => vec![*value],
    }
}

fn renumber(kind: &mut NodeKind, expr: &impl Fn(&mut ExprRef), value: &impl Fn(&mut ValueId)) {
    let pass = |f: &mut Forward| f.outputs.iter_mut().for_each(|(_, v)| value(v));
    match kind {
        NodeKind::Load { columns, .. } => columns.iter_mut().for_each(|(_, v)| value(v)),
        NodeKind::Generate {
            prompt, members, ..
        } => {
            expr(prompt);
            members.iter_mut().for_each(|(_, v)| value(v));
        }
        NodeKind::Answer {
            prompt,
            text,
            members,
            ..
        } => {
            expr(prompt);
            expr(text);
            members.iter_mut().for_each(|(_, v)| value(v));
        }
        NodeKind::Select { by, members, .. } => {
            match by {
                Selection::Pick { index, .. } => expr(index),
                Selection::Top { by, .. } => expr(by),
            }
            members.iter_mut().for_each(|(_, v)| value(v));
        }
        NodeKind::Next { expr: e, .. } => expr(e),
        NodeKind::Blend { rate, .. } => expr(rate),
        NodeKind::Forward(f) => pass(f),
        NodeKind::Reward { args, value: v, .. } => {
            args.iter_mut().for_each(expr);
            value(v);
        }
        NodeKind::Map { expr: e, value: v } => {
            expr(e);
            value(v);
        }
        NodeKind::Train(t) => {
            expr(&mut t.loss);
            t.metrics.iter_mut().for_each(|m| expr(&mut m.expr));
            t.forwards.iter_mut().for_each(pass);
        }
    }
}

/// Adds the nodes and the edges that follow from what they read.
fn connect(nodes: Vec<Node>, graph: &mut Graph) {
    let mut maker: BTreeMap<ValueId, NodeId> = BTreeMap::new();
    let mut origin: BTreeMap<RolloutId, NodeId> = BTreeMap::new();
    let mut readers: Vec<(ModelId, Scope, NodeId)> = vec![];
    let mut trains: Vec<(ModelId, NodeId)> = vec![];
    let mut blends: Vec<(ModelId, NodeId)> = vec![];
    let mut wires: Vec<(NodeId, NodeId, Edge)> = vec![];
    for node in nodes {
        let (kind, scope) = (node.kind.clone(), node.scope);
        let id = graph.dag.add(node);
        let mut reads = Reads::default();
        node_reads(graph, &kind, &mut reads);
        let data = reads
            .values
            .iter()
            .filter_map(|v| Some((*maker.get(v)?, Edge::Data(*v))));
        let rollouts = reads
            .rollouts
            .iter()
            .filter_map(|r| Some((*origin.get(r)?, Edge::Rollout(*r))));
        wires.extend(data.chain(rollouts).map(|(from, edge)| (from, id, edge)));
        maker.extend(outputs(&kind).into_iter().map(|v| (v, id)));
        match &kind {
            NodeKind::Generate { model, rollout, .. } => {
                origin.insert(*rollout, id);
                readers.push((*model, scope, id));
            }
            NodeKind::Answer { rollout, .. } | NodeKind::Select { rollout, .. } => {
                origin.insert(*rollout, id);
            }
            NodeKind::Blend { model, toward, .. } => {
                trains.push((*model, id));
                blends.push((*toward, id));
            }
            NodeKind::Forward(f) => readers.push((f.model, scope, id)),
            NodeKind::Train(t) => trains.push((t.model, id)),
            _ => {}
        }
    }
    // A blend reads the version that the iteration leaves.
    for (toward, blend) in blends {
        let makers = trains.iter().filter(|(m, _)| *m == toward);
        wires.extend(makers.map(|(m, from)| (*from, blend, Edge::Version(*m))));
    }
    for (model, train) in trains {
        for (_, scope, reader) in readers.iter().filter(|(m, ..)| *m == model) {
            // The step reads the version it started with, an evaluation the one it left.
            let (from, to) = match scope {
                Scope::Step => (*reader, train),
                Scope::Eval(_) => (train, *reader),
            };
            wires.push((from, to, Edge::Version(model)));
        }
    }
    for (from, to, edge) in wires {
        let added = graph.dag.connect(from, to, edge);
        // Sources precede their targets in the walk, and versions follow it.
        debug_assert!(added);
    }
}
