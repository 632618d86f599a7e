//! What lives as long as the run: data, tokenizers, models, optimizers, reward workers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rlhf_kernels::parallel;
use rlhf_lang::diag::Level;
use rlhf_lang::graph::{self, Dtype, ExprRef, Graph, ModelKind, NodeKind, Op};
use rlhf_plan::launch::{Event, Job};
use rlhf_text::Tokens;
use rlhf_text::reward::{self, Pool, Python};
use rlhf_text::rows::{self, Table};

use super::Emit;
use super::pass::Pass;
use super::record::Record;
use super::schedule::{iterations, step_load};
use crate::fault::{Fault, Result};
use crate::model::{self, AdamW, Config, Model};

/// The state of a run.
pub struct Context<'a> {
    /// What was asked for.
    pub job: &'a Job,
    /// Where events go.
    pub emit: Emit<'a>,
    /// Files of the run directory.
    pub record: Record,
    /// Data sets, as in the graph.
    pub tables: Vec<Table>,
    /// Tokenizers, one a model; models of one checkpoint share theirs.
    pub tokens: Vec<Arc<Tokens>>,
    /// Their shapes, read before their weights.
    pub configs: Vec<Config>,
    /// Models, as in the graph.
    pub models: Vec<Model>,
    /// Optimizers of the models that are trained.
    pub optimizers: Vec<Option<AdamW>>,
    /// Reward workers, as in the graph.
    pub rewards: Vec<Pool>,
    /// Iterations by the program's schedule, which `iterations` and learning rates refer to.
    pub scheduled: usize,
    /// The last iteration of this run.
    pub last: usize,
    /// Warnings that were said: their codes, or their words.
    pub said: Vec<String>,
    /// Whether any model was trained.
    pub updated: bool,
    stop: Arc<AtomicBool>,
}

impl<'a> Context<'a> {
    /// Loads everything, and finds what can be found before the first iteration.
    pub fn prepare(job: &'a Job, emit: Emit<'a>, stop: Arc<AtomicBool>) -> Result<Self> {
        let graph = &job.graph;
        tch::set_num_threads(job.threads.max(1) as i32);
        parallel::set_threads(job.threads.max(1)).map_err(Fault::new)?;
        let base = Path::new(&job.base);
        let tables = graph
            .data
            .iter()
            .map(|d| rows::load(d, base, Path::new(&job.out)))
            .collect::<rlhf_text::Result<Vec<_>>>()?;
        let log = Some(Path::new(&job.out).join("rewards.log"));
        let python = Python {
            executable: PathBuf::from(&job.python),
            log,
            start: reward::START,
        };
        let rewards = graph
            .rewards
            .iter()
            .map(|r| Pool::start(r, base, &python))
            .collect::<rlhf_text::Result<Vec<_>>>()?;
        let scheduled = step_load(graph).map_or(0, |(table, batch)| {
            iterations(graph.schedule, tables[table].rows(), batch)
        });
        let record = Record::open(Path::new(&job.out))?;
        let tokens = tokenizers(job)?;
        let config = |(model, dir): (&graph::Model, &String)| {
            Config::load(Path::new(dir)).map_err(|f| f.at(model.span))
        };
        let configs = graph
            .models
            .iter()
            .zip(&job.checkpoints)
            .map(config)
            .collect::<Result<Vec<_>>>()?;
        let mut context = Context {
            job,
            emit,
            record,
            tables,
            tokens,
            configs,
            models: vec![],
            optimizers: vec![],
            rewards,
            scheduled,
            last: scheduled.min(job.iterations.unwrap_or(usize::MAX)),
            said: vec![],
            updated: false,
            stop,
        };
        context.step_rows(1)?;
        context.check_lengths()?;
        context.load_models()?;
        Ok(context)
    }

    /// Whether the user asked for an end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Shows a warning once a run: one with the same code, or without a code the same words.
    pub fn warn_once(&mut self, fault: Fault) {
        let said = match fault.diagnostic.code.as_str() {
            "" => &fault.diagnostic.message,
            code => code,
        }
        .to_string();
        if !self.said.contains(&said) {
            self.said.push(said);
            self.warn(fault);
        }
    }

    /// A line that could not be written, on a full disk say, must not end training that may still be
    /// saved.
    pub fn unless_written(&mut self, written: Result<()>) {
        if let Err(fault) = written {
            self.warn_once(fault);
        }
    }

    /// Shows a warning.
    pub fn warn(&mut self, fault: Fault) {
        let mut diagnostic = *fault.diagnostic;
        diagnostic.level = Level::Warning;
        (self.emit)(Event::Diagnostic(diagnostic));
    }

    /// Saves every trained model as `<run>/<model>`.
    pub fn save(&mut self, iteration: usize) -> Result<()> {
        for (index, model) in self.job.graph.models.iter().enumerate() {
            if self.optimizers[index].is_some() {
                if !self.models[index].is_finite() {
                    return Err(Fault::code(
                        "R401",
                        format!(
                            "the weights of `{}` are no longer finite and are not saved",
                            model.name
                        ),
                    ));
                }
                let source = Path::new(&self.job.checkpoints[index]);
                let path = self
                    .record
                    .checkpoint(&model.name, &self.models[index], source)?;
                (self.emit)(Event::Saved {
                    iteration,
                    path: path.display().to_string(),
                });
            }
        }
        Ok(())
    }

