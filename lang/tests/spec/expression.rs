//! `rlhf expr` blocks: what an expression is worth, what type it has, or what is wrong with it.
//!
//! Lines `// let: r[B: 2, G: 3], x[B: 2, G: 3, T], t[B: 2] text` and `// use: std.kl` declare inputs and
//! modules; every other line is an expression and `// = value`, `// : type` or `// error: CODE`.

use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::graph::{Elem, show};

use super::block::expectations;
use super::none;
use super::page::{Block, pages};

#[test]
fn every_expression_of_the_manual_is_worth_what_it_says() {
    let mut wrong = vec![];
    let mut count = 0;
    for page in pages() {
        for block in page.blocks().iter().filter(|b| b.is("expr")) {
            let (mut inputs, mut uses) = (vec![], vec![]);
            for line in block.text.lines().filter(|l| !l.trim().is_empty()) {
                if let Some(list) = line.strip_prefix("// let: ") {
                    inputs.extend(declared(list));
                } else if let Some(list) = line.strip_prefix("// use: ") {
                    uses.extend(list.split(", ").map(str::to_string));
                } else {
                    count += 1;
                    wrong.extend(differs(block, line, &inputs, &uses));
                }
            }
        }
    }
    none("expressions of the manual", &wrong);
    assert!(count > 40, "{count} expressions");
}

/// `r[B: 2, G: 3], t[B: 2] text`
fn declared(list: &str) -> Vec<Input> {
    let mut inputs = vec![];
    let mut rest = list;
    while !rest.is_empty() {
        let (name, after) = rest.split_once('[').unwrap_or((rest, "]"));
        let (axes, after) = after.split_once(']').unwrap_or((after, ""));
        let (elem, after) = after.split_once(',').unwrap_or((after, ""));
        let axis = |a: &str| match a.split_once(':') {
            Some((axis, n)) => (axis.trim().to_string(), n.trim().parse().ok()),
            None => (a.trim().to_string(), None),
        };
        inputs.push(Input {
            name: name.trim().into(),
            axes: axes
                .split(',')
                .filter(|a| !a.is_empty())
                .map(axis)
                .collect(),
            elem: match elem.trim() {
                "text" => Elem::Text,
                "bool" => Elem::Bool,
                "int" => Elem::Int,
                _ => Elem::Float,
            },
        });
        rest = after;
    }
    inputs
}

fn differs(block: &Block, line: &str, inputs: &[Input], uses: &[String]) -> Option<String> {
    let (text, errors) = expectations(line);
    let (text, wants) = match errors.first() {
        Some((_, code)) => (text, format!("error: {code}")),
        None => {
            let (text, wants) = line.split_once("//").unwrap_or((line, ""));
            (text.trim(), wants.trim().to_string())
        }
    };
    let is = match compile_expression(text, uses, inputs, &|_| None) {
        Ok(e) if wants.starts_with('=') => format!("= {}", show::formula(&e.graph, e.value)),
        Ok(e) => format!(": {}", e.graph.show_type(&e.graph.expr(e.value).ty)),
        Err((_, found)) => match &found[..] {
            [d] => format!("error: {}", d.code),
            all => format!("{} errors: {all:?}", all.len()),
        },
    };
    (is != wants).then(|| format!("{}: `{text}` {is}, and the page says {wants}", block.place))
}
