//! What the rest of the server holds of the driver: it hides the channel.
//!
//! A command that finds the inbox full, or the store unable to commit, is refused at once; a worker's event waits, which
//! holds back that worker's stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drumtower_core::engine::{
    Command, Figures, Hindrance, QueueView, Refusal, Reply, StreamId, ToWorker, WorkerEvent,
    WorkerView,
};
use drumtower_core::model::{Actor, JobId, LockRef, Run, RunId, SegmentSet};
use tokio::sync::{mpsc, oneshot, watch};

use super::tap::{Fact, Tap, Wanting};
use super::vitals::Vitals;

/// Messages that may wait for a worker that does not read; beyond that its stream is closed.
const STREAM_QUEUE: usize = 65_536;
/// How long a caller whose change is under way waits for a store that cannot commit.
const STORE_MAY_TAKE: Duration = Duration::from_secs(5);
/// How long a question waits for the engine.
const ENGINE_MAY_TAKE: Duration = Duration::from_secs(5);

/// Why no answer can be given. The command may be sent again unless the outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("the server has more work queued than it takes: try again in {retry_after_s} s")]
    Overloaded { retry_after_s: u64 },
    #[error("the store did not say whether the change was made: read before you repeat it")]
    OutcomeUnknown,
    #[error("the server is not ready: {0}")]
    NotReady(String),
    #[error("the server is stopping")]
    Stopping,
}

/// Where the answer to a question goes.
pub(super) type Asked<T> = oneshot::Sender<Result<T, Unavailable>>;

pub(super) type Answer = Result<Result<Reply, Refusal>, Unavailable>;

/// Messages into the driver's loop.
pub(super) enum Message {
    Command {
        actor: Actor,
        command: Command,
        answer: oneshot::Sender<Answer>,
    },
    Opened {
        stream: StreamId,
        out: mpsc::Sender<StreamMessage>,
    },
    Worker {
        stream: StreamId,
        events: Vec<WorkerEvent>,
    },
    Workers {
        answer: Asked<Vec<WorkerView>>,
    },
    Figures {
        answer: Asked<(Figures, Vec<WorkerView>)>,
    },
    Queues {
        answer: Asked<Vec<QueueView>>,
    },
    LockWaiters {
        locks: Vec<LockRef>,
        answer: Asked<Vec<usize>>,
    },
    Hindrance {
        of: Waiter,
        answer: Asked<Option<Hindrance>>,
    },
}

/// Whose limits are asked for.
pub enum Waiter {
    Run(Box<Run>),
    Job(JobId),
}

/// A request to stop, answered when it is done. It has a channel of its own: it must be heard when nothing else is.
pub(super) type Stop = oneshot::Sender<()>;

impl Message {
    /// Answers whoever sent it that nothing of it was done.
    pub(super) fn refuse(self, why: &Unavailable) {
        match self {
            Self::Command { answer, .. } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::Opened { out, .. } => {
                let _ = out.try_send(StreamMessage::Close {
                    reason: why.to_string(),
                    again: true,
                });
            }
            Self::Workers { answer } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::Figures { answer } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::Queues { answer } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::LockWaiters { answer, .. } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::Hindrance { answer, .. } => {
                let _ = answer.send(Err(why.clone()));
            }
            Self::Worker { .. } => {}
        }
    }
}

/// What a worker's stream has to send.
#[derive(Debug)]
pub enum StreamMessage {
    Message(ToWorker),
    /// The last message.
    Close {
        reason: String,
        again: bool,
    },
}

/// Whether the server does its work, for `/readyz` and `/healthz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Starting,
    Ready,
    /// Up, but not able to commit; the text says why and what to do.
    Impaired(String),
    Stopped,
}

/// Counts that grow when what they are named after has changed.
#[derive(Clone)]
pub(super) struct Changed {
    pub(super) tokens: watch::Receiver<u64>,
    pub(super) settings: watch::Receiver<u64>,
    pub(super) owned: watch::Receiver<SegmentSet>,
    pub(super) outdated: watch::Receiver<Option<String>>,
}

#[derive(Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    stops: mpsc::Sender<Stop>,
    streams: Arc<AtomicU64>,
    watchers: Watchers,
    health: watch::Receiver<Health>,
    changed: Changed,
    tap: Tap,
    vitals: Arc<Vitals>,
}

impl Handle {
    pub(super) fn new(
        inbox: mpsc::Sender<Message>,
        stops: mpsc::Sender<Stop>,
        watchers: Watchers,
        health: watch::Receiver<Health>,
        changed: Changed,
        tap: Tap,
        vitals: Arc<Vitals>,
    ) -> Self {
        Self {
            inbox,
            stops,
            streams: Arc::new(AtomicU64::new(1)),
            watchers,
            health,
            changed,
            tap,
            vitals,
        }
    }

