//! Who may do what.
//!
//! A caller shows a token; the [`Authority`] finds the [`Principal`] behind it and asks the one table of [`policy`]
//! whether that role may pass that door. Every REST route and every RPC is a row of the table, and both are built from
//! it. What a principal may see of which namespace is decided in [`principal`] and nowhere else.
//!
//! Secrets are 256 random bits. Only their SHA-256 is kept, and it is compared in constant time. Two tokens come into
//! being by themselves: the bootstrap token of the first start, and the local token of every start ([`first_start`]).
//! Whoever shows many wrong ones is answered slower and slower ([`Guesses`]).

pub mod first_start;
mod guesses;
pub mod policy;
pub mod principal;
mod repeats;
mod rests;
mod secret;
mod table;

pub use guesses::{Guesses, TooMany, network};
pub use policy::{Call, DOORS, Door, Operation, Verb, Who, role_name};
pub use principal::{Denied, Principal};
pub use repeats::Repeats;
pub use secret::{Secret, digest};
pub use table::Authority;
