//! The standard library and the shipped programs as texts inside the binary.
//!
//! A module is a `.rlhf` file of documented functions; a program is a complete algorithm. Nothing here
//! is parsed: the language does that when a program imports a module.

/// Modules by path.
const MODULES: &[(&str, &str)] = &[
    ("std.prelude", include_str!("../std/prelude.rlhf")),
    ("std.advantage", include_str!("../std/advantage.rlhf")),
    ("std.dpo", include_str!("../std/dpo.rlhf")),
    ("std.grpo", include_str!("../std/grpo.rlhf")),
    ("std.kl", include_str!("../std/kl.rlhf")),
    ("std.kto", include_str!("../std/kto.rlhf")),
    ("std.optim", include_str!("../std/optim.rlhf")),
    ("std.ppo", include_str!("../std/ppo.rlhf")),
    ("std.preference", include_str!("../std/preference.rlhf")),
    ("std.raft", include_str!("../std/raft.rlhf")),
    ("std.remax", include_str!("../std/remax.rlhf")),
    ("std.reward", include_str!("../std/reward.rlhf")),
    ("std.sft", include_str!("../std/sft.rlhf")),
    ("std.value", include_str!("../std/value.rlhf")),
];

/// The paths a program can import from; the prelude is in scope without an import.
const PATHS: &[&str] = &[
    "std.advantage",
    "std.dpo",
    "std.grpo",
    "std.kl",
    "std.kto",
    "std.optim",
    "std.ppo",
    "std.preference",
    "std.raft",
    "std.remax",
    "std.reward",
    "std.sft",
    "std.value",
];

/// Programs by name: the tutorial's three first.
const ALGORITHMS: &[(&str, &str)] = &[
    ("sft", include_str!("../../algorithms/sft.rlhf")),
    ("reward", include_str!("../../algorithms/reward.rlhf")),
    ("ppo", include_str!("../../algorithms/ppo.rlhf")),
    ("ppo_ema", include_str!("../../algorithms/ppo_ema.rlhf")),
    ("dpo", include_str!("../../algorithms/dpo.rlhf")),
    ("raft", include_str!("../../algorithms/raft.rlhf")),
    ("grpo", include_str!("../../algorithms/grpo.rlhf")),
    ("remax", include_str!("../../algorithms/remax.rlhf")),
    ("rloo", include_str!("../../algorithms/rloo.rlhf")),
    (
        "reinforce_pp",
        include_str!("../../algorithms/reinforce_pp.rlhf"),
    ),
    ("dapo", include_str!("../../algorithms/dapo.rlhf")),
    ("dr_grpo", include_str!("../../algorithms/dr_grpo.rlhf")),
    ("gspo", include_str!("../../algorithms/gspo.rlhf")),
    ("cispo", include_str!("../../algorithms/cispo.rlhf")),
    ("ipo", include_str!("../../algorithms/ipo.rlhf")),
    ("kto", include_str!("../../algorithms/kto.rlhf")),
    ("orpo", include_str!("../../algorithms/orpo.rlhf")),
    ("simpo", include_str!("../../algorithms/simpo.rlhf")),
    (
        "online_dpo",
        include_str!("../../algorithms/online_dpo.rlhf"),
    ),
    ("best_of_n", include_str!("../../algorithms/best_of_n.rlhf")),
    ("distill", include_str!("../../algorithms/distill.rlhf")),
];

/// The text of a module such as `std.kl`.
pub fn module(path: &str) -> Option<&'static str> {
    MODULES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, text)| *text)
}

/// The modules a program can import from.
pub fn modules() -> &'static [&'static str] {
    PATHS
}

/// The shipped programs: name and text.
pub fn algorithms() -> &'static [(&'static str, &'static str)] {
    ALGORITHMS
}
