//! `train`: the only thing that makes a new version of a model.

use crate::ast::{self, Expr, Name, Stmt, StmtKind};
use crate::diag::Diagnostic;
use crate::graph::{ExprRef, Metric, ModelId, ModelKind, Node, NodeKind, Scope, Train};
use crate::source::Span;

use super::args::{ROWS, label};
use super::tree::bound_names;
use super::{Env, Live, Sema, Val};

/// What a `train` block has gathered.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The loss, unless it has an error, and where it stands.
    pub loss: Option<(Option<ExprRef>, Span)>,
    pub metrics: Vec<Metric>,
}

impl Sema<'_> {
    pub(crate) fn minimize(&mut self, e: &Expr, span: Span, env: &mut Env, train: &mut Gathered) {
        if let Some((_, first)) = train.loss {
            self.report(
                Diagnostic::error("E022", span, "this `train` block has two `minimize`")
                    .label(first, "the first one")
                    .help("add the two: `minimize a + b`"),
            );
            return;
        }
        train.loss = Some((self.scalar(e, env, "`minimize`"), e.span));
    }

    pub(crate) fn train(
        &mut self,
        name: &Name,
        options: &[ast::Arg],
        body: &[Stmt],
        span: Span,
        env: &mut Env,
    ) -> Option<()> {
        let Val::Model(model) = self.resolve(&name.text, name.span, env)? else {
            return self.fail(Diagnostic::error(
                "E033",
                name.span,
                format!("`train` takes a model, and `{}` is none", name.text),
            ));
        };
        self.used.insert(('m', model.0 as usize));
        self.trainable(name, model)?;
        let callee = Name {
            text: "train".into(),
            span: name.span,
        };
        let slots = [label("minibatch"), label("epochs"), label("shuffle")];
        let found = self.arguments("E016", &callee, options, &slots)?;
        let minibatch = match found[0] {
            Some(e) => Some(self.minibatch(e, env)?),
            None => None,
        };
        let epochs = match found[1] {
            Some(e) => self.whole(e, env, "epochs", (1, ROWS))?,
            None => 1,
        };
        let shuffle = match found[2] {
            Some(e) => self.truth_of(e, env, "shuffle")?,
            None => true,
        };
        self.live = Some(Live {
            model,
            block: span,
            forwards: vec![],
        });
        let start = env.locals.len();
        let outer = std::mem::replace(&mut env.later, bound_names(body));
        let mut gathered = Gathered::default();
        self.statements(body, env, &mut vec![], Some(&mut gathered));
        self.warn_unused(env, start);
        env.locals.truncate(start);
        env.later = outer;
        let forwards = self.live.take().map_or(vec![], |l| l.forwards);
        self.trained.push((model, name.span));
        let loss = match gathered.loss {
            Some((loss, _)) => loss?,
            // A statement that did not parse may be the one that is missing.
            None if body.iter().any(|s| matches!(s.kind, StmtKind::Bad)) => return None,
            None => {
                return self.fail(
                    Diagnostic::error(
                        "E022",
                        name.span,
                        format!("`train {}` has no `minimize`", name.text),
                    )
                    .help("as in `minimize mean(loss)`"),
                );
            }
        };
        self.nodes.push(Node {
            name: format!("train {}", name.text),
            scope: Scope::Step,
            kind: NodeKind::Train(Train {
                model,
                minibatch,
                epochs,
                shuffle,
                forwards,
                loss,
                metrics: gathered.metrics,
            }),
            span,
        });
        Some(())
    }

    fn trainable(&mut self, name: &Name, model: ModelId) -> Option<()> {
        if let Some((_, first)) = self.trained.iter().find(|(m, _)| *m == model) {
            let first = *first;
            return self.fail(
                Diagnostic::error(
                    "E021",
                    name.span,
                    format!("`{}` is trained twice in one step; which version should the second start from?", name.text),
                )
                .label(first, "trained here first")
                .help("put both losses into one `train`: `minimize a + b`"),
            );
        }
        let m = self.graph.model(model);
        let declared = m.span;
        match (&m.kind, &m.optim) {
            (ModelKind::Frozen(of), _) => {
                let of = self.graph.models.get(of.0 as usize).map(|m| m.name.clone());
                let mut d = Diagnostic::error(
                    "M107",
                    name.span,
                    format!("`{}` is frozen and cannot be trained", name.text),
                )
                .label(declared, "frozen here");
                if let Some(of) = of {
                    d = d.help(format!("`train {of}` trains the model it is frozen from"));
                }
                self.fail(d)
            }
            (_, None) if !self.failed() => self.fail(
                Diagnostic::error(
                    "E026",
                    name.span,
                    format!("`{}` has no optimizer", name.text),
                )
                .label(declared, "declared here")
                .help("add one: `optim: adamw(lr: 1e-5)`"),
            ),
            _ => Some(()),
        }
    }

    /// M110: a minibatch divides the batch.
    fn minibatch(&mut self, e: &Expr, env: &mut Env) -> Option<usize> {
        let n = self.whole(e, env, "minibatch", (1, ROWS))?;
        let rows = self.body.as_ref()?.rows;
        let batch = self.fixed_size(rows)?;
        if batch.is_multiple_of(n) {
            return Some(n);
        }
        let near: Vec<String> = divisors(batch, n).iter().map(usize::to_string).collect();
        let at = self.graph.axis(rows).span;
        let axis = self.axis_name(rows).to_string();
        self.fail(
            Diagnostic::error(
                "M110",
                e.span,
                format!("`minibatch: {n}` does not divide the {batch} rows of `{axis}`"),
            )
            .label(at, format!("{batch} rows"))
            .help(format!("these do: {}", near.join(", "))),
        )
    }
}

/// The divisors of `batch` nearest to `n`, six at most, in order.
fn divisors(batch: usize, n: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (1..=batch.isqrt())
        .filter(|d| batch.is_multiple_of(*d))
        .flat_map(|d| [d, batch / d])
        .collect();
    all.sort_by_key(|d| (d.abs_diff(n), *d));
    all.dedup();
    all.truncate(6);
    all.sort_unstable();
    all
}
