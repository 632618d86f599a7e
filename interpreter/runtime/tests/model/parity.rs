//! Logits, scores, gradients and optimizer steps equal those computed by transformers and PyTorch.

use rlhf_runtime::model::{AdamW, Dtype, LivePass, Model};
use tch::Tensor;

use super::{FAMILIES, FIXTURES, Outcome, TEMPERATURE, apart, fixture, folder, relative};

#[test]
fn logits_equal_transformers() -> Outcome {
    for name in FIXTURES.iter().chain(&FAMILIES) {
        let f = fixture(name)?;
        let off = apart(&f.model.forward_logits(&f.sequence), &f.expected["logits"]);
        assert!(off < 2e-4, "{name}: {off}");
    }
    Ok(())
}

#[test]
fn scores_at_a_temperature_equal_transformers() -> Outcome {
    for name in FIXTURES.iter().chain(&FAMILIES) {
        let f = fixture(name)?;
        let scores = f.model.score(&f.rows, TEMPERATURE, true);
        let off = apart(&scores.logp, &f.expected["logp"]);
        assert!(off < 1e-4, "{name}: logp {off}");
        let entropy = scores.entropy.ok_or("entropy was asked for")?;
        let off = apart(&entropy, &f.expected["entropy"]);
        assert!(off < 1e-4, "{name}: entropy {off}");
    }
    Ok(())
}

#[test]
fn gradients_of_every_weight_equal_autograds() -> Outcome {
    for name in FIXTURES.iter().chain(&FAMILIES) {
        let mut f = fixture(name)?;
        let live = LivePass::forward(&f.model, &f.rows, TEMPERATURE, true);
        live.backward(
            &mut f.model,
            &f.expected["weight"],
            Some(&f.expected["weight_entropy"]),
        );
        let gradient = f.model.gradient().ok_or("there is a gradient")?;
        for parameter in &f.model.layout().parameters {
            let expected = &f.expected[&format!("grad.{}", parameter.name)];
            let off = relative(&parameter.stored(gradient), expected);
            assert!(off < 1e-4, "{name}: {} {off}", parameter.name);
        }
    }
    Ok(())
}

#[test]
fn two_clipped_adamw_steps_equal_pytorchs() -> Outcome {
    for name in FIXTURES {
        let mut f = fixture(name)?;
        let mut adamw = AdamW::new(&f.model, (0.9, 0.95), 1e-4, 0.1);
        for step in 0..2 {
            let live = LivePass::forward(&f.model, &f.rows, TEMPERATURE, true);
            live.backward(
                &mut f.model,
                &f.expected["weight"],
                Some(&f.expected["weight_entropy"]),
            );
            let norm = adamw.step(&mut f.model, 1e-3, Some(1.0));
            if step == 0 {
                let expected = f.expected["norm"].double_value(&[0]);
                assert!(
                    (norm / expected - 1.0).abs() < 1e-5,
                    "{name}: {norm} {expected}"
                );
            }
        }
        for parameter in &f.model.layout().parameters {
            let expected = &f.expected[&format!("after.{}", parameter.name)];
            let off = apart(&parameter.slot.view(f.model.flat()), expected);
            assert!(off < 1e-6, "{name}: {} {off}", parameter.name);
        }
    }
    Ok(())
}

#[test]
fn bf16_follows_f32_and_its_master_weights_gather_small_steps() -> Outcome {
    let mut f = fixture("llama-tied-gqa")?;
    let mut half = Model::load(&folder("llama-tied-gqa"), Dtype::Bf16)?;
    let off = apart(
        &half.score(&f.rows, 1.0, false).logp,
        &f.model.score(&f.rows, 1.0, false).logp,
    );
    assert!(off < 0.2, "{off}");
    let weight = &f.expected["weight"];
    LivePass::forward(&f.model, &f.rows, 1.0, false).backward(&mut f.model, weight, None);
    LivePass::forward(&half, &f.rows, 1.0, false).backward(&mut half, weight, None);
    let (a, b) = (
        half.gradient().ok_or("none")?,
        f.model.gradient().ok_or("none")?,
    );
    let off = relative(a, b);
    assert!(off < 0.1, "{off}");

    // Each step is below half a unit in the last place of most weights; a hundred of them are not.
    let before = half.flat().copy();
    let mut adamw = AdamW::new(&half, (0.0, 0.0), 1e-8, 0.0);
    let gradient = half.gradient().ok_or("none")?.sign();
    for _ in 0..100 {
        let mut fresh = half.gradient().ok_or("none")?.shallow_clone();
        fresh.copy_(&gradient);
        adamw.step(&mut half, 1e-4, None);
    }
    let moved: Tensor = before - half.flat();
    let off = apart(&moved, &(gradient * 0.01));
    assert!(off < 0.005, "{off}");
    Ok(())
}