    /// What the driver counts of its own work.
    pub fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// How many messages wait for the engine.
    pub fn inbox_depth(&self) -> usize {
        self.inbox.max_capacity() - self.inbox.capacity()
    }

    /// How much the engine holds, and its fleet.
    pub async fn figures(&self) -> Result<(Figures, Vec<WorkerView>), Unavailable> {
        self.ask(|answer| Message::Figures { answer }).await
    }

    /// What was committed, for whoever wants to follow it.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Another server has committed these: whoever follows changes, or waits for one of the runs, learns of it.
    pub fn hear_from_another(&self, facts: Vec<Fact>) {
        for fact in &facts {
            if let Fact::Run(run) = fact {
                self.watchers.changed(run.run);
            }
        }
        self.tap.hear(facts);
    }

    /// Another server may have committed so many that are not known here, or more: whoever waits looks again.
    pub fn missed_from_another(&self, count: u64) {
        self.tap.lose(count);
        self.watchers.changed_all();
    }

    /// Carries a command out and answers once it is durable.
    pub async fn command(&self, actor: Actor, command: Command) -> Answer {
        if let Health::Impaired(why) = &*self.health.borrow() {
            return Err(Unavailable::NotReady(why.clone()));
        }
        let (answer, answered) = oneshot::channel();
        match self.inbox.try_send(Message::Command {
            actor,
            command,
            answer,
        }) {
            Ok(()) => tokio::select! {
                answer = answered => answer.unwrap_or(Err(Unavailable::OutcomeUnknown)),
                () = self.impaired_for(STORE_MAY_TAKE) => Err(Unavailable::OutcomeUnknown),
            },
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(Unavailable::Overloaded { retry_after_s: 1 })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Unavailable::Stopping),
        }
    }

    /// Resolves when the server has not been able to commit for so long without a break.
    async fn impaired_for(&self, span: Duration) {
        let mut health = self.health.clone();
        let impaired = |health: &Health| matches!(health, Health::Impaired(_));
        while health.wait_for(impaired).await.is_ok() {
            let recovered = tokio::time::timeout(span, health.wait_for(|health| !impaired(health)));
            if recovered.await.is_err() {
                return;
            }
        }
        // The driver is gone, and with it whoever would have answered: the caller learns that from its own channel.
        std::future::pending().await
    }

    /// Announces a worker's stream. Its first event must be `Connected`, its last `Disconnected` or `Goodbye`.
    pub async fn open_stream(
        &self,
    ) -> Result<(StreamId, mpsc::Receiver<StreamMessage>), Unavailable> {
        let stream = StreamId(self.streams.fetch_add(1, Ordering::Relaxed));
        let (out, messages) = mpsc::channel(STREAM_QUEUE);
        self.inbox
            .send(Message::Opened { stream, out })
            .await
            .map_err(|_| Unavailable::Stopping)?;
        Ok((stream, messages))
    }

    /// Hands a worker's events over; waits while the inbox is full.
    pub async fn worker(
        &self,
        stream: StreamId,
        events: Vec<WorkerEvent>,
    ) -> Result<(), Unavailable> {
        self.inbox
            .send(Message::Worker { stream, events })
            .await
            .map_err(|_| Unavailable::Stopping)
    }

    pub async fn workers(&self) -> Result<Vec<WorkerView>, Unavailable> {
        self.ask(|answer| Message::Workers { answer }).await
    }

    /// How many callers wait for each of these locks.
    pub async fn lock_waiters(&self, locks: Vec<LockRef>) -> Result<Vec<usize>, Unavailable> {
        self.ask(|answer| Message::LockWaiters { locks, answer })
            .await
    }

    /// How full queues are.
    pub async fn queues(&self) -> Result<Vec<QueueView>, Unavailable> {
        self.ask(|answer| Message::Queues { answer }).await
    }

    /// Which limit holds a run back, or whatever run of a job comes next.
    pub async fn hindrance(&self, of: Waiter) -> Result<Option<Hindrance>, Unavailable> {
        self.ask(|answer| Message::Hindrance { of, answer }).await
    }

    /// Asks the engine, which answers between two batches, and not before it has read what it needs from the store.
    async fn ask<T>(&self, question: impl FnOnce(Asked<T>) -> Message) -> Result<T, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            let sent = self.inbox.send(question(answer)).await;
            sent.map_err(|_| Unavailable::Stopping)?;
            answered.await.map_err(|_| Unavailable::Stopping)?
        };
        let late = |_| {
            let seconds = ENGINE_MAY_TAKE.as_secs();
            Unavailable::NotReady(match &*self.health.borrow() {
                Health::Starting => "it reads its store: try again".to_owned(),
                Health::Impaired(why) => why.clone(),
                _ => format!("it did not answer within {seconds} s: try again"),
            })
        };
        let answer = tokio::time::timeout(ENGINE_MAY_TAKE, asked).await;
        answer.map_err(late)?
    }

    /// Learns of the next changes of a run. Register first, then read the run, then wait: no change is missed.
    pub fn watch_run(&self, run: RunId) -> RunWatch {
        self.watchers.watch(run, self.tap.want_others())
    }

    /// How many want to hear what other servers commit.
    pub fn wanting_others(&self) -> watch::Receiver<usize> {
        self.tap.wanting()
    }

    /// Says why, once this program may not write to the store any more; the driver has ended then.
    pub fn outdated(&self) -> watch::Receiver<Option<String>> {
        self.changed.outdated.clone()
    }

    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// Changes whenever the table of tokens has changed.
    pub fn tokens_changed(&self) -> watch::Receiver<u64> {
        self.changed.tokens.clone()
    }

    /// Changes whenever a setting has changed.
    pub fn settings_changed(&self) -> watch::Receiver<u64> {
        self.changed.settings.clone()
    }

    /// The segments that this server owns, as far as it knows.
    pub fn owned(&self) -> watch::Receiver<SegmentSet> {
        self.changed.owned.clone()
    }

    /// Stops the loop: what was accepted is committed first.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.stops.send(done).await.is_ok() {
            let _ = stopped.await;
        }
    }
}

