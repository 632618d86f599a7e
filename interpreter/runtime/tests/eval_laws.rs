//! Two laws of every shipped loss: where the policy is still the sampler, clipped variants have the
//! policy gradient's gradient; and a batch cut into parts has the loss and the gradient of the whole.

mod eval_support;

use eval_support::{Given, Program, assert_close, flat};
use serde_json::{Value as Json, json};

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn row(&mut self, n: usize, lo: f64, hi: f64) -> Vec<f64> {
        (0..n).map(|_| self.between(lo, hi)).collect()
    }
}

/// Named rows: of tokens, or one number a response.
struct Batch {
    tokens: Vec<(&'static str, Vec<Vec<f64>>)>,
    numbers: Vec<(&'static str, Vec<f64>)>,
}

/// Responses of different lengths, log-probabilities below 0, advantages of both signs.
fn batch(seed: u64) -> Batch {
    let mut random = Random(seed);
    let rows = 3 + (random.next() % 4) as usize;
    // The first two differ, so that the axis is ragged in every part.
    let lengths: Vec<usize> = (0..rows)
        .map(|i| 1 + i % 2 * 3 + (random.next() % 3) as usize)
        .collect();
    let ragged = |lo: f64, hi: f64, random: &mut Random| {
        let rows = lengths.iter().map(|n| random.row(*n, lo, hi));
        rows.collect::<Vec<_>>()
    };
    let lp = ragged(-2.0, -0.1, &mut random);
    let near = |random: &mut Random| {
        let near = |x: &f64, random: &mut Random| x + random.between(-0.5, 0.5);
        let rows = lp.iter();
        rows.map(|row| row.iter().map(|x| near(x, random)).collect())
            .collect::<Vec<_>>()
    };
    let (old, far) = (near(&mut random), near(&mut random));
    let (v, was, ret) = (
        ragged(-1.0, 1.0, &mut random),
        ragged(-1.0, 1.0, &mut random),
        ragged(-1.0, 1.0, &mut random),
    );
    let mut adv = random.row(rows, 0.2, 2.0);
    adv.iter_mut().step_by(2).for_each(|a| *a = -*a);
    Batch {
        tokens: vec![
            ("lp", lp),
            ("old", old),
            ("ref", far),
            ("v", v),
            ("was", was),
            ("ret", ret),
        ],
        numbers: vec![
            ("adv", adv),
            ("win", random.row(rows, -2.0, -0.2)),
            ("lose", random.row(rows, -2.0, -0.2)),
            ("rw", random.row(rows, -2.0, -0.2)),
            ("rl", random.row(rows, -2.0, -0.2)),
            ("good", random.row(rows, -1.0, 1.0)),
        ],
    }
}

impl Batch {
    /// The inputs of some of its rows.
    fn part(&self, rows: &[usize]) -> Vec<Given> {
        let axes = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
        let tokens = self.tokens.iter().map(|(name, data)| {
            let data: Vec<&Vec<f64>> = rows.iter().map(|r| &data[*r]).collect();
            (name.to_string(), axes(&["B", "T"]), json!(data))
        });
        let numbers = self.numbers.iter().map(|(name, data)| {
            let data: Vec<f64> = rows.iter().map(|r| data[*r]).collect();
            (name.to_string(), axes(&["B"]), json!(data))
        });
        tokens.chain(numbers).collect()
    }

    fn rows(&self) -> usize {
        self.numbers[0].1.len()
    }

    fn tokens(&self, rows: &[usize]) -> usize {
        rows.iter().map(|r| self.tokens[0].1[*r].len()).sum()
    }

    /// The same before the first update: the policy is the sampler.
    fn fresh(mut self) -> Batch {
        let lp = self.tokens[0].1.clone();
        for (name, data) in &mut self.tokens {
            if ["old", "ref"].contains(name) {
                *data = lp.clone();
            }
        }
        self
    }
}

const PPO: &[&str] = &["std.ppo"];

/// A surrogate a token, and whether a response is one action.
#[derive(Clone, Copy, PartialEq)]
enum Per {
    Token,
    Response,
}

/// Every surrogate of std.ppo, to maximise.
#[rustfmt::skip]
const SURROGATES: &[(&str, Per)] = &[
    ("clipped(exp(lp - old), adv)", Per::Token),
    ("clipped(exp(lp - old), adv, hi: 0.28)", Per::Token),
    ("clipped(exp(lp - old), adv, 1e-4)", Per::Token),
    ("clipped(importance(lp, old), adv)", Per::Token),
    ("clipped(importance(lp, old, limit: 20), adv)", Per::Token),
    ("clipped(sequence_ratio(lp, old, T), adv, 3e-4, 4e-4)", Per::Response),
    ("clipped(sequence_ratio_by_token(lp, old, T), adv, 3e-4, 4e-4)", Per::Token),
    ("dual_clipped(exp(lp - old), adv)", Per::Token),
    ("cispo(exp(lp - old), adv, lp)", Per::Token),
    ("cispo(exp(lp - old), adv, lp, lo: 0.2, hi: 4)", Per::Token),
    ("sapo(exp(lp - old), adv)", Per::Token),
    ("gmpo(lp, old, adv, T)", Per::Response),
    ("vespo(lp, old, adv, T)", Per::Token),
    ("gpg(lp, adv)", Per::Token),
    ("dro(lp, old, adv)", Per::Token),
    ("reinforce(lp, adv)", Per::Token),
    ("truncated_weight(old, ref) * clipped(exp(lp - old), adv)", Per::Token),
    ("masked_weight(old, ref) * clipped(exp(lp - old), adv)", Per::Token),
];

/// Every other loss: its modules, itself, what it is a number of, what it is differentiated by.
#[rustfmt::skip]
const LOSSES: &[(&[&str], &str, Per, &str)] = &[
    (PPO, "-entropy_bonus(v)", Per::Token, "v"),
    (&["std.value"], "value_loss(v, was, ret)", Per::Token, "v"),
    (&["std.value"], "value_loss(v, was, normalised(ret, 0.2, 1.5), clip: 1e30, scale: 1)", Per::Token, "v"),
    (&["std.value"], "(denormalised(v, 0.2, 1.5) - ret) ^ 2", Per::Token, "v"),
    (&["std.kl"], "k1(lp, ref)", Per::Token, "lp"),
    (&["std.kl"], "k2(lp, ref)", Per::Token, "lp"),
    (&["std.kl"], "k3(lp, ref, limit: 0.3, cap: 0.05)", Per::Token, "lp"),
    (&["std.kl"], "absolute(lp, ref)", Per::Token, "lp"),
    (&["std.kl"], "ratio(lp, ref, limit: 0.3)", Per::Token, "lp"),
    (&["std.sft"], "nll(lp)", Per::Token, "lp"),
    (&["std.sft"], "dft(lp)", Per::Token, "lp"),
    (&["std.dpo"], "dpo(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "dpo(margin(win, lose, rw, rl, 3, 4), smooth: 0.1)", Per::Response, "lose"),
    (&["std.dpo"], "robust(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "ipo(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "hinge(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "exo(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "nca(win - rw, lose - rl)", Per::Response, "win"),
    // What ranges over the batch is found before the update, and is a constant in it.
    (&["std.dpo"], "bco(win - rw, lose - rl, delta: 0.3)", Per::Response, "lose"),
    (&["std.dpo"], "sppo(win - rw, lose - rl)", Per::Response, "win"),
    (&["std.dpo"], "apo_zero(win - rw, lose - rl)", Per::Response, "win"),
    (&["std.dpo"], "apo_down(win - rw, lose - rl)", Per::Response, "lose"),
    (&["std.dpo"], "discopop(margin(win, lose, rw, rl))", Per::Response, "win"),
    (&["std.dpo"], "dpo(forward_kl(win - rw) - forward_kl(lose - rl))", Per::Response, "win"),
    (&["std.dpo"], "dpo(jensen_shannon(win - rw) - jensen_shannon(lose - rl))", Per::Response, "win"),
    (&["std.dpo"], "dpo(alpha_divergence(win - rw) - alpha_divergence(lose - rl))", Per::Response, "win"),
    (&["std.dpo"], "wpo_weight(lp, T) * dpo(length_desensitised(lp - ref, 2, T))", Per::Response, "lp"),
    (&["std.preference"], "simpo(win, lose, weight: 0.5)", Per::Response, "win"),
    (&["std.preference"], "simpo(alpha_reward(win), alpha_reward(lose))", Per::Response, "win"),
    (&["std.preference"], "orpo(win, lose)", Per::Response, "win"),
    (&["std.preference"], "log_odds(win)", Per::Response, "win"),
    (&["std.preference"], "cpo(win, lose, -win)", Per::Response, "lose"),
    (&["std.kto"], "kto(win - rw, good > 0, 0.2, undesirable: 1.33)", Per::Response, "win"),
    (&["std.reward"], "preference(win, lose, 0.5)", Per::Response, "win"),
    (&["std.reward"], "centering(win, lose)", Per::Response, "lose"),
];

/// Functions of these modules that are computed before an update, over the whole batch.
const BEFORE: &[&str] = &[
    "bco_shift",
    "reference_point",
    "adaptive",
    "running_mean",
    "running_var",
];

#[test]
fn every_loss_of_the_library_is_under_both_laws() {
    let mut missing = vec![];
    for module in [
        "ppo",
        "value",
        "kl",
        "sft",
        "dpo",
        "preference",
        "kto",
        "reward",
    ] {
        let text = rlhf_stdlib::module(&format!("std.{module}")).unwrap();
        for line in text.lines() {
            let Some((name, _)) = line.strip_prefix("fn ").and_then(|l| l.split_once('(')) else {
                continue;
            };
            let call = format!("{name}(");
            let programs = SURROGATES.iter().map(|(program, _)| *program);
            let mut programs = programs.chain(LOSSES.iter().map(|(_, program, _, _)| *program));
            if !programs.any(|p| p.contains(&call)) && !BEFORE.contains(&name) {
                missing.push(format!("std.{module}.{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// The mean over tokens, or over responses.
fn mean(program: &str, per: Per) -> String {
    match per {
        Per::Token => format!("mean({program}, [B, T])"),
        Per::Response => format!("mean({program}, B)"),
    }
}

#[test]
fn at_a_ratio_of_one_every_surrogate_has_the_policy_gradient() {
    for seed in 0..12 {
        let batch = batch(seed).fresh();
        let all: Vec<usize> = (0..batch.rows()).collect();
        let given = batch.part(&all);
        for (surrogate, per) in SURROGATES {
            let plain = match per {
                Per::Token => "adv * lp",
                Per::Response => "mean(adv * lp, T)",
            };
            let theirs = Program::new(&mean(plain, *per), PPO, &given).gradient("lp");
            let ours = Program::new(&mean(surrogate, *per), PPO, &given).gradient("lp");
            let what = format!("seed {seed}: {surrogate}");
            assert_close(&what, &ours, &theirs, 1e-12);
            assert!(flat(&theirs).iter().any(|g| *g != 0.0), "{what}");
        }
    }
}

fn law_of_parts(seed: u64, uses: &[&str], program: &str, per: Per, by: &str) {
    let batch = batch(seed);
    let all: Vec<usize> = (0..batch.rows()).collect();
    let count = |rows: &[usize]| match per {
        Per::Token => batch.tokens(rows) as f64,
        Per::Response => rows.len() as f64,
    };
    let text = mean(program, per);
    let what = format!("seed {seed}: {program} by {by}");
    let whole = Program::new(&text, uses, &batch.part(&all));
    let (value, gradient) = (whole.value(), whole.gradient(by));
    let (mut sum, mut slopes) = (0.0, vec![]);
    for rows in all.chunks(2) {
        let part = Program::new(&text, uses, &batch.part(rows));
        let weight = count(rows) / count(&all);
        sum += weight * part.value().as_f64().expect("one number");
        let gradient = flat(&part.gradient(by));
        slopes.extend(gradient.iter().map(|g| weight * g));
    }
    assert_close(&what, &json!(sum), &value, 1e-12);
    let flat_gradient: Json = flat(&gradient).into();
    assert_close(&what, &slopes.into(), &flat_gradient, 1e-12);
}

#[test]
fn a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole() {
    for seed in 20..23 {
        for (surrogate, per) in SURROGATES {
            law_of_parts(seed, PPO, surrogate, *per, "lp");
        }
        for (uses, program, per, by) in LOSSES {
            law_of_parts(seed, uses, program, *per, by);
        }
    }
}
