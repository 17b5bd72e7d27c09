//! The pure heart of Drumtower: everything that decides, nothing that acts.
//!
//! No clock, no randomness, no I/O, no threads and no hash-ordered maps: time and inputs are passed in, change sets and
//! effects come out, and the same inputs give the same outputs. The server's driver and any simulator drive the same code.

pub mod backfill;
pub mod change;
pub mod engine;
pub mod explain;
pub mod fault;
pub mod lease;
pub mod model;
pub mod placement;
pub mod rate;
pub mod schedule;
pub mod shares;
pub mod wheel;
