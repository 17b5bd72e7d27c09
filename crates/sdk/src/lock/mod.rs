//! Locks: what only one may do at a time, on whichever machine.
//!
//! [`Locks`] knows the server, [`LockGuard`] is a hold. Protocol:
//!
//! ```text
//! acquire ──► held ──renewed at a third of the term──► held ──release, drop──► given back
//!                └──not renewed until the reserve begins, or refused──► lost
//! ```
//!
//! A hold is believed until one term after the last request that was granted was *sent*, on a clock that counts
//! suspension. The server counts from when that request *arrived*, and longer: it gives the lock to nobody else before. A
//! guard says that it is lost a little earlier, so that there is time to stop what it guards. What a lock alone cannot
//! prevent, a program that stalls beyond the term, the fence can: hand it to what is guarded.
//!
//! ```no_run
//! use std::time::Duration;
//! use drumtower_sdk::Locks;
//! # async fn write_rows(_fence: u64) {}
//!
//! async fn import(token: String) -> Result<(), drumtower_sdk::Error> {
//!     let locks = Locks::builder("http://127.0.0.1:7070").token(token).build()?;
//!     let asking = locks.lock("import").ttl(Duration::from_secs(60)).wait(Duration::from_secs(600));
//!     let Some(guard) = asking.acquire().await? else {
//!         return Ok(()); // another had it for ten minutes
//!     };
//!     tokio::select! {
//!         () = write_rows(guard.fence()) => guard.release().await,
//!         () = guard.lost() => Ok(()), // what was begun has been dropped: nobody else holds it yet
//!     }
//! }
//! ```

mod client;
mod guard;
mod term;

use std::sync::Arc;
use std::time::Duration;

use drumtower_core::model::{LockName, NamespaceName};
use tonic::metadata::MetadataValue;

use crate::runtime::Server;
use crate::tls::{Trust, in_the_open};
use crate::{Error, clock, host};

use client::{Answer, Client};
pub use guard::LockGuard;
use term::Term;

const DEFAULT_TERM: Duration = Duration::from_secs(30);
/// The longest that one request may wait.
const ONE_WAIT: Duration = Duration::from_secs(60);
/// Before a server that did not answer is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// The locks of a server.
#[derive(Clone)]
pub struct Locks {
    client: Arc<Client>,
}

/// The settings of [`Locks`].
pub struct LocksBuilder {
    url: String,
    token: Option<String>,
    trust: Trust,
    namespace: String,
}

/// A lock that is asked for; `.acquire().await` asks.
pub struct Asking {
    locks: Locks,
    name: String,
    ttl: Duration,
    wait: Duration,
    owner: Option<String>,
}

impl Locks {
    /// Begins the settings for the server at `url`, `https://host:port` or `http://host:port`.
    pub fn builder(url: impl Into<String>) -> LocksBuilder {
        LocksBuilder {
            url: url.into(),
            token: None,
            trust: Trust::default(),
            namespace: NamespaceName::default().to_string(),
        }
    }

    /// Begins to ask for the lock of this name: for half a minute, renewed for as long as the guard lives, and without
    /// waiting while another holds it.
    pub fn lock(&self, name: impl Into<String>) -> Asking {
        Asking {
            locks: self.clone(),
            name: name.into(),
            ttl: DEFAULT_TERM,
            wait: Duration::ZERO,
            owner: None,
        }
    }
}

impl LocksBuilder {
    /// A token with the role operator.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The namespace of the locks; `default` unless given.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Which servers are believed, as for a [`Worker`](crate::Worker).
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Checks the settings; nothing is dialled.
    pub fn build(self) -> Result<Locks, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::configuration(error.to_string());
        let namespace = NamespaceName::new(&self.namespace).map_err(|error| wrong(&error))?;
        if self.token.is_some() && !self.trust.in_the_open && in_the_open(&self.url) {
            let url = &self.url;
            return Err(Error::configuration(format!(
                "the token would go to {url} unencrypted: use https://, or accept it with Trust::in_the_open"
            )));
        }
        let token = self.token.map(|token| format!("Bearer {token}"));
        let token = token.map(MetadataValue::try_from).transpose();
        let token = token
            .map_err(|_| wrong(&"the token holds a character that no token has: copy it again"))?;
        let server = Server::new(&self.url, &self.trust)?;
        let client = Arc::new(Client {
            server,
            token,
            namespace,
        });
        Ok(Locks { client })
    }
}

impl Asking {
    /// How long the lock outlives this program if it cannot be renewed; a second to 24 hours.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long to wait while another holds it, and for a server that does not answer.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Who holds it, for those who look; it must be different for each that asks. The machine, the process and a random
    /// part unless given.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The hold; `None` when another had it all the time that was waited.
    pub async fn acquire(self) -> Result<Option<LockGuard>, Error> {
        let name =
            LockName::new(&self.name).map_err(|error| Error::configuration(error.to_string()))?;
        let owner = match self.owner {
            Some(owner) => owner,
            None => drawn_owner()?,
        };
        let client = self.locks.client;
        let patience = clock::mono().plus(millis(self.wait));
        loop {
            let sent = clock::mono();
            let left = Duration::from_millis(patience.0.saturating_sub(sent.0));
            let asked = client.acquire(&name, &owner, self.ttl, left.min(ONE_WAIT));
            match asked.await {
                Ok(Answer::Held { fence }) => {
                    let term = Term::granted(millis(self.ttl), sent);
                    return Ok(Some(LockGuard::keep(client, name, fence, term)));
                }
                Ok(Answer::Refused) if clock::mono() >= patience => return Ok(None),
                Ok(Answer::Refused) => {}
                Err(error) if error.is_unreachable() && clock::mono() < patience => {
                    tokio::time::sleep(PAUSE.min(left)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn drawn_owner() -> Result<String, Error> {
    let drawn = getrandom::u32().map_err(|error| {
        Error::configuration(format!("the system gives no random numbers: {error}"))
    })?;
    let host: String = host::name().chars().take(64).collect();
    Ok(format!("{host}:{}:{drawn:08x}", std::process::id()))
}
