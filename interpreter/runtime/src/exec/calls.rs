//! One pass over a step's or an evaluation's calls, and what each kind of call does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use indexmap::IndexMap;
use rlhf_kernels::philox;
use rlhf_lang::graph::{
    AxisId, AxisSize, ExprRef, Forward, ForwardOutput, Graph, Member, Metric, ModelId, Node,
    NodeId, NodeKind, RolloutId, Sampling, Train, ValueId,
};
use rlhf_plan::launch::{Event, Report};
use tch::Tensor;

use super::context::Context;
use crate::batch::Rows;
use crate::data::Table;
use crate::expr::{self, Env};
use crate::fault::{Fault, Result};
use crate::generate::{self, Ending, Request, SampleKey};
use crate::text::Message;
use crate::value::{Data, Value};

/// The values of one iteration or one evaluation.
pub struct Pass {
    /// Iteration, from 1; 0 before the first.
    pub iteration: usize,
    /// Rows of the data set.
    pub rows: Vec<usize>,
    /// What has been computed.
    pub env: Env,
    /// Responses by rollout.
    pub rollouts: HashMap<RolloutId, Drawn>,
    /// What was logged.
    pub metrics: IndexMap<String, Option<f64>>,
    /// What training reports beside the program's metrics; shown after them.
    pub late_metrics: IndexMap<String, Option<f64>>,
    seconds: IndexMap<String, f64>,
    sampled_tokens: usize,
}

/// A rollout's tokens.
#[derive(Debug)]
pub struct Drawn {
    /// Which one.
    pub rollout: RolloutId,
    /// Prompts and responses.
    pub rows: Rows,
    /// Log-probability of each token as sampled, f32 `[tokens]`; zeros for texts of the data.
    pub logp: Tensor,
    /// Ended by EOS or a stop string, one a response.
    pub finished: Vec<bool>,
    /// Decoded responses.
    pub texts: Vec<Arc<str>>,
}

impl Pass {
    /// Gives the values of a data set's columns at this pass's rows.
    pub fn load(
        &mut self,
        table: &Table,
        axis: AxisId,
        columns: &[(usize, ValueId)],
    ) -> Result<()> {
        self.env.shapes.set(axis, self.rows.len());
        for (column, value) in columns {
            self.env
                .values
                .insert(*value, table.value(*column, axis, &self.rows)?);
        }
        Ok(())
    }

    /// Logs a scalar.
    pub fn report_metric(&mut self, graph: &Graph, metric: &Metric) -> Result<()> {
        let value = expr::eval(graph, metric.expr, &self.env).and_then(|v| v.as_f64());
        let value = value.map_err(|f| f.at(metric.span))?;
        self.metrics
            .insert(metric.name.clone(), value.is_finite().then_some(value));
        Ok(())
    }

    /// The numbers of the whole pass.
    pub fn finish(mut self, total_seconds: f64) -> Report {
        self.metrics.extend(self.late_metrics);
        Report {
            iteration: self.iteration,
            metrics: self.metrics,
            seconds: self.seconds,
            total_seconds,
            sampled_tokens: self.sampled_tokens,
        }
    }

    /// The part of everything that a minibatch of prompts needs: values, and rollouts in the order of
    /// the training's forward passes.
    pub fn minibatch(
        &self,
        graph: &Graph,
        train: &Train,
        prompts: &[usize],
    ) -> Result<(Env, Vec<Drawn>)> {
        let drawn = |forward: &Forward| {
            let whole = self
                .rollouts
                .get(&forward.rollout)
                .ok_or_else(|| missing(graph, forward.rollout))?;
            whole.select(prompts)
        };
        let parts = train
            .forwards
            .iter()
            .map(drawn)
            .collect::<Result<Vec<_>>>()?;
        let Some(axis) = train
            .forwards
            .first()
            .map(|f| graph.rollout(f.rollout).rows)
        else {
            return Ok((self.env.clone(), parts));
        };
        Ok((self.env.restrict(axis, prompts)?, parts))
    }
}

