//! How much memory a run needs on one device, before anything is loaded.
//!
//! Static: weights, gradients, master weights and Adam's moments of everything resident. Dynamic: the
//! largest call. Estimates, meant to be slightly high.

use rlhf_lang::graph::{AxisSize, Dtype, Graph, Lora, Model, ModelId, ModelKind, NodeKind};

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
        [self.gradients, self.optimizer, self.activations]
            .into_iter()
            .fold(self.weights, u64::saturating_add)
    }
}

/// Longest prompt that the estimate allows for; the data's real lengths are known only later.
pub const ASSUMED_PROMPT: u64 = 128;
/// Logits of a head chunk, lines times vocabulary: no more are held at once, but for one line.
pub const HEAD_LOGITS: u64 = 1 << 24;
/// Tokens of one packed pass of training.
pub const MICRO_TOKENS: usize = 2048;
/// Tokens of one packed pass of scoring.
pub const SCORING_TOKENS: u64 = 4096;
/// Responses decoded at once; a group is never cut.
pub const DECODING_ROWS: u64 = 256;

/// Bytes of a number of the computation: f32 whatever the parameters are.
const F32: u64 = 4;

/// Memory of a run of `graph` with `shapes[model]`, parameters in `dtype` where a model does not say,
/// and training passes of at most `micro` tokens. A sum that no machine has saturates.
pub fn estimate(graph: &Graph, shapes: &[ModelShape], dtype: Dtype, micro: u64) -> Memory {
    let mut memory = Memory::default();
    for (index, shape) in shapes.iter().enumerate().take(graph.models.len()) {
        let held = model(graph, ModelId(index as u32), shape, dtype);
        memory.weights = memory.weights.saturating_add(held.weights);
        memory.gradients = memory.gradients.saturating_add(held.gradients);
        memory.optimizer = memory.optimizer.saturating_add(held.optimizer);
    }
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        let need = match &node.kind {
            NodeKind::Generate { model, rollout, .. } => {
                let rollout = graph.rollout(*rollout);
                let size = |axis| match graph.axis(axis).size {
                    AxisSize::Fixed(n) | AxisSize::Ragged(n) => n as u64,
                    AxisSize::Subset(Some(n)) => n as u64,
                    AxisSize::Rows(_) | AxisSize::Subset(None) => DECODING_ROWS,
                };
                let beside = rollout.over.map_or(1, size);
                let prompts = size(rollout.rows).saturating_mul(beside);
                let group = rollout.group.map_or(1, size);
                decoding(
                    &shapes[model.0 as usize],
                    prompts,
                    group,
                    size(rollout.tokens),
                )
            }
            NodeKind::Forward(forward) => {
                let tokens = micro.max(SCORING_TOKENS);
                call(graph, forward.model, shapes, tokens, Pass::Scoring)
            }
            NodeKind::Train(train) => call(graph, train.model, shapes, micro, Pass::Training),
            _ => 0,
        };
        memory.activations = memory.activations.max(need);
    }
    memory
}

/// Parameters of a model of this kind on a decoder of this shape. A scalar head is one row; biases are
/// left out.
pub fn parameters(kind: &ModelKind, shape: &ModelShape) -> u64 {
    let head = match shape.tied {
        true => 0,
        false => shape.vocab.saturating_mul(shape.hidden),
    };
    match kind {
        ModelKind::Scalar { .. } => {
            (shape.parameters().saturating_sub(head)).saturating_add(shape.hidden)
        }
        ModelKind::Causal { .. } | ModelKind::Frozen(_) => shape.parameters(),
    }
}

/// What one model holds from beginning to end.
fn model(graph: &Graph, id: ModelId, shape: &ModelShape, default: Dtype) -> Memory {
    let declared = graph.model(id);
    let count = parameters(graph.head(id), shape);
    let dtype = |m: &Model| m.dtype.unwrap_or(default);
    if let ModelKind::Frozen(of) = declared.kind {
        let origin = graph.model(of);
        let own = declared.dtype.unwrap_or_else(|| dtype(origin));
        // The base of an adapted model serves its frozen copy, unless `next` moves that.
        let moved = graph.dag.order().any(
            |n| matches!(graph.dag.node(n).kind, NodeKind::Blend { model, .. } if model == id),
        );
        return match origin.lora.is_some() && own == dtype(origin) && !moved {
            true => Memory::default(),
            false if moved => resident(count, own, Trained::Followed),
            false => resident(count, own, Trained::Not),
        };
    }
    let trained = match (&declared.optim, &declared.lora) {
        (None, _) => Trained::Not,
        (Some(_), None) => Trained::Whole,
        (Some(_), Some(lora)) => Trained::Adapters(adapters(shape, lora)),
    };
    resident(count, dtype(declared), trained)
}

