//! Declarations of what comes from outside: data sets, models and rewards.

use crate::ast::{self, Arg, Expr, ExprKind, Name, TypeKind};
use crate::diag::Diagnostic;
use crate::graph::{
    Column, Const, Data, Dtype, Elem, ExprRef, Model, ModelId, ModelKind, Optim, Reward,
    RewardSource,
};
use crate::source::Span;

use super::args::{WORKERS, label, must};
use super::{Def, Env, Sema};

/// What [`is_decay`] holds of, in words.
const DECAY: &str = "at least 0 and below 1";

fn is_decay(v: f64) -> bool {
    (0.0..1.0).contains(&v)
}

impl Sema<'_> {
    /// `jsonl("data/sums.jsonl") { question: text }`
    pub(crate) fn data(&mut self, d: &ast::Data) -> Option<Data> {
        let (callee, args) = self.source_call(&d.source)?;
        match callee.text.as_str() {
            "jsonl" => {}
            "json" | "csv" | "parquet" | "hf" => {
                return self.later(&callee.text, callee.span, "`jsonl(\"file.jsonl\")` works");
            }
            other => {
                return self.fail(
                    Diagnostic::error("E010", callee.span, format!("no data source `{other}`"))
                        .help("`jsonl(\"file.jsonl\")` works"),
                );
            }
        }
        let found = self.arguments("E016", callee, args, &[must("path")])?;
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
            columns,
            span: d.name.span,
            path_span: path.span,
        })
    }

    fn source_call<'e>(&mut self, e: &'e Expr) -> Option<(&'e Name, &'e [Arg])> {
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
    fn element(&mut self, ty: &ast::Type) -> Option<Elem> {
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

    /// What a model is; its options are read by [`Sema::model`] once every model has a name.
    pub(crate) fn model_kind(&mut self, m: &ast::Model) -> Option<Model> {
        let (callee, args) = self.source_call(&m.value)?;
        let kind = match callee.text.as_str() {
            "causal" => {
                let first = args.iter().find(|a| a.label.is_none());
                let Some(first) = first else {
                    return self.fail(
                        Diagnostic::error("E016", callee.span, "`causal` takes a checkpoint")
                            .help("a directory or a Hugging Face id, as in `causal(base)`"),
                    );
                };
                ModelKind::Causal {
                    checkpoint: self.text_of(&first.value, &mut Env::of(0), "checkpoint")?,
                    span: first.value.span,
                }
            }
            // Resolved below, when the other model has a name.
            "frozen" => ModelKind::Frozen(ModelId(u32::MAX)),
            "scalar" => {
                return self.later(
                    "scalar",
                    callee.span,
                    "`causal` and `frozen` models work; rewards can be rules or `python(…)`",
                );
            }
            other => {
                return self.fail(
                    Diagnostic::error("E010", callee.span, format!("no kind of model `{other}`"))
                        .help("`causal(checkpoint)` and `frozen(model)` are"),
                );
            }
        };
        Some(Model {
            name: m.name.text.clone(),
            kind,
            dtype: None,
            optim: None,
            span: m.name.span,
        })
    }

    /// A model's options.
    pub(crate) fn model(&mut self, m: &ast::Model) {
        let Some((Def::Model(id), _)) = self.modules[0].names.get(&m.name.text).cloned() else {
            return;
        };
        // A duplicate name leads to the first declaration, which is read already.
        if self.graph.models[id.0 as usize].span != m.name.span {
            return;
        }
        let Some((callee, args)) = self.source_call(&m.value) else {
            return;
        };
        let frozen = callee.text == "frozen";
        let later = ["lora", "init", "per"];
        for arg in args {
            if let Some(l) = arg
                .label
                .as_ref()
                .filter(|l| later.contains(&l.text.as_str()))
            {
                let text = format!("{}:", l.text);
                self.later::<()>(&text, l.span, "`optim:` and `dtype:` work");
                return;
            }
        }
        let slots: &[_] = if frozen {
            &[must("model"), label("dtype")]
        } else {
            &[must("checkpoint"), label("dtype"), label("optim")]
        };
        let Some(found) = self.arguments("E016", callee, args, slots) else {
            return;
        };
        if frozen
            && let Some(e) = found[0]
            && let Some(of) = self.frozen_model(e, id)
        {
            self.graph.models[id.0 as usize].kind = ModelKind::Frozen(of);
        }
        if let Some(e) = found[1] {
            self.graph.models[id.0 as usize].dtype = self.dtype(e);
        }
        if let Some(e) = found.get(2).copied().flatten() {
            self.graph.models[id.0 as usize].optim = self.optim(e);
        }
    }

    fn frozen_model(&mut self, e: &Expr, id: ModelId) -> Option<ModelId> {
        let mut env = Env::of(0);
        let super::Val::Model(of) = self.val(e, &mut env)? else {
            let text = self.quote(e.span);
            return self.fail(Diagnostic::error(
                "E033",
                e.span,
                format!("`frozen` takes a model, and {text} is none"),
            ));
        };
        if of == id {
            let text = self.quote(e.span);
            return self.fail(Diagnostic::error(
                "E014",
                e.span,
                format!("{text} is frozen from itself"),
            ));
        }
        if !matches!(self.graph.model(of).kind, ModelKind::Causal { .. }) {
            let text = self.quote(e.span);
            return self.fail(
                Diagnostic::error("E033", e.span, format!("{text} is frozen already"))
                    .help("freeze the model that it was frozen from"),
            );
        }
        self.used.insert(('m', of.0 as usize));
        Some(of)
    }

    fn dtype(&mut self, e: &Expr) -> Option<Dtype> {
        let word = match &e.kind {
            ExprKind::Name(n) if self.item(n, 0).is_none() => n.clone(),
            _ => self.text_of(e, &mut Env::of(0), "dtype")?,
        };
        match word.as_str() {
            "f32" => Some(Dtype::F32),
            "bf16" => Some(Dtype::Bf16),
            _ => self.fail(
                Diagnostic::error("E018", e.span, format!("no dtype `{word}`"))
                    .help("`f32` and `bf16` are"),
            ),
        }
    }

    /// `adamw(lr: 1e-5, …)`
    fn optim(&mut self, e: &Expr) -> Option<Optim> {
        let (callee, args) = self.source_call(e)?;
        if callee.text != "adamw" {
            return self.fail(
                Diagnostic::error(
                    "E010",
                    callee.span,
                    format!("no optimizer `{}`", callee.text),
                )
                .help("`adamw(lr: 1e-5)` is one"),
            );
        }
        let slots = [
            must("lr"),
            label("beta1"),
            label("beta2"),
            label("betas"),
            label("eps"),
            label("weight_decay"),
            label("clip"),
        ];
        let found = self.arguments("E016", callee, args, &slots)?;
        let lr_at = found[0]?;
        let lr = self.rate(lr_at)?;
        let mut env = Env::of(0);
        let mut option = |i: usize, default: f64, fits, range| match found[i] {
            Some(e) => self.real_where(e, &mut env, slots[i].name, fits, range),
            None => Some(default),
        };
        let mut beta1 = option(1, 0.9, is_decay, DECAY)?;
        let mut beta2 = option(2, 0.999, is_decay, DECAY)?;
        let eps = option(4, 1e-8, |v| v > 0.0 && v <= 1.0, "above 0 and at most 1")?;
        let from_zero = |v: f64| v >= 0.0 && v.is_finite();
        let weight_decay = option(5, 0.0, from_zero, "at least 0")?;
        let clip = option(6, 1.0, from_zero, "at least 0")?;
        if let Some(e) = found[3] {
            let ExprKind::List(pair) = &e.kind else {
                return self.bad_option(e, "betas", "two numbers such as `[0.9, 0.999]`");
            };
            let [a, b] = &pair[..] else {
                return self.bad_option(e, "betas", "two numbers such as `[0.9, 0.999]`");
            };
            beta1 = self.real_where(a, &mut env, "betas", is_decay, DECAY)?;
            beta2 = self.real_where(b, &mut env, "betas", is_decay, DECAY)?;
        }
        Some(Optim {
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            clip_norm: (clip > 0.0).then_some(clip),
        })
    }

    fn rate(&mut self, e: &Expr) -> Option<ExprRef> {
        let x = self.expr(e, &mut Env::of(0))?;
        self.need_number("lr", x, e.span)?;
        let negative = match self.as_const(x) {
            Some(Const::Float(v)) => v < 0.0,
            Some(Const::Int(v)) => v < 0,
            _ => false,
        };
        if negative {
            let text = self.quote(e.span);
            return self.fail(
                Diagnostic::error("E018", e.span, format!("`lr` cannot be {text}"))
                    .help("it is at least 0"),
            );
        }
        Some(x)
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
        match callee.text.as_str() {
            "python" => {}
            "http" | "command" => {
                return self.later(&callee.text, callee.span, "`python(\"file.py:fn\")` works");
            }
            other => {
                return self.fail(
                    Diagnostic::error("E010", callee.span, format!("no reward source `{other}`"))
                        .help("`python(\"file.py:fn\")` is one"),
                );
            }
        }
        let slots = [
            must("path"),
            label("timeout"),
            label("otherwise"),
            label("workers"),
        ];
        let found = self.arguments("E016", callee, args, &slots)?;
        let mut env = Env::of(0);
        let at = found[0]?;
        let path = self.text_of(at, &mut env, "path")?;
        let (file, function) = self.python_path(&path, at.span)?;
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
            source: RewardSource::Python {
                file,
                function,
                span: at.span,
            },
            timeout,
            otherwise,
            workers,
            span: r.name.span,
        })
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
