//! Declarations of models.

use crate::ast::{self, Arg, Expr, ExprKind, Name};
use crate::diag::Diagnostic;
use crate::graph::{Dtype, Init, Lora, Model, ModelId, ModelKind, Per};
use crate::source::Span;

use super::args::{label, may, must};
use super::{Def, Env, Sema, nearest};

/// The kinds of models.
const KINDS: [&str; 3] = ["causal", "scalar", "frozen"];

/// The largest rank of an adapter.
const RANK: usize = 65_536;

fn is_labelled(arg: &Arg, name: &str) -> bool {
    arg.label.as_ref().is_some_and(|l| l.text == name)
}

impl Sema<'_> {
    /// What a model is; its options are read by [`Sema::model`] once every model has a name.
    pub(crate) fn model_kind(&mut self, m: &ast::Model) -> Option<Model> {
        let (callee, args) = self.source_call(&m.value)?;
        let (kind, init) = match callee.text.as_str() {
            "causal" => {
                let (checkpoint, span, init) = self.checkpoint(callee, args)?;
                (ModelKind::Causal { checkpoint, span }, init)
            }
            "scalar" => {
                let (checkpoint, span, init) = self.checkpoint(callee, args)?;
                let per = self.per(callee, args)?;
                let kind = ModelKind::Scalar {
                    checkpoint,
                    per,
                    span,
                };
                (kind, init)
            }
            // Resolved below, when the other model has a name.
            "frozen" => (ModelKind::Frozen(ModelId(u32::MAX)), Init::Checkpoint),
            other => {
                let d =
                    Diagnostic::error("E010", callee.span, format!("no kind of model `{other}`"));
                return self.fail(match nearest(other, KINDS.into_iter()) {
                    Some(near) => d
                        .help(format!("a similar one: `{near}`"))
                        .guess(format!("use `{near}`"), vec![(callee.span, near.into())]),
                    None => d.help("the kinds are `causal(checkpoint)`, `scalar(checkpoint, per: …)` and `frozen(model)`"),
                });
            }
        };
        Some(Model {
            name: m.name.text.clone(),
            kind,
            dtype: None,
            optim: None,
            lora: None,
            init,
            span: m.name.span,
        })
    }

    /// The checkpoint of a model and whether its weights are read.
    fn checkpoint(&mut self, callee: &Name, args: &[Arg]) -> Option<(String, Span, Init)> {
        let mut init = Init::Checkpoint;
        let mut at = args.iter().find(|a| a.label.is_none()).map(|a| &a.value);
        if let Some(e) = args.iter().find(|a| is_labelled(a, "init")) {
            let (random, inner) = self.source_call(&e.value)?;
            if random.text != "random" {
                let message = format!("no initialisation `{}`", random.text);
                return self.fail(
                    Diagnostic::error("E010", random.span, message)
                        .help("`random(config: checkpoint)` draws the weights anew"),
                );
            }
            let found = self.arguments("E016", random, inner, &[may("config")])?;
            init = Init::Random;
            at = found[0].or(at);
        }
        let Some(at) = at else {
            let name = &callee.text;
            return self.fail(
                Diagnostic::error("E016", callee.span, format!("`{name}` takes a checkpoint"))
                    .help(format!(
                        "a directory or a Hugging Face id, as in `{name}(base)`"
                    )),
            );
        };
        Some((
            self.text_of(at, &mut Env::of(0), "checkpoint")?,
            at.span,
            init,
        ))
    }

    /// `per: token` or `per: response`
    fn per(&mut self, callee: &Name, args: &[Arg]) -> Option<Per> {
        let Some(arg) = args.iter().find(|a| is_labelled(a, "per")) else {
            return self.fail(
                Diagnostic::error("E016", callee.span, "`scalar` needs `per:`").help(
                    "`per: token` is a critic that `value` reads, `per: response` a reward model that `score` reads",
                ),
            );
        };
        match self.word(&arg.value, "per")?.as_str() {
            "token" => Some(Per::Token),
            "response" => Some(Per::Response),
            other => {
                let message = format!("`per` cannot be `{other}`");
                self.fail(
                    Diagnostic::error("E018", arg.value.span, message)
                        .help("it is `token` or `response`"),
                )
            }
        }
    }

    /// A bare word, or text.
    pub(crate) fn word(&mut self, e: &Expr, what: &str) -> Option<String> {
        match &e.kind {
            ExprKind::Name(n) if self.item(n, 0).is_none() => Some(n.clone()),
            _ => self.text_of(e, &mut Env::of(0), what),
        }
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
        let slots: &[_] = match callee.text.as_str() {
            "frozen" => &[must("model"), label("dtype")],
            // The first three are read with the model's kind.
            "scalar" => &[
                may("checkpoint"),
                label("dtype"),
                label("optim"),
                label("lora"),
                label("init"),
                label("per"),
            ],
            _ => &[
                may("checkpoint"),
                label("dtype"),
                label("optim"),
                label("lora"),
                label("init"),
            ],
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
        if let Some(e) = found.get(3).copied().flatten() {
            self.graph.models[id.0 as usize].lora = self.lora(e);
        }
    }

    /// `{rank: 16, alpha: 32, targets: ["q_proj", "v_proj"]}`
    fn lora(&mut self, e: &Expr) -> Option<Lora> {
        let ExprKind::Record(args) = &e.kind else {
            return self.bad_option(e, "lora", "a record such as `{rank: 16, alpha: 32}`");
        };
        let callee = Name {
            text: "lora".into(),
            span: e.span,
        };
        let slots = [label("rank"), label("alpha"), label("targets")];
        let found = self.arguments("E016", &callee, args, &slots)?;
        let mut env = Env::of(0);
        let Some(rank) = found[0] else {
            return self.fail(
                Diagnostic::error("E016", e.span, "`lora` needs `rank:`")
                    .help("as in `lora: {rank: 16, alpha: 32}`"),
            );
        };
        let rank = self.whole(rank, &mut env, "rank", (1, RANK))?;
        let alpha = match found[1] {
            Some(a) => self.real_where(
                a,
                &mut env,
                "alpha",
                |v| v > 0.0 && v.is_finite(),
                "above 0",
            )?,
            None => rank as f64,
        };
        let targets = match found[2] {
            Some(t) => self.texts_of(t, &mut env, "targets")?,
            None => vec![],
        };
        Some(Lora {
            rank,
            alpha,
            targets,
        })
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
        if matches!(self.graph.model(of).kind, ModelKind::Frozen(_)) {
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
        let word = self.word(e, "dtype")?;
        match word.as_str() {
            "f32" => Some(Dtype::F32),
            "bf16" => Some(Dtype::Bf16),
            _ => self.fail(
                Diagnostic::error("E018", e.span, format!("no dtype `{word}`"))
                    .help("`f32` and `bf16` are"),
            ),
        }
    }
}
