//! The thread that owns the store: one commit at a time, sent until its outcome is known.
//!
//! | the store says | what it means | what is done |
//! |---|---|---|
//! | done | durable | effects are released |
//! | fenced, row at n, not revoked | an earlier copy of this commit went through | likewise |
//! | fenced, row at n, revoked | committed, then someone took over | effects are released, then all state is dropped |
//! | fenced, row at n−1, revoked | it never happened | all state is dropped, callers may repeat |
//! | fenced, anything else | nobody can tell | all state is dropped, callers are told so |
//! | unknown, busy | no answer, or a refusal that passes | the identical set is sent again |
//! | full, or another fault of the disk | nothing was changed | likewise, after a pause; health says why |
//! | invariant | a row was not as decided | nothing was changed; all state is dropped and read anew |

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::Boot;
use drumtower_store::{Commit, Error, Read, Store};
use tokio::sync::{oneshot, watch};

use super::boot::{self, Taken};
use super::{Health, Options, Vitals};

/// What became of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Durable, but the session is revoked.
    DoneAndDeposed,
    /// It never happened and never will.
    Never(String),
    Unknown,
}

enum Job {
    Boot {
        reply: oneshot::Sender<Result<Box<Boot>, Error>>,
    },
    Reread {
        taken: Taken,
        reply: oneshot::Sender<Result<Box<Boot>, Error>>,
    },
    Commit {
        changes: Arc<ChangeSet>,
        /// It is not tried again where the store refuses it: what it rests on may be another's by then.
        once: bool,
        reply: oneshot::Sender<Outcome>,
    },
    Close {
        reply: oneshot::Sender<()>,
    },
}

/// The loop's side of the thread.
pub(super) struct Writer {
    jobs: Sender<Job>,
    stopping: Option<Sender<()>>,
}

impl Writer {
    pub(super) fn start(
        options: Options,
        store: Box<dyn Store>,
        reader: Arc<dyn Read>,
        health: watch::Sender<Health>,
        vitals: Arc<Vitals>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let (stopping, stop) = channel();
        let thread = WriterThread {
            options,
            store,
            reader,
            health,
            vitals,
            stop,
        };
        thread::Builder::new()
            .name("drumtower-writer".into())
            .spawn(move || thread.run(&queue))?;
        Ok(Self {
            jobs,
            stopping: Some(stopping),
        })
    }

    pub(super) async fn boot(&self) -> Result<Box<Boot>, Error> {
        self.read(|reply| Job::Boot { reply }).await
    }

    /// Reads what a session owns that goes on.
    pub(super) async fn reread(&self, taken: Taken) -> Result<Box<Boot>, Error> {
        self.read(|reply| Job::Reread { taken, reply }).await
    }

    async fn read(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<Box<Boot>, Error>>) -> Job,
    ) -> Result<Box<Boot>, Error> {
        let (reply, answer) = oneshot::channel();
        let _ = self.jobs.send(job(reply));
        answer
            .await
            .unwrap_or_else(|_| Err(Error::Io("the writer has stopped".into())))
    }

    pub(super) fn commit(&self, changes: Arc<ChangeSet>) -> oneshot::Receiver<Outcome> {
        let (reply, answer) = oneshot::channel();
        let once = false;
        let _ = self.jobs.send(Job::Commit {
            changes,
            once,
            reply,
        });
        answer
    }

    /// Moves segments, unless another server was faster.
    pub(super) fn commit_once(&self, changes: Arc<ChangeSet>) -> oneshot::Receiver<Outcome> {
        let (reply, answer) = oneshot::channel();
        let once = true;
        let _ = self.jobs.send(Job::Commit {
            changes,
            once,
            reply,
        });
        answer
    }

    /// A commit that cannot go through is given up from now on.
    pub(super) fn give_up_retries(&mut self) {
        self.stopping = None;
    }

    pub(super) async fn close(mut self) {
        self.give_up_retries();
        let (reply, answer) = oneshot::channel();
        let _ = self.jobs.send(Job::Close { reply });
        let _ = answer.await;
    }
}

