//! The one door for people who build Drumtower: what `cargo xtask` does and what the tidy test checks.
//!
//! The binary parses arguments and calls in here; `tests/tidy.rs` runs the checks of [`tidy`] over the
//! repository. Both share the tables below, so a command that the docs may name and a generated file that
//! must be fresh are each written down once.
//!
//! Nothing here depends on a crate of the product: the door must open when the house does not compile.

pub mod bench_compare;
pub mod cargo;
pub mod command;
pub mod console;
pub mod dist;
pub mod generators;
pub mod needs;
pub mod schemathesis;
pub mod steps;
pub mod tidy;
pub mod tree;
pub mod typescript;
