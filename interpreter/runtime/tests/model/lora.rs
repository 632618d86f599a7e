//! Low-rank adapters: steps equal PyTorch's, the base is shared, and what is saved is PEFT's.

use std::collections::HashMap;

use rlhf_lang::graph::Lora;
use rlhf_runtime::model::{AdamW, Draws, Dtype, LivePass, Model, ScalarPass, States, Values};
use tch::{Kind, Tensor};

use super::{Expected, Outcome, apart, expected, folder, relative};

/// Those of `tests/reference/lora_steps.py`.
const DRAWS: Draws = Draws {
    seed: 3,
    model: "policy",
};

fn lora(targets: &[&str]) -> Lora {
    Lora {
        rank: 4,
        alpha: 6.0,
        targets: targets.iter().map(|t| t.to_string()).collect(),
    }
}

fn language(dtype: Dtype) -> Result<Model, Box<dyn std::error::Error>> {
    let mut model = Model::load(&folder("llama-tied-gqa"), dtype)?;
    model.adapt(&lora(&[]), &DRAWS)?;
    Ok(model)
}

fn classifier(dtype: Dtype) -> Result<Model, Box<dyn std::error::Error>> {
    let mut model = Model::load_scalar(&folder("llama-classifier"), dtype, &DRAWS)?;
    model.adapt(&lora(&["q_proj", "mlp.down_proj"]), &DRAWS)?;
    Ok(model)
}

fn adamw(model: &Model) -> AdamW {
    AdamW::new(model, (0.9, 0.95), 1e-4, 0.1)
}

/// Three steps of the reference's; the gradient norms.
fn language_steps(model: &mut Model) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let Expected { rows, tensors, .. } = expected("llama-tied-gqa")?;
    let mut adamw = adamw(model);
    let step = |_| {
        LivePass::forward(model, &rows, 1.0, false).backward(model, &tensors["weight"], None);
        adamw.step(model, 1e-2, Some(1.0))
    };
    Ok((0..3).map(step).collect())
}

fn classifier_steps(model: &mut Model) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let Expected { rows, tensors, .. } = expected("llama-classifier")?;
    let grads = Values {
        before: Tensor::zeros([0], (Kind::Float, tch::Device::Cpu)),
        after: tensors["weight_after"].shallow_clone(),
    };
    let mut adamw = adamw(model);
    let step = |_| {
        ScalarPass::forward(model, &rows, States::After).backward(model, &grads);
        adamw.step(model, 1e-2, Some(1.0))
    };
    Ok((0..3).map(step).collect())
}

/// The tensors of the saved adapter.
fn saved(model: &Model) -> Result<HashMap<String, Tensor>, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    model.save_adapters(dir.path(), "org/base")?;
    let tensors = Tensor::read_safetensors(dir.path().join("adapter_model.safetensors"))?;
    Ok(tensors.into_iter().collect())
}

fn compare(name: &str, model: &Model, norms: &[f64]) -> Outcome {
    let path = folder(name).join("lora.safetensors");
    let mut theirs: HashMap<_, _> = Tensor::read_safetensors(path)?.into_iter().collect();
    let expected = Vec::<f64>::try_from(theirs.remove("norms").ok_or("norms")?)?;
    for (norm, expected) in norms.iter().zip(&expected) {
        assert!(
            (norm / expected - 1.0).abs() < 1e-4,
            "{name}: {norms:?} {expected}"
        );
    }
    let ours = saved(model)?;
    let sorted = |tensors: &HashMap<String, Tensor>| {
        let mut names: Vec<String> = tensors.keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&ours), sorted(&theirs));
    for (tensor, expected) in &theirs {
        let off = apart(&ours[tensor], expected);
        assert!(off < 2e-5, "{name}: {tensor} {off}");
    }
    Ok(())
}

#[test]
fn three_clipped_steps_of_a_language_model_equal_pytorchs() -> Outcome {
    let mut model = language(Dtype::F32)?;
    let norms = language_steps(&mut model)?;
    compare("llama-tied-gqa", &model, &norms)
}

#[test]
fn three_clipped_steps_of_a_classifier_train_its_head_whole() -> Outcome {
    let mut model = classifier(Dtype::F32)?;
    let norms = classifier_steps(&mut model)?;
    compare("llama-classifier", &model, &norms)
}

#[test]
fn before_the_first_step_an_adapted_model_is_its_base() -> Outcome {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let plain = Model::load(&folder("llama-tied-gqa"), dtype)?;
        assert!(language(dtype)?.flat().equal(plain.flat()));
    }
    Ok(())
}

#[test]
fn a_step_moves_the_targets_alone_and_never_the_base() -> Outcome {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let plain = Model::load_scalar(&folder("llama-classifier"), dtype, &DRAWS)?;
        let mut model = classifier(dtype)?;
        let anchor = model.anchor(dtype);
        classifier_steps(&mut model)?;
        for parameter in &model.layout().parameters {
            let name = parameter.name.trim_end_matches(".weight");
            let moves = ["q_proj", "mlp.down_proj", "score"]
                .iter()
                .any(|t| name.ends_with(t));
            let (now, then) = (
                parameter.slot.view(model.flat()),
                parameter.slot.view(plain.flat()),
            );
            assert_eq!(!now.equal(&then), moves, "{}", parameter.name);
        }
        assert!(anchor.flat().equal(plain.flat()));
    }
    Ok(())
}