struct WriterThread {
    options: Options,
    store: Box<dyn Store>,
    reader: Arc<dyn Read>,
    health: watch::Sender<Health>,
    vitals: Arc<Vitals>,
    /// Disconnected when retries are to end.
    stop: Receiver<()>,
}

impl WriterThread {
    fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            match job {
                Job::Boot { reply } => {
                    let _ = reply.send(self.boot());
                }
                Job::Reread { taken, reply } => {
                    let extend_ms = self.options.engine.session_ms;
                    let (store, reader) = (self.store.as_mut(), self.reader.as_ref());
                    let read = boot::read_and_renew(extend_ms, store, reader, taken);
                    let _ = reply.send(read.map(Box::new));
                }
                Job::Commit {
                    changes,
                    once,
                    reply,
                } => {
                    let _ = reply.send(self.commit(&changes, once));
                }
                Job::Close { reply } => {
                    if let Err(error) = self.store.close() {
                        tracing::warn!(%error, "the store did not close cleanly; it will recover at the next start");
                    }
                    drop(self.store);
                    let _ = reply.send(());
                    return;
                }
            }
        }
    }

    fn boot(&mut self) -> Result<Box<Boot>, Error> {
        let (store, reader) = (self.store.as_mut(), self.reader.as_ref());
        boot::take_and_read(&self.options, store, reader).map(Box::new)
    }

    fn commit(&mut self, changes: &ChangeSet, once: bool) -> Outcome {
        let mut pause = Duration::from_millis(5);
        let mut unknown = false;
        loop {
            let error = match self.store.commit(changes) {
                Ok(Commit::Done) => {
                    self.well_again();
                    return Outcome::Done;
                }
                Ok(Commit::Fenced) => return self.fenced(changes),
                Err(Error::Invariant(message)) if !unknown => return Outcome::Never(message),
                Err(Error::Busy(message)) if once && !unknown => return Outcome::Never(message),
                Err(Error::Invariant(message)) => {
                    tracing::error!(%message, "an invariant broke after a commit without an answer");
                    return Outcome::Unknown;
                }
                Err(error) => error,
            };
            self.vitals.failed();
            let passing = matches!(error, Error::Busy(_));
            unknown |= matches!(error, Error::Unknown(_));
            if !passing {
                self.health
                    .send_replace(Health::Impaired(error.to_string()));
                tracing::warn!(%error, seq = changes.seq, "a commit did not go through; trying again");
            }
            if !self.wait(pause) {
                return if unknown {
                    Outcome::Unknown
                } else {
                    Outcome::Never(error.to_string())
                };
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// The session row did not stand where it should: find out why.
    fn fenced(&mut self, changes: &ChangeSet) -> Outcome {
        loop {
            match self.store.session(changes.session) {
                Ok(Some(row)) if row.seq == changes.seq && row.revoked => {
                    return Outcome::DoneAndDeposed;
                }
                Ok(Some(row)) if row.seq == changes.seq => {
                    self.well_again();
                    return Outcome::Done;
                }
                Ok(Some(row)) if row.seq + 1 == changes.seq && row.revoked => {
                    return Outcome::Never("another server took this one's segments over".into());
                }
                Ok(_) => return Outcome::Unknown,
                Err(error) => {
                    tracing::warn!(%error, "could not read the session back; trying again");
                    if !self.wait(Duration::from_millis(200)) {
                        return Outcome::Unknown;
                    }
                }
            }
        }
    }

    fn well_again(&self) {
        self.health.send_if_modified(|health| {
            let was_impaired = matches!(health, Health::Impaired(_));
            if was_impaired {
                *health = Health::Ready;
            }
            was_impaired
        });
    }

    /// Waits before a retry; false when retries are to end.
    fn wait(&self, pause: Duration) -> bool {
        matches!(
            self.stop.recv_timeout(pause),
            Err(RecvTimeoutError::Timeout) | Ok(())
        )
    }
}