/// Numbers in the adapters of a model: rank · (in + out) for each adapted layer. A target by a name of
/// another family's counts as every layer.
fn adapters(shape: &ModelShape, lora: &Lora) -> u64 {
    let (queries, keys) = (
        shape.heads.saturating_mul(shape.head_dim),
        shape.kv_heads.saturating_mul(shape.head_dim),
    );
    let (hidden, wide) = (shape.hidden, shape.intermediate);
    let layers = [
        ("q_proj", hidden, queries),
        ("k_proj", hidden, keys),
        ("v_proj", hidden, keys),
        ("o_proj", queries, hidden),
        ("gate_proj", hidden, wide),
        ("up_proj", hidden, wide),
        ("down_proj", wide, hidden),
    ];
    let known = |target: &String| layers.iter().any(|(name, ..)| target.ends_with(name));
    let all = lora.targets.is_empty() || !lora.targets.iter().all(known);
    let rows = layers
        .iter()
        .filter(|(name, ..)| all || lora.targets.iter().any(|t| t.ends_with(name)))
        .fold(0u64, |sum, (_, input, output)| {
            sum.saturating_add(*input).saturating_add(*output)
        });
    product(&[rows, lora.rank as u64, shape.layers])
}

/// What changes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trained {
    Not,
    /// All weights, by `next` rather than by an optimizer.
    Followed,
    Whole,
    /// So many numbers of adapters.
    Adapters(u64),
}

/// What a pass keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// One layer's activations at a time.
    Scoring,
    /// Every layer's, for the way back.
    Training,
}

/// Weights of `parameters` numbers, and what training them needs.
fn resident(parameters: u64, dtype: Dtype, trained: Trained) -> Memory {
    let (weight, master) = match dtype {
        Dtype::F32 => (F32, 0),
        // The optimizer works on a copy in f32, and so does an average.
        Dtype::Bf16 => (2, F32),
    };
    let moments = 2 * F32;
    let weights = parameters.saturating_mul(weight);
    let gradient = parameters.saturating_mul(F32);
    let (weights, gradients, optimizer) = match trained {
        Trained::Not => (weights, 0, 0),
        Trained::Followed => (weights, 0, parameters.saturating_mul(master)),
        Trained::Whole => (
            weights,
            gradient,
            parameters.saturating_mul(moments + master),
        ),
        // Base and merged weights; the adapters with their gradient, in f32.
        Trained::Adapters(numbers) => (
            weights.saturating_mul(2),
            gradient.saturating_add(numbers.saturating_mul(F32)),
            numbers.saturating_mul(moments + F32),
        ),
    };
    Memory {
        weights,
        gradients,
        optimizer,
        activations: 0,
    }
}

/// Responses decoded at once, and the prompts they continue.
fn decoded(prompts: u64, group: u64) -> (u64, u64) {
    let group = group.max(1);
    let whole = DECODING_ROWS.checked_next_multiple_of(group);
    let responses = prompts.saturating_mul(group).min(whole.unwrap_or(u64::MAX));
    (responses, responses.div_ceil(group))
}

/// Cached keys and values, and one token's logits, of the responses decoded at once.
fn decoding(shape: &ModelShape, prompts: u64, group: u64, longest: u64) -> u64 {
    let (responses, prompts) = decoded(prompts, group);
    let cached = product(&[prompts, ASSUMED_PROMPT]).saturating_add(product(&[responses, longest]));
    product(&[cached, 2, shape.layers, shape.kv_heads, shape.head_dim, F32])
        .saturating_add(product(&[responses, shape.vocab, 2, F32]))
}

/// Activations of one packed pass of a model, whose head may give no logits.
fn call(graph: &Graph, model: ModelId, shapes: &[ModelShape], tokens: u64, kind: Pass) -> u64 {
    let shape = &shapes[model.0 as usize];
    match graph.head(model) {
        ModelKind::Scalar { .. } => body(shape, tokens, kind),
        _ => pass(shape, tokens, kind),
    }
}

/// Activations of one packed pass over `tokens`.
fn pass(shape: &ModelShape, tokens: u64, kind: Pass) -> u64 {
    let copies = match kind {
        Pass::Scoring => 3,
        Pass::Training => 5,
    };
    let lines = (HEAD_LOGITS / shape.vocab.max(1)).max(1).min(tokens);
    body(shape, tokens, kind).saturating_add(product(&[lines, shape.vocab, F32, copies]))
}

