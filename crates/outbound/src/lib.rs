//! The one place that opens connections to addresses that users gave: a guarded HTTP client.
//!
//! ```text
//! send ─▶ parse the address ─▶ resolve ─▶ check every socket address ─▶ dial exactly a checked one ─▶ request
//!            ▲                                                                                     │
//!            └───────────────────────── redirect: as if it were the first address ◀────────────────┘
//! ```
//!
//! Invariants
//! - What is dialled is a [`std::net::SocketAddr`] that [`Policy::check`] let pass, never a name: a name that means
//!   something else a moment later (rebinding) changes nothing, and no spelling of an address gets around it.
//! - Loopback, private, link-local, shared, multicast, reserved and translated addresses (NAT64, 6to4, Teredo, mapped) are
//!   refused unless the configuration lists them. Addresses of cloud metadata services must be listed one by one.
//! - A redirect to another origin (scheme, host, port) takes along no header but a few that say nothing about anybody, and no
//!   body. From https it never leads to http.
//! - Variables such as `HTTP_PROXY` are not read. A proxy that is configured is asked to connect to the checked address.
//! - Everything that comes back is bounded: headers, body, time, redirects, addresses of a name.
//!
//! Left to others: which answer is a success, retries, signatures.

mod body;
mod cidr;
mod client;
mod dial;
mod error;
mod guard;
mod redirect;
mod resolve;
mod target;

pub use cidr::{Cidr, CidrError};
pub use client::{Client, Limits, Request, Response};
pub use error::Error;
pub use guard::{Kind, Policy, Refusal};
pub use resolve::{Resolve, System};
