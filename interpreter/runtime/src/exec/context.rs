//! What lives as long as the run: data, tokenizers, models, optimizers, reward workers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rlhf_kernels::parallel;
use rlhf_lang::diag::Level;
use rlhf_lang::graph::{self, Dtype, ExprRef, Graph, Init, ModelKind, NodeKind, Op, StateId};
use rlhf_plan::launch::{Event, Job};
use rlhf_text::Tokens;
use rlhf_text::files;
use rlhf_text::reward::{self, Pool, Python};
use rlhf_text::rows::{self, Table};

use super::Emit;
use super::carry::{first_states, is_blended};
use super::checkpoint;
use super::pass::Pass;
use super::record::Record;
use super::schedule::{iterations, step_load};
use crate::fault::{Fault, Result};
use crate::model::{self, AdamW, Average, Config, Draws, HeadKind, Model};
use crate::value::Value;

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
    /// The averages behind models that follow another.
    pub averages: Vec<Option<Average>>,
    /// What the next iteration begins with.
    pub states: HashMap<StateId, Value>,
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
            averages: vec![],
            states: first_states(graph),
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

    /// Saves every model that was trained or that follows one as `<run>/<model>`, and its adapters as `<run>/<model>-adapter`.
    pub fn save(&mut self, iteration: usize) -> Result<()> {
        for (index, model) in self.job.graph.models.iter().enumerate() {
            if self.optimizers[index].is_some() || self.averages[index].is_some() {
                if !self.models[index].is_finite() {
                    return Err(Fault::code(
                        "R401",
                        format!(
                            "the weights of `{}` are no longer finite and are not saved",
                            model.name
                        ),
                    ));
                }
                let weights = &self.models[index];
                let source = Path::new(&self.job.checkpoints[index]);
                let write = |dir: &Path| checkpoint::write(dir, weights, source);
                let path = self.record.checkpoint(&model.name, write)?;
                let mut saved = vec![path];
                if let (true, Some(checkpoint)) = (weights.is_adapted(), model.kind.checkpoint()) {
                    // A hub id means the same everywhere; a path does only when it is absolute.
                    let local = files::find(Path::new(&self.job.base), checkpoint);
                    let base = match local.is_some() || checkpoint.starts_with('~') {
                        true => &*std::path::absolute(source)?.display().to_string(),
                        false => checkpoint,
                    };
                    let write = |dir: &Path| checkpoint::write_adapter(dir, weights, base, source);
                    let name = format!("{}-adapter", model.name);
                    saved.push(self.record.checkpoint(&name, write)?);
                }
                for path in saved {
                    (self.emit)(Event::Saved {
                        iteration,
                        path: path.display().to_string(),
                    });
                }
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
        let graph = &self.job.graph;
        for (index, declared) in graph.models.iter().enumerate() {
            let model = self.model(index, declared)?;
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
            let follows = is_blended(graph, index);
            self.averages.push(follows.then(|| Average::new(&model)));
            self.models.push(model);
        }
        Ok(())
    }

    fn model(&mut self, index: usize, declared: &graph::Model) -> Result<Model> {
        let dtype = |default: model::Dtype| match declared.dtype {
            Some(Dtype::F32) => model::Dtype::F32,
            Some(Dtype::Bf16) => model::Dtype::Bf16,
            None => default,
        };
        let (checkpoint, head, span) = match &declared.kind {
            ModelKind::Causal { checkpoint, span } => (checkpoint, HeadKind::Language, *span),
            ModelKind::Scalar {
                checkpoint, span, ..
            } => (checkpoint, HeadKind::Scalar, *span),
            // Models are declared in order, so the origin is loaded.
            ModelKind::Frozen(origin) => {
                let origin = &self.models[origin.0 as usize];
                let dtype = dtype(origin.dtype());
                return Ok(match is_blended(&self.job.graph, index) {
                    true => origin.snapshot_in(dtype),
                    false => origin.anchor(dtype),
                });
            }
        };
        let draws = Draws {
            seed: self.job.seed,
            model: &declared.name,
        };
        let dir = Path::new(&self.job.checkpoints[index]);
        let dtype = dtype(match self.job.dtype {
            Dtype::F32 => model::Dtype::F32,
            Dtype::Bf16 => model::Dtype::Bf16,
        });
        let from = match declared.init {
            Init::Checkpoint => "loading",
            Init::Random => "drawing",
        };
        (self.emit)(Event::Note {
            text: format!("{from} {} from {checkpoint}", declared.name),
        });
        let model = match (declared.init, head) {
            (Init::Random, head) => Model::draw(dir, head, dtype, &draws),
            (Init::Checkpoint, HeadKind::Language) => Model::load(dir, dtype),
            (Init::Checkpoint, HeadKind::Scalar) => Model::load_scalar(dir, dtype, &draws),
        };
        let mut model = model.map_err(|f| f.at(span))?;
        let trained = is_trained(&self.job.graph, index);
        let adapter = self.job.adapters.get(index).and_then(Option::as_ref);
        if let Some(adapter) = adapter {
            if declared.lora.is_some() && trained {
                let message =
                    format!("`{checkpoint}` is an adapter, and `lora:` would put another on it");
                return Err(Fault::new(message)
                    .at(span)
                    .help("the merged checkpoint beside it can be adapted again"));
            }
            model
                .merge_adapter(Path::new(adapter))
                .map_err(|f| f.at(span))?;
        }
        if let Some(lora) = declared.lora.as_ref().filter(|_| trained) {
            model.adapt(lora, &draws).map_err(|f| f.at(declared.span))?;
        }
        let read = self.configs[index].head == HeadKind::Scalar || adapter.is_some();
        if head == HeadKind::Scalar && !read && !trained && !is_origin(&self.job.graph, index) {
            let name = &declared.name;
            let message = format!(
                "`{name}` gives random numbers: `{checkpoint}` has no scalar head and nothing trains one"
            );
            let help =
                "a trained reward model or critic is named instead, such as `runs/reward/judge`";
            self.warn(Fault::new(message).at(span).help(help));
        }
        Ok(model)
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
                rollout,
                ..
            }
            | NodeKind::Answer {
                model,
                prompt,
                chat,
                rollout,
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
                .encode_prompts(*model, *prompt, *chat, *rollout, &pass)
                .map_err(|f| f.at(node.span))?;
            self.check_room(node, &prompts, &pass)?;
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
        pass.env.settle(graph)?;
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

/// Whether another model is the frozen copy of this one.
fn is_origin(graph: &Graph, index: usize) -> bool {
    let of = |m: &graph::Model| matches!(m.kind, ModelKind::Frozen(of) if of.0 as usize == index);
    graph.models.iter().any(of)
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