/// Activations of its layers.
fn body(shape: &ModelShape, tokens: u64, kind: Pass) -> u64 {
    let layers = match kind {
        Pass::Scoring => 2,
        Pass::Training => shape.layers,
    };
    // Saved for backward in a layer: two norms' inputs and outputs, q/k/v and their rotations,
    // attention's output, gate, up, their product.
    let layer = [
        product(&[6, shape.hidden]),
        product(&[4, shape.heads, shape.head_dim]),
        product(&[4, shape.kv_heads, shape.head_dim]),
        product(&[4, shape.intermediate]),
    ]
    .into_iter()
    .fold(0, u64::saturating_add);
    product(&[tokens, layer, layers, F32])
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().copied().fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::graph::Per;

    const SMALL: ModelShape = ModelShape {
        layers: 3,
        hidden: 8,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        intermediate: 16,
        mlps: 3 * 3 * 8 * 16,
        vectors: 2 * 8,
        last_norm: 8,
        places: 0,
        vocab: 100,
        positions: 64,
        tied: true,
    };

    #[test]
    fn gradients_and_moments_are_f32_whatever_the_parameters_are() {
        let f32 = resident(10, Dtype::F32, Trained::Whole);
        assert_eq!((f32.weights, f32.gradients, f32.optimizer), (40, 40, 80));
        let bf16 = resident(10, Dtype::Bf16, Trained::Whole);
        assert_eq!(
            (bf16.weights, bf16.gradients, bf16.optimizer),
            (20, 40, 120)
        );
        let frozen = resident(10, Dtype::Bf16, Trained::Not);
        assert_eq!(frozen.total(), 20);
        let followed = resident(10, Dtype::Bf16, Trained::Followed);
        assert_eq!((followed.weights, followed.optimizer), (20, 40));
        assert_eq!(resident(10, Dtype::F32, Trained::Followed).total(), 40);
    }

    #[test]
    fn an_adapted_model_has_moments_of_its_adapters_alone() {
        let lora = |targets: &[&str]| Lora {
            rank: 2,
            alpha: 4.0,
            targets: targets.iter().map(|t| t.to_string()).collect(),
        };
        // Widths 8 → 8, 8 → 4 twice, 8 → 8, 8 → 16 twice, 16 → 8, in each of three layers.
        let all = 3 * 2 * (16 + 12 + 12 + 16 + 24 + 24 + 24);
        assert_eq!(adapters(&SMALL, &lora(&[])), all);
        let some = 3 * 2 * (16 + 12);
        assert_eq!(
            adapters(&SMALL, &lora(&["q_proj", "self_attn.v_proj"])),
            some
        );
        assert_eq!(adapters(&SMALL, &lora(&["c_attn"])), all);
        let held = resident(1000, Dtype::Bf16, Trained::Adapters(10));
        assert_eq!(
            (held.weights, held.gradients, held.optimizer),
            (4000, 4040, 120)
        );
    }

    #[test]
    fn a_scalar_head_is_one_row() {
        let kind = ModelKind::Scalar {
            checkpoint: String::new(),
            per: Per::Token,
            span: Default::default(),
        };
        let untied = ModelShape {
            tied: false,
            ..SMALL
        };
        let body = SMALL.parameters() - 100 * 8;
        assert_eq!(parameters(&kind, &SMALL), body + 100 * 8 + 8);
        assert_eq!(parameters(&kind, &untied), body + 100 * 8 + 8);
    }

    #[test]
    fn whole_groups_are_decoded_up_to_the_limit() {
        assert_eq!(decoded(8, 8), (64, 8));
        assert_eq!(decoded(1000, 1), (256, 256));
        assert_eq!(decoded(1000, 100), (300, 3));
        assert_eq!(decoded(2, 300), (300, 1));
        assert_eq!(decoded(2, u64::MAX), (u64::MAX, 1));
    }

    #[test]
    fn what_no_machine_has_saturates() {
        assert_eq!(decoding(&SMALL, 8, 1 << 40, u64::MAX), u64::MAX);
        let huge = ModelShape {
            vocab: u64::MAX,
            layers: u64::MAX,
            ..SMALL
        };
        assert_eq!(huge.parameters(), u64::MAX);
        assert_eq!(pass(&huge, 2048, Pass::Training), u64::MAX);
        let memory = resident(huge.parameters(), Dtype::F32, Trained::Whole);
        assert_eq!(memory.total(), u64::MAX);
    }

    #[test]
    fn a_pass_holds_its_layers_and_one_chunk_of_logits() {
        let layer = 6 * 8 + 4 * 8 + 4 * 4 + 4 * 16;
        let scoring = 10 * layer * 2 * 4 + 10 * 100 * 4 * 3;
        assert_eq!(pass(&SMALL, 10, Pass::Scoring), scoring);
        let training = 10 * layer * 3 * 4 + 10 * 100 * 4 * 5;
        assert_eq!(pass(&SMALL, 10, Pass::Training), training);
        let wide = ModelShape {
            vocab: HEAD_LOGITS,
            ..SMALL
        };
        let logits = pass(&wide, 10, Pass::Scoring) - 10 * layer * 2 * 4;
        assert_eq!(logits, HEAD_LOGITS * 4 * 3, "one line at a time");
    }
}
