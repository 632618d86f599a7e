//! The models and the data of a run: where they are, and whether they fit.

use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{AxisSize, Dtype, Graph, Init, Model, ModelKind, NodeKind};
use rlhf_lang::source::Span;
use rlhf_plan::memory::{self, MICRO_TOKENS, Memory};
use rlhf_plan::shape::ModelShape;

use crate::hub::{self, Parts};
use crate::machine;
use crate::outcome::{Outcome, Stop};
use crate::terminal::number;

/// The directory of every model's checkpoint, in the graph's order: of its base where it is an adapter.
pub fn checkpoints(graph: &Graph, folder: &Path, say: &dyn Fn(&str)) -> Outcome<Vec<PathBuf>> {
    let mut directories: Vec<PathBuf> = vec![];
    for model in &graph.models {
        let parts = match model.init {
            Init::Checkpoint => Parts::All,
            Init::Random => Parts::Shape,
        };
        let directory = match &model.kind {
            ModelKind::Causal { checkpoint, span }
            | ModelKind::Scalar {
                checkpoint, span, ..
            } => hub::resolve(checkpoint, *span, folder, parts, say).map_err(Stop::Failed)?,
            // A frozen model is declared after its origin.
            ModelKind::Frozen(origin) => directories[origin.0 as usize].clone(),
        };
        directories.push(directory);
    }
    Ok(directories)
}

/// The directory of the adapter that stands on a model's checkpoint, in the graph's order.
pub fn adapters(graph: &Graph, folder: &Path) -> Vec<Option<PathBuf>> {
    let adapter = |model: &Model| hub::adapter(model.kind.checkpoint()?, folder);
    graph.models.iter().map(adapter).collect()
}

/// The data sets of a run: those of the hub are found or fetched, and their paths are directories from
/// then on.
pub fn datasets(graph: &mut Graph, folder: &Path, say: &dyn Fn(&str)) -> Outcome<()> {
    for data in graph.data.iter_mut().filter(|d| d.format == "hf") {
        let directory = hub::dataset(data, folder, say).map_err(Stop::Failed)?;
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        data.path = directory.display().to_string();
    }
    Ok(())
}

/// The plan in one line, after making sure that it fits in memory.
pub fn plan(
    graph: &Graph,
    checkpoints: &[PathBuf],
    dtype: Dtype,
    threads: usize,
) -> Outcome<String> {
    let shapes: Vec<ModelShape> = graph
        .models
        .iter()
        .zip(checkpoints)
        .map(|(model, dir)| shape(dir, model.span))
        .collect::<Outcome<_>>()?;
    let need = memory::estimate(graph, &shapes, dtype, MICRO_TOKENS as u64);
    let available = machine::available_memory();
    if let Some(available) = available.filter(|a| need.total() > *a) {
        return Err(too_large(graph, &need, available).into());
    }
    let threads = number::count(threads, "thread");
    let mut line = format!("plan  one rank on cpu, {threads}");
    line += &format!(" · {}", models(graph, &shapes, dtype));
    if let Some(rollout) = responses(graph) {
        line += &format!(" · {rollout}");
    }
    line += &format!(" · needs about {}", number::bytes(need.total()));
    if let Some(available) = available {
        line += &format!(" of {}", number::bytes(available));
    }
    Ok(line)
}

fn shape(dir: &Path, span: Span) -> Outcome<ModelShape> {
    let path = dir.join("config.json");
    let wrong = |what: String| {
        let message = format!("{}: {what}", path.display());
        let d = Diagnostic::error("", span, message);
        Stop::from(d.help("the config.json of a Llama-family checkpoint is expected"))
    };
    let text = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
    let config = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    ModelShape::from_config(&config).map_err(wrong)
}

/// P201, before anything is loaded.
fn too_large(graph: &Graph, need: &Memory, available: u64) -> Diagnostic {
    let message = format!(
        "this run needs about {} and {} is available",
        number::bytes(need.total()),
        number::bytes(available)
    );
    let span = graph.models.first().map_or(Span::default(), |m| m.span);
    let parts = [
        ("weights", need.weights),
        ("gradients", need.gradients),
        ("master weights and Adam", need.optimizer),
        ("activations", need.activations),
    ]
    .map(|(what, n)| format!("{what} {}", number::bytes(n)));
    Diagnostic::error("P201", span, message).help(format!(
        "{}; less is needed with `dtype: bf16`, a smaller checkpoint, or fewer or shorter responses \
         at a time",
        parts.join(" · ")
    ))
}

/// `policy 135M f32 + anchor (frozen)`
fn models(graph: &Graph, shapes: &[ModelShape], dtype: Dtype) -> String {
    let parts = graph.models.iter().zip(shapes);
    let parts = parts.map(|(model, shape)| match model.kind {
        ModelKind::Frozen(_) => format!("{} (frozen)", model.name),
        ModelKind::Causal { .. } | ModelKind::Scalar { .. } => {
            let dtype = match model.dtype.unwrap_or(dtype) {
                Dtype::F32 => "f32",
                Dtype::Bf16 => "bf16",
            };
            let size = number::parameters(memory::parameters(&model.kind, shape));
            format!("{} {size} {dtype}", model.name)
        }
    });
    parts.collect::<Vec<_>>().join(" + ")
}

/// `64 responses ≤ 24 tokens an iteration`, of the step's first rollout.
fn responses(graph: &Graph) -> Option<String> {
    let nodes = graph.order(rlhf_lang::graph::Scope::Step);
    let rollout = nodes
        .into_iter()
        .find_map(|id| match &graph.dag.node(id).kind {
            NodeKind::Generate { rollout, .. } | NodeKind::Answer { rollout, .. } => Some(*rollout),
            _ => None,
        })?;
    let rollout = graph.rollout(rollout);
    let fixed = |axis| match graph.axis(axis).size {
        AxisSize::Fixed(n) => Some(n),
        _ => None,
    };
    let group = rollout.group.map_or(Some(1), fixed)?;
    let rows = fixed(rollout.rows)?.saturating_mul(group);
    let AxisSize::Ragged(longest) = graph.axis(rollout.tokens).size else {
        return None;
    };
    let responses = number::count(rows, "response");
    let tokens = number::count(longest, "token");
    Some(format!("{responses} ≤ {tokens} an iteration"))
}
