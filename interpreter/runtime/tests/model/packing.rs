//! Packing, micro-batches and chunks are ways of computing: they move no number.

use std::sync::Arc;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{LivePass, Model};
use tch::{Kind, Tensor};

use super::{Outcome, TEMPERATURE, apart, fixture, relative};

/// Token ids without a pattern.
fn tokens(seed: u32, len: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % 48
    };
    (0..len).map(|_| next()).collect()
}

fn rows(prompts: &[usize], group: usize, responses: &[usize]) -> Rows {
    let seeded = |(i, &len): (usize, &usize)| tokens(i as u32, len);
    Rows {
        prompts: prompts
            .iter()
            .enumerate()
            .map(|p| Arc::from(seeded(p)))
            .collect(),
        group,
        responses: (responses.iter().enumerate())
            .map(|(i, &len)| tokens(100 + i as u32, len))
            .collect(),
    }
}

/// Log-probabilities by running each sequence alone and whole.
fn plain(model: &Model, rows: &Rows) -> Tensor {
    let mut parts = vec![Tensor::empty([0], (Kind::Float, tch::Device::Cpu))];
    for (i, response) in rows
        .responses
        .iter()
        .enumerate()
        .filter(|(_, r)| !r.is_empty())
    {
        let prompt = &rows.prompts[i / rows.group];
        let ids = [prompt, response.as_slice()].concat();
        let logits = model.forward_logits(&ids) / TEMPERATURE;
        let logp = logits.log_softmax(-1, Kind::Float);
        let from = logp.narrow(0, prompt.len() as i64 - 1, response.len() as i64);
        let targets: Vec<i64> = response.iter().map(|&t| i64::from(t)).collect();
        let chosen = from.gather(1, &Tensor::from_slice(&targets).unsqueeze(1), false);
        parts.push(chosen.squeeze_dim(1));
    }
    Tensor::cat(&parts, 0)
}

#[test]
fn packed_rows_score_as_plain_sequences() -> Outcome {
    let cases = [
        rows(&[5, 1, 9], 4, &[3, 0, 1, 7, 2, 2, 2, 2, 0, 0, 0, 0]),
        rows(&[3], 3, &[40, 38, 5]),
        // A prompt and a response longer than one block of queries.
        rows(&[300, 2], 2, &[20, 3, 280, 4]),
    ];
    for name in ["llama-tied-gqa", "llama3-scaled-sharded"] {
        let f = fixture(name)?;
        for rows in &cases {
            let expected = plain(&f.model, rows);
            let scored = f.model.score(rows, TEMPERATURE, false).logp;
            assert!(
                apart(&scored, &expected) < 2e-4,
                "{}",
                apart(&scored, &expected)
            );
            let live = LivePass::forward(&f.model, rows, TEMPERATURE, false);
            assert!(apart(&live.logp(), &expected) < 2e-4);
        }
    }
    Ok(())
}

#[test]
fn rows_without_a_token_score_nothing_and_have_no_gradient() -> Outcome {
    let mut f = fixture("qwen2")?;
    let rows = rows(&[4, 2], 2, &[0, 0, 0, 0]);
    assert_eq!(f.model.score(&rows, 1.0, true).logp.size(), [0]);
    let live = LivePass::forward(&f.model, &rows, 1.0, true);
    assert_eq!(live.logp().size(), [0]);
    assert_eq!(live.entropy().ok_or("asked for")?.size(), [0]);
    let none = Tensor::empty([0], (Kind::Float, tch::Device::Cpu));
    live.backward(&mut f.model, &none, Some(&none));
    assert!(f.model.gradient().is_none());
    Ok(())
}

#[test]
fn micro_batches_gather_the_whole_batchs_gradient() -> Outcome {
    let lengths: Vec<usize> = (0..30).map(|i| [5, 0, 12, 3, 1, 30][i % 6]).collect();
    let rows = rows(&[4, 1, 9, 3, 6, 2, 8, 5, 7, 3], 3, &lengths);
    let weights = Tensor::randn([rows.tokens() as i64], tch::kind::FLOAT_CPU);
    let mut gradients = Vec::new();
    for cuts in [1, 2, 5] {
        let mut f = fixture("llama-untied-biases")?;
        let offsets = rows.offsets();
        let size = rows.prompts.len() / cuts;
        for start in (0..rows.prompts.len()).step_by(size) {
            let part = rows.select_prompts(start..start + size);
            let from = offsets[start * rows.group] as i64;
            let part_weights = weights.narrow(0, from, part.tokens() as i64);
            LivePass::forward(&f.model, &part, TEMPERATURE, false).backward(
                &mut f.model,
                &part_weights,
                None,
            );
        }
        gradients.push(f.model.gradient().ok_or("there is a gradient")?.copy());
    }
    for other in &gradients[1..] {
        let off = relative(other, &gradients[0]);
        assert!(off < 1e-5, "{off}");
    }
    Ok(())
}

#[test]
fn the_gradient_is_the_slope_of_the_scores() -> Outcome {
    // Long enough that probabilities are computed again in the backward pass.
    let rows = rows(&[260], 2, &[290, 6]);
    let mut f = fixture("llama-tied-gqa")?;
    let d_logp = Tensor::randn([rows.tokens() as i64], tch::kind::FLOAT_CPU) / 100.0;
    LivePass::forward(&f.model, &rows, 1.0, false).backward(&mut f.model, &d_logp, None);
    let gradient = f.model.gradient().ok_or("there is a gradient")?.copy();
    let direction = &gradient / gradient.norm();
    let loss = |model: &Model| {
        let logp = model.score(&rows, 1.0, false).logp.to_kind(Kind::Double);
        (logp * &d_logp).sum(Kind::Double).double_value(&[])
    };
    let step = 1e-3;
    let mut flat = f.model.flat().shallow_clone();
    flat += &direction * step;
    let above = loss(&f.model);
    flat -= &direction * (2.0 * step);
    let below = loss(&f.model);
    let slope = (above - below) / (2.0 * step);
    let expected = gradient.norm().double_value(&[]);
    assert!((slope / expected - 1.0).abs() < 1e-2, "{slope} {expected}");
    Ok(())
}
