//! The batches of the fixture as named inputs: rows without their padding, token log-probabilities in
//! place of logits.

use serde_json::{Value as Json, json};

use super::programs::World;

/// A named input: axes, outermost first, and nested lists.
pub struct Input {
    /// As the program says it.
    pub name: &'static str,
    /// The names of its axes.
    pub axes: &'static [&'static str],
    /// Its elements.
    pub data: Json,
}

fn input(name: &'static str, axes: &'static [&'static str], data: Json) -> Input {
    Input { name, axes, data }
}

fn numbers(json: &Json) -> Vec<f64> {
    let items = json.as_array().expect("a list");
    items
        .iter()
        .map(|x| x.as_f64().expect("a number"))
        .collect()
}

fn rows(json: &Json) -> Vec<Vec<f64>> {
    json.as_array().expect("rows").iter().map(numbers).collect()
}

/// The entries of each row where the mask is 1.
fn kept(data: &Json, mask: &Json) -> Json {
    let pairs = rows(data).into_iter().zip(rows(mask));
    let row = |(x, m): (Vec<f64>, Vec<f64>)| -> Vec<f64> {
        let pairs = x.into_iter().zip(m);
        pairs.filter(|(_, m)| *m == 1.0).map(|(x, _)| x).collect()
    };
    json!(pairs.map(row).collect::<Vec<_>>())
}

/// A padded result without its padding.
pub fn trimmed(fixture: &Json, data: &Json, world: World) -> Json {
    match world {
        World::Whiten => kept(data, &fixture["trl"]["masked_whiten"]["mask"]),
        _ => kept(data, &fixture["inputs"]["mask"]),
    }
}

pub fn of(fixture: &Json, world: World, path: &str) -> Vec<Input> {
    let (trl, open) = (&fixture["trl"], &fixture["openrlhf"]);
    match world {
        World::Policy => {
            let of = |name: &str| kept(&fixture["inputs"][name], &fixture["inputs"]["mask"]);
            vec![
                input("lp", &["B", "T"], of("log_prob")),
                input("old", &["B", "T"], of("old_log_prob")),
                input("ref", &["B", "T"], of("ref_log_prob")),
                input("v", &["B", "T"], of("values")),
                input("adv", &["B"], fixture["inputs"]["advantages_seq"].clone()),
                input("s", &["B"], fixture["inputs"]["scores"].clone()),
                input("r", &["B", "T"], {
                    let rewards = &open["compute_reward_klcoef0.05"];
                    kept(rewards, &fixture["inputs"]["mask"])
                }),
            ]
        }
        World::Sums => {
            let of = |name: &str| open["dpo_inputs"][name].clone();
            vec![
                input("win", &["B"], of("policy_chosen_logps")),
                input("lose", &["B"], of("policy_rejected_logps")),
                input("rw", &["B"], of("ref_chosen_logps")),
                input("rl", &["B"], of("ref_rejected_logps")),
            ]
        }
        World::Scores => vec![
            input("win", &["B"], open["rm"]["chosen"].clone()),
            input("lose", &["B"], open["rm"]["rejected"].clone()),
            input("gap", &["B"], open["rm"]["margin"].clone()),
        ],
        World::Means => vec![
            input("win", &["B"], trl["orpo"]["avg_chosen_logps"].clone()),
            input("lose", &["B"], trl["orpo"]["avg_rejected_logps"].clone()),
        ],
        World::Tokens => tokens(fixture, &["B", "L"]),
        World::Unpaired => tokens(fixture, &["E", "L"]),
        World::Singles => {
            let config = &super::at(fixture, path)["config"];
            let pairs = numbers(&config["KL_logps"]).into_iter();
            let pairs = pairs.zip(numbers(&config["ref_KL_logps"]));
            let others = pairs.map(|(p, q)| p - q).collect::<Vec<_>>();
            let all = scored(fixture);
            vec![
                input("lp", &["B", "T"], per_token(&all, &|t| t.logp)),
                input("ref", &["B", "T"], per_token(&all, &|t| t.ref_logp)),
                input("good", &["B"], json!([1, 1, 1, 0, 0, 0])),
                input("other", &["C"], json!(others)),
            ]
        }
        World::Whiten => {
            let whiten = &trl["masked_whiten"];
            vec![input(
                "x",
                &["B", "T"],
                kept(&whiten["values"], &whiten["mask"]),
            )]
        }
        World::Groups => {
            let values = trl["nanstd"]["values"].as_array().expect("a list");
            let group = |g: &[Json]| g.iter().filter(|x| !x.is_null()).cloned().collect();
            let groups: Vec<Json> = values.chunks(4).map(group).collect();
            vec![input("r", &["B", "G"], json!(groups))]
        }
    }
}

/// One scored token of the batch of logits.
struct Token {
    logp: f64,
    ref_logp: f64,
    /// log Σp² under the policy.
    collision: f64,
    /// |∂logp/∂logits|²
    slope: f64,
}

fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logits.iter().map(|x| (x - top).exp()).sum();
    logits.iter().map(|x| x - top - sum.ln()).collect()
}

