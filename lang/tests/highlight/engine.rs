//! As much of a TextMate highlighter as the grammar needs: `match`, `begin` and `end`, captures,
//! `include`. The expressions run on Oniguruma, as they do in editors.

use std::collections::HashMap;

use onig::{MatchParam, Regex, Region, SearchOptions};
use serde_json::Value;

/// A grammar with its expressions compiled.
pub struct Grammar {
    json: Value,
    expressions: HashMap<String, Regex>,
}

/// A rule that is open: its end and what is inside.
#[derive(Clone)]
struct Open<'g> {
    rule: &'g Value,
    scope: Option<&'g str>,
}

impl Grammar {
    /// Reads a grammar; every expression in it must be valid.
    pub fn read(text: &str) -> Result<Grammar, String> {
        let json: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut expressions = HashMap::new();
        collect(&json, &mut expressions)?;
        Ok(Grammar { json, expressions })
    }

    /// The scopes of every byte of a text, innermost last, joined by spaces.
    pub fn scopes(&self, text: &str) -> Vec<String> {
        let mut scopes = vec![];
        let mut stack = vec![Open {
            rule: &self.json,
            scope: None,
        }];
        for line in text.split_inclusive('\n') {
            self.line(line, &mut stack, &mut scopes);
        }
        scopes
    }

    fn line<'g>(&'g self, line: &str, stack: &mut Vec<Open<'g>>, scopes: &mut Vec<String>) {
        let base = scopes.len();
        let mut at = 0;
        // A rule that ends where it begins must not begin there again.
        let mut steps = 0;
        while at <= line.len() && steps < 10_000 {
            steps += 1;
            let Some(top) = stack.last().cloned() else {
                break;
            };
            let end = top.rule["end"].as_str();
            let end = end.and_then(|e| Some((None, self.find(e, line, at)?)));
            let inside = self.rules(&top.rule["patterns"]);
            let found = inside.into_iter().filter_map(|rule| {
                let expression = rule["match"].as_str().or(rule["begin"].as_str())?;
                Some((Some(rule), self.find(expression, line, at)?))
            });
            let candidates = end.into_iter().chain(found);
            // The first of those that begin earliest.
            let Some((rule, region)) = candidates.min_by_key(|(_, r)| start(r)) else {
                break;
            };
            let (lo, hi) = region.pos(0).unwrap_or((line.len(), line.len()));
            fill(scopes, base + lo, stack, None);
            match rule {
                None => {
                    let own = top.rule["endCaptures"].clone();
                    paint(scopes, base, &region, stack, &own, None);
                    fill(scopes, base + hi, stack, None);
                    stack.pop();
                }
                Some(rule) => {
                    let scope = rule["name"].as_str();
                    let is_begin = rule["begin"].is_string();
                    let captures = match is_begin {
                        true => &rule["beginCaptures"],
                        false => &rule["captures"],
                    };
                    paint(scopes, base, &region, stack, captures, scope);
                    fill(scopes, base + hi, stack, scope);
                    if is_begin {
                        stack.push(Open { rule, scope });
                    } else if lo == hi {
                        at = hi + 1;
                        continue;
                    }
                }
            }
            at = hi;
        }
        fill(scopes, base + line.len(), stack, None);
    }

    fn find(&self, expression: &str, line: &str, from: usize) -> Option<Region> {
        let regex = self.expressions.get(expression)?;
        let mut region = Region::new();
        let param = MatchParam::default();
        let options = SearchOptions::SEARCH_OPTION_NONE;
        let to = line.len();
        if !line.is_char_boundary(from) {
            return None;
        }
        regex
            .search_with_param(line, from, to, options, Some(&mut region), param)
            .ok()??;
        Some(region)
    }

    /// Rules with their includes put in.
    fn rules<'g>(&'g self, patterns: &'g Value) -> Vec<&'g Value> {
        let mut rules = vec![];
        for rule in patterns.as_array().into_iter().flatten() {
            let Some(include) = rule["include"].as_str() else {
                rules.push(rule);
                continue;
            };
            let named = &self.json["repository"][include.trim_start_matches('#')];
            let is_rule = named["match"].is_string() || named["begin"].is_string();
            match is_rule {
                true => rules.push(named),
                false => rules.extend(self.rules(&named["patterns"])),
            }
        }
        rules
    }
}

fn start(region: &Region) -> usize {
    region.pos(0).map_or(usize::MAX, |(lo, _)| lo)
}

/// Scopes up to a byte: those of the open rules, and of the rule that has just matched.
fn fill(scopes: &mut Vec<String>, to: usize, stack: &[Open], own: Option<&str>) {
    let mut names: Vec<&str> = stack.iter().filter_map(|o| o.scope).collect();
    names.extend(own);
    let joined = names.join(" ");
    while scopes.len() < to {
        scopes.push(joined.clone());
    }
}

/// The scopes of a match with its captures, in order.
fn paint(
    scopes: &mut Vec<String>,
    base: usize,
    region: &Region,
    stack: &[Open],
    captures: &Value,
    own: Option<&str>,
) {
    for i in 0..region.len() {
        let Some((lo, hi)) = region.pos(i) else {
            continue;
        };
        let Some(name) = captures[i.to_string()]["name"].as_str() else {
            continue;
        };
        fill(scopes, base + lo, stack, own);
        let mut names: Vec<&str> = stack.iter().filter_map(|o| o.scope).collect();
        names.extend(own);
        names.push(name);
        let joined = names.join(" ");
        while scopes.len() < base + hi {
            scopes.push(joined.clone());
        }
    }
}

fn collect(value: &Value, into: &mut HashMap<String, Regex>) -> Result<(), String> {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if let ("match" | "begin" | "end", Some(text)) = (key.as_str(), field.as_str()) {
                    let regex = Regex::new(text).map_err(|e| format!("{text}: {e}"))?;
                    into.insert(text.to_string(), regex);
                }
                collect(field, into)?;
            }
            Ok(())
        }
        Value::Array(list) => list.iter().try_for_each(|v| collect(v, into)),
        _ => Ok(()),
    }
}
