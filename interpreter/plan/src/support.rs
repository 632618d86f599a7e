//! What the language has and a rank does not run yet: said before anything is loaded.

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::graph::{AxisSize, Graph, Init, ModelKind, NodeKind, Op, Selection};
use rlhf_lang::source::Span;

/// The same as warnings, for a check: the program means what it says, and a run would refuse it.
pub fn not_run_yet(graph: &Graph) -> Vec<Diagnostic> {
    let mut found = unsupported(graph);
    found.iter_mut().for_each(|d| d.level = Level::Warning);
    found
}

/// The first use of everything that this interpreter cannot run; empty for a program that it can.
pub fn unsupported(graph: &Graph) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = vec![];
    let mut add = |what: &str, span: Span, works: &str| {
        let message = format!("`{what}` is checked and not run yet");
        if !found.iter().any(|d| d.message == message) {
            found.push(Diagnostic::error("E090", span, message).help(works));
        }
    };
    if let Some(place) = &graph.place {
        add(
            "place",
            place.span,
            "a program without a plan runs on one device",
        );
    }
    for model in &graph.models {
        let models = "`causal` and `frozen` models run";
        if matches!(model.kind, ModelKind::Scalar { .. }) {
            add("scalar", model.span, models);
        }
        if model.init == Init::Random {
            add("init: random", model.span, "checkpoints are read");
        }
        if model.lora.is_some() {
            add("lora", model.span, "full weights are trained");
        }
    }
    for state in &graph.states {
        add("state", state.span, "params and `iteration` run");
    }
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        match &node.kind {
            NodeKind::Select { by, .. } => add(
                match by {
                    Selection::Pick { .. } => "pick of a rollout",
                    Selection::Top { .. } => "top of a rollout",
                },
                node.span,
                "`pick` of a value runs; a weight that is 0 drops a response from a loss",
            ),
            NodeKind::Blend { .. } => add("next of a model", node.span, "frozen models run"),
            NodeKind::Generate { rollout, .. } | NodeKind::Answer { rollout, .. } => {
                let rollout = graph.rollout(*rollout);
                let part = matches!(graph.axis(rollout.rows).size, AxisSize::Subset(_));
                if rollout.over.is_some() || part {
                    add(
                        "a prompt for each response",
                        node.span,
                        "prompts over the rows of the step run",
                    );
                }
            }
            _ => {}
        }
    }
    for e in &graph.exprs {
        match &e.op {
            Op::Restrict(_) => add("rows", e.span, "every row of the step is used"),
            Op::Top { .. } => add("top", e.span, "`pick` with `argmax` selects one"),
            Op::Pick(_) if e.ty.axes.iter().any(|a| graph.axis(*a).of.is_some()) => add(
                "pick of tokens",
                e.span,
                "`pick` of one number a response runs",
            ),
            _ => {}
        }
    }
    found
}
