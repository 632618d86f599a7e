//! Low-rank adaptation (Hu et al., 2022, arXiv:2106.09685): W + alpha/rank · B·A with only A and B trained.
//!
//! The model computes with merged weights, so every pass and the decoder are as without adapters. The
//! backward pass gives dW; from it follow dA = s·Bᵀ·dW and dB = s·dW·Aᵀ with s = alpha/rank. After a step
//! the merged weights are computed again from the base, which a frozen copy of the model shares.
//! Everything else stays as it is, but for the head of a scalar model, which is trained whole.

use std::path::Path;

use rlhf_lang::graph::Lora;
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use super::architecture::SCALAR_HEAD;
use super::names::Form;
use super::save;
use super::weights::{Layout, Parameter, Slot};
use super::{Config, Draws, HeadKind, Model};
use crate::fault::{Fault, Result};

/// Adapters of a model.
#[derive(Debug)]
pub(super) struct Adapters {
    rank: usize,
    alpha: f64,
    targets: Vec<Target>,
    /// The head of a scalar model: its place among the model's parameters and among the numbers.
    head: Option<(Slot, Slot)>,
    /// What is trained, f32: A and B of each target, then the head.
    numbers: Tensor,
    /// The model's parameters as they were loaded.
    base: Tensor,
}

/// A linear layer with its adapter.
#[derive(Debug)]
struct Target {
    /// `model.layers.0.self_attn.q_proj`
    module: String,
    /// W among the model's parameters, `[out, in]`.
    weight: Slot,
    /// How the file holds W.
    form: Form,
    /// A among the numbers, `[rank, in]`.
    a: Slot,
    /// B among the numbers, `[out, rank]`.
    b: Slot,
}

impl Model {
    /// Puts adapters on the linear layers that `lora` names, all of the body's where it names none: A as
    /// PEFT draws it, uniform within 1/√in, and B of zeros. From here on only they are trained.
    ///
    /// A name that no linear layer has is an error.
    pub fn adapt(&mut self, lora: &Lora, draws: &Draws) -> Result<()> {
        let linears = linears(&self.config, &self.layout);
        let mut cursor = Cursor(0);
        let rank = lora.rank as i64;
        let targets: Vec<Target> = linears
            .iter()
            .filter(|(module, _)| {
                lora.targets.is_empty() || lora.targets.iter().any(|t| named(module, t))
            })
            .map(|(module, parameter)| Target {
                module: module.to_string(),
                a: cursor.slot(&[rank, parameter.slot.shape[1]]),
                b: cursor.slot(&[parameter.slot.shape[0], rank]),
                weight: parameter.slot.clone(),
                form: parameter.form,
            })
            .collect();
        let absent = |t: &&String| !targets.iter().any(|found| named(&found.module, t));
        if let Some(target) = lora.targets.iter().find(absent) {
            return Err(no_layer(target, draws.model, &linears));
        }
        let head = (self.config.head == HeadKind::Scalar).then(|| {
            let slot = self.layout.weights.head.clone();
            let place = cursor.slot(&slot.shape);
            (slot, place)
        });
        let numbers = Tensor::zeros([cursor.0], (Kind::Float, Device::Cpu));
        for target in &targets {
            let name = format!("{}.lora_A", target.module);
            let bound = 1.0 / (target.weight.shape[1] as f64).sqrt();
            let drawn = draws.uniform(&name, &target.a.shape, bound);
            target.a.view(&numbers).copy_(&drawn);
        }
        if let Some((slot, place)) = &head {
            place.view(&numbers).copy_(&slot.view(&self.flat));
        }
        let merged = self.flat.copy();
        self.weights = self.layout.weights.views(&merged);
        self.adapters = Some(Adapters {
            rank: lora.rank,
            alpha: lora.alpha,
            targets,
            head,
            numbers,
            base: std::mem::replace(&mut self.flat, merged),
        });
        Ok(())
    }

    /// Writes the adapters into `dir` as PEFT does: `adapter_model.safetensors` and
    /// `adapter_config.json`, in which `base` names the checkpoint they stand on. A model without
    /// adapters writes nothing.
    pub fn save_adapters(&self, dir: &Path, base: &str) -> Result<()> {
        match &self.adapters {
            Some(adapters) => adapters.save(dir, base),
            None => Ok(()),
        }
    }

    /// Whether it is trained through adapters.
    pub fn is_adapted(&self) -> bool {
        self.adapters.is_some()
    }
}

impl Adapters {
    /// What is trained, f32.
    pub(super) fn numbers(&self) -> &Tensor {
        &self.numbers
    }