type Watched = BTreeMap<RunId, watch::Sender<u64>>;

/// Who waits for which run. Empty most of the time, and then it costs one uncontended lock.
#[derive(Clone, Default)]
pub(super) struct Watchers(Arc<Mutex<Watched>>);

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, run: RunId, of_others: Wanting) -> RunWatch {
        let changes = self
            .lock()
            .entry(run)
            .or_insert_with(|| watch::channel(0).0)
            .subscribe();
        RunWatch {
            run,
            changes,
            watchers: self.clone(),
            _of_others: of_others,
        }
    }

    pub(super) fn changed(&self, run: RunId) {
        if let Some(sender) = self.lock().get(&run) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// After a restart of the loop anything may have changed.
    pub(super) fn changed_all(&self) {
        for sender in self.lock().values() {
            sender.send_modify(|count| *count += 1);
        }
    }
}

/// A wait for changes of one run.
pub struct RunWatch {
    run: RunId,
    changes: watch::Receiver<u64>,
    watchers: Watchers,
    _of_others: Wanting,
}

impl RunWatch {
    /// Returns when the run has changed since the last call, or at once if it did before.
    pub async fn changed(&mut self) {
        let _ = self.changes.changed().await;
    }
}

impl Drop for RunWatch {
    fn drop(&mut self) {
        let mut watched = self.watchers.lock();
        if watched
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            watched.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handle, the driver's end of its inbox, and what else must live as long.
    fn handle(health: Health) -> (Handle, mpsc::Receiver<Message>, impl Sized) {
        let (inbox, messages) = mpsc::channel(1);
        let (stops, stopped) = mpsc::channel(1);
        let (healthy, health) = watch::channel(health);
        let (counts, changes) = watch::channel(0);
        let (tap, outlet) = Tap::start().unwrap();
        let changed = Changed {
            tokens: changes.clone(),
            settings: changes,
            owned: watch::channel(SegmentSet::ALL).1,
            outdated: watch::channel(None).1,
        };
        let vitals = Arc::default();
        let handle = Handle::new(
            inbox,
            stops,
            Watchers::default(),
            health,
            changed,
            tap,
            vitals,
        );
        (handle, messages, (stopped, healthy, counts, outlet))
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_not_waited_on_for_ever() {
        let (handle, _messages, _rest) = handle(Health::Starting);
        let began = tokio::time::Instant::now();
        let refused = handle.workers().await.unwrap_err();
        assert!(matches!(&refused, Unavailable::NotReady(why) if why.contains("reads its store")));
        assert_eq!(began.elapsed(), ENGINE_MAY_TAKE);
        // Now the inbox is full as well.
        let refused = handle.figures().await.unwrap_err();
        assert!(matches!(refused, Unavailable::NotReady(_)), "{refused}");
    }

    #[tokio::test]
    async fn who_is_refused_learns_why() {
        let (handle, mut messages, _rest) = handle(Health::Starting);
        let why = Unavailable::NotReady("the disk is gone".to_owned());
        let refusing = async {
            let message = messages.recv().await.expect("a question");
            message.refuse(&why);
            messages
        };
        let (answer, messages) = tokio::join!(handle.workers(), refusing);
        assert_eq!(answer.unwrap_err(), why);
        drop(messages);
        assert_eq!(handle.workers().await.unwrap_err(), Unavailable::Stopping);
    }
}
