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

/// Programs by name.
const ALGORITHMS: &[(&str, &str)] = &[("grpo", include_str!("../../algorithms/grpo.rlhf"))];

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
