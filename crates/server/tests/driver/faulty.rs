//! A memory store that does as it is told: loses answers, is full, is fenced, breaks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Command, Condition, JobRef, Refusal, Reply, Trigger};
use drumtower_core::model::{
    Actor, JobName, JobSpec, Member, NamespaceName, SessionId, SessionRow, WallMs,
};
use drumtower_server::driver::{self, Handle, Health, SystemClock, Unavailable};
use drumtower_store::memory::Memory;
use drumtower_store::{Commit, Error, Read, Store};

/// What happens to the next commit that holds a job or a run.
pub enum Fault {
    /// The answer is lost; the change set was not applied.
    UnknownNotApplied,
    /// The answer is lost; the change set was applied.
    UnknownApplied,
    Busy,
    Full,
    Invariant,
    /// Someone else revokes the session before this commit.
    Revoked,
    /// Applied, the answer is lost, and then the session is revoked.
    AppliedThenRevoked,
    /// The commit waits until the test lets it go.
    Held {
        arrived: Sender<()>,
        go: Receiver<()>,
    },
}

pub type Script = Arc<Mutex<VecDeque<Fault>>>;

pub struct Faulty {
    inner: Memory,
    script: Script,
    /// The last set that was sent without a known outcome: nothing else may be sent under its number.
    pending: Option<ChangeSet>,
    busy: Arc<AtomicBool>,
    largest: Arc<AtomicUsize>,
}

impl Faulty {
    fn revoke(&mut self, id: SessionId) {
        let taker = self
            .inner
            .begin_session(&Member::alone("rival"), 3_000)
            .expect("a session");
        let changes = ChangeSet {
            session: taker,
            seq: 1,
            extend_ms: 0,
            revoke: vec![id],
            ..ChangeSet::default()
        };
        assert_eq!(self.inner.commit(&changes).expect("commits"), Commit::Done);
    }

    fn faulty_commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        if let Some(pending) = &self.pending
            && pending.session == changes.session
            && pending.seq == changes.seq
        {
            assert_eq!(
                pending, changes,
                "other content was sent under the same number"
            );
        }
        // A fault is meant for what a test asks for, not for what the engine writes by itself now and then.
        let is_asked_for = !changes.jobs.is_empty() || !changes.runs.is_empty();
        let fault = if changes.revoke.is_empty() && is_asked_for {
            self.script.lock().expect("unpoisoned").pop_front()
        } else {
            None
        };
        match fault {
            None => self.inner.commit(changes),
            Some(Fault::UnknownNotApplied) => {
                self.pending = Some(changes.clone());
                Err(Error::Unknown("injected".into()))
            }
            Some(Fault::UnknownApplied) => {
                self.pending = Some(changes.clone());
                self.inner.commit(changes)?;
                Err(Error::Unknown("injected".into()))
            }
            Some(Fault::Busy) => Err(Error::Busy("injected".into())),
            Some(Fault::Full) => Err(Error::Full("injected".into())),
            Some(Fault::Invariant) => Err(Error::Invariant("injected".into())),
            Some(Fault::Revoked) => {
                self.revoke(changes.session);
                self.inner.commit(changes)
            }
            Some(Fault::AppliedThenRevoked) => {
                self.inner.commit(changes)?;
                self.revoke(changes.session);
                Err(Error::Unknown("injected".into()))
            }
            Some(Fault::Held { arrived, go }) => {
                let _ = arrived.send(());
                let _ = go.recv();
                self.inner.commit(changes)
            }
        }
    }
}

impl Store for Faulty {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.inner.clock()
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.inner.begin_session(member, extend_ms)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        assert!(
            !self.busy.swap(true, Ordering::SeqCst),
            "two commits at once"
        );
        if changes.seq > 1 {
            self.largest.fetch_max(changes.len(), Ordering::SeqCst);
        }
        let outcome = self.faulty_commit(changes);
        self.busy.store(false, Ordering::SeqCst);
        outcome
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.inner.session(id)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        self.inner.live_sessions()
    }

    fn close(&mut self) -> Result<(), Error> {
        self.inner.close()
    }
}

pub struct World {
    pub handle: Handle,
    pub reader: Arc<dyn Read>,
    pub script: Script,
    /// The most changes that a commit after the take-over held.
    pub largest: Arc<AtomicUsize>,
}

impl World {
    pub async fn start() -> Self {
        let store = Memory::new();
        let reader: Arc<dyn Read> = Arc::new(store.reader());
        Self::start_with(store, reader).await
    }

    pub async fn start_with(store: Memory, reader: Arc<dyn Read>) -> Self {
        let world = Self::begin(store, reader);
        world.ready().await;
        world
    }

    /// Starts the driver without waiting for it to be ready.
    pub fn begin(store: Memory, reader: Arc<dyn Read>) -> Self {
        let (script, largest) = (Script::default(), Arc::new(AtomicUsize::new(0)));
        let faulty = Faulty {
            inner: store,
            script: Arc::clone(&script),
            pending: None,
            busy: Arc::default(),
            largest: Arc::clone(&largest),
        };
        let clock = Arc::new(SystemClock);
        let options = driver::Options::default();
        let handle = driver::start(options, Box::new(faulty), Arc::clone(&reader), clock)
            .expect("threads start");
        Self {
            handle,
            reader,
            script,
            largest,
        }
    }

    pub async fn ready(&self) {
        let mut health = self.handle.health();
        let ready = health.wait_for(|health| *health == Health::Ready);
        tokio::time::timeout(Duration::from_secs(30), ready)
            .await
            .expect("in time")
            .expect("the loop lives");
    }

    pub fn fault(&self, fault: Fault) {
        self.script.lock().expect("unpoisoned").push_back(fault);
    }

    pub fn hold(&self) -> (Receiver<()>, Sender<()>) {
        let (arrived, arrivals) = channel();
        let (let_go, go) = channel();
        self.fault(Fault::Held { arrived, go });
        (arrivals, let_go)
    }

    pub async fn put(&self, name: &str) -> Result<Result<Reply, Refusal>, Unavailable> {
        let spec = spec(name);
        self.handle
            .command(
                Actor::new("tester"),
                Command::PutJob {
                    spec: Box::new(spec),
                    condition: Condition::Any,
                },
            )
            .await
    }

    pub async fn trigger(&self, name: &str) -> Result<Result<Reply, Refusal>, Unavailable> {
        let job = job_ref(name);
        let triggers = vec![Trigger {
            job,
            params: None,
            idempotency_key: None,
            request: None,
            when: None,
            rerun: None,
            overlap: Default::default(),
            force: false,
        }];
        self.handle
            .command(Actor::new("tester"), Command::TriggerRuns { triggers })
            .await
    }

    /// How many runs were ever made, by the counters in the store.
    pub fn created(&self) -> u64 {
        let counters = self.reader.counters().expect("readable");
        counters.iter().map(|(_, row)| row.created).sum()
    }

    pub fn stored(&self, name: &str) -> bool {
        let job = job_ref(name);
        self.reader
            .job_named(&job.namespace, &job.name)
            .expect("readable")
            .is_some()
    }
}

pub fn job_ref(name: &str) -> JobRef {
    JobRef {
        namespace: NamespaceName::default(),
        name: JobName::new(name).expect("a name"),
    }
}

pub fn spec(name: &str) -> JobSpec {
    let text = format!(
        r#"{{"kind": "Job", "name": "{name}", "task": {{"handler": {{"name": "noop"}}}}}}"#
    );
    serde_json::from_str(&text).expect("a valid manifest")
}
