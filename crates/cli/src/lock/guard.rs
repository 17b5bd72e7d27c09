//! A hold that is renewed for as long as it is needed, and that says when it cannot be believed any more.
//!
//! The hold is believed until one term after the last request that was granted was *sent*, on a clock that counts
//! suspension. The server counts from when that request arrived, and longer: it gives the lock to nobody else before.

use std::time::Duration;

use drumtower_server::driver::{Clock, SystemClock};
use serde_json::{Value, json};

use super::{Lock, acquiring};
use crate::client::Client;
use crate::failure::Result;
use crate::output::text;

/// What stopping a command may take before the hold is over: a term is cut short by a fifth, and by so much at most.
const RESERVE: Duration = Duration::from_secs(5);
/// The longest that one request may wait.
const ONE_WAIT: Duration = Duration::from_secs(60);

pub struct Guard {
    client: Client,
    lock: Lock,
    ttl: Duration,
    pub fence: String,
    /// On the clock that counts suspension.
    until_ms: u64,
}

/// Whether it still holds.
pub enum Renewal {
    Held,
    /// Another may hold it now.
    Lost,
    /// Nobody answered; it may be tried again.
    Unknown,
}

fn now_ms() -> u64 {
    SystemClock.now().mono.0
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Guard {
    /// Waits for the lock for as long as `wait`, and holds it then.
    pub fn acquire(
        client: Client,
        lock: Lock,
        owner: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Self> {
        let patience = now_ms().saturating_add(millis(wait));
        loop {
            let sent = now_ms();
            let left = Duration::from_millis(patience.saturating_sub(sent));
            match client.value(acquiring(&lock, owner, ttl, left.min(ONE_WAIT))) {
                Ok(held) => {
                    return Ok(Self {
                        client,
                        lock,
                        ttl,
                        fence: text(&held, "fence"),
                        until_ms: sent + millis(ttl),
                    });
                }
                Err(failure)
                    if failure.code.as_deref() == Some("lock_held") && now_ms() < patience => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    pub fn renew(&mut self) -> Renewal {
        let sent = now_ms();
        let body = json!({"fence": self.fence});
        match self.client.value(self.lock.call("renew", body)) {
            Ok(Value::Object(_)) => {
                self.until_ms = sent + millis(self.ttl);
                Renewal::Held
            }
            Err(failure) if failure.code.as_deref() == Some("lock_lost") => Renewal::Lost,
            Ok(_) | Err(_) => Renewal::Unknown,
        }
    }

    /// How long until it must be taken for lost, so that there is time to stop what it guards.
    pub fn left(&self) -> Duration {
        let reserve = millis(RESERVE.min(self.ttl / 5));
        let end = self.until_ms.saturating_sub(reserve);
        Duration::from_millis(end.saturating_sub(now_ms()))
    }

    /// How long what it guards may take to stop before it is killed.
    pub fn last_moments(&self) -> Duration {
        Duration::from_millis(self.until_ms.saturating_sub(now_ms())).min(RESERVE)
    }

    /// A third of the term: two renewals may fail.
    pub fn pause(&self) -> Duration {
        (self.ttl / 3).min(self.left())
    }

    pub fn release(&self) -> Result<()> {
        let body = json!({"fence": self.fence});
        self.client.value(self.lock.call("release", body))?;
        Ok(())
    }
}
