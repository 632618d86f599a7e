//! How much memory a run needs on one device, before anything is loaded.
//!
//! Static: weights, gradients, master weights and Adam's moments of everything resident. Dynamic: the
//! largest call. Estimates, meant to be slightly high.

use rlhf_lang::graph::{AxisSize, Dtype, Graph, ModelKind, NodeKind};

use crate::shape::ModelShape;

/// Bytes by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Parameters of all models.
    pub weights: u64,
    /// Gradients of trained models.
    pub gradients: u64,
    /// Master weights and moments of trained models.
    pub optimizer: u64,
    /// The largest call's activations, caches and logits.
    pub activations: u64,
}

impl Memory {
    /// Everything.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
}

/// Longest prompt that the estimate allows for; the data's real lengths are known only later.
pub const ASSUMED_PROMPT: u64 = 128;
/// Rows of a head chunk: logits are never held for more tokens at once.
pub const HEAD_CHUNK: u64 = 512;

/// Memory of a run of `graph` with `shapes[model]`, parameters in `dtype` where a model does not say,
/// and passes of at most `micro` tokens.
pub fn estimate(graph: &Graph, shapes: &[ModelShape], dtype: Dtype, micro: u64) -> Memory {
    let mut memory = Memory::default();
    for (model, shape) in graph.models.iter().zip(shapes) {
        let bytes = match model.dtype.unwrap_or(dtype) {
            Dtype::F32 => 4,
            Dtype::Bf16 => 2,
        };
        let parameters = shape.parameters();
        memory.weights += parameters * bytes;
        if model.optim.is_some() && matches!(model.kind, ModelKind::Causal { .. }) {
            memory.gradients += parameters * bytes;
            // Two moments in f32, and master weights where the parameters are not f32 themselves.
            memory.optimizer += parameters * if bytes == 4 { 8 } else { 12 };
        }
    }
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        let need = match &node.kind {
            NodeKind::Generate { model, rollout, .. } => {
                let shape = &shapes[model.0 as usize];
                let rollout = graph.rollout(*rollout);
                let size = |axis| match graph.axis(axis).size {
                    AxisSize::Fixed(n) | AxisSize::Ragged(n) => n as u64,
                    AxisSize::Rows(_) => DECODING_ROWS,
                };
                let prompts = size(rollout.rows).min(DECODING_ROWS);
                let responses = prompts * rollout.group.map_or(1, size);
                let cached = prompts * ASSUMED_PROMPT + responses * size(rollout.tokens);
                cached * 2 * shape.layers * shape.kv_heads * shape.head_dim * 4
                    + responses * shape.vocab * 8
            }
            NodeKind::Forward(forward) => pass(&shapes[forward.model.0 as usize], micro, false),
            NodeKind::Train(train) => pass(&shapes[train.model.0 as usize], micro, true),
            _ => 0,
        };
        memory.activations = memory.activations.max(need);
    }
    memory
}

/// Tokens of one packed pass of training or scoring.
pub const MICRO_TOKENS: usize = 2048;
/// Rows decoded at once when a data set is evaluated whole.
const DECODING_ROWS: u64 = 256;

/// Activations of one packed pass over `tokens`.
fn pass(shape: &ModelShape, tokens: u64, backward: bool) -> u64 {
    let queries = shape.heads * shape.head_dim;
    // Saved for backward in a layer: two norms' inputs and outputs, q/k/v and their rotations,
    // attention's output, gate, up, their product.
    let layer = 6 * shape.hidden
        + 4 * queries
        + 4 * shape.kv_heads * shape.head_dim
        + 4 * shape.intermediate;
    let layers = if backward { shape.layers } else { 2 };
    let chunk = HEAD_CHUNK.min(tokens) * shape.vocab * 4 * if backward { 3 } else { 2 };
    tokens * layer * layers * 4 + chunk
}
