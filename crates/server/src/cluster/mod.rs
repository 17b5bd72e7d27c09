//! Many servers as one: who there is, who owns which segments, and the way of a request to what it is about.
//!
//! ```text
//!            request ─► any server ──owns what it takes──► its own loop
//!                           │ does not: the engine refuses it whole, and says what is missing
//!                           └──sent on whole──► the owner ──answer──► back unchanged
//! ```
//!
//! Servers that share a store find each other in it: a session row names its server and the address by which others reach
//! it ([`view`]). There is no other list of servers and nothing to configure but that address. A request is tried where it
//! arrives; what another server owns is sent on as it came, with the caller's own token ([`forward`]): the owner judges it by
//! the same policy table as any other, so servers need not trust each other with anything. What a forwarding server adds, from
//! where the caller came, it proves by a key that lies in the store ([`proof`]). Nothing is sent on twice. Streams of workers are
//! passed on to the server that they mean ([`streams`]).
//!
//! The view may be old. It says where to ask first; whoever is asked says what it lacks ([`missing`]), and from that it is
//! decided where to ask next ([`route`]).
//!
//! What each operation rests on is said in one table, [`Operation::rests_on`](crate::auth::Operation::rests_on):
//!
//! - *the store*: listings, definitions, history, `wait`, the stream of changes: here, whoever owns. What wakes those who wait
//!   or listen comes from all servers ([`feed`]);
//! - *a command*: whoever owns all that it takes. One that is made of many small ones, a batch of triggers or changes of
//!   many jobs or dead letters, is taken apart by owner (`api/spread.rs`);
//! - *the owner*: what only the owner has in memory. Why a run or a job waits: the owner of its segment. Queues: the owner of
//!   the first segment, with whom all jobs in queues are. Who waits for a lock: the owner of the lock. Output that is
//!   followed: the owner of the run, who writes it. The handler refuses, as the engine does, where the view names another;
//! - *each server*: workers, the overview, the servers themselves, notifications, locks in a listing, and the end of a session of the console: the one
//!   that is asked asks all others for their parts in the caller's name, two seconds at most, and puts them together
//!   (`api/sum.rs`). Parts are public answers of one server; they are never sums themselves. Of workers, a server that does
//!   not answer is left out; the overview names it;
//! - *this server*: health, metrics, backups, a message to try a way out.

mod advertise;
mod feed;
mod forward;
mod held;
mod link;
mod missing;
mod numbered;
mod part;
mod proof;
mod pulse;
mod rest;
mod route;
mod streams;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use drumtower_core::model::SegmentId;
use drumtower_store::Read;
use tokio::sync::{Semaphore, watch};

use crate::driver::Health;

pub use advertise::fault as advertise_fault;
pub use feed::facts;
pub use forward::OWNER_WITHIN;
pub use held::{Errand, Held, Said, unanswered};
pub use missing::{Missing, mark_what_was_not_done};
pub use numbered::{Numbered, named};
pub use part::{InTheNameOf, asks_for_own_part};
pub use proof::{Caller, Key};
pub use route::Next;
pub use streams::{forward_rpc, introduce};
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
    owners: watch::Receiver<Vec<String>>,
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
        let view::Seen { view, owners } = view::follow(reader);
        let inner = Inner {
            own: options.advertise.clone(),
            key: Key::new(&key),
            health,
            view,
            owners,
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

    /// Tells where the servers that have work to give are reached; `None` for a server that is alone.
    pub fn owners_watch(&self) -> Option<watch::Receiver<Vec<String>>> {
        Some(self.inner.as_ref()?.owners.clone())
    }

    /// Who has a segment, as last seen. A server that is alone has them all.
    pub fn owner(&self, segment: SegmentId) -> Next {
        let Some(inner) = &self.inner else {
            return Next::Here;
        };
        route::owner(&inner.view.borrow(), segment, inner.own.as_deref())
    }

    /// Returns when another server has a segment; never on a server that is alone.
    pub async fn moves_away(&self, segment: SegmentId) {
        let Some(inner) = &self.inner else {
            return std::future::pending().await;
        };
        let mut view = inner.view.clone();
        let own = inner.own.as_deref();
        let is_away = |view: &View| matches!(route::owner(view, segment, own), Next::At(_));
        if view.wait_for(is_away).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether this server is seen to own nothing.
    pub fn owns_nothing(&self) -> bool {
        let Some(inner) = &self.inner else {
            return false;
        };
        inner.view.borrow().owns_nothing(inner.own.as_deref())
    }

    /// Where the other servers that are there are reached.
    pub fn peers(&self) -> Vec<String> {
        let own = self.own_address();
        let mut addresses = self.addresses();
        addresses.retain(|it| Some(it.as_str()) != own);
        addresses
    }
}
