//! Did the scheduler keep its promises? Told by those who were there, not by the scheduler.
//!
//! - [`journal`]: the one format in which tasks, load generators and whoever kills processes write down what they saw,
//!   one file a process, each line before they answer.
//! - [`check`]: compares the journals, the store and an expansion of the schedules and reports every disagreement.
//! - [`expand`]: that expansion, by brute force on civil time. It shares no code with the scheduler's own, so that a
//!   mistake there does not excuse itself here.

pub mod check;
mod error;
pub mod expand;
pub mod journal;

pub use check::{Journaled, Options, Report, Violation, check, check_records};
pub use error::Error;
pub use journal::{Journal, Outcome, Record};
