//! Write Drumtower handlers in Rust.
//!
//! A worker dials a server, says what it can do, and is given runs as far as its capacity goes:
//!
//! ```no_run
//! use drumtower_sdk::{Context, HandlerError, Worker};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Worker::builder("http://127.0.0.1:7070")
//!     .token(std::env::var("DRUMTOWER_TOKEN")?)
//!     .handler("greet", |context: Context, name: String| async move {
//!         context.log(format!("greeting {name}")).await;
//!         Ok::<_, HandlerError>(format!("hello, {name}"))
//!     })
//!     .build()?;
//! worker.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Worker`], [`Builder`]: settings and life of a worker; [`Context`], [`HandlerError`]: what a handler sees and says.
//! - [`Locks`], [`LockGuard`]: what only one may do at a time, renewed in the background.
//! - [`session`]: the protocol's worker side, without I/O: leases, credits, what is repeated and what is refused.
//! - [`tls`]: which servers are believed over https.
//! - [`executor`]: the seam for running other things than handlers; the agent plugs commands in there.

mod bounds;
mod clock;
mod error;
pub mod executor;
mod handler;
mod host;
mod lock;
mod notes;
mod runtime;
pub mod session;
mod shutdown;
pub mod tls;
mod worker;

pub use error::Error;
pub use handler::{Context, HandlerError};
pub use host::name as host_name;
pub use lock::{Asking, LockGuard, Locks, LocksBuilder};
pub use notes::CheckpointError;
pub use shutdown::Leave;
pub(crate) use shutdown::Shutdown;
pub use worker::{Builder, Worker};
