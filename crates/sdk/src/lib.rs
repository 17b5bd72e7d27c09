//! Write Drumtower handlers in Rust.
//!
//! - [`session`]: the protocol's worker side, without I/O.

pub mod session;
