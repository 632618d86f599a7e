//! `place`: the plan in the program's text. What it may say never changes a number.

use crate::ast::{self, Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{Cluster, Place, Placed, Setting};
use crate::source::Span;

use super::args::{ROWS, label, must};
use super::{Env, Sema, nearest};

/// The most devices of a cluster and of its parts.
const DEVICES: usize = 1_000_000;

/// How a setting's value is read.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Int,
    Bool,
    Word(&'static [&'static str]),
}

/// What a call's braces may hold.
const SETTINGS: [(&str, Reads); 12] = [
    ("dp", Reads::Int),
    ("tp", Reads::Int),
    ("pp", Reads::Int),
    ("ep", Reads::Int),
    ("sp", Reads::Bool),
    ("zero", Reads::Int),
    ("micro", Reads::Int),
    ("decode", Reads::Int),
    ("recompute", Reads::Bool),
    ("offload", Reads::Word(&["host", "optimizer", "none"])),
    ("overlap", Reads::Bool),
    ("cache", Reads::Bool),
];

/// Settings that change results, and where each belongs.
const MATHEMATICS: [(&str, &str); 15] = [
    ("temperature", "`generate(…)`"),
    ("top_p", "`generate(…)`"),
    ("top_k", "`generate(…)`"),
    ("min_tokens", "`generate(…)`"),
    ("stop", "`generate(…)`"),
    ("stale", "`generate(…)`"),
    ("minibatch", "`train …`"),
    ("epochs", "`train …`"),
    ("shuffle", "`train …`"),
    ("batch", "`step over …`"),
    ("iterations", "`step over …`"),
    ("dtype", "`model …`"),
    ("lora", "`model …`"),
    ("lr", "`adamw(…)`"),
    ("seed", "`rlhf run --seed`"),
];

