//! The graph as lines of text.

use std::fmt::Write;

use super::{count, describe, formula, is_name, label, makes, prompt};
use crate::graph::{
    AxisSize, Const, Edge, Graph, Init, Metric, ModelKind, NodeId, NodeKind, RowOrder, Schedule,
    Scope,
};

/// Params, models, axes, then every node with what it reads and makes.
pub fn text(graph: &Graph) -> String {
    let mut out = format!("{}\n", graph.name);
    if let Some(line) = graph.doc.lines().next() {
        push(&mut out, format_args!("  {line}"));
    }
    section(&mut out, "params", params(graph));
    section(&mut out, "models", models(graph));
    section(&mut out, "state", states(graph));
    section(&mut out, "axes", axes(graph));
    section(&mut out, "imports", graph.imports.clone());
    let mut times = match graph.schedule {
        Schedule::Iterations(n) => format!("step, {}", count(n, "iteration")),
        Schedule::Epochs(n) => format!("step, {}", count(n, "epoch")),
    };
    if graph.order == RowOrder::Data {
        times += ", rows in the order of the data";
    }
    scope(&mut out, graph, &times, Scope::Step, &graph.metrics);
    for (i, eval) in graph.evals.iter().enumerate() {
        let title = format!("eval, every {}", count(eval.every, "iteration"));
        scope(
            &mut out,
            graph,
            &title,
            Scope::Eval(i as u32),
            &eval.metrics,
        );
    }
    out
}

fn push(out: &mut String, line: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}");
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    push(out, format_args!("\n{title}"));
    for line in lines {
        push(out, format_args!("  {line}"));
    }
}

fn params(graph: &Graph) -> Vec<String> {
    let width = width(graph.params.iter().map(|p| p.name.as_str()));
    let value = |c: &Const| match c {
        Const::Bool(b) => b.to_string(),
        Const::Int(i) => i.to_string(),
        Const::Float(f) if *f != 0.0 && f.abs() < 1e-3 => format!("{f:e}"),
        Const::Float(f) => f.to_string(),
        Const::Text(t) => format!("{t:?}"),
    };
    graph
        .params
        .iter()
        .map(|p| format!("{:width$}  {}", p.name, value(&p.value)))
        .collect()
}

fn models(graph: &Graph) -> Vec<String> {
    let width = width(graph.models.iter().map(|m| m.name.as_str()));
    let line = |m: &crate::graph::Model| {
        let mut text = match &m.kind {
            ModelKind::Causal { checkpoint, .. } => format!("causal {checkpoint:?}"),
            ModelKind::Scalar {
                checkpoint, per, ..
            } => format!("scalar {checkpoint:?}, per {}", per.name()),
            ModelKind::Frozen(of) => format!("frozen {}", graph.model(*of).name),
        };
        if m.init == Init::Random {
            text += ", random weights";
        }
        if let Some(l) = &m.lora {
            text += &format!(", lora rank {} alpha {}", l.rank, l.alpha);
        }
        if let Some(o) = &m.optim {
            text += &format!(", adamw, lr {}", formula(graph, o.lr));
        }
        format!("{:width$}  {text}", m.name)
    };
    graph.models.iter().map(line).collect()
}

fn states(graph: &Graph) -> Vec<String> {
    let line = |s: &crate::graph::State| format!("{}: {}", s.name, s.elem.name());
    graph.states.iter().map(line).collect()
}

fn axes(graph: &Graph) -> Vec<String> {
    let name = |n: &str| if n.is_empty() { "rows" } else { n }.to_string();
    let width = width(graph.axes.iter().map(|a| match a.name.as_str() {
        "" => "rows",
        name => name,
    }));
    let line = |a: &crate::graph::Axis| {
        let size = match a.size {
            AxisSize::Fixed(n) => n.to_string(),
            AxisSize::Rows(d) => format!("every row of {}", graph.data[d.0 as usize].name),
            AxisSize::Ragged(n) => {
                let over: Vec<String> = a
                    .parents
                    .iter()
                    .map(|p| name(&graph.axis(*p).name))
                    .collect();
                format!("..{n} over [{}]", over.join(", "))
            }
            AxisSize::Subset(limit) => {
                let of = a.of.map_or("rows".into(), |of| name(&graph.axis(of).name));
                match limit {
                    Some(n) => format!("rows of {of}, at most {n}"),
                    None => format!("rows of {of}"),
                }
            }
        };
        format!("{:width$}  {size}", name(&a.name))
    };
    graph.axes.iter().map(line).collect()
}

