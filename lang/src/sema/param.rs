//! Params: types, ranges, defaults and the values given for a run.

use crate::ast::{self, ExprKind, ItemKind, TypeKind};
use crate::diag::Diagnostic;
use crate::graph::{Const, Param};
use crate::source::Span;

use super::{Def, Env, Sema, nearest};

/// The ends of a range, both included, and where it stands.
type Limits = ((Option<f64>, Option<f64>), Span);

/// What a param may hold.
enum Domain<'t> {
    Int,
    Float,
    Bool,
    Text,
    Enum(&'t [(String, Span)]),
}

impl Sema<'_> {
    /// Reads every `param` of the program, in order; a default may use the params above it.
    pub(crate) fn params(&mut self, overrides: &[(String, String)]) {
        let file = self.modules[0].file.clone();
        for item in &file.items {
            let ItemKind::Param(p) = &item.kind else {
                continue;
            };
            let given = overrides.iter().rev().find(|(n, _)| *n == p.name.text);
            let index = self.graph.params.len();
            let value = self.param(p, given.map(|(_, v)| v.as_str()));
            if value.is_none() {
                self.unset.insert(index);
            }
            let slice = |s: Span| self.sources.get(s.file).slice(s).to_string();
            let param = Param {
                name: p.name.text.clone(),
                ty: slice(p.ty.span),
                range: p.range.as_ref().map(|r| slice(r.span)),
                doc: item.doc.clone().unwrap_or_default(),
                default: p.default.as_ref().map(|d| slice(d.span)),
                value: value.unwrap_or(Const::Text(String::new())),
                overridden: given.is_some(),
                span: p.name.span,
            };
            self.graph.params.push(param);
            self.define(0, &p.name, Def::Param(index));
        }
        for (name, _) in overrides {
            self.known_param(name);
        }
    }

    fn known_param(&mut self, name: &str) {
        let params = &self.graph.params;
        if params.iter().any(|p| p.name == name) || self.lost_items(0) {
            return;
        }
        let file = self.sources.iter().next().map(|(_, s)| s.name.clone());
        let mut d = Diagnostic::bare(
            "E012",
            format!("`{}` has no parameter `{name}`", file.unwrap_or_default()),
        );
        let near = nearest(name, params.iter().map(|p| p.name.as_str()));
        let near = near.and_then(|n| params.iter().find(|p| p.name == n));
        d = match near {
            Some(p) => d.help(format!("similar: `{}`", declaration(p))),
            None if params.is_empty() => d.help("it has none"),
            None => {
                let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
                d.help(format!("its parameters are {}", names.join(", ")))
            }
        };
        self.report(d);
    }

    fn param(&mut self, p: &ast::Param, given: Option<&str>) -> Option<Const> {
        let domain = self.domain(&p.ty)?;
        let range = match &p.range {
            Some(r) => Some((self.bounds(r)?, r.span)),
            None => None,
        };
        // The default is checked even when it is not used.
        let default = p
            .default
            .as_ref()
            .map(|e| self.param_default(p, e, &domain, &range));
        if let Some(text) = given {
            return self.param_given(p, text, &domain, &range);
        }
        match default {
            Some(value) => value,
            None => self.fail(
                Diagnostic::error(
                    "E019",
                    p.name.span,
                    format!("`{}` has no default and needs a value", p.name.text),
                )
                .help(format!("give it on the command line: `{}=…`", p.name.text)),
            ),
        }
    }

    fn domain<'t>(&mut self, ty: &'t ast::Type) -> Option<Domain<'t>> {
        match &ty.kind {
            TypeKind::Enum(cases) => Some(Domain::Enum(cases)),
            TypeKind::Name(n) => match n.as_str() {
                "int" => Some(Domain::Int),
                "float" => Some(Domain::Float),
                "bool" => Some(Domain::Bool),
                "text" | "path" | "checkpoint" => Some(Domain::Text),
                _ => self.no_param_type(n, ty.span),
            },
            TypeKind::List(n) => self.no_param_type(&format!("{n}[]"), ty.span),
        }
    }

    fn no_param_type<T>(&mut self, name: &str, span: Span) -> Option<T> {
        self.fail(
            Diagnostic::error("E017", span, format!("no parameter has type `{name}`")).help(
                "types are `int`, `float`, `bool`, `text`, `path`, `checkpoint` and enums such as `\"a\" | \"b\"`",
            ),
        )
    }

    fn bounds(&mut self, r: &ast::Expr) -> Option<(Option<f64>, Option<f64>)> {
        let ExprKind::Range { lo, hi } = &r.kind else {
            return self.fail(
                Diagnostic::error("E018", r.span, "a range is expected after `in`")
                    .help("as in `in 0..1` or `in 1..`"),
            );
        };
        let mut env = Env::of(0);
        let mut end = |e: &Option<Box<ast::Expr>>| match e {
            Some(e) => self
                .real(e, &mut env, "in", (f64::NEG_INFINITY, f64::INFINITY))
                .map(Some),
            None => Some(None),
        };
        Some((end(lo)?, end(hi)?))
    }

    fn param_default(
        &mut self,
        p: &ast::Param,
        e: &ast::Expr,
        domain: &Domain,
        range: &Option<Limits>,
    ) -> Option<Const> {
        let mut env = Env::of(0);
        let value = self.constant_of(e, &mut env, &p.name.text)?;
        let value = match (domain, value) {
            (Domain::Int, v @ Const::Int(_)) | (Domain::Bool, v @ Const::Bool(_)) => v,
            (Domain::Float, Const::Int(i)) => Const::Float(i as f64),
            (Domain::Float, v @ Const::Float(_)) => v,
            (Domain::Text, v @ Const::Text(_)) => v,
            (Domain::Enum(cases), Const::Text(t)) => {
                if !cases.iter().any(|(c, _)| *c == t) {
                    return self.not_a_case(&p.name.text, &t, cases, Some(e.span));
                }
                Const::Text(t)
            }
            (domain, _) => {
                let text = self.quote(e.span);
                let wants = wants(domain);
                return self.fail(Diagnostic::error(
                    "E013",
                    e.span,
                    format!(
                        "`{}` is {wants}, and its default {text} is not",
                        p.name.text
                    ),
                ));
            }
        };
        self.within(p, value, range, Some(e.span))
    }

    fn param_given(
        &mut self,
        p: &ast::Param,
        text: &str,
        domain: &Domain,
        range: &Option<Limits>,
    ) -> Option<Const> {
        let name = &p.name.text;
        let value = match domain {
            Domain::Int => text.parse().ok().map(Const::Int),
            Domain::Float => text
                .parse()
                .ok()
                .filter(|f: &f64| f.is_finite())
                .map(Const::Float),
            Domain::Bool => text.parse().ok().map(Const::Bool),
            Domain::Text => Some(Const::Text(text.into())),
            Domain::Enum(cases) => {
                if !cases.iter().any(|(c, _)| c == text) {
                    return self.not_a_case(name, text, cases, None);
                }
                Some(Const::Text(text.into()))
            }
        };
        match value {
            Some(value) => self.within(p, value, range, None),
            None => {
                let wants = wants(domain);
                let mut d = Diagnostic::bare("E013", format!("`{name}={text}` is not {wants}"));
                d.labels.push(crate::diag::Label {
                    span: p.name.span,
                    text: "declared here".into(),
                });
                self.fail(d)
            }
        }
    }

    fn not_a_case<T>(
        &mut self,
        name: &str,
        text: &str,
        cases: &[(String, Span)],
        span: Option<Span>,
    ) -> Option<T> {
        let list: Vec<String> = cases.iter().map(|(c, _)| format!("\"{c}\"")).collect();
        let message = format!("`{name}` cannot be \"{text}\"");
        let span = span.or(cases.first().map(|(_, s)| *s)).unwrap_or_default();
        let near = nearest(text, cases.iter().map(|(c, _)| c.as_str()));
        let help = match near {
            Some(near) => format!("one of {}; similar: \"{near}\"", list.join(", ")),
            None => format!("one of {}", list.join(", ")),
        };
        self.fail(Diagnostic::error("E013", span, message).help(help))
    }

    fn within(
        &mut self,
        p: &ast::Param,
        value: Const,
        range: &Option<Limits>,
        span: Option<Span>,
    ) -> Option<Const> {
        let Some(((lo, hi), at)) = range else {
            return Some(value);
        };
        let number = match value {
            Const::Int(i) => i as f64,
            Const::Float(f) => f,
            _ => {
                return self.fail(Diagnostic::error(
                    "E018",
                    *at,
                    format!("`{}` is not a number and has no range", p.name.text),
                ));
            }
        };
        if lo.is_none_or(|lo| number >= lo) && hi.is_none_or(|hi| number <= hi) {
            return Some(value);
        }
        let range = self.quote(*at);
        let shown = match value {
            Const::Int(i) => i.to_string(),
            _ => number.to_string(),
        };
        let message = format!("`{}={shown}` is outside {range}", p.name.text);
        self.fail(match span {
            Some(span) => Diagnostic::error("E013", span, message).label(*at, "the range"),
            None => Diagnostic::error("E013", *at, message).here("declared here"),
        })
    }
}

fn wants(domain: &Domain) -> &'static str {
    match domain {
        Domain::Int => "a whole number",
        Domain::Float => "a number",
        Domain::Bool => "`true` or `false`",
        Domain::Text | Domain::Enum(_) => "text",
    }
}

/// `group: int in 2.. = 8`
fn declaration(p: &Param) -> String {
    let mut text = format!("{}: {}", p.name, p.ty);
    if let Some(range) = &p.range {
        text += &format!(" in {range}");
    }
    if let Some(default) = &p.default {
        text += &format!(" = {default}");
    }
    text
}
