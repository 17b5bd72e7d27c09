//! Many servers as one: who there is, who owns the segments, and the way of a request to them.
//!
//! ```text
//!            request ─► any server ──owns──► its own loop
//!                           │ does not own
//!                           └──forwarded whole──► the owner ──answer──► back unchanged
//! ```
//!
//! Servers that share a store find each other in it: a session row names its server and the address by which others reach
//! it ([`view`]). There is no other list of servers and nothing to configure but that address. A server that does not own
//! what a request is about sends it on as it came, with the caller's own token ([`forward`]): the owner judges it by the
//! same policy table as any other, so servers need not trust each other with anything. What a forwarding server adds, from
//! where the caller came, it proves by a key that lies in the store ([`proof`]). Streams of workers are passed on in the
//! same way, so a worker that reaches one server reaches the owner.
//!
//! States of a request on a server that does not own:
//!
//! ```text
//! waiting for an owner ──► sent ──answer──► done
//!      ▲                    │ not reached, or answered "not mine": nothing was done
//!      └────────────────────┘
//!                           │ cut off after it was sent: asked again when that does no harm, else told as unknown
//! ```

mod forward;
mod link;
mod part;
mod proof;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use drumtower_store::Read;
use tokio::sync::{Semaphore, watch};

use crate::driver::Health;

pub use forward::{Way, forward_rpc, introduce, mark_what_was_not_done};
pub use proof::Key;
pub use view::{Server, View};

use link::Links;

/// How this server takes part with others.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The URL by which other servers reach this one.
    pub advertise: Option<String>,
    /// Authorities of the others' certificates; the system's unless given.
    pub ca: Option<PathBuf>,
}

/// The other servers, as one of them sees them.
#[derive(Clone)]
pub struct Cluster {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    /// Our own address, as others see it.
    own: Option<String>,
    key: Key,
    health: watch::Receiver<Health>,
    view: watch::Receiver<View>,
    links: Links,
    /// How many parts of output may be fetched at a time.
    parts: Semaphore,
}

impl Cluster {
    /// A server whose store nobody else can have open.
    pub fn alone() -> Self {
        Self { inner: None }
    }

    /// Looks around from now on, until the last clone is gone.
    pub fn join(
        options: &Options,
        key: [u8; 32],
        health: watch::Receiver<Health>,
        reader: Arc<dyn Read>,
    ) -> Self {
        let view = view::follow(reader);
        let inner = Inner {
            own: options.advertise.clone(),
            key: Key::new(&key),
            health,
            view,
            links: Links::new(options.ca.clone()),
            parts: Semaphore::new(part::AT_ONCE),
        };
        Self {
            inner: Some(Arc::new(inner)),
        }
    }

    /// Who is there, as last seen; `None` for a server that is alone.
    pub fn view(&self) -> Option<View> {
        self.inner.as_ref().map(|inner| inner.view.borrow().clone())
    }

    /// Where others reach this server; `None` for one that is alone.
    pub fn own_address(&self) -> Option<&str> {
        self.inner.as_ref()?.own.as_deref()
    }

    /// Where the servers that are there are reached.
    pub fn addresses(&self) -> Vec<String> {
        let servers = self.view().map(|view| view.servers).unwrap_or_default();
        let addresses = servers.into_iter().filter_map(|it| it.member.address);
        addresses.collect()
    }

    /// What a request that another server sent on says of its caller, if it proves it.
    pub fn vouched(&self, headers: &http::HeaderMap) -> Option<proof::Caller> {
        let inner = self.inner.as_ref()?;
        inner.key.open(headers.get(proof::HEADER)?)
    }

    /// The servers to send to, while this one stands by.
    fn away(&self) -> Option<&Arc<Inner>> {
        let inner = self.inner.as_ref()?;
        (*inner.health.borrow() == Health::Standby).then_some(inner)
    }
}
