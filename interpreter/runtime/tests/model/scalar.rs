//! Scalar heads: numbers, scores and gradients equal transformers', and their checkpoints go both ways.

use std::path::Path;
use std::sync::Arc;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{Draws, Dtype, HeadKind, Model, ScalarPass, States, Values};
use tch::{Kind, Tensor};

use super::checkpoint::{copied, edit_config, edit_weights};
use super::{Expected, Outcome, apart, expected, folder, relative};

const CLASSIFIERS: [&str; 2] = ["llama-classifier", "qwen2-classifier"];

const DRAWS: Draws = Draws {
    seed: 3,
    model: "critic",
};

fn scalar(dir: &Path) -> Result<Model, Box<dyn std::error::Error>> {
    Ok(Model::load_scalar(dir, Dtype::F32, &DRAWS)?)
}

#[test]
fn values_and_scores_equal_transformers() -> Outcome {
    for name in CLASSIFIERS {
        let Expected { rows, tensors, .. } = expected(name)?;
        let model = scalar(&folder(name))?;
        for states in [States::Before, States::After, States::All] {
            let scored = model.values(&rows, states);
            let live = ScalarPass::forward(&model, &rows, states).values();
            for found in [scored, live] {
                if states != States::After {
                    let off = apart(&found.before, &tensors["before"]);
                    assert!(off < 1e-5, "{name}: before {off}");
                }
                if states != States::Before {
                    let off = apart(&found.after, &tensors["after"]);
                    assert!(off < 1e-5, "{name}: after {off}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_every_weight_equal_autograds() -> Outcome {
    for name in CLASSIFIERS {
        let Expected { rows, tensors, .. } = expected(name)?;
        let mut model = scalar(&folder(name))?;
        let grads = Values {
            before: tensors["weight_before"].shallow_clone(),
            after: tensors["weight_after"].shallow_clone(),
        };
        ScalarPass::forward(&model, &rows, States::All).backward(&mut model, &grads);
        let gradient = model.gradient().ok_or("there is a gradient")?;
        for parameter in &model.layout().parameters {
            let expected = &tensors[&format!("grad.{}", parameter.name)];
            let off = relative(&parameter.slot.view(gradient), expected);
            assert!(off < 1e-4, "{name}: {} {off}", parameter.name);
        }
    }
    Ok(())
}

#[test]
fn micro_batches_gather_the_whole_batchs_gradient() -> Outcome {
    let Expected { rows, tensors, .. } = expected("llama-classifier")?;
    let mut whole = scalar(&folder("llama-classifier"))?;
    let mut cut = scalar(&folder("llama-classifier"))?;
    let (before, after) = (&tensors["weight_before"], &tensors["weight_after"]);
    let grads = |from: usize, to: usize| {
        let offsets = rows.offsets();
        let (low, high) = (offsets[from] as i64, offsets[to] as i64);
        Values {
            before: before.narrow(0, low, high - low),
            after: after.narrow(0, from as i64, (to - from) as i64),
        }
    };
    let responses = rows.responses.len();
    ScalarPass::forward(&whole, &rows, States::All).backward(&mut whole, &grads(0, responses));
    for prompt in 0..rows.prompts.len() {
        let part = rows.select_prompts(prompt..prompt + 1);
        let first = prompt * rows.group;
        ScalarPass::forward(&cut, &part, States::All)
            .backward(&mut cut, &grads(first, first + rows.group));
    }
    let (a, b) = (cut.gradient(), whole.gradient());
    let off = relative(a.ok_or("none")?, b.ok_or("none")?);
    assert!(off < 1e-5, "{off}");
    Ok(())
}

#[test]
fn long_rows_score_as_plain_sequences() -> Outcome {
    // Longer than one block of queries, and than the keys whose probabilities are kept.
    let model = scalar(&folder("llama-tied-gqa"))?;
    let ids = |seed: u32, len: u32| -> Vec<u32> { (0..len).map(|i| (i * 7 + seed) % 48).collect() };
    let rows = Rows {
        prompts: vec![Arc::from(ids(1, 20)), Arc::from(ids(2, 3))],
        group: 2,
        responses: vec![ids(3, 200), ids(4, 1), ids(5, 90), ids(6, 2)],
    };
    let found = model.values(&rows, States::All);
    let offsets = rows.offsets();
    for (r, response) in rows.responses.iter().enumerate() {
        let prompt = &rows.prompts[r / 2];
        for t in 0..=response.len() {
            let alone = Rows {
                prompts: vec![Arc::from([prompt, &response[..t]].concat())],
                group: 1,
                responses: vec![vec![]],
            };
            let plain = model.values(&alone, States::After).after.double_value(&[0]);
            let packed = match t < response.len() {
                true => found.before.double_value(&[(offsets[r] + t) as i64]),
                false => found.after.double_value(&[r as i64]),
            };
            if t % 40 == 0 || t == response.len() {
                assert!((plain - packed).abs() < 1e-4, "{r} {t}: {plain} {packed}");
            }
        }
    }
    Ok(())
}

#[test]
fn rows_without_a_token_have_a_score_and_no_value() -> Outcome {
    let mut model = scalar(&folder("llama-classifier"))?;
    let rows = Rows {
        prompts: vec![Arc::from([5, 6]), Arc::from([7])],
        group: 1,
        responses: vec![vec![], vec![]],
    };
    let before = ScalarPass::forward(&model, &rows, States::Before);
    assert_eq!(before.values().before.size(), [0]);
    let nothing = before.values();
    before.backward(&mut model, &nothing);
    assert!(model.gradient().is_none());
    assert_eq!(model.values(&rows, States::All).after.size(), [2]);
    assert_eq!(model.values(&rows, States::All).before.size(), [0]);
    Ok(())
}

#[test]
fn a_head_on_a_language_model_is_drawn_by_the_seed_and_replaces_the_language_head() -> Outcome {
    // The head of 48 rows is tied in the first and a tensor of its own in the second.
    for name in ["llama-tied-gqa", "llama-untied-biases"] {
        let language = Model::load(&folder(name), Dtype::F32)?;
        let model = scalar(&folder(name))?;
        let head = 24;
        let body = model.flat().numel() - head;
        let names: Vec<&str> = (model.layout().parameters.iter())
            .map(|p| p.name.as_str())
            .collect();
        assert_eq!(names.last(), Some(&"score.weight"));
        assert!(!names.contains(&"lm_head.weight"));
        let part = |m: &Model| m.flat().narrow(0, 0, body as i64);
        assert!(part(&model).equal(&part(&language)), "{name}");
        let drawn = &model.weights.head;
        assert_eq!(drawn.size(), [1, 24]);
        // initializer_range of the fixtures is 0.25.
        let spread = drawn.std(true).double_value(&[]);
        assert!((0.15..0.35).contains(&spread), "{spread}");
        assert!(scalar(&folder(name))?.weights.head.equal(drawn));
        let other = Draws { seed: 4, ..DRAWS };
        let other = Model::load_scalar(&folder(name), Dtype::F32, &other)?;
        assert!(!other.weights.head.equal(drawn));
    }
    Ok(())
}

#[test]
fn saving_and_loading_a_classifier_is_bit_for_bit() -> Outcome {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let model = Model::load_scalar(&folder("qwen2-classifier"), dtype, &DRAWS)?;
        let dir = copied("qwen2-classifier")?;
        model.save(dir.path())?;
        let other = Draws { seed: 9, ..DRAWS };
        let again = Model::load_scalar(dir.path(), dtype, &other)?;
        assert!(model.flat().equal(again.flat()));
        let frozen = again.snapshot();
        let Expected { rows, .. } = expected("qwen2-classifier")?;
        let numbers = |m: &Model| m.values(&rows, States::After).after;
        assert!(numbers(&frozen).equal(&numbers(&model)));
    }
    Ok(())
}

#[test]
fn bf16_follows_f32_and_gives_its_numbers_in_f32() -> Outcome {
    let Expected { rows, tensors, .. } = expected("llama-classifier")?;
    let mut half = Model::load_scalar(&folder("llama-classifier"), Dtype::Bf16, &DRAWS)?;
    let found = half.values(&rows, States::All);
    assert_eq!(found.after.kind(), Kind::Float);
    let off = relative(&found.after, &tensors["after"]);
    assert!(off < 0.05, "{off}");
    let grads = Values {
        before: tensors["weight_before"].shallow_clone(),
        after: tensors["weight_after"].shallow_clone(),
    };
    ScalarPass::forward(&half, &rows, States::All).backward(&mut half, &grads);
    let gradient = half.gradient().ok_or("there is a gradient")?;
    for parameter in &half.layout().parameters {
        let expected = &tensors[&format!("grad.{}", parameter.name)];
        let off = relative(&parameter.slot.view(gradient), expected);
        assert!(off < 0.15, "{} {off}", parameter.name);
    }
    Ok(())
}

#[test]
fn what_has_no_single_number_or_no_language_head_is_refused() -> Outcome {
    let refused = |dir: &Path| match scalar(dir) {
        Ok(_) => Err("it should not load"),
        Err(e) => Ok(e.to_string().replace(&dir.display().to_string(), "DIR")),
    };
    let dir = copied("llama-classifier")?;
    edit_config(
        dir.path(),
        "\"0\": \"LABEL_0\"",
        "\"0\": \"a\", \"1\": \"b\"",
    )?;
    assert_eq!(
        refused(dir.path())?,
        "`DIR/config.json`: the classifier has 2 labels; a scalar head gives 1 number"
    );

    // transformers writes no labels where there are two.
    let dir = copied("llama-classifier")?;
    edit_config(dir.path(), "id2label", "labels")?;
    edit_weights(dir.path(), |tensors| {
        for (name, tensor) in tensors {
            if name == "score.weight" {
                *tensor = Tensor::zeros([2, 24], (Kind::Float, tch::Device::Cpu));
            }
        }
    })?;
    assert_eq!(
        refused(dir.path())?,
        "the classifier in `DIR/model.safetensors` has 2 labels; a scalar head gives 1 number"
    );

    let dir = folder("llama-classifier");
    let fault = Model::load(&dir, Dtype::F32).err().ok_or("no head")?;
    let message = fault.to_string().replace(&dir.display().to_string(), "DIR");
    assert_eq!(
        message,
        "`DIR` is a LlamaForSequenceClassification, without a language head"
    );
    assert!(fault.diagnostic.help.is_some());
    Ok(())
}

#[test]
fn random_weights_need_a_configuration_alone() -> Outcome {
    let dir = tempfile::tempdir()?;
    std::fs::copy(
        folder("qwen2").join("config.json"),
        dir.path().join("config.json"),
    )?;
    for head in [HeadKind::Language, HeadKind::Scalar] {
        let model = Model::draw(dir.path(), head, Dtype::F32, &DRAWS)?;
        for parameter in &model.layout().parameters {
            let weight = parameter.slot.view(model.flat());
            let name = &parameter.name;
            match weight.dim() {
                1 => {
                    let constant = f64::from(u8::from(name.ends_with(".weight")));
                    assert!(apart(&weight, &weight.full_like(constant)) == 0.0, "{name}");
                }
                _ => {
                    let spread = weight.std(true).double_value(&[]);
                    let slack = 5.0 * 0.25 / (2.0 * weight.numel() as f64).sqrt();
                    assert!((spread - 0.25).abs() < slack, "{name}: {spread}");
                }
            }
        }
        let again = Model::draw(dir.path(), head, Dtype::F32, &DRAWS)?;
        assert!(again.flat().equal(model.flat()));
        let half = Model::draw(dir.path(), head, Dtype::Bf16, &DRAWS)?;
        assert!(half.flat().equal(&model.flat().to_kind(Kind::BFloat16)));
        let other = Draws { seed: 4, ..DRAWS };
        let other = Model::draw(dir.path(), head, Dtype::F32, &other)?;
        assert!(!other.flat().equal(model.flat()));
    }
    Ok(())
}
