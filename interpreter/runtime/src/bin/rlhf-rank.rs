//! One rank.
fn main() {}
