//! The Drumtower server.

pub mod driver;
