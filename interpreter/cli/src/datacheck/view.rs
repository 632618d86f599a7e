//! The parts of a program that the data decides: calls that tokenise texts, models that read them, and
//! rewards that are called on them.

use std::path::{Path, PathBuf};

use rlhf_lang::graph::{
    AxisSize, ExprRef, Graph, Member, ModelId, ModelKind, NodeKind, RewardId, RolloutId, Scope,
};
use rlhf_lang::source::Span;
use serde::Serialize;

use super::finding::Place;
use super::recipe::{Names, Recipe};
use crate::hub;

/// One call that makes tokens: `generate` or `answer`.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// What it is bound to.
    pub name: String,
    /// The model's name.
    pub model: String,
    /// The checkpoint's folder, where it is on this machine.
    pub folder: Option<PathBuf>,
    /// The prompt, where it depends on data alone.
    pub prompt: Option<Recipe>,
    /// Through the chat template.
    pub chat: bool,
    /// The text of the data that `answer` takes as the response.
    pub response: Option<Recipe>,
    /// The response axis.
    pub axis: String,
    /// Its limit.
    pub limit: usize,
    /// Whether its tokens reach a loss.
    pub trained: bool,
    /// What it makes.
    #[serde(skip)]
    pub rollout: RolloutId,
    /// The step, or which evaluation.
    #[serde(skip)]
    pub scope: Scope,
    #[serde(skip)]
    spans: [Span; 4],
}

/// A model that scores what another model's tokenizer made.
#[derive(Clone, Debug, Serialize)]
pub struct Reader {
    /// Its name.
    pub model: String,
    /// Its checkpoint's folder.
    pub folder: PathBuf,
    /// Index of the call whose tokens it reads.
    pub call: usize,
    #[serde(skip)]
    span: Span,
}

/// A reward called on responses and columns.
#[derive(Clone, Debug, Serialize)]
pub struct Scoring {
    /// Which reward.
    #[serde(skip)]
    pub reward: RewardId,
    /// Its arguments.
    pub args: Vec<Argument>,
}

/// An argument of a reward.
#[derive(Clone, Debug, Serialize)]
pub enum Argument {
    /// The sampled text of a call.
    Response {
        /// Its index.
        call: usize,
    },
    /// A column as it is.
    Column {
        /// The data set.
        data: usize,
        /// The name in the program.
        name: String,
        /// The name in the file.
        source: String,
    },
    /// Made of columns.
    Made(Recipe),
}

/// The view of one graph.
#[derive(Debug)]
pub struct View {
    /// In the order of the graph.
    pub calls: Vec<Call>,
    /// In the order of the graph.
    pub readers: Vec<Reader>,
    /// In the order of the graph; rewards of the step alone.
    pub scorings: Vec<Scoring>,
    rewards: Vec<Span>,
}

impl View {
    /// Reads the graph; `folder` is the program's.
    pub fn of(graph: &Graph, folder: &Path) -> View {
        let names = Names::of(graph);
        let folders: Vec<Option<PathBuf>> = (0..graph.models.len())
            .map(|m| hub::local(checkpoint(graph, ModelId(m as u32))?, folder))
            .collect();
        let mut view = View {
            calls: vec![],
            readers: vec![],
            scorings: vec![],
            rewards: graph.rewards.iter().map(|r| r.span).collect(),
        };
        for id in graph.dag.order() {
            view.call(graph, &names, &folders, id);
        }
        view.forwards(graph, &folders);
        view.score(graph, &names);
        view
    }

    /// Where a place is in this version of the program.
    pub fn span(&self, place: Place) -> Span {
        let of = |i: usize, part: usize| self.calls.get(i).map(|c| c.spans[part]);
        let span = match place {
            Place::Call(i) => of(i, 0),
            Place::Prompt(i) => of(i, 1),
            Place::Response(i) => of(i, 2),
            Place::Limit(i) => of(i, 3),
            Place::Reader(i) => self.readers.get(i).map(|r| r.span),
            Place::Reward(i) => self.rewards.get(i).copied(),
        };
        span.unwrap_or_default()
    }

