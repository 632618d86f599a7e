//! Linear layers against libtorch, in f32 and bf16, at sizes that leave partial tiles and partial panels.

use super::*;
use tch::{Kind, Tensor};

fn random(shape: [i64; 2]) -> Tensor {
    Tensor::randn(shape, tch::kind::FLOAT_CPU)
}

fn panels(x: &Tensor) -> Panels {
    let features = x.size()[1] as usize;
    Panels::from_rows(&flat(x), features)
}

fn flat(x: &Tensor) -> Vec<f32> {
    let x = x.to_kind(Kind::Float).contiguous();
    let mut values = vec![0f32; x.numel()];
    x.copy_data(&mut values, x.numel());
    values
}

fn linear(w: &Tensor) -> Linear<'_> {
    Linear {
        weight: Matrix::of(w).expect("a contiguous CPU matrix"),
        bias: None,
    }
}

fn assert_close(ours: &[f32], theirs: &Tensor) {
    let theirs = flat(theirs);
    assert_eq!(ours.len(), theirs.len());
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "at {i}: {a} {b}");
    }
}

const SHAPES: [(i64, i64, i64); 6] = [
    (1, 7, 5),
    (3, 64, 48),
    (8, 33, 13),
    (16, 96, 31),
    (37, 65, 100),
    (100, 48, 24),
];

#[test]
fn every_form_equals_libtorch() {
    for (rows, inputs, outputs) in SHAPES {
        for kind in [Kind::Float, Kind::BFloat16] {
            let x = random([rows, inputs]);
            let a = random([outputs, inputs]).to_kind(kind);
            let b = random([outputs, inputs]).to_kind(kind);
            let bias = random([1, outputs]);
            let bias_values = flat(&bias);
            let (ya, yb) = (
                x.matmul(&a.to_kind(Kind::Float).tr()),
                x.matmul(&b.to_kind(Kind::Float).tr()),
            );
            let input = panels(&x);

            let mut both = Panels::new(2 * outputs as usize);
            let biased = Linear {
                bias: Some(&bias_values),
                ..linear(&b)
            };
            project(&input, &[linear(&a), biased], &mut both);
            assert_close(&both.to_rows(), &Tensor::cat(&[&ya, &(&yb + &bias)], 1));

            let start = random([rows, outputs]);
            let mut sum = panels(&start);
            accumulate(&input, &linear(&a), &mut sum);
            assert_close(&sum.to_rows(), &(&start + &ya));

            let mut product = Panels::new(outputs as usize);
            let activation = crate::gate::Activation::Silu;
            gated(&input, activation, &linear(&a), &linear(&b), &mut product);
            assert_close(&product.to_rows(), &(ya.silu() * &yb));

            let mut rowwise = vec![0f32; (rows * outputs) as usize];
            logits(&input, &linear(&a).weight, &mut rowwise);
            assert_close(&rowwise, &ya);
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_rows_beside_it() {
    let x = random([40, 129]);
    let w = random([77, 129]);
    let values = flat(&x);
    let run = |first: usize, rows: usize| {
        let input = Panels::from_rows(&values[first * 129..(first + rows) * 129], 129);
        let mut y = vec![0f32; rows * 77];
        logits(&input, &linear(&w).weight, &mut y);
        y
    };
    let all = run(0, 40);
    for (first, rows) in [(0, 1), (5, 1), (39, 1), (3, 8), (10, 30), (20, 17)] {
        assert_eq!(run(first, rows), all[first * 77..(first + rows) * 77]);
    }
}