/// Row by row; logits at t predict the token at t + 1.
fn scored(fixture: &Json) -> Vec<Vec<Token>> {
    let batch = &fixture["trl"]["dpo_inputs"];
    let (ids, mask) = (rows(&batch["input_ids"]), rows(&batch["completion_mask"]));
    let logits = |name: &str| -> Vec<Vec<Vec<f64>>> {
        let all = batch[name].as_array().expect("rows");
        all.iter().map(rows).collect()
    };
    let (policy, reference) = (logits("policy_logits"), logits("ref_logits"));
    let token = |row: usize, t: usize| {
        let id = ids[row][t] as usize;
        let (p, q) = (
            log_softmax(&policy[row][t - 1]),
            log_softmax(&reference[row][t - 1]),
        );
        let squares: f64 = p.iter().map(|x| (2.0 * x).exp()).sum();
        Token {
            logp: p[id],
            ref_logp: q[id],
            collision: squares.ln(),
            slope: squares + 1.0 - 2.0 * p[id].exp(),
        }
    };
    let row = |row: usize| {
        let places = (1..ids[row].len()).filter(|t| mask[row][*t] == 1.0);
        places.map(|t| token(row, t)).collect()
    };
    (0..ids.len()).map(row).collect()
}

type Of<'a> = &'a dyn Fn(&Token) -> f64;

fn per_token(rows: &[Vec<Token>], of: Of) -> Json {
    let row = |r: &Vec<Token>| r.iter().map(of).collect::<Vec<f64>>();
    json!(rows.iter().map(row).collect::<Vec<_>>())
}

fn per_row(rows: &[Vec<Token>], of: Of) -> Vec<f64> {
    rows.iter().map(|r| r.iter().map(of).sum()).collect()
}

/// Rows 0 to 2 are chosen and 3 to 5 rejected.
fn tokens(fixture: &Json, lose_axes: &'static [&'static str]) -> Vec<Input> {
    let all = scored(fixture);
    let (win, lose) = all.split_at(3);
    let less = |of: Of| -> Json {
        let pairs = per_row(win, of).into_iter().zip(per_row(lose, of));
        json!(pairs.map(|(a, b)| a - b).collect::<Vec<_>>())
    };
    let ratio = |t: &Token| t.logp - t.ref_logp;
    vec![
        input("win", &["B", "W"], per_token(win, &|t| t.logp)),
        input("lose", lose_axes, per_token(lose, &|t| t.logp)),
        input("ref_win", &["B", "W"], per_token(win, &|t| t.ref_logp)),
        input("ref_lose", lose_axes, per_token(lose, &|t| t.ref_logp)),
        input("same_win", &["B", "W"], per_token(win, &|t| t.collision)),
        input("same_lose", lose_axes, per_token(lose, &|t| t.collision)),
        // Sums of rows along axes of their own, for losses that compare rows with rows.
        input("w_again", &["C"], json!(per_row(win, &ratio))),
        input("l_again", &["D"], json!(per_row(lose, &ratio))),
        input("p_again", &["C"], less(&|t| t.logp)),
        input("q_again", &["D"], less(&|t| t.ref_logp)),
        input("q", &["F"], less(&|t| t.ref_logp)),
    ]
}

/// See [`super::logits_norm`].
pub fn logits_norm(fixture: &Json, gradients: &[Json]) -> f64 {
    let slopes = scored(fixture);
    let slopes = slopes.iter().flatten().map(|t| t.slope);
    let gradients: Vec<f64> = gradients.iter().flat_map(super::flat).collect();
    let parts = gradients.iter().zip(slopes);
    parts.map(|(g, s)| g * g * s).sum::<f64>().sqrt()
}
