//! A model that follows another: small steps add up, in bf16 too.

use rlhf_runtime::model::{Average, Dtype, Model};
use tch::Kind;

use crate::{Outcome, folder};

#[test]
fn many_small_steps_come_as_far_as_the_closed_form_says() -> Outcome {
    for (dtype, allowed) in [(Dtype::F32, 1e-5), (Dtype::Bf16, 5e-3)] {
        let followed = Model::load(&folder("mistral"), dtype)?;
        let model = followed.snapshot();
        let start = model.flat().to_kind(Kind::Double);
        let mut toward = followed.flat().to_kind(Kind::Float);
        let _ = toward.g_add_scalar_(1.0);
        let mut average = Average::new(&model);
        for _ in 0..500 {
            average.step(&model, &toward, 1e-3);
        }
        let far = 1.0 - (1.0 - 1e-3f64).powi(500);
        let expected = &start + (toward.to_kind(Kind::Double) - &start) * far;
        let largest = (model.flat().to_kind(Kind::Double) - &expected)
            .abs()
            .max()
            .double_value(&[]);
        assert!(largest < allowed, "{dtype:?}: {largest:e}");
    }
    Ok(())
}

#[test]
fn a_rate_of_one_takes_the_weights_as_they_are() -> Outcome {
    let followed = Model::load(&folder("mistral"), Dtype::F32)?;
    let model = followed.snapshot();
    let mut toward = followed.flat().copy();
    let _ = toward.g_mul_scalar_(3.0);
    Average::new(&model).step(&model, &toward, 1.0);
    assert!(model.flat().equal(&toward));
    Ok(())
}
