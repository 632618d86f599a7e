//! Declarations of what comes from outside: data sets and rewards.

use crate::ast::{self, Arg, Expr, ExprKind, Name, TypeKind};
use crate::diag::Diagnostic;
use crate::graph::{Column, Data, Elem, Reward, RewardSource};
use crate::source::Span;

use super::args::{WORKERS, label, must};
use super::{Env, Sema, nearest};

/// Where rows come from.
const FORMATS: [&str; 5] = ["jsonl", "json", "csv", "parquet", "hf"];

/// Where external rewards come from.
const REWARDS: [&str; 3] = ["python", "http", "command"];

impl Sema<'_> {
    /// `jsonl("data/sums.jsonl") { question: text }`
    pub(crate) fn data(&mut self, d: &ast::Data) -> Option<Data> {
        let (callee, args) = self.source_call(&d.source)?;
        let format = callee.text.as_str();
        if !FORMATS.contains(&format) {
            return self.no_source("data", callee, &FORMATS);
        }
        let slots: &[_] = match format {
            "hf" => &[must("id"), label("split"), label("config")],
            _ => &[must("path")],
        };
        let found = self.arguments("E016", callee, args, slots)?;
        let mut named = |i: usize, what: &str| match found.get(i).copied().flatten() {
            Some(e) => self.text_of(e, &mut Env::of(0), what).map(Some),
            None => Some(None),
        };
        let (split, config) = (named(1, "split")?, named(2, "config")?);
        let path = found[0]?;
        let mut columns: Vec<Column> = vec![];
        for c in &d.columns {
            if let Some(first) = columns.iter().find(|k| k.name == c.name.text) {
                let first = first.span;
                self.duplicate(&c.name, first);
                continue;
            }
            let elem = self.element(&c.ty)?;
            columns.push(Column {
                name: c.name.text.clone(),
                source: c.from.as_ref().map_or(&c.name.text, |(s, _)| s).clone(),
                elem,
                span: c.name.span,
            });
        }
        Some(Data {
            name: d.name.text.clone(),
            format: callee.text.clone(),
            path: self.text_of(path, &mut Env::of(0), "path")?,
            split,
            config,
            columns,
            span: d.name.span,
            path_span: path.span,
        })
    }

    fn no_source<T>(&mut self, what: &str, callee: &Name, known: &[&str]) -> Option<T> {
        let name = &callee.text;
        let d = Diagnostic::error("E010", callee.span, format!("no {what} source `{name}`"));
        self.fail(match nearest(name, known.iter().copied()) {
            Some(near) => d
                .help(format!("a similar one: `{near}`"))
                .guess(format!("use `{near}`"), vec![(callee.span, near.into())]),
            None => d.help(format!("the sources are `{}`", known.join("`, `"))),
        })
    }

    pub(crate) fn source_call<'e>(&mut self, e: &'e Expr) -> Option<(&'e Name, &'e [Arg])> {
        match &e.kind {
            ExprKind::Call { callee, args, axes } => {
                if let Some(a) = axes.first() {
                    return self.fail(Diagnostic::error(
                        "E037",
                        a.span,
                        format!("`{}` introduces no axis", callee.text),
                    ));
                }
                Some((callee, args))
            }
            ExprKind::Bad => None,
            _ => {
                let text = self.quote(e.span);
                self.fail(Diagnostic::error(
                    "E017",
                    e.span,
                    format!("a call is expected here, and {text} is none"),
                ))
            }
        }
    }

    /// The element type of a column or of a reward's argument.
    pub(crate) fn element(&mut self, ty: &ast::Type) -> Option<Elem> {
        let elem = match &ty.kind {
            TypeKind::Name(n) => match n.as_str() {
                "text" => Some(Elem::Text),
                "chat" => Some(Elem::Chat),
                "int" => Some(Elem::Int),
                "float" => Some(Elem::Float),
                "bool" => Some(Elem::Bool),
                _ => None,
            },
            TypeKind::List(n) if n == "text" => Some(Elem::TextList),
            _ => None,
        };
        if let (Some(elem), None) = (elem, &ty.axes) {
            return Some(elem);
        }
        let text = self.quote(ty.span);
        self.fail(
            Diagnostic::error(
                "E017",
                ty.span,
                format!("{text} is not a type of one element"),
            )
            .help("`text`, `chat`, `int`, `float`, `bool` and `text[]` are"),
        )
    }

    /// `reward f(a: text) -> float = python("file.py:fn", timeout: 10, otherwise: 0)`
    pub(crate) fn reward(&mut self, r: &ast::Reward) -> Option<Reward> {
        let mut params = vec![];
        for p in &r.params {
            if let Some(d) = &p.default {
                return self.fail(Diagnostic::error(
                    "E034",
                    d.span,
                    "a reward's arguments have no defaults",
                ));
            }
            params.push((p.name.text.clone(), self.element(&p.ty)?));
        }
        let result = self.element(&r.result)?;
        if !matches!(result, Elem::Float | Elem::Int | Elem::Bool) {
            let text = self.quote(r.result.span);
            return self.fail(
                Diagnostic::error(
                    "E034",
                    r.result.span,
                    format!("a reward gives a number, not {text}"),
                )
                .help("`float`, `int` or `bool`"),
            );
        }
        let (callee, args) = self.source_call(&r.source)?;
        let first = match callee.text.as_str() {
            "python" => "path",
            "http" => "url",
            "command" => "command",
            _ => return self.no_source("reward", callee, &REWARDS),
        };
        let slots = [
            must(first),
            label("timeout"),
            label("otherwise"),
            label("workers"),
        ];
        let found = self.arguments("E016", callee, args, &slots)?;
        let mut env = Env::of(0);
        let at = found[0]?;
        let text = self.text_of(at, &mut env, first)?;
        let source = self.reward_source(first, text, at.span)?;
        let timeout = match found[1] {
            Some(e) => Some(self.real(e, &mut env, "timeout", (1e-3, 1e9))?),
            None => None,
        };
        let otherwise = match found[2] {
            Some(e) => Some(self.real(e, &mut env, "otherwise", (f64::MIN, f64::MAX))?),
            None => None,
        };
        let workers = match found[3] {
            Some(e) => Some(self.whole(e, &mut env, "workers", (1, WORKERS))?),
            None => None,
        };
        Some(Reward {
            name: r.name.text.clone(),
            params,
            result,
            source,
            timeout,
            otherwise,
            workers,
            span: r.name.span,
        })
    }

    fn reward_source(&mut self, first: &str, text: String, span: Span) -> Option<RewardSource> {
        if first == "command" {
            return Some(RewardSource::Command {
                command: text,
                span,
            });
        }
        if first == "path" {
            let (file, function) = self.python_path(&text, span)?;
            return Some(RewardSource::Python {
                file,
                function,
                span,
            });
        }
        if !(text.starts_with("http://") || text.starts_with("https://")) {
            return self.fail(
                Diagnostic::error("E034", span, format!("`{text}` is no web address"))
                    .help("as in `http(\"http://localhost:8000/score\")`"),
            );
        }
        Some(RewardSource::Http { url: text, span })
    }

    fn python_path(&mut self, path: &str, span: Span) -> Option<(String, String)> {
        match path.rsplit_once(':') {
            Some((file, function)) if !file.is_empty() && !function.is_empty() => {
                Some((file.into(), function.into()))
            }
            _ => self.fail(
                Diagnostic::error("E034", span, format!("`{path}` does not name a function"))
                    .help("a file and a function in it, as in `\"rewards/exact.py:score\"`"),
            ),
        }
    }
}
