//! The web console: its files, which are part of the binary, and the sessions of those who sign in to it.
//!
//! Files come from `console/` by `cargo xtask console`, with hashed names and compressed ahead ([`files`]). The console is a
//! caller like any other: it does nothing that the API does not do, and the policy table decides about it. A session is a
//! cookie that stands for a token ([`session`]); those that were signed out are remembered ([`ended`]).

mod ended;
mod files;
pub mod session;

pub use files::{file, page, wants_page};
