//! Rollouts: prompts as tokens, sampled responses, texts of the data as responses.

use std::sync::Arc;
use std::time::Instant;

use rlhf_kernels::philox;
use rlhf_lang::graph::{
    AxisSize, ExprRef, Forward, Graph, Member, ModelId, Node, NodeKind, RolloutId, Sampling, Scope,
    Selection, ValueId,
};
use rlhf_plan::launch::Event;
use rlhf_text::Message;
use tch::Tensor;

use super::context::Context;
use super::pass::{Drawn, Pass, missing};
use crate::batch::Rows;
use crate::expr;
use crate::fault::{Fault, Result};
use crate::generate::{self, Ending, Request, SampleKey};
use crate::value::{Data, Value, align};

impl Context<'_> {
    /// Token ids of an expression's texts or chats, one a prompt of the rollout.
    pub fn encode_prompts(
        &self,
        model: ModelId,
        prompt: ExprRef,
        chat: bool,
        rollout: RolloutId,
        pass: &Pass,
    ) -> Result<Vec<Arc<[u32]>>> {
        let graph = &self.job.graph;
        let tokens = &self.tokens[model.0 as usize];
        let value = self.per_prompt(prompt, rollout, pass)?;
        let rows = pass.prompt_rows(graph, rollout)?;
        let texts: Vec<Vec<u32>> = match &value.data {
            Data::Chat(chats) => chats
                .iter()
                .map(|c| Ok(tokens.chat(c)?))
                .collect::<Result<_>>()?,
            Data::Text(texts) => texts
                .iter()
                .enumerate()
                .map(|(i, text)| {
                    let text = text.as_deref().ok_or_else(|| {
                        Fault::new(format!(
                            "the prompt of row {} is none",
                            rows.get(i).unwrap_or(&i) + 1
                        ))
                    })?;
                    Ok(if chat {
                        tokens.chat(&[Message {
                            role: "user".into(),
                            content: text.into(),
                        }])?
                    } else {
                        tokens.encode(text, true)?
                    })
                })
                .collect::<Result<_>>()?,
            other => {
                return Err(Fault::new(format!(
                    "a prompt is text or chat; this is {}",
                    other.kind()
                )));
            }
        };
        if let Some(i) = texts.iter().position(Vec::is_empty) {
            let row = rows.get(i).unwrap_or(&i) + 1;
            return Err(Fault::new(format!("the prompt of row {row} has no tokens"))
                .at(graph.expr(prompt).span)
                .help("a model needs at least one token to continue from"));
        }
        Ok(texts.into_iter().map(Arc::from).collect())
    }

    /// The elements of an expression for the prompts of a rollout: over its rows and the axis beside
    /// them, whatever of it the expression has.
    pub fn per_prompt(&self, e: ExprRef, rollout: RolloutId, pass: &Pass) -> Result<Value> {
        let graph = &self.job.graph;
        let declared = graph.rollout(rollout);
        let axes: Vec<_> = std::iter::once(declared.rows)
            .chain(declared.over)
            .collect();
        let value = tch::no_grad(|| expr::eval(graph, e, &pass.env))?;
        align(&value, &axes, &pass.env.shapes)
    }

    /// Refuses prompts that leave no room for the response.
    pub fn check_room(&self, node: &Node, prompts: &[Arc<[u32]>], pass: &Pass) -> Result<()> {
        let graph = &self.job.graph;
        let (NodeKind::Generate { model, rollout, .. } | NodeKind::Answer { model, rollout, .. }) =
            &node.kind
        else {
            return Ok(());
        };
        let AxisSize::Ragged(max) = graph.axis(graph.rollout(*rollout).tokens).size else {
            return Ok(());
        };
        let positions = self.configs[model.0 as usize].positions;
        let longest = prompts.iter().enumerate().max_by_key(|(_, p)| p.len());
        let Some((at, prompt)) = longest.filter(|(_, p)| p.len() + max > positions) else {
            return Ok(());
        };
        let model = &graph.model(*model).name;
        let rows = pass.prompt_rows(graph, *rollout)?;
        let row = rows.get(at).unwrap_or(&at) + 1;
        let length = prompt.len();
        let message = format!(
            "prompt of {length} tokens (row {row}) + response ≤ {max} exceeds `{model}`'s {positions} positions"
        );
        let room = positions.saturating_sub(length);
        let help = if room > 0 {
            format!("responses of at most {room} tokens fit, or leave out longer prompts")
        } else {
            "the prompt alone is too long: leave it out or shorten it".to_string()
        };
        Err(Fault::code("M119", message).at(node.span).help(help))
    }

    /// Samples the responses to every prompt.
    pub fn generate(
        &mut self,
        node: &Node,
        model: ModelId,
        prompts: Vec<Arc<[u32]>>,
        sampling: &Sampling,
        rollout: RolloutId,
        pass: &mut Pass,
    ) -> Result<Drawn> {
        let graph = &self.job.graph;
        let declared = graph.rollout(rollout);
        let group = declared
            .group
            .map_or(Ok(1), |g| pass.env.shapes.length(g))?;
        let AxisSize::Ragged(max_tokens) = graph.axis(declared.tokens).size else {
            return Err(Fault::new("a response axis is ragged"));
        };
        let tokens = self.tokens[model.0 as usize].clone();
        let draw = generate::Sampling {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            min_tokens: sampling.min_tokens,
            max_tokens,
            stop: sampling.stop.clone(),
            ignore_eos: false,
        };
        let beside = declared.over.map_or(Ok(1), |a| pass.env.shapes.length(a))?;
        let rows = sample_keys(&pass.prompt_rows(graph, rollout)?, beside);
        let request = Request {
            prompts: &prompts,
            rows: &rows,
            group,
            sampling: &draw,
            key: SampleKey {
                seed: self.job.seed,
                call: stream(node),
                iteration: pass.iteration as u64,
            },
            max_rows: generate::MAX_ROWS,
        };
        let ending = Ending {
            eos: tokens.eos(),
            decode: &|ids| tokens.decode(ids),
        };
        let (emit, name, iteration) = (&mut self.emit, &node.name, pass.iteration);
        let mut last = Instant::now();
        let mut poll = |progress: generate::Progress| {
            if last.elapsed().as_millis() >= 250 {
                last = Instant::now();
                let (done, total) = (progress.tokens, progress.rows * max_tokens);
                emit(Event::Progress {
                    iteration,
                    call: name.clone(),
                    done,
                    total,
                });
            }
            true
        };
        let drawn =
            generate::generate(&self.models[model.0 as usize], ending, &request, &mut poll)?;
        let rows = Rows {
            prompts,
            group,
            responses: drawn.responses,
        };
        pass.sampled_tokens += rows.tokens();
        let texts = rows
            .responses
            .iter()
            .map(|r| Arc::from(tokens.decode(r)))
            .collect();
        let logp = Tensor::f_from_slice(&drawn.logp)?;
        Ok(Drawn {
            rollout,
            rows,
            logp,
            finished: drawn.finished,
            texts,
        })
    }

    /// Some responses of a rollout as one of their own.
    pub fn select(
        &mut self,
        from: RolloutId,
        by: &Selection,
        rollout: RolloutId,
        pass: &mut Pass,
    ) -> Result<Drawn> {
        let graph = &self.job.graph;
        let parents = |r: RolloutId| graph.axis(graph.rollout(r).tokens).parents.as_slice();
        let (of, axes) = (parents(from), parents(rollout));
        let chosen = tch::no_grad(|| expr::responses(graph, by, of, axes, &mut pass.env))?;
        let group = graph.rollout(rollout).group;
        let group = group.map_or(Ok(1), |g| pass.env.shapes.length(g))?;
        let whole = pass
            .rollouts
            .get(&from)
            .ok_or_else(|| missing(graph, from))?;
        whole.pick(rollout, &chosen, group)
    }

    /// Gives a rollout's token axis its lengths, and its members their values.
    pub fn bind_rollout(
        &mut self,
        drawn: Drawn,
        members: &[(Member, ValueId)],
        pass: &mut Pass,
    ) -> Result<()> {
        let graph = &self.job.graph;
        let declared = graph.rollout(drawn.rollout);
        let parents = graph.axis(declared.tokens).parents.clone();
        pass.env
            .shapes
            .set_ragged(declared.tokens, parents, drawn.rows.offsets());
        for (member, id) in members {
            let axes = graph.value(*id).ty.axes.clone();
            let value = match member {
                Member::Text => {
                    Value::from_text(axes, drawn.texts.iter().cloned().map(Some).collect())
                }
                Member::Logp => Value::num(axes, &drawn.logp),
                Member::Finished => Value::from_bool(axes, &drawn.finished, &pass.env.shapes)?,
                // Of conversations alone, which `answer` binds.
                Member::Assistant => continue,
            };
            pass.env.values.insert(*id, value);
        }
        pass.rollouts.insert(drawn.rollout, drawn);
        Ok(())
    }

    /// Refuses responses that the scoring model cannot read: of another vocabulary, or too long.
    pub fn check_readable(&self, forward: &Forward, drawn: &Drawn) -> Result<()> {
        let graph = &self.job.graph;
        let index = forward.model.0 as usize;
        let (name, config) = (&graph.models[index].name, &self.configs[index]);
        let made = source(graph, forward.rollout);
        let maker = graph
            .dag
            .order()
            .find_map(|id| match &graph.dag.node(id).kind {
                NodeKind::Generate { model, rollout, .. }
                | NodeKind::Answer { model, rollout, .. }
                    if *rollout == made =>
                {
                    Some(*model)
                }
                _ => None,
            });
        if let Some(maker) = maker {
            let (own, theirs) = (&self.tokens[index], &self.tokens[maker.0 as usize]);
            if !Arc::ptr_eq(own, theirs) && !own.same_vocabulary(theirs) {
                let maker = &graph.model(maker).name;
                return Err(Fault::code(
                    "M120",
                    format!(
                        "`{name}` uses another tokenizer than `{maker}`, whose tokens `{}` holds",
                        graph.rollout(forward.rollout).name
                    ),
                )
                .at(forward.span)
                .help("take both models from checkpoints of one family"));
            }
        }
        let rows = &drawn.rows;
        let lengths = rows.responses.iter().enumerate();
        let longest = lengths
            .map(|(r, ids)| rows.prompts[r / rows.group].len() + ids.len())
            .max();
        if let Some(length) = longest.filter(|l| *l > config.positions) {
            return Err(Fault::code(
                "M119",
                format!(
                    "prompt + response of {length} tokens exceeds `{name}`'s {} positions",
                    config.positions
                ),
            )
            .at(forward.span)
            .help("lower the limit of the response axis, or leave out longer prompts"));
        }
        let prompts = rows.prompts.iter().flat_map(|p| p.iter());
        let largest = prompts.chain(rows.responses.iter().flatten()).max();
        if let Some(token) = largest.filter(|t| **t as usize >= config.vocab) {
            return Err(Fault::new(format!(
                "token {token} is outside `{name}`'s vocabulary of {}; its tokenizer does not fit its weights",
                config.vocab
            ))
            .at(forward.span));
        }
        Ok(())
    }
}

/// The numbers that tell the prompts of a call apart when it draws: the row of the data set, and above
/// its 32 bits the place along the second axis of prompts, of length `beside`. With the call's name, the
/// iteration, the seed, the sample and the position, no two tokens of a run share a random number.
fn sample_keys(rows: &[usize], beside: usize) -> Vec<u64> {
    let place = |i: usize| (i % beside.max(1)) as u64;
    let keys = rows.iter().enumerate();
    keys.map(|(i, row)| *row as u64 | place(i) << 32).collect()
}

/// The rollout that was sampled or read, behind selections of it.
fn source(graph: &Graph, rollout: RolloutId) -> RolloutId {
    let mut made = rollout;
    for id in graph.dag.order().collect::<Vec<_>>().into_iter().rev() {
        if let NodeKind::Select { from, rollout, .. } = &graph.dag.node(id).kind
            && *rollout == made
        {
            made = *from;
        }
    }
    made
}

/// Names the random numbers of a call: evaluations draw others than the step.
fn stream(node: &Node) -> u64 {
    match node.scope {
        Scope::Step => philox::hash(&node.name),
        Scope::Eval(index) => philox::hash(&format!("eval {index} {}", node.name)),
    }
}
