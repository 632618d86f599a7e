//! D303 to D305 and M119: what fits, what is cut, and what is left to learn from.

use crate::datacheck::case::{Case, Response};
use crate::datacheck::finding::{Finding, Place};

/// What is wrong with the lengths of one call.
pub fn check(case: &Case) -> Vec<Finding> {
    let all = [overflow(case), cut(case), empty(case)];
    all.into_iter().flatten().collect()
}

/// M119
fn overflow(case: &Case) -> Option<Finding> {
    let (positions, limit) = (case.positions?, case.call.limit);
    let model = &case.call.model;
    let longest = case.prompts.iter().max_by_key(|p| p.ids.len());
    let length = longest.map_or(0, |p| p.ids.len());
    if length + limit <= positions {
        return None;
    }
    let prompt = match longest {
        Some(p) => format!("prompt of {length} tokens ({}) + ", p.row.place()),
        None => String::new(),
    };
    let message = format!("{prompt}response ≤ {limit} exceeds `{model}`'s {positions} positions");
    let help = match positions.saturating_sub(length) {
        0 => "the prompt alone is too long: leave it out or shorten it".into(),
        room => format!("responses of at most {room} tokens fit, or leave out longer prompts"),
    };
    Some(Finding::error(
        "M119",
        Place::Call(case.index),
        message,
        help,
    ))
}

/// D303
fn cut(case: &Case) -> Option<Finding> {
    let limit = case.call.limit;
    let lengths = case.responses.iter().map(|r| r.ids.len());
    let longest = lengths.clone().max()?;
    let count = lengths.filter(|n| *n > limit).count();
    let axis = &case.call.axis;
    (count > 0).then(|| {
        Finding::warning(
            "D303",
            Place::Limit(case.index),
            format!(
                "{count} {}{} texts of {} are longer than {limit} tokens and lose their end",
                case.of(),
                case.responses.len(),
                case.response_name()
            ),
            format!(
                "the longest has {longest}, with the token that ends it: `[{axis}: ..{longest}]` keeps \
                 all of them whole"
            ),
        )
    })
}

/// D305
fn empty(case: &Case) -> Option<Finding> {
    if !case.call.trained {
        return None;
    }
    let mut empty = case.responses.iter().filter(|r| r.text.trim().is_empty());
    let first = empty.next()?;
    let more = match empty.count() {
        0 => String::new(),
        1 => ", and so in 1 more row".into(),
        n => format!(", and so in {n} more rows"),
    };
    Some(Finding::error(
        "D305",
        Place::Response(case.index),
        format!(
            "no response token of {} reaches the loss: {} is empty{more}",
            first.row.place(),
            case.response_name()
        ),
        "leave such rows out of the data: all they teach is to end at once",
    ))
}

/// D304: two responses to one prompt whose difference is cut off. What else is cut of them is no cause
/// of its own, so their D303 goes.
pub fn pairs(cases: &[Case], found: &mut Vec<Finding>) {
    for (i, a) in cases.iter().enumerate() {
        for b in &cases[i + 1..] {
            if a.call.prompt.is_some()
                && a.call.prompt == b.call.prompt
                && a.call.folder == b.call.folder
                && a.call.response != b.call.response
            {
                let Some(lost) = same(a, b) else { continue };
                let both = [Place::Limit(a.index), Place::Limit(b.index)];
                found.retain(|f| f.code != "D303" || !both.contains(&f.place));
                found.push(lost);
            }
        }
    }
}

fn same(a: &Case, b: &Case) -> Option<Finding> {
    let both = a
        .responses
        .iter()
        .filter_map(|x| Some((x, b.response_of(x.row)?)));
    let both: Vec<(&Response, &Response)> = both.collect();
    let kept = |r: &Response, case: &Case| r.ids[..r.ids.len().min(case.call.limit)].to_vec();
    let lost: Vec<_> = both
        .iter()
        .filter(|(x, y)| x.text != y.text && kept(x, a) == kept(y, b))
        .collect();
    if lost.is_empty() {
        return None;
    }
    let needed = lost.iter().map(|(x, y)| {
        let common = x.ids.iter().zip(&y.ids).take_while(|(p, q)| p == q);
        common.count() + 1
    });
    let needed = needed.max()?;
    let (limit, axis) = (a.call.limit, &a.call.axis);
    Some(Finding::error(
        "D304",
        Place::Limit(a.index),
        format!(
            "with `[{axis}: ..{limit}]`, {} {}{} rows lose every token in which {} and {} differ",
            lost.len(),
            a.of(),
            both.len(),
            a.response_name(),
            b.response_name()
        ),
        format!("a limit of {needed} or more keeps a difference in each of them"),
    ))
}