impl Sema<'_> {
    pub(crate) fn plan(&mut self, p: &ast::Place, span: Span) -> Option<Place> {
        let cluster = self.cluster(&p.cluster)?;
        let mut calls: Vec<Placed> = vec![];
        for call in &p.calls {
            let Some(placed) = self.placed(call) else {
                continue;
            };
            if let Some(first) = calls.iter().find(|c| c.name == placed.name) {
                let first = first.name_span;
                let line = self.line(first);
                self.report(
                    Diagnostic::error(
                        "E011",
                        placed.name_span,
                        format!("`{}` is already placed on line {line}", placed.name),
                    )
                    .label(first, "placed here"),
                );
                continue;
            }
            calls.push(placed);
        }
        Some(Place {
            program: p.program.text.clone(),
            cluster,
            calls,
            span,
        })
    }

    fn cluster(&mut self, e: &Expr) -> Option<Cluster> {
        let (callee, args) = self.source_call(e)?;
        if callee.text != "cluster" {
            return self.fail(
                Diagnostic::error(
                    "E010",
                    callee.span,
                    format!("a plan is on a `cluster`, not on `{}`", callee.text),
                )
                .help("as in `on cluster(nodes: 1, gpus: 8, device: \"h100-80g\")`"),
            );
        }
        let slots = [label("nodes"), label("gpus"), label("device")];
        let found = self.arguments("E016", callee, args, &slots)?;
        let mut env = Env::of(0);
        let nodes = match found[0] {
            Some(n) => self.whole(n, &mut env, "nodes", (1, DEVICES))?,
            None => 1,
        };
        let gpus = match found[1] {
            Some(n) => self.whole(n, &mut env, "gpus", (1, DEVICES))?,
            None => 1,
        };
        let device = match found[2] {
            Some(d) => self.text_of(d, &mut env, "device")?,
            None => "cpu".into(),
        };
        Some(Cluster {
            nodes,
            gpus,
            device,
            span: e.span,
        })
    }

    fn placed(&mut self, call: &ast::PlaceCall) -> Option<Placed> {
        let (callee, args) = self.source_call(&call.devices)?;
        if callee.text != "gpus" {
            return self.fail(
                Diagnostic::error(
                    "E010",
                    callee.span,
                    format!("a call is placed on `gpus`, not on `{}`", callee.text),
                )
                .help("as in `on gpus(0, 8)`: from the first, up to and without the last"),
            );
        }
        let found = self.arguments("E016", callee, args, &[must("from"), must("to")])?;
        let mut env = Env::of(0);
        let lo = self.whole(found[0]?, &mut env, "from", (0, DEVICES))?;
        let hi = self.whole(found[1]?, &mut env, "to", (0, DEVICES))?;
        if hi <= lo {
            return self.fail(
                Diagnostic::error(
                    "E018",
                    call.devices.span,
                    format!("`gpus({lo}, {hi})` holds no device"),
                )
                .help("the second number is one past the last device"),
            );
        }
        let name = match call.train {
            true => format!("train {}", call.name.text),
            false => call.name.text.clone(),
        };
        let mut placed = Placed {
            name,
            name_span: call.name.span,
            lo,
            hi,
            devices: call.devices.span,
            dp: 1,
            tp: 1,
            pp: 1,
            settings: vec![],
            spans: vec![],
            span: call.span,
        };
        for option in &call.options {
            self.setting(option, &mut placed)?;
        }
        if !placed.spans.iter().any(|(n, _)| n == "dp") {
            // What is left of the devices is data parallel.
            placed.dp = ((hi - lo) / placed.tp.saturating_mul(placed.pp).max(1)).max(1);
        }
        Some(placed)
    }

    fn setting(&mut self, option: &Arg, placed: &mut Placed) -> Option<()> {
        let Some(name) = &option.label else {
            let text = self.quote(option.value.span);
            return self.fail(
                Diagnostic::error("E016", option.value.span, format!("{text} has no name"))
                    .help("as in `{ dp: 4, tp: 2 }`"),
            );
        };
        let Some((_, reads)) = SETTINGS.iter().find(|(n, _)| *n == name.text) else {
            return self.no_setting(name);
        };
        if placed.spans.iter().any(|(n, _)| *n == name.text) {
            return self.fail(Diagnostic::error(
                "E016",
                name.span,
                format!("`{}` is given twice", name.text),
            ));
        }
        let mut env = Env::of(0);
        let e = &option.value;
        let lowest = usize::from(name.text != "zero");
        let value = match reads {
            Reads::Int => Setting::Int(self.whole(e, &mut env, &name.text, (lowest, ROWS))?),
            Reads::Bool => Setting::Bool(self.truth_of(e, &mut env, &name.text)?),
            Reads::Word(words) => {
                let word = match &e.kind {
                    ExprKind::Bool(false) => "none".to_string(),
                    _ => self.word(e, &name.text)?,
                };
                if !words.contains(&word.as_str()) {
                    return self.fail(
                        Diagnostic::error(
                            "E018",
                            e.span,
                            format!("`{}` cannot be `{word}`", name.text),
                        )
                        .help(format!("it is one of `{}`", words.join("`, `"))),
                    );
                }
                Setting::Word(word)
            }
        };
        placed.spans.push((name.text.clone(), e.span));
        match (name.text.as_str(), &value) {
            ("dp", Setting::Int(n)) => placed.dp = *n,
            ("tp", Setting::Int(n)) => placed.tp = *n,
            ("pp", Setting::Int(n)) => placed.pp = *n,
            ("zero", Setting::Int(n)) if *n > 3 => {
                return self.fail(
                    Diagnostic::error("E018", e.span, format!("`zero` cannot be {n}")).help(
                        "0 shards nothing, 1 the optimizer, 2 also gradients, 3 also weights",
                    ),
                );
            }
            _ => placed.settings.push((name.text.clone(), value)),
        }
        Some(())
    }

    /// P215 for what would change results, else an unknown setting.
    fn no_setting<T>(&mut self, name: &Name) -> Option<T> {
        if let Some((_, belongs)) = MATHEMATICS.iter().find(|(n, _)| *n == name.text) {
            return self.fail(
                Diagnostic::error(
                    "P215",
                    name.span,
                    format!(
                        "`{}` changes results, so it belongs in {belongs}, not in `place`",
                        name.text
                    ),
                )
                .help("a plan says where and in which pieces; it never changes a number"),
            );
        }
        let known = SETTINGS.iter().map(|(n, _)| *n);
        let d = Diagnostic::error(
            "E016",
            name.span,
            format!("a plan has no setting `{}`", name.text),
        );
        self.fail(match nearest(&name.text, known.clone()) {
            Some(near) => d
                .help(format!("a similar one: `{near}`"))
                .guess(format!("use `{near}`"), vec![(name.span, near.into())]),
            None => {
                let list: Vec<&str> = known.collect();
                d.help(format!("the settings are `{}`", list.join("`, `")))
            }
        })
    }
}
