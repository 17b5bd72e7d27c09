//! Notifications: people are told when jobs fail, recover or start late.
//!
//! ```text
//! tap ─► watch: what happened ─► rules: who wants to know ─► group: what is said when ─► outbox ─► webhook | email
//!           ▲                                                                              │
//!  store ─► heal (after a restart, or when facts were missed)            state file ◄───────┘
//! ```
//!
//! [`watch`], [`group`] and [`outbox`] decide and do nothing else; [`notifier`] drives them, and owns time and I/O.
//!
//! What is promised: what happened is told at least once. The state file is behind by a few seconds at most, and what it
//! does not know is read from the store again. A repetition has the id of the first message. Nothing here stands in the way
//! of a run: facts come from the tap, and what is missed there is found in the store.
//!
//! Bounds: places that are held, windows and digests ([`group`]), runs that are watched ([`watch`]), messages on their way
//! ([`outbox`]), bytes of an answer ([`webhook`]).

mod digest;
pub mod email;
mod event;
mod group;
mod heal;
pub mod key;
pub(crate) mod message;
mod notifier;
mod outbox;
mod pairs;
mod rules;
mod state;
mod target;
mod watch;
mod webhook;

#[cfg(test)]
mod tests_support;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drumtower_core::model::{NamespaceName, NotifyRule, WallMs};
use drumtower_outbound::Policy;
use tokio::sync::Semaphore;

use email::Email;
use key::Key;
use message::Message;
pub use notifier::Notifier;
use outbox::Outbox;
pub use outbox::{Delivery, Outcome, State};
pub use target::{Place, Target};
use webhook::Webhook;

/// Targets that one test reaches, and tests that go on at once.
pub const TESTED: usize = 20;
const TESTS: usize = 8;

#[derive(Clone, Debug)]
pub struct Options {
    /// The key that signs webhooks; one in the data directory unless given.
    pub key_file: Option<PathBuf>,
    /// Messages to one target of a namespace in an hour.
    pub per_hour: u32,
    /// Where webhooks may go.
    pub outbound: Policy,
    /// Without it there is no mail.
    pub smtp: Option<email::Options>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key_file: None,
            per_hour: 60,
            outbound: Policy::default(),
            smtp: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("notify.key_file: {0}")]
    Key(#[from] key::Error),
    #[error(transparent)]
    Outbound(#[from] drumtower_outbound::Error),
    #[error(transparent)]
    Email(#[from] email::Error),
}

/// What the rest of the server sees of notifications. Cheap to clone.
#[derive(Clone)]
pub struct Notices {
    shared: Arc<Shared>,
}

struct Shared {
    outbox: Mutex<Outbox>,
    webhook: Webhook,
    email: Option<Email>,
    tests: Semaphore,
}

impl Notices {
    /// Sets the channels up. It reads and may write the key's file.
    pub fn open(options: &Options, data: &Path) -> Result<Self, Error> {
        let key = Key::load(options.key_file.as_deref(), data)?;
        let email = options.smtp.as_ref().map(Email::new).transpose()?;
        Ok(Self {
            shared: Arc::new(Shared {
                outbox: Mutex::default(),
                webhook: Webhook::new(options.outbound.clone(), key)?,
                email,
                tests: Semaphore::new(TESTS),
            }),
        })
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        let outbox = self.shared.outbox.lock();
        outbox.unwrap_or_else(PoisonError::into_inner)
    }

    /// Deliveries that `takes` takes, the newest first: those under way, then the last ones that ended.
    pub fn deliveries(&self, takes: impl Fn(&Delivery) -> bool, most: usize) -> Vec<Delivery> {
        let outbox = self.outbox();
        let found = outbox.deliveries().filter(|it| takes(it));
        found.take(most).cloned().collect()
    }

    /// How many ended how since the start, by channel and state.
    pub fn totals(&self) -> Vec<((&'static str, &'static str), u64)> {
        self.outbox().totals.get().collect()
    }

    /// How many are under way.
    pub fn pending(&self) -> usize {
        self.outbox().pending()
    }

    async fn deliver(&self, message: &Message, now: WallMs) -> Outcome {
        match &message.place.target {
            Target::Webhook(url) => self.shared.webhook.send(url, message, now).await,
            Target::Email(address) => match &self.shared.email {
                Some(email) => email.send(address, message).await,
                None => Outcome::Never(
                    "no mail server is configured: set `host` and `from` under [smtp] in the configuration of the server".to_owned(),
                ),
            },
        }
    }

    /// Sends a test message now, past the outbox and its bounds.
    pub async fn test(&self, namespace: &NamespaceName, target: Target) -> Outcome {
        let mut drawn = [0; 16];
        if let Err(error) = getrandom::fill(&mut drawn) {
            return Outcome::Again(error.to_string());
        }
        let Ok(_place) = self.shared.tests.acquire().await else {
            return Outcome::Again("the server is stopping".to_owned());
        };
        let now = crate::api::time::now();
        let place = Place {
            namespace: namespace.clone(),
            target,
        };
        self.deliver(&Message::test(place, now, drawn), now).await
    }
}

/// The targets of some rules, each once, up to a bound.
pub fn targets(rules: &[NotifyRule]) -> Vec<Target> {
    let mut all: Vec<Target> = rules.iter().flat_map(Target::of_rule).collect();
    all.sort();
    all.dedup();
    all.truncate(TESTED);
    all
}
