//! The `rlhf` command.
fn main() {}
