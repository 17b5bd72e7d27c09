//! A hold that renews itself, and says when it must not be relied upon any more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumtower_core::model::{LockName, MonoMs};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::client::{Answer, Client};
use super::term::Term;
use crate::{Error, clock};

/// A timer of the runtime stands still while the machine is suspended: the clock is looked at this often.
const LOOK: Duration = Duration::from_secs(1);
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

type Released = oneshot::Sender<Result<(), Error>>;

/// A lock that is held and renewed in the background. Dropping it gives the lock back without waiting for an answer;
/// [`LockGuard::release`] waits.
pub struct LockGuard {
    name: LockName,
    fence: u64,
    /// Until when it is believed, on the clock that counts suspension; 0 once it is lost.
    ends: Arc<AtomicU64>,
    lost: watch::Receiver<bool>,
    /// Dropped with the guard, which the keeper takes for the wish to give the lock back.
    release: oneshot::Sender<Released>,
}

impl LockGuard {
    pub(super) fn keep(client: Arc<Client>, name: LockName, fence: u64, term: Term) -> Self {
        let ends = Arc::new(AtomicU64::new(term.ends().0));
        let (tell, lost) = watch::channel(false);
        let (release, asked) = oneshot::channel();
        let keeper = Keeper {
            client,
            name: name.clone(),
            fence,
            term,
            ends: Arc::clone(&ends),
        };
        tokio::spawn(keeper.run(asked, tell));
        Self {
            name,
            fence,
            ends,
            lost,
            release,
        }
    }

    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// A number greater than that of every hold of this lock before: hand it to what the lock guards, and let that refuse
    /// a smaller one than the greatest it has seen.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether it may still be relied upon, by the clock of this moment.
    pub fn is_held(&self) -> bool {
        clock::mono() < MonoMs(self.ends.load(Ordering::Acquire))
    }

    /// Resolves when the lock is lost: it was taken by force, or could not be renewed. That is told a fifth of the term
    /// (five seconds at most) before anyone else can hold it: stop what it guards then.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // The keeper ends only with the guard or the hold.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// Gives the lock back and waits for the answer. One that was lost before is no longer there to give back, which is
    /// no error.
    pub async fn release(self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        if self.release.send(reply).is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("name", &self.name)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

/// What renews a hold in the background.
struct Keeper {
    client: Arc<Client>,
    name: LockName,
    fence: u64,
    term: Term,
    ends: Arc<AtomicU64>,
}

impl Keeper {
    async fn run(mut self, mut asked: oneshot::Receiver<Released>, lost: watch::Sender<bool>) {
        let ended = tokio::select! {
            asked = &mut asked => Some(asked.ok()),
            () = self.renew_until_lost() => None,
        };
        match ended {
            Some(reply) => {
                let done = self.give_back().await;
                if let Some(reply) = reply {
                    let _ = reply.send(done);
                }
            }
            None => {
                self.ends.store(0, Ordering::Release);
                let _ = lost.send(true);
            }
        }
    }

    async fn renew_until_lost(&mut self) {
        loop {
            self.pause().await;
            let (sent, left) = (clock::mono(), self.term.left(clock::mono()));
            if left.is_zero() {
                return;
            }
            match timeout(left, self.client.renew(&self.name, self.fence)).await {
                Ok(Ok(Answer::Held { .. })) => self.term.renewed(sent),
                Ok(Ok(Answer::Refused)) => return,
                // Also a token that was revoked: the hold lasts until its end.
                Ok(Err(_)) | Err(_) => self.term.not_answered(),
            }
            self.ends.store(self.term.ends().0, Ordering::Release);
        }
    }

    async fn pause(&self) {
        let until = clock::mono().0 + self.term.pause(clock::mono()).as_millis() as u64;
        loop {
            let left = Duration::from_millis(until.saturating_sub(clock::mono().0));
            if left.is_zero() {
                return;
            }
            sleep(left.min(LOOK)).await;
        }
    }

    async fn give_back(&self) -> Result<(), Error> {
        let asked = self.client.release(&self.name, self.fence);
        match timeout(RELEASE_WITHIN, asked).await {
            Ok(done) => done,
            Err(_) => Err(Error::unreachable(format!(
                "lock `{}` was not given back: the server does not answer; it ends by itself",
                self.name
            ))),
        }
    }
}
