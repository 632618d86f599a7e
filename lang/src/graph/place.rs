//! A plan as the program's text holds it: where calls run and in which pieces.

use serde::{Deserialize, Serialize};

use crate::source::Span;

/// `place grpo on cluster(…) { … }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The program it is for.
    pub program: String,
    /// The devices there are.
    pub cluster: Cluster,
    /// Its lines.
    pub calls: Vec<Placed>,
    /// The item.
    pub span: Span,
}

/// `cluster(nodes: 2, gpus: 8, device: "h100-80g")`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Machines.
    pub nodes: usize,
    /// Devices of one machine.
    pub gpus: usize,
    /// What a device is.
    pub device: String,
    /// The call.
    pub span: Span,
}

/// `roll on gpus(0, 16) { dp: 8, tp: 2 }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The call's name: `roll`, `train policy`.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// The first device.
    pub lo: usize,
    /// One past the last device.
    pub hi: usize,
    /// The devices' text.
    pub devices: Span,
    /// Data-parallel replicas.
    pub dp: usize,
    /// Tensor-parallel ranks.
    pub tp: usize,
    /// Pipeline stages.
    pub pp: usize,
    /// The other settings, as written.
    pub settings: Vec<(String, Setting)>,
    /// Where each setting stands, `dp`, `tp` and `pp` included.
    pub spans: Vec<(String, Span)>,
    /// The line.
    pub span: Span,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `recompute: true`
    Bool(bool),
    /// `micro: 8`
    Int(usize),
    /// `offload: host`
    Word(String),
}

impl Cluster {
    /// Devices in all.
    pub fn devices(&self) -> usize {
        self.nodes * self.gpus
    }
}

impl Placed {
    /// Where a setting stands, or else the line.
    pub fn at(&self, name: &str) -> Span {
        let found = self.spans.iter().find(|(n, _)| n == name);
        found.map_or(self.span, |(_, s)| *s)
    }

    /// A whole-number setting.
    pub fn int(&self, name: &str) -> Option<usize> {
        let found = self.settings.iter().find(|(n, _)| n == name);
        match found.map(|(_, s)| s) {
            Some(Setting::Int(n)) => Some(*n),
            _ => None,
        }
    }
}