fn scope(out: &mut String, graph: &Graph, title: &str, scope: Scope, metrics: &[Metric]) {
    push(out, format_args!("\n{title}"));
    for id in graph.order(scope) {
        node(out, graph, id);
    }
    for m in metrics {
        push(
            out,
            format_args!("  log {}: {}", m.name, formula(graph, m.expr)),
        );
    }
}

fn node(out: &mut String, graph: &Graph, id: NodeId) {
    let node = graph.dag.node(id);
    push(
        out,
        format_args!("  {}: {}", node.name, describe(graph, id)),
    );
    let mut inputs: Vec<String> = graph
        .dag
        .inputs(id)
        .map(|(source, e)| {
            let from = &graph.dag.node(source).name;
            let what = label(graph, source, e);
            match e {
                // What makes a version waits for whoever reads the one before.
                Edge::Version(m) if !makes(graph, source, *m) => format!("{what} after {from}"),
                _ if what.starts_with(from.as_str()) => what,
                _ => format!("{what} from {from}"),
            }
        })
        .collect();
    inputs.sort();
    if !inputs.is_empty() {
        push(out, format_args!("    reads {}", inputs.join("; ")));
    }
    for line in given(graph, id) {
        push(out, format_args!("    {line}"));
    }
    let typed = |v: &crate::graph::ValueId| {
        let v = graph.value(*v);
        format!("{}: {}", v.name, graph.show_type(&v.ty))
    };
    let made: Vec<String> = match &node.kind {
        NodeKind::Load { columns, .. } => columns.iter().map(|(_, v)| typed(v)).collect(),
        NodeKind::Generate { members, .. }
        | NodeKind::Answer { members, .. }
        | NodeKind::Select { members, .. } => members.iter().map(|(_, v)| typed(v)).collect(),
        NodeKind::Forward(f) => f.outputs.iter().map(|(_, v)| typed(v)).collect(),
        NodeKind::Reward { value, .. } => vec![typed(value)],
        NodeKind::Map { expr, value } => {
            push(
                out,
                format_args!("    {} = {}", typed(value), formula(graph, *expr)),
            );
            vec![]
        }
        NodeKind::Next { state, expr } => {
            let state = &graph.states[state.0 as usize].name;
            push(
                out,
                format_args!("    next {state} = {}", formula(graph, *expr)),
            );
            vec![]
        }
        NodeKind::Blend {
            model,
            toward,
            rate,
        } => {
            let (m, p) = (&graph.model(*model).name, &graph.model(*toward).name);
            let rate = formula(graph, *rate);
            push(out, format_args!("    next {m} = lerp({m}, {p}, {rate})"));
            vec![]
        }
        NodeKind::Train(t) => {
            for f in &t.forwards {
                for (output, v) in &f.outputs {
                    let verb = output.name();
                    let (m, r) = (&graph.model(f.model).name, &graph.rollout(f.rollout).name);
                    push(
                        out,
                        format_args!("    live {} = {verb}({m}, {r})", typed(v)),
                    );
                }
            }
            push(out, format_args!("    minimize {}", formula(graph, t.loss)));
            for m in &t.metrics {
                push(
                    out,
                    format_args!("    log {}: {}", m.name, formula(graph, m.expr)),
                );
            }
            vec![]
        }
    };
    if !made.is_empty() {
        push(out, format_args!("    gives {}", made.join("; ")));
    }
}

/// The arguments of a call that are more than names.
fn given(graph: &Graph, id: NodeId) -> Vec<String> {
    let mut lines = vec![];
    match &graph.dag.node(id).kind {
        NodeKind::Generate {
            prompt: from, chat, ..
        } if !is_name(graph, *from) => {
            lines.push(format!("prompt {}", prompt(graph, *from, *chat)));
        }
        NodeKind::Answer {
            prompt: from,
            chat,
            text,
            ..
        } => {
            if !is_name(graph, *from) {
                lines.push(format!("prompt {}", prompt(graph, *from, *chat)));
            }
            if !is_name(graph, *text) {
                lines.push(format!("text {}", formula(graph, *text)));
            }
        }
        NodeKind::Reward { args, .. } => {
            let args: Vec<String> = args.iter().map(|a| formula(graph, *a)).collect();
            lines.push(format!("of {}", args.join(", ")));
        }
        _ => {}
    }
    lines
}

fn width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|n| n.chars().count()).max().unwrap_or(0)
}
