//! Every family against transformers' numbers on a tiny checkpoint of its own: `tests/reference/family_parity.py`.

use std::fs;

use rlhf_runtime::batch::Rows;
use rlhf_runtime::model::{Config, Dtype, LivePass, Model, parameter_count};
use tch::{Kind, Tensor};

use super::{FAMILIES, Outcome, apart, fixture, folder, relative};

#[test]
fn a_saved_model_is_the_file_that_was_loaded() -> Outcome {
    for name in FAMILIES {
        let model = Model::load(&folder(name), Dtype::F32)?;
        let dir = tempfile::tempdir()?;
        model.save(dir.path())?;
        let read = |dir: &std::path::Path| -> Result<Vec<(String, Tensor)>, tch::TchError> {
            let mut tensors = Tensor::read_safetensors(dir.join("model.safetensors"))?;
            tensors.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(tensors)
        };
        let (theirs, ours) = (read(&folder(name))?, read(dir.path())?);
        let names = |t: &[(String, Tensor)]| t.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        assert_eq!(names(&ours), names(&theirs), "{name}");
        for ((tensor, a), (_, b)) in ours.iter().zip(&theirs) {
            assert!(a.size() == b.size() && a.equal(b), "{name}: {tensor}");
        }
        fs::copy(
            folder(name).join("config.json"),
            dir.path().join("config.json"),
        )?;
        let again = Model::load(dir.path(), Dtype::F32)?;
        assert!(again.flat().equal(model.flat()), "{name}");
        let count = parameter_count(&Config::load(&folder(name))?);
        assert_eq!(count, model.flat().numel() as u64);
    }
    Ok(())
}

#[test]
fn long_prompts_and_responses_are_packed_as_plain_sequences() -> Outcome {
    let ids = |seed: u32, len: u32| -> Vec<u32> {
        (0..len).map(|i| (seed * 31 + i * i * 7 + i) % 48).collect()
    };
    for name in FAMILIES {
        let f = fixture(name)?;
        let rows = Rows {
            prompts: vec![ids(1, 30).into(), ids(2, 3).into()],
            group: 2,
            responses: vec![ids(3, 20), ids(4, 2), ids(5, 1), ids(6, 33)],
        };
        let scored = f.model.score(&rows, 1.0, false).logp;
        let mut from = 0;
        for (i, response) in rows.responses.iter().enumerate() {
            let prompt = &rows.prompts[i / 2];
            let whole = [prompt, response.as_slice()].concat();
            let logp = f
                .model
                .forward_logits(&whole)
                .log_softmax(-1, Kind::Float)
                .narrow(0, prompt.len() as i64 - 1, response.len() as i64);
            let targets: Vec<i64> = response.iter().map(|&t| i64::from(t)).collect();
            let chosen = logp.gather(1, &Tensor::from_slice(&targets).unsqueeze(1), false);
            let ours = scored.narrow(0, from, response.len() as i64);
            let off = apart(&ours, &chosen.squeeze_dim(1));
            assert!(off < 1e-4, "{name}: {off}");
            from += response.len() as i64;
        }
    }
    Ok(())
}

#[test]
fn the_load_balancing_loss_and_its_gradient_equal_transformers() -> Outcome {
    for name in ["mixtral", "qwen3-moe"] {
        let mut f = fixture(name)?;
        let routing = f.model.config.routing.as_mut().ok_or("has experts")?;
        routing.balance = 0.5;
        let (first, rest) = f.sequence.split_first().ok_or("a sequence")?;
        let rows = Rows {
            prompts: vec![vec![*first].into()],
            group: 1,
            responses: vec![rest.to_vec()],
        };
        let live = LivePass::forward(&f.model, &rows, 1.0, false);
        let balance = live.balance().ok_or("has experts")?;
        let expected = f.expected["balance"].double_value(&[0]);
        assert!((balance - expected).abs() < 1e-5, "{balance} {expected}");
        let none = Tensor::zeros([rest.len() as i64], tch::kind::FLOAT_CPU);
        live.backward(&mut f.model, &none, None);
        let gradient = f.model.gradient().ok_or("there is a gradient")?;
        for parameter in &f.model.layout().parameters {
            if let Some(expected) = f.expected.get(&format!("balance.{}", parameter.name)) {
                let off = relative(&(parameter.stored(gradient) * 2.0), expected);
                assert!(off < 1e-4, "{name}: {} {off}", parameter.name);
            }
        }
    }
    Ok(())
}

#[test]
fn every_family_in_bf16_follows_f32() -> Outcome {
    for name in FAMILIES {
        let mut f = fixture(name)?;
        let mut half = Model::load(&folder(name), Dtype::Bf16)?;
        // Experts are chosen by rounded probabilities, so tokens between two experts differ by more.
        let bound = if f.model.config.routing.is_some() {
            0.6
        } else {
            0.2
        };
        let off = relative(
            &half.score(&f.rows, 1.0, false).logp,
            &f.model.score(&f.rows, 1.0, false).logp,
        );
        assert!(off < bound, "{name}: {off}");
        let weight = &f.expected["weight"];
        LivePass::forward(&f.model, &f.rows, 1.0, false).backward(&mut f.model, weight, None);
        LivePass::forward(&half, &f.rows, 1.0, false).backward(&mut half, weight, None);
        let (a, b) = (
            half.gradient().ok_or("none")?,
            f.model.gradient().ok_or("none")?,
        );
        let off = relative(a, b);
        assert!(off < bound, "{name}: gradient {off}");
    }
    Ok(())
}