    /// Saves in mid-run: a full disk must not end training that may still be saved later.
    pub fn save_or_warn(&mut self, iteration: usize) {
        if let Err(fault) = self.save(iteration) {
            self.warn(fault);
        }
    }

    fn load_models(&mut self) -> Result<()> {
        for (index, declared) in self.job.graph.models.iter().enumerate() {
            let model = match &declared.kind {
                ModelKind::Causal { checkpoint, span }
                | ModelKind::Scalar {
                    checkpoint, span, ..
                } => {
                    (self.emit)(Event::Note {
                        text: format!("loading {} from {checkpoint}", declared.name),
                    });
                    let dtype = match declared.dtype.unwrap_or(self.job.dtype) {
                        Dtype::F32 => model::Dtype::F32,
                        Dtype::Bf16 => model::Dtype::Bf16,
                    };
                    Model::load(Path::new(&self.job.checkpoints[index]), dtype)
                        .map_err(|f| f.at(*span))?
                }
                // Models are declared in order, so the origin is loaded.
                ModelKind::Frozen(origin) => self.models[origin.0 as usize].snapshot(),
            };
            let trained = is_trained(&self.job.graph, index);
            self.optimizers
                .push(declared.optim.as_ref().filter(|_| trained).map(|optim| {
                    AdamW::new(
                        &model,
                        (optim.beta1, optim.beta2),
                        optim.eps,
                        optim.weight_decay,
                    )
                }));
            self.models.push(model);
        }
        Ok(())
    }

    /// Tokenises the prompts that depend on data alone, and refuses those that leave no room for the
    /// response, before any weight is read.
    fn check_lengths(&mut self) -> Result<()> {
        let graph = &self.job.graph;
        for id in graph.dag.order() {
            let node = graph.dag.node(id);
            let (NodeKind::Generate {
                model,
                prompt,
                chat,
                ..
            }
            | NodeKind::Answer {
                model,
                prompt,
                chat,
                ..
            }) = &node.kind
            else {
                continue;
            };
            let Some(table) = self.table_of(*prompt) else {
                continue;
            };
            let count = self.tables[table].rows().min(CHECKED_ROWS);
            let pass = self.begin_over(table, (0..count).collect())?;
            let prompts = self
                .encode_prompts(*model, *prompt, *chat, &pass)
                .map_err(|f| f.at(node.span))?;
            self.check_room(node, &prompts, &pass.rows)?;
        }
        Ok(())
    }

    /// The data set whose columns are all that an expression reads, if that is so.
    fn table_of(&self, root: ExprRef) -> Option<usize> {
        let graph = &self.job.graph;
        let mut loaded = HashMap::new();
        for id in graph.dag.order() {
            if let NodeKind::Load { data, columns, .. } = &graph.dag.node(id).kind {
                loaded.extend(columns.iter().map(|(_, value)| (*value, data.0 as usize)));
            }
        }
        let mut found = None;
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            let expr = graph.expr(e);
            if let Op::Value(value) = &expr.op {
                let table = *loaded.get(value)?;
                if *found.get_or_insert(table) != table {
                    return None;
                }
            }
            open.extend(&expr.args);
        }
        found
    }

    /// A pass over rows of one data set, its columns loaded.
    fn begin_over(&mut self, table: usize, rows: Vec<usize>) -> Result<Pass> {
        let graph = &self.job.graph;
        let mut pass = self.begin(0, rows);
        for id in graph.dag.order() {
            if let NodeKind::Load {
                data,
                axis,
                columns,
            } = &graph.dag.node(id).kind
                && data.0 as usize == table
            {
                pass.load(&self.tables[table], *axis, columns)?;
            }
        }
        Ok(pass)
    }
}

/// Rows of a data set whose prompts are measured before the run; later ones are checked when they come.
const CHECKED_ROWS: usize = 4096;

fn is_trained(graph: &Graph, model: usize) -> bool {
    graph.dag.order().any(|id| match &graph.dag.node(id).kind {
        NodeKind::Train(train) => train.model.0 as usize == model,
        _ => false,
    })
}

fn tokenizers(job: &Job) -> Result<Vec<Arc<Tokens>>> {
    let mut loaded: HashMap<PathBuf, Arc<Tokens>> = HashMap::new();
    let mut all = vec![];
    for (model, dir) in job.graph.models.iter().zip(&job.checkpoints) {
        let dir = PathBuf::from(dir);
        if !loaded.contains_key(&dir) {
            let tokens = Tokens::load(&dir).map_err(|d| Fault::from(d).at(model.span))?;
            loaded.insert(dir.clone(), Arc::new(tokens));
        }
        all.push(loaded[&dir].clone());
    }
    Ok(all)
}
