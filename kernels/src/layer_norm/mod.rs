//! Layer normalisation (Ba et al., 2016): `y = (x − mean(x)) / √(var(x) + ε) · w + b`, row by row.

use crate::panel::{LANES, Lanes, Panels};

/// Normalises every row of `x` into `y`; `weight` and `bias` are `[features]`.
pub fn layer_norm(x: &Panels, weight: &[f32], bias: &[f32], eps: f32, y: &mut Panels) {
    let features = x.features();
    assert_eq!(
        (weight.len(), bias.len(), y.features()),
        (features, features, features),
        "the norm's features"
    );
    y.resize(x.rows());
    for p in 0..x.panels() {
        one_panel(x.panel(p), weight, bias, eps, y.panel_mut(p));
    }
}

fn one_panel(x: &[Lanes], weight: &[f32], bias: &[f32], eps: f32, y: &mut [Lanes]) {
    let count = x.len() as f32;
    let mut mean = [0f32; LANES];
    for x in x {
        mean.iter_mut().zip(x.0).for_each(|(sum, x)| *sum += x);
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    let mut scale = [0f32; LANES];
    for x in x {
        for ((sum, x), mean) in scale.iter_mut().zip(x.0).zip(mean) {
            *sum += (x - mean) * (x - mean);
        }
    }
    scale
        .iter_mut()
        .for_each(|sum| *sum = 1.0 / (*sum / count + eps).sqrt());
    for (((x, y), &w), &b) in x.iter().zip(y).zip(weight).zip(bias) {
        for (((y, x), mean), s) in y.0.iter_mut().zip(x.0).zip(mean).zip(scale) {
            *y = (x - mean) * s * w + b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Tensor;

    #[test]
    fn it_equals_libtorch() -> Result<(), tch::TchError> {
        let (rows, features) = (21, 40);
        let x = Tensor::f_randn([rows, features], tch::kind::FLOAT_CPU)? * 3.0 + 1.0;
        let weight = Tensor::f_randn([features], tch::kind::FLOAT_CPU)?;
        let bias = Tensor::f_randn([features], tch::kind::FLOAT_CPU)?;
        let expected = x.layer_norm([features], Some(&weight), Some(&bias), 1e-5, false);
        let values = |t: &Tensor| -> Result<Vec<f32>, tch::TchError> { t.reshape([-1]).try_into() };
        let mut y = Panels::new(features as usize);
        let x = Panels::from_rows(&values(&x)?, features as usize);
        layer_norm(&x, &values(&weight)?, &values(&bias)?, 1e-5, &mut y);
        for (a, b) in y.to_rows().iter().zip(values(&expected)?) {
            assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b}");
        }
        Ok(())
    }
}
