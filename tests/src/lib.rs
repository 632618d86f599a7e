//! The project's tests about itself and about whole runs, and what they share: a tiny checkpoint and a
//! folder in which the real executables run.

mod checkpoint;
mod scene;

pub use checkpoint::Checkpoint;
pub use scene::{Ran, Running, Scene};
