//! What is sampled, its log-probabilities, and what they may depend on.

use super::*;
use rlhf_runtime::batch::Rows;
use tch::Kind;

fn flat(x: &tch::Tensor) -> Result<Vec<f32>, tch::TchError> {
    x.to_kind(Kind::Float).reshape([-1]).try_into()
}

#[test]
fn frequencies_of_20000_samples_match_the_softmax() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let prompt = [5, 9, 31];
    let sampling = Sampling {
        temperature: 0.8,
        max_tokens: 1,
        ..Sampling::default()
    };
    let draws = 20_000;
    let generated = run(&model, &prompts(&[&prompt]), draws, &sampling)?;
    let logits = model.forward_logits(&prompt).get(2) / 0.8;
    let expected = flat(&logits.softmax(-1, Kind::Float))?;
    let mut counts = vec![0f64; expected.len()];
    generated
        .responses
        .iter()
        .for_each(|r| counts[r[0] as usize] += 1.0);
    for (token, (count, &p)) in counts.iter().zip(&expected).enumerate() {
        let (n, p) = (draws as f64, f64::from(p));
        let bound = 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0;
        assert!(
            (count - n * p).abs() < bound,
            "token {token}: {count}, expected {}",
            n * p
        );
    }
    Ok(())
}

/// Samples from `model` and scores them with `scorer`: both log-probabilities.
fn sampled_and_scored(
    model: &Model,
    scorer: &Model,
) -> Result<(Vec<f32>, Vec<f32>), Box<dyn std::error::Error>> {
    let prompts = prompts(&[&[5, 9, 31], &[17], &[40, 3, 3, 8, 22, 1, 19]]);
    let sampling = Sampling {
        temperature: 0.7,
        top_p: Some(0.9),
        max_tokens: 24,
        ..Sampling::default()
    };
    let generated = run(model, &prompts, 4, &sampling)?;
    let rows = Rows {
        prompts,
        group: 4,
        responses: generated.responses,
    };
    let scored = flat(&scorer.score(&rows, 0.7, false).logp)?;
    assert_eq!(scored.len(), generated.logp.len());
    Ok((generated.logp, scored))
}

#[test]
fn sampled_log_probabilities_equal_the_models_score() -> Outcome {
    for name in FIXTURES.into_iter().chain(FAMILIES) {
        let model = load(name, Dtype::F32)?;
        let (sampled, scored) = sampled_and_scored(&model, &model)?;
        for (a, b) in sampled.iter().zip(&scored) {
            assert!((a - b).abs() < 1e-3, "{name}: sampled {a}, scored {b}");
        }
    }
    Ok(())
}

/// Generation multiplies bf16 weights in f32, so it equals an f32 model with the rounded weights; a bf16 model's own
/// score rounds activations too and is only near.
#[test]
fn bf16_weights_are_read_exactly_and_computed_in_f32() -> Outcome {
    for name in FIXTURES {
        let half = load(name, Dtype::Bf16)?;
        let rounded = load(name, Dtype::F32)?;
        rounded.flat().shallow_clone().copy_(half.flat());
        let (sampled, scored) = sampled_and_scored(&half, &rounded)?;
        for (a, b) in sampled.iter().zip(&scored) {
            assert!((a - b).abs() < 1e-3, "{name}: sampled {a}, scored {b}");
        }
        let (sampled, scored) = sampled_and_scored(&half, &half)?;
        let apart: f32 = sampled
            .iter()
            .zip(&scored)
            .map(|(a, b)| (a - b).abs())
            .sum();
        let mean = apart / sampled.len() as f32;
        assert!(mean < 0.05, "{name}: {mean} apart on average");
    }
    Ok(())
}