#[test]
fn a_frozen_copy_shares_the_base_and_one_of_another_type_does_not() -> Outcome {
    let model = language(Dtype::F32)?;
    let anchor = model.anchor(Dtype::F32);
    assert_eq!(
        anchor.flat().data_ptr(),
        model.anchor(Dtype::F32).flat().data_ptr()
    );
    assert_ne!(anchor.flat().data_ptr(), model.flat().data_ptr());
    let half = model.anchor(Dtype::Bf16);
    assert_eq!(
        (half.dtype(), half.flat().kind()),
        (Dtype::Bf16, Kind::BFloat16)
    );
    let plain = Model::load(&folder("llama-tied-gqa"), Dtype::F32)?;
    let copy = plain.anchor(Dtype::F32);
    assert_ne!(copy.flat().data_ptr(), plain.flat().data_ptr());
    Ok(())
}

#[test]
fn merged_weights_are_base_and_adapters_rounded_once() -> Outcome {
    for (dtype, tolerance) in [(Dtype::F32, 1e-6), (Dtype::Bf16, 0.0)] {
        let mut model = language(dtype)?;
        language_steps(&mut model)?;
        let adapter = saved(&model)?;
        let plain = Model::load(&folder("llama-tied-gqa"), dtype)?;
        let mut adapted = 0;
        for parameter in &model.layout().parameters {
            let base = parameter.slot.view(plain.flat());
            let module = parameter.name.trim_end_matches(".weight");
            let part = |p: &str| adapter.get(&format!("base_model.model.{module}.lora_{p}.weight"));
            let expected = match (part("A"), part("B")) {
                (Some(a), Some(b)) => {
                    adapted += 1;
                    let sum = base.to_kind(Kind::Float) + b.mm(a) * 1.5;
                    sum.to_kind(dtype.kind())
                }
                _ => base,
            };
            let off = apart(&parameter.slot.view(model.flat()), &expected);
            assert!(off <= tolerance, "{} {off}", parameter.name);
        }
        assert_eq!(adapted, 2 * 7);
    }
    Ok(())
}

#[test]
fn bf16_trains_adapters_in_f32() -> Outcome {
    let (mut full, mut half) = (language(Dtype::F32)?, language(Dtype::Bf16)?);
    let norms = language_steps(&mut full)?;
    let half_norms = language_steps(&mut half)?;
    for (a, b) in norms.iter().zip(&half_norms) {
        assert!((a / b - 1.0).abs() < 0.1, "{norms:?} {half_norms:?}");
    }
    let (full, half) = (saved(&full)?, saved(&half)?);
    for (name, tensor) in &half {
        assert_eq!(tensor.kind(), Kind::Float);
        // Adam's first steps go by the gradient's sign, so single numbers may part.
        let off = relative(tensor, &full[name]);
        assert!(off < 0.3, "{name} {off}");
    }
    Ok(())
}

#[test]
fn the_configuration_says_what_peft_needs() -> Outcome {
    let dir = tempfile::tempdir()?;
    let read = |model: &Model| -> Result<serde_json::Value, Box<dyn std::error::Error>> {
        model.save_adapters(dir.path(), "org/base")?;
        let text = std::fs::read_to_string(dir.path().join("adapter_config.json"))?;
        Ok(serde_json::from_str(&text)?)
    };
    let config = read(&language(Dtype::F32)?)?;
    assert_eq!(config["peft_type"], "LORA");
    assert_eq!(config["task_type"], "CAUSAL_LM");
    assert_eq!(config["base_model_name_or_path"], "org/base");
    assert_eq!(
        (&config["r"], &config["lora_alpha"]),
        (&4.into(), &6.0.into())
    );
    assert_eq!(config["target_modules"].as_array().map(Vec::len), Some(7));
    let config = read(&classifier(Dtype::F32)?)?;
    assert_eq!(config["task_type"], "SEQ_CLS");
    assert_eq!(config["modules_to_save"], serde_json::json!(["score"]));
    assert_eq!(
        config["target_modules"],
        serde_json::json!(["down_proj", "q_proj"])
    );
    Ok(())
}

#[test]
fn a_target_that_no_layer_has_is_named_with_those_there_are() -> Outcome {
    let mut model = Model::load(&folder("llama-tied-gqa"), Dtype::F32)?;
    for target in ["c_attn", "_proj", "embed_tokens"] {
        let fault = model
            .adapt(&lora(&["q_proj", target]), &DRAWS)
            .err()
            .ok_or("no such layer")?;
        assert_eq!(
            fault.to_string(),
            format!("`policy` has no linear layer `{target}` to adapt")
        );
        assert_eq!(
            fault.diagnostic.help.as_deref(),
            Some(
                "its linear layers are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"
            )
        );
    }
    assert!(!model.is_adapted());
    Ok(())
}