impl Drawn {
    /// The given prompts with all their responses, in that order.
    pub fn select(&self, prompts: &[usize]) -> Result<Drawn> {
        let group = self.rows.group;
        let offsets = self.rows.offsets();
        let responses: Vec<usize> = prompts
            .iter()
            .flat_map(|p| p * group..(p + 1) * group)
            .collect();
        let tokens: Vec<i64> = responses
            .iter()
            .flat_map(|r| offsets[*r] as i64..offsets[*r + 1] as i64)
            .collect();
        Ok(Drawn {
            rollout: self.rollout,
            rows: Rows {
                prompts: prompts
                    .iter()
                    .map(|p| self.rows.prompts[*p].clone())
                    .collect(),
                group,
                responses: responses
                    .iter()
                    .map(|r| self.rows.responses[*r].clone())
                    .collect(),
            },
            logp: self
                .logp
                .f_index_select(0, &Tensor::f_from_slice(&tokens)?)?,
            finished: responses.iter().map(|r| self.finished[*r]).collect(),
            texts: responses.iter().map(|r| self.texts[*r].clone()).collect(),
        })
    }
}

impl Context<'_> {
    /// A pass with nothing computed yet.
    pub fn begin(&self, iteration: usize, rows: Vec<usize>) -> Pass {
        let mut env = Env {
            iteration: iteration.max(1) as f64,
            iterations: self.scheduled as f64,
            ..Env::default()
        };
        for (index, axis) in self.job.graph.axes.iter().enumerate() {
            if let AxisSize::Fixed(n) = axis.size {
                env.shapes.set(AxisId(index as u32), n);
            }
        }
        Pass {
            iteration,
            rows,
            env,
            rollouts: HashMap::new(),
            metrics: IndexMap::new(),
            late_metrics: IndexMap::new(),
            seconds: IndexMap::new(),
            sampled_tokens: 0,
        }
    }

    /// Runs one node. Failures point at its statement.
    pub fn call(&mut self, id: NodeId, pass: &mut Pass) -> Result<()> {
        let job = self.job;
        let node = job.graph.dag.node(id);
        let start = Instant::now();
        self.dispatch(node, pass).map_err(|f| f.at(node.span))?;
        if !matches!(node.kind, NodeKind::Load { .. } | NodeKind::Map { .. }) {
            pass.seconds
                .insert(node.name.clone(), start.elapsed().as_secs_f64());
        }
        Ok(())
    }

    fn dispatch(&mut self, node: &Node, pass: &mut Pass) -> Result<()> {
        let graph = &self.job.graph;
        match &node.kind {
            NodeKind::Load {
                data,
                axis,
                columns,
            } => pass.load(&self.tables[data.0 as usize], *axis, columns),
            NodeKind::Map { expr, value } => {
                let computed = tch::no_grad(|| expr::eval(graph, *expr, &pass.env))?;
                pass.env.values.insert(*value, computed);
                Ok(())
            }
            NodeKind::Generate {
                model,
                prompt,
                chat,
                sampling,
                rollout,
                members,
            } => {
                let prompts = self.encode_prompts(*model, *prompt, *chat, pass)?;
                self.check_room(node, &prompts, &pass.rows)?;
                let drawn = self.generate(node, *model, prompts, sampling, *rollout, pass)?;
                self.bind_rollout(drawn, members, pass)
            }
            NodeKind::Answer {
                model,
                prompt,
                chat,
                text,
                rollout,
                members,
            } => {
                let prompts = self.encode_prompts(*model, *prompt, *chat, pass)?;
                self.check_room(node, &prompts, &pass.rows)?;
                let drawn = self.answer(*model, prompts, *text, *rollout, pass)?;
                self.bind_rollout(drawn, members, pass)
            }
            NodeKind::Forward(forward) => self.forward(forward, pass),
            NodeKind::Reward {
                reward,
                args,
                value,
            } => {
                let axes = graph.value(*value).ty.axes.clone();
                let args = args
                    .iter()
                    .map(|a| expr::eval(graph, *a, &pass.env))
                    .collect::<Result<Vec<_>>>()?;
                let pool = &self.rewards[reward.0 as usize];
                let (scores, warning) = pool.score_values(&args, &axes, &pass.env.shapes)?;
                if let Some(diagnostic) = warning {
                    self.warn(
                        Fault {
                            diagnostic: Box::new(diagnostic),
                        }
                        .at(node.span),
                    );
                }
                pass.env.values.insert(*value, scores);
                Ok(())
            }
            NodeKind::Train(train) => self.train(node, train, pass),
        }
    }

    /// Token ids of an expression's texts or chats, one a row.
    pub fn encode_prompts(
        &self,
        model: ModelId,
        prompt: ExprRef,
        chat: bool,
        pass: &Pass,
    ) -> Result<Vec<Arc<[u32]>>> {
        let graph = &self.job.graph;
        let tokens = &self.tokens[model.0 as usize];
        let value = expr::eval(graph, prompt, &pass.env)?;
        let texts: Vec<Vec<u32>> = match &value.data {
            Data::Chat(chats) => chats
                .iter()
                .map(|c| tokens.chat(c))
                .collect::<Result<_>>()?,
            Data::Text(texts) => texts
                .iter()
                .enumerate()
                .map(|(i, text)| {
                    let text = text.as_deref().ok_or_else(|| {
                        Fault::new(format!(
                            "the prompt of row {} is none",
                            pass.rows.get(i).unwrap_or(&i) + 1
                        ))
                    })?;
                    if chat {
                        tokens.chat(&[Message {
                            role: "user".into(),
                            content: text.into(),
                        }])
                    } else {
                        tokens.encode(text, true)
                    }
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
            let row = pass.rows.get(i).unwrap_or(&i) + 1;
            return Err(Fault::new(format!("the prompt of row {row} has no tokens"))
                .at(graph.expr(prompt).span)
                .help("a model needs at least one token to continue from"));
        }
        Ok(texts.into_iter().map(Arc::from).collect())
    }

    /// Refuses prompts that leave no room for the response.
    pub fn check_room(&self, node: &Node, prompts: &[Arc<[u32]>], rows: &[usize]) -> Result<()> {
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

    fn generate(
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
        let rows: Vec<u64> = pass.rows.iter().map(|r| *r as u64).collect();
        let request = Request {
            prompts: &prompts,
            rows: &rows,
            group,
            sampling: &draw,
            key: SampleKey {
                seed: self.job.seed,
                call: philox::hash(&node.name),
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

    fn answer(
        &mut self,
        model: ModelId,
        prompts: Vec<Arc<[u32]>>,
        text: ExprRef,
        rollout: RolloutId,
        pass: &mut Pass,
    ) -> Result<Drawn> {
        let graph = &self.job.graph;
        let tokens = self.tokens[model.0 as usize].clone();
        let value = expr::eval(graph, text, &pass.env)?;
        let AxisSize::Ragged(max) = graph.axis(graph.rollout(rollout).tokens).size else {
            return Err(Fault::new("a response axis is ragged"));
        };
        let eos = tokens.eos().first().copied();
        let mut cut = 0;
        let mut responses = vec![];
        let mut finished = vec![];
        let texts: Vec<Arc<str>> = value
            .texts()?
            .iter()
            .map(|t| t.clone().unwrap_or_default())
            .collect();
        for text in &texts {
            let mut ids = tokens.encode(text, false)?;
            ids.extend(eos);
            let whole = ids.len() <= max;
            cut += usize::from(!whole);
            ids.truncate(max);
            finished.push(whole);
            responses.push(ids);
        }
        if cut > 0 {
            let message = format!(
                "{cut} of {} texts are longer than {max} tokens and were cut",
                texts.len()
            );
            self.warn_once(Fault::code("D303", message).at(graph.expr(text).span));
        }
        let rows = Rows {
            prompts,
            group: 1,
            responses,
        };
        let logp = Tensor::zeros([rows.tokens() as i64], (tch::Kind::Float, tch::Device::Cpu));
        Ok(Drawn {
            rollout,
            rows,
            logp,
            finished,
            texts,
        })
    }

    /// Gives a rollout's token axis its lengths, and its members their values.
    fn bind_rollout(
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
            };
            pass.env.values.insert(*id, value);
        }
        pass.rollouts.insert(drawn.rollout, drawn);
        Ok(())
    }

    fn forward(&mut self, forward: &Forward, pass: &mut Pass) -> Result<()> {
        let graph = &self.job.graph;
        let drawn = pass
            .rollouts
            .get(&forward.rollout)
            .ok_or_else(|| missing(graph, forward.rollout))?;
        let entropy = forward
            .outputs
            .iter()
            .any(|(o, _)| *o == ForwardOutput::Entropy);
        let model = &self.models[forward.model.0 as usize];
        let scores = model.score(&drawn.rows, forward.temperature, entropy);
        for (output, id) in &forward.outputs {
            let numbers = match output {
                ForwardOutput::Logp => Some(&scores.logp),
                ForwardOutput::Entropy => scores.entropy.as_ref(),
            };
            if let Some(numbers) = numbers {
                pass.env
                    .values
                    .insert(*id, Value::num(graph.value(*id).ty.axes.clone(), numbers));
            }
        }
        Ok(())
    }
}

fn missing(graph: &Graph, rollout: RolloutId) -> Fault {
    // The instruction order puts a rollout before its readers; a plan that does not is at fault.
    Fault::new(format!(
        "`{}` is read before it is sampled",
        graph.rollout(rollout).name
    ))
}
