//! Decoder models: shape, weights, forward, training pass, optimizer, saving.
//!
//! One generic decoder described by [`Config`]: RMSNorm or LayerNorm, rotary or learned positions,
//! grouped-query attention within a window or without, gated or plain MLP or a mixture of experts. Each
//! family of checkpoints is an entry of the table in [`family`].

pub mod activation;
mod adamw;
mod adapters;
pub mod architecture;
mod attention;
mod average;
mod body;
pub mod config;
mod experts;
pub mod family;
mod head;
mod live;
pub mod names;
pub mod norm;
mod ops;
mod pack;
mod peft;
mod qk_norm;
mod random;
pub mod rope;
mod save;
mod scalar;
mod stored;
pub mod weights;

use std::path::Path;

use tch::{Device, Kind, Tensor};

pub use adamw::AdamW;
pub use architecture::HeadKind;
pub use average::Average;
pub use config::Config;
pub use head::Scores;
pub use live::LivePass;
pub use random::Draws;
pub use scalar::{ScalarPass, States, Values};
pub use weights::{Layer, Layout, Weights, parameter_count};

use adapters::Adapters;

use crate::fault::{Fault, Result};

/// The type that parameters and matrix products are in. Norms, softmax and losses are always in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
}

impl Dtype {
    /// The same type in libtorch's words.
    pub fn kind(self) -> Kind {
        match self {
            Dtype::F32 => Kind::Float,
            Dtype::Bf16 => Kind::BFloat16,
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::Bf16 => 2,
        }
    }
}

/// A decoder with a language head or a scalar one.
#[derive(Debug)]
pub struct Model {
    /// Its shape.
    pub config: Config,
    /// Views of the parameters in [`Model::flat`].
    pub weights: Weights<Tensor>,
    layout: Layout,
    flat: Tensor,
    gradient: Option<Tensor>,
    adapters: Option<Adapters>,
    dtype: Dtype,
}

impl Model {
    /// Reads a language model from a Hugging Face directory: `config.json` and its safetensors, whole or
    /// in shards.
    ///
    /// Errors name the file and the tensor: no config or weights, an architecture that is not
    /// supported, a file that is cut off, a tensor that is missing, unknown or of another shape.
    pub fn load(dir: &Path, dtype: Dtype) -> Result<Model> {
        let config = Config::load(dir)?;
        if config.head == HeadKind::Scalar {
            let class = architecture::classification(config.family);
            let message = format!("`{}` is a {class}, without a language head", dir.display());
            return Err(Fault::new(message).help("`scalar(…)` reads it"));
        }
        let model = Model::blank(config, dtype)?;
        stored::read(dir, HeadKind::Language, &model)?;
        Ok(model)
    }

    /// Reads a scalar model. The head of a sequence classifier with one label is read; on the body of
    /// a language model a new one is drawn, and the language head is left out.
    pub fn load_scalar(dir: &Path, dtype: Dtype, draws: &Draws) -> Result<Model> {
        let mut config = Config::load(dir)?;
        let stored = std::mem::replace(&mut config.head, HeadKind::Scalar);
        let model = Model::blank(config, dtype)?;
        stored::read(dir, stored, &model)?;
        if stored == HeadKind::Language {
            random::fill_head(&model, draws);
        }
        Ok(model)
    }

    /// A model of the shape that `dir/config.json` describes, all weights drawn anew.
    pub fn draw(dir: &Path, head: HeadKind, dtype: Dtype, draws: &Draws) -> Result<Model> {
        let mut config = Config::load(dir)?;
        config.head = head;
        let model = Model::blank(config, dtype)?;
        random::fill(&model, draws);
        Ok(model)
    }

    /// A model whose parameters have no values yet.
    fn blank(config: Config, dtype: Dtype) -> Result<Model> {
        let layout = Layout::new(&config);
        let flat = Tensor::f_empty([layout.len()], (dtype.kind(), Device::Cpu)).map_err(|_| {
            let bytes = layout.len() as u64 * dtype.bytes() as u64;
            Fault::new(format!("no memory for {} MB of weights", bytes >> 20))
        })?;
        Ok(Model::over(config, layout, flat, dtype))
    }

    fn over(config: Config, layout: Layout, flat: Tensor, dtype: Dtype) -> Model {
        Model {
            weights: layout.weights.views(&flat),
            config,
            layout,
            flat,
            gradient: None,
            adapters: None,
            dtype,
        }
    }

    /// The parameters as they were loaded, frozen, for a model that nothing trains: those of an adapted
    /// model are shared, in another case they are copied.
    pub fn anchor(&self, dtype: Dtype) -> Model {
        match &self.adapters {
            Some(adapters) if dtype == self.dtype => {
                let flat = adapters.base().shallow_clone();
                Model::over(self.config.clone(), Layout::new(&self.config), flat, dtype)
            }
            _ => self.snapshot_in(dtype),
        }
    }

    /// A copy of the parameters as they are now, in a type of its own.
    pub fn snapshot_in(&self, dtype: Dtype) -> Model {
        // `to_kind` copies nothing where the type is the same.
        let flat = match dtype == self.dtype {
            true => self.flat.copy(),
            false => self.flat.to_kind(dtype.kind()),
        };
        Model::over(self.config.clone(), Layout::new(&self.config), flat, dtype)
    }

    /// A deep copy of the parameters as they are now.
    pub fn snapshot(&self) -> Model {
        self.snapshot_in(self.dtype)
    }

    /// All parameters, one after another in the order of [`Model::layout`].
    pub fn flat(&self) -> &Tensor {
        &self.flat
    }

    /// The gradient added up since the last optimizer step, f32 in the order of [`Model::flat`]; none
    /// before the first backward pass.
    pub fn gradient(&self) -> Option<&Tensor> {
        self.gradient.as_ref()
    }

    /// Views of the gradient, which is made of zeros when there is none.
    fn gradient_views(&mut self) -> Weights<Tensor> {
        let len = self.layout.len();
        let gradient = self
            .gradient
            .get_or_insert_with(|| Tensor::zeros([len], (Kind::Float, self.flat.device())));
        self.layout.weights.views(gradient)
    }

    /// What an optimizer changes: all parameters, or the f32 numbers of the adapters.
    fn trained(&self) -> &Tensor {
        match &self.adapters {
            Some(adapters) => adapters.numbers(),
            None => &self.flat,
        }
    }

    /// The gradient of [`Model::trained`], where there is one.
    fn trained_gradient(&self) -> Option<Tensor> {
        let gradient = self.gradient.as_ref()?;
        Some(match &self.adapters {
            Some(adapters) => adapters.gradient(gradient),
            None => gradient.shallow_clone(),
        })
    }

    /// Follows a change of [`Model::trained`], and begins a new gradient.
    fn follow(&mut self) {
        if let Some(adapters) = &self.adapters {
            adapters.merge(&self.flat);
        }
        if let Some(gradient) = &mut self.gradient {
            let _ = gradient.zero_();
        }
    }

    /// Whether every parameter is a finite number.
    pub fn is_finite(&self) -> bool {
        // One pass: a sum is finite only when all its terms are, up to an overflow that f64 excludes.
        self.flat.sum(Kind::Double).double_value(&[]).is_finite()
    }

    /// Where each parameter lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The type of the parameters.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }
}