    /// The model's parameters as they were loaded.
    pub(super) fn base(&self) -> &Tensor {
        &self.base
    }

    /// The gradient of the numbers, given that of the merged weights.
    pub(super) fn gradient(&self, merged: &Tensor) -> Tensor {
        let gradient = Tensor::zeros_like(&self.numbers);
        for target in &self.targets {
            let d_weight = target.weight.view(merged) * self.scale();
            let (a, b) = (target.a.view(&self.numbers), target.b.view(&self.numbers));
            target.a.view(&gradient).copy_(&b.tr().mm(&d_weight));
            target.b.view(&gradient).copy_(&d_weight.mm(&a.tr()));
        }
        if let Some((slot, place)) = &self.head {
            place.view(&gradient).copy_(&slot.view(merged));
        }
        gradient
    }

    /// Puts base and adapters together in `flat`, rounded once to its type.
    pub(super) fn merge(&self, flat: &Tensor) {
        for target in &self.targets {
            let (a, b) = (target.a.view(&self.numbers), target.b.view(&self.numbers));
            let base = target.weight.view(&self.base).to_kind(Kind::Float);
            let merged = base + b.mm(&a) * self.scale();
            target.weight.view(flat).copy_(&merged);
        }
        if let Some((slot, place)) = &self.head {
            slot.view(flat).copy_(&place.view(&self.numbers));
        }
    }

    fn scale(&self) -> f64 {
        self.alpha / self.rank as f64
    }

    fn save(&self, dir: &Path, base: &str) -> Result<()> {
        let named = |module: &str, part: &str| format!("base_model.model.{module}.{part}weight");
        let view = |slot: &Slot| slot.view(&self.numbers);
        let mut tensors = Vec::new();
        for target in &self.targets {
            tensors.push((named(&target.module, "lora_A."), view(&target.a)));
            // B's rows are W's; a W that is stored transposed has the same A and B.
            let b = match target.form {
                Form::Transposed => view(&target.b),
                form => form.stored(&view(&target.b)),
            };
            tensors.push((named(&target.module, "lora_B."), b));
        }
        if let Some((_, place)) = &self.head {
            tensors.push((named(SCALAR_HEAD, ""), view(place)));
        }
        save::write_file(dir, "adapter_model.safetensors", tensors)?;
        save::write_text(dir, "adapter_config.json", &self.description(base))
    }

    /// `adapter_config.json`.
    fn description(&self, base: &str) -> Value {
        let mut modules: Vec<&str> = self.targets.iter().map(|t| last(&t.module)).collect();
        modules.sort_unstable();
        modules.dedup();
        let (task, whole) = match self.head {
            Some(_) => ("SEQ_CLS", json!([SCALAR_HEAD])),
            None => ("CAUSAL_LM", Value::Null),
        };
        json!({
            "peft_type": "LORA",
            "task_type": task,
            "base_model_name_or_path": base,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "target_modules": modules,
            "modules_to_save": whole,
            "bias": "none",
            "fan_in_fan_out": self.targets.iter().any(|t| t.form == Form::Transposed),
            "init_lora_weights": true,
            "use_rslora": false,
            "use_dora": false,
            "inference_mode": true,
        })
    }
}

/// The linear layers of the body by module, with their weights.
fn linears<'l>(config: &Config, layout: &'l Layout) -> Vec<(&'l str, &'l Parameter)> {
    let linear = |p: &'l Parameter| {
        let inside = p.name.starts_with(config.family.names.layer) && p.slot.shape.len() == 2;
        let module = p.name.strip_suffix(".weight").filter(|_| inside)?;
        Some((module, p))
    };
    layout.parameters.iter().filter_map(linear).collect()
}

/// PEFT's rule: a target is a module's whole name or the end of it, cut at a dot.
fn named(module: &str, target: &str) -> bool {
    let rest = module.strip_suffix(target);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn last(module: &str) -> &str {
    module.rsplit('.').next().unwrap_or(module)
}

fn no_layer(target: &str, model: &str, linears: &[(&str, &Parameter)]) -> Fault {
    let mut known: Vec<&str> = Vec::new();
    for (module, _) in linears {
        if !known.contains(&last(module)) {
            known.push(last(module));
        }
    }
    Fault::new(format!("`{model}` has no linear layer `{target}` to adapt"))
        .help(format!("its linear layers are {}", known.join(", ")))
}

/// Gives out neighbouring places.
struct Cursor(i64);

impl Cursor {
    fn slot(&mut self, shape: &[i64]) -> Slot {
        let slot = Slot {
            offset: self.0,
            shape: shape.to_vec(),
        };
        self.0 += slot.len();
        slot
    }
}
