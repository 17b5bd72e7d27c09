//! The loop around the engine: gather, step, commit, then act.

mod handle;

pub use handle::{Handle, Health, RunWatch, StreamMessage, Unavailable};
