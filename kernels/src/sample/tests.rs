//! Draws against a plain sampler in f64, and the edges.

use super::*;
use crate::philox::Stream;

/// Probabilities after all filters, by the definitions, in f64.
fn reference(logits: &[f32], rule: &Rule, banned: &[u32]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut p: Vec<f64> = logits
        .iter()
        .map(|&x| (f64::from(x - top) / rule.temperature).exp())
        .collect();
    banned.iter().for_each(|&t| p[t as usize] = 0.0);
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]).then(a.cmp(&b)));
    order.truncate(rule.top_k.unwrap_or(p.len()));
    let mass: f64 = order.iter().map(|&t| p[t]).sum();
    let mut kept = vec![0.0; p.len()];
    let mut sum = 0.0;
    for t in order {
        if sum < rule.top_p.unwrap_or(2.0) * mass {
            kept[t] = p[t];
            sum += p[t];
        }
    }
    kept.iter().map(|p| p / sum).collect()
}

fn logits(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 7919 % 613) as f32 / 613.0 - 0.5) * 9.0)
        .collect()
}

const PLAIN: Rule = Rule {
    temperature: 1.0,
    top_k: None,
    top_p: None,
};

#[test]
fn frequencies_of_20000_draws_match_the_definition() {
    let logits = logits(300);
    let rules = [
        PLAIN,
        Rule {
            temperature: 0.7,
            ..PLAIN
        },
        Rule {
            top_k: Some(7),
            ..PLAIN
        },
        Rule {
            top_p: Some(0.8),
            ..PLAIN
        },
        Rule {
            temperature: 1.3,
            top_k: Some(40),
            top_p: Some(0.6),
        },
    ];
    let banned = [4u32, 299];
    let draws = 20_000;
    for (i, rule) in rules.iter().enumerate() {
        let stream = Stream::new(i as u64, 1, 0);
        let expected = reference(&logits, rule, &banned);
        let mut counts = vec![0u32; logits.len()];
        let mut scratch = Scratch::default();
        for n in 0..draws {
            let u = stream.uniform(n, 0, 0);
            let draw = sample(&logits, rule, &banned, u, &mut scratch).expect("finite logits");
            counts[draw.token as usize] += 1;
        }
        for (token, (&count, &p)) in counts.iter().zip(&expected).enumerate() {
            // Five standard deviations of a binomial count, and the support exactly.
            let (n, mean) = (f64::from(draws as u32), f64::from(draws as u32) * p);
            let bound = 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0;
            assert!(
                (f64::from(count) - mean).abs() < bound,
                "{rule:?} token {token}: {count}, {mean}"
            );
            assert!(p > 0.0 || count == 0, "{rule:?} drew token {token}");
        }
    }
}

#[test]
fn the_draw_inverts_the_cumulative_distribution_in_vocabulary_order() {
    let logits = logits(1000);
    let p = reference(&logits, &PLAIN, &[]);
    let mut scratch = Scratch::default();
    let mut before = 0.0;
    for (token, p) in p.iter().enumerate() {
        // Away from the edges of the token's interval by more than f32 exponentials can be off.
        for u in [before + p * 0.05, before + p * 0.95] {
            if *p > 1e-4 {
                let draw = sample(&logits, &PLAIN, &[], u, &mut scratch).expect("finite logits");
                assert_eq!(draw.token as usize, token);
                assert!((f64::from(draw.logp) - p.ln()).abs() < 1e-5);
            }
        }
        before += p;
    }
    let last = sample(&logits, &PLAIN, &[], 1.0 - f64::EPSILON, &mut scratch);
    assert_eq!(last.map(|d| d.token), Ok(999));
    let first = sample(&logits, &PLAIN, &[], 0.0, &mut scratch);
    assert_eq!(first.map(|d| d.token), Ok(0));
}

#[test]
fn greedy_takes_the_first_largest_and_reports_temperature_one() {
    let greedy = Rule {
        temperature: 0.0,
        ..PLAIN
    };
    let mut scratch = Scratch::default();
    let mut row = vec![0f32; 50];
    row[20] = 3.0;
    row[31] = 3.0;
    let draw = sample(&row, &greedy, &[], 0.9, &mut scratch).expect("finite logits");
    assert_eq!(draw.token, 20);
    let z = 48.0 + 2.0 * 3f64.exp();
    assert!((f64::from(draw.logp) - (3.0 - z.ln())).abs() < 1e-6);
    let draw = sample(&row, &greedy, &[20], 0.9, &mut scratch).expect("finite logits");
    assert_eq!(draw.token, 31);
}

#[test]
fn the_logp_ignores_bans_and_filters() {
    let logits = logits(64);
    let rule = Rule {
        temperature: 0.5,
        top_k: Some(3),
        top_p: Some(0.5),
    };
    let full = Rule {
        temperature: 0.5,
        ..PLAIN
    };
    let p = reference(&logits, &full, &[]);
    let mut scratch = Scratch::default();
    let draw = sample(&logits, &rule, &[2, 3], 0.3, &mut scratch).expect("finite logits");
    assert!((f64::from(draw.logp) - p[draw.token as usize].ln()).abs() < 1e-5);
}

#[test]
fn ties_are_kept_in_vocabulary_order() {
    let row = [1f32; 10];
    let rule = Rule {
        top_k: Some(3),
        ..PLAIN
    };
    let mut scratch = Scratch::default();
    let tokens: Vec<_> = [0.0, 0.34, 0.99]
        .iter()
        .map(|&u| sample(&row, &rule, &[], u, &mut scratch).map(|d| d.token))
        .collect();
    assert_eq!(tokens, [Ok(0), Ok(1), Ok(2)]);
}

#[test]
fn rows_without_a_distribution_are_errors() {
    let mut scratch = Scratch::default();
    let mut draw =
        |row: &[f32], rule: &Rule, banned: &[u32]| sample(row, rule, banned, 0.5, &mut scratch);
    let greedy = Rule {
        temperature: 0.0,
        ..PLAIN
    };
    for rule in [PLAIN, greedy] {
        assert_eq!(
            draw(&[f32::NAN; 70], &rule, &[]),
            Err(Fault::NotFinite { token: 0 })
        );
        assert_eq!(
            draw(&[0.0, f32::NAN], &rule, &[]),
            Err(Fault::NotFinite { token: 1 })
        );
        assert_eq!(
            draw(&[0.0, f32::INFINITY], &rule, &[]),
            Err(Fault::NotFinite { token: 1 })
        );
        assert_eq!(
            draw(&[f32::NEG_INFINITY; 3], &rule, &[]),
            Err(Fault::NothingLeft)
        );
        assert_eq!(draw(&[], &rule, &[]), Err(Fault::NothingLeft));
        assert_eq!(draw(&[1.0, 2.0], &rule, &[0, 1]), Err(Fault::NothingLeft));
        let rest = draw(&[f32::NEG_INFINITY, 2.0], &rule, &[]);
        assert_eq!(
            rest,
            Ok(Draw {
                token: 1,
                logp: 0.0
            })
        );
    }
}
