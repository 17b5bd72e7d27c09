//! Real processes, started and killed by tests: what a user would see.
//!
//! - [`Site`]: a directory of its own for each test, with everything the test starts in it.
//! - [`Server`], [`Worker`]: `drumtower serve`, `drumtower work` and workers built with the SDK, which can be killed,
//!   stopped, frozen and started again on the same data.
//! - [`Api`], [`Cli`]: the two ways in. [`Caller`]: somebody who asks until answered, and keeps a journal of it. [`Terminal`]: a command on a screen with keys. [`eventually`]: how tests wait; none sleeps for a fixed time.
//! - [`Books`]: what is in the store of a server at rest, and what the audit says of it.
//! - [`Clock`]: a wall clock for a server that tests may set while it runs. [`SmallDisk`]: a disk that they may fill.
//! - [`Proxy`]: a network that they may cut, hold up and slow down.
//! - [`process`]: every process is ended by its id when its handle is dropped, also when a test fails.
//!
//! Nothing here knows how Drumtower works inside: only its command line, its API, its files and its signals.

mod api;
mod binary;
mod books;
mod caller;
mod certificates;
mod cli;
mod clock;
mod disk;
pub mod mail;
pub mod process;
mod proxy;
mod server;
mod site;
mod terminal;
mod wait;
pub mod web;
mod worker;

pub use api::{Answer, Api, once, shell};
pub use binary::{drumtower, example};
pub use books::Books;
pub use caller::Caller;
pub use certificates::{Authority, Issued};
pub use cli::{Cli, Done};
pub use clock::Clock;
pub use disk::SmallDisk;
pub use process::Process;
pub use proxy::{Proxy, Way};
pub use server::{Server, ServerOptions, await_calm, free_port};
pub use site::Site;
pub use terminal::Terminal;
pub use wait::{PATIENCE, eventually, in_time, long, within};
pub use worker::{Worker, WorkerOptions};