    fn call(
        &mut self,
        graph: &Graph,
        names: &Names,
        folders: &[Option<PathBuf>],
        id: rlhf_lang::graph::NodeId,
    ) {
        let node = graph.dag.node(id);
        let (model, prompt, chat, text, rollout) = match &node.kind {
            NodeKind::Generate {
                model,
                prompt,
                chat,
                rollout,
                ..
            } => (*model, *prompt, *chat, None, *rollout),
            NodeKind::Answer {
                model,
                prompt,
                chat,
                text,
                rollout,
                ..
            } => (*model, *prompt, *chat, Some(*text), *rollout),
            _ => return,
        };
        let axis = graph.axis(graph.rollout(rollout).tokens);
        let AxisSize::Ragged(limit) = axis.size else {
            return;
        };
        // A column's span is its declaration; the text to change is the call.
        let span = |e: ExprRef| {
            let own = graph.expr(e).span;
            let inside =
                own.file == node.span.file && own.lo >= node.span.lo && own.hi <= node.span.hi;
            if inside { own } else { node.span }
        };
        self.calls.push(Call {
            name: node.name.clone(),
            model: graph.model(model).name.clone(),
            folder: folders[model.0 as usize].clone(),
            prompt: names.recipe(prompt),
            chat,
            response: text.and_then(|t| names.recipe(t)),
            axis: axis.name.clone(),
            limit,
            trained: trained(graph, rollout),
            rollout,
            scope: node.scope,
            spans: [
                node.span,
                span(prompt),
                span(text.unwrap_or(prompt)),
                axis.span,
            ],
        });
    }

    fn forwards(&mut self, graph: &Graph, folders: &[Option<PathBuf>]) {
        for id in graph.dag.order() {
            let forwards = match &graph.dag.node(id).kind {
                NodeKind::Forward(forward) => std::slice::from_ref(forward),
                NodeKind::Train(train) => &train.forwards,
                _ => continue,
            };
            for forward in forwards {
                let maker = |c: &Call| c.rollout == forward.rollout;
                let Some(call) = self.calls.iter().position(maker) else {
                    continue;
                };
                let Some(folder) = &folders[forward.model.0 as usize] else {
                    continue;
                };
                if self.calls[call]
                    .folder
                    .as_ref()
                    .is_some_and(|f| f != folder)
                {
                    self.readers.push(Reader {
                        model: graph.model(forward.model).name.clone(),
                        folder: folder.clone(),
                        call,
                        span: forward.span,
                    });
                }
            }
        }
    }

    fn score(&mut self, graph: &Graph, names: &Names) {
        for id in graph.order(Scope::Step) {
            let NodeKind::Reward { reward, args, .. } = &graph.dag.node(id).kind else {
                continue;
            };
            let args = args.iter().map(|arg| {
                self.response(graph, *arg)
                    .map(|call| Argument::Response { call })
                    .or_else(|| column(names, *arg))
                    .or_else(|| names.recipe(*arg).map(Argument::Made))
            });
            if let Some(args) = args.collect() {
                self.scorings.push(Scoring {
                    reward: *reward,
                    args,
                });
            }
        }
    }

    /// The call whose sampled text an expression is.
    fn response(&self, graph: &Graph, e: ExprRef) -> Option<usize> {
        let rlhf_lang::graph::Op::Value(value) = graph.expr(e).op else {
            return None;
        };
        graph.dag.order().find_map(|id| {
            let NodeKind::Generate {
                rollout, members, ..
            } = &graph.dag.node(id).kind
            else {
                return None;
            };
            members
                .iter()
                .find(|(member, v)| *member == Member::Text && *v == value)?;
            self.calls.iter().position(|c| c.rollout == *rollout)
        })
    }
}

fn column(names: &Names, e: ExprRef) -> Option<Argument> {
    let (data, column) = names.plain(e)?;
    Some(Argument::Column {
        data,
        name: column.name.clone(),
        source: column.source.clone(),
    })
}

/// The checkpoint whose tokenizer and shape a model has.
fn checkpoint(graph: &Graph, mut model: ModelId) -> Option<&str> {
    // A frozen model is declared after its origin, so this ends.
    for _ in 0..=graph.models.len() {
        let kind = &graph.models.get(model.0 as usize)?.kind;
        match kind {
            ModelKind::Causal { checkpoint, .. } | ModelKind::Scalar { checkpoint, .. } => {
                return Some(checkpoint);
            }
            ModelKind::Frozen(origin) => model = *origin,
        }
    }
    None
}

fn trained(graph: &Graph, rollout: RolloutId) -> bool {
    graph.dag.order().any(|id| match &graph.dag.node(id).kind {
        NodeKind::Train(train) => train.forwards.iter().any(|f| f.rollout == rollout),
        _ => false,
    })
}