#[test]
fn a_response_depends_on_neither_the_batch_nor_its_bounds() -> Outcome {
    let model = load("llama-untied-biases", Dtype::F32)?;
    let prompts: Vec<Arc<[u32]>> = (0..13u32)
        .map(|i| (0..1 + i * 5 % 23).map(|t| (i * 7 + t * 3) % 48).collect())
        .collect();
    let sampling = Sampling {
        max_tokens: 30,
        ..Sampling::default()
    };
    let group = 3;
    let all = run(&model, &prompts, group, &sampling)?;
    assert!(
        all.responses.iter().any(|r| r.len() < 30),
        "some responses end early"
    );
    let offsets: Vec<usize> = std::iter::once(0)
        .chain(all.responses.iter().scan(0, |at, r| {
            *at += r.len();
            Some(*at)
        }))
        .collect();
    for (first, count, max_rows) in [(0, 13, 1), (0, 13, 10), (4, 1, 64), (7, 5, 64), (2, 9, 7)] {
        let rows: Vec<u64> = (first as u64..(first + count) as u64).collect();
        let request = Request {
            prompts: &prompts[first..first + count],
            rows: &rows,
            group,
            sampling: &sampling,
            key: KEY,
            max_rows,
        };
        let part = ask(&model, &request)?;
        let range = first * group..(first + count) * group;
        assert_eq!(part.responses, all.responses[range.clone()]);
        assert_eq!(part.finished, all.finished[range.clone()]);
        let logp = &all.logp[offsets[range.start]..offsets[range.end]];
        assert!(
            part.logp
                .iter()
                .zip(logp)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
    }
    Ok(())
}

#[test]
fn long_prompts_give_the_same_samples_whatever_is_computed_beside_them() -> Outcome {
    let model = load("mistral", Dtype::F32)?;
    // Together more than one chunk of prefill, cut inside a prompt.
    let prompts: Vec<Arc<[u32]>> = (0..24u32)
        .map(|i| (0..25 + i % 9).map(|t| (i * 5 + t * t) % 48).collect())
        .collect();
    let sampling = Sampling {
        max_tokens: 6,
        ..Sampling::default()
    };
    let all = run(&model, &prompts, 2, &sampling)?;
    for row in [0, 17, 18, 23] {
        let request = Request {
            prompts: &prompts[row..=row],
            rows: &[row as u64],
            group: 2,
            sampling: &sampling,
            key: KEY,
            max_rows: MAX_ROWS,
        };
        assert_eq!(
            ask(&model, &request)?.responses,
            all.responses[2 * row..2 * row + 2]
        );
    }
    Ok(())
}

#[test]
fn the_same_key_draws_the_same_and_every_part_of_it_matters() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let prompts = prompts(&[&[5, 9, 31]]);
    let sampling = Sampling {
        max_tokens: 24,
        ignore_eos: true,
        ..Sampling::default()
    };
    let draw = |row: u64, key: SampleKey| {
        let request = Request {
            prompts: &prompts,
            rows: &[row],
            group: 2,
            sampling: &sampling,
            key,
            max_rows: MAX_ROWS,
        };
        ask(&model, &request)
    };
    let base = draw(3, KEY)?;
    assert_eq!(draw(3, KEY)?, base);
    assert_ne!(
        base.responses[0], base.responses[1],
        "samples of a group differ"
    );
    let others = [
        draw(4, KEY)?,
        draw(3, SampleKey { seed: 12, ..KEY })?,
        draw(3, SampleKey { call: 6, ..KEY })?,
        draw(
            3,
            SampleKey {
                iteration: 3,
                ..KEY
            },
        )?,
    ];
    for other in others {
        assert_ne!(other.responses[0], base.responses[0]);
    }
    Ok(())
}

#[test]
fn top_k_and_top_p_keep_to_their_tokens() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let prompt = [5, 9, 31];
    let p = flat(
        &model
            .forward_logits(&prompt)
            .get(2)
            .softmax(-1, Kind::Float),
    )?;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    let mut sum = 0.0;
    let nucleus = order.iter().position(|&t| {
        sum += p[t];
        sum >= 0.6
    });
    let nucleus = nucleus.ok_or("no nucleus")? + 1;
    let plain = Sampling {
        max_tokens: 1,
        ..Sampling::default()
    };
    let cases = [
        (
            Sampling {
                top_k: Some(4),
                ..plain.clone()
            },
            4,
        ),
        (
            Sampling {
                top_p: Some(0.6),
                ..plain
            },
            nucleus,
        ),
    ];
    for (sampling, kept) in cases {
        let generated = run(&model, &prompts(&[&prompt]), 2000, &sampling)?;
        let mut drawn: Vec<usize> = generated.responses.iter().map(|r| r[0] as usize).collect();
        drawn.sort_unstable();
        drawn.dedup();
        let mut expected = order[..kept].to_vec();
        expected.sort_unstable();
        assert_eq!(drawn, expected, "{sampling:?}");
    }
    Ok(())
}
