//! The driver's end of the tap: hands committed change sets over and never waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Engine, WorkerView};
use drumtower_core::model::{MonoMs, Now, Run};

use super::Listeners;
use super::digest::{Digest, Named};
use super::ring::Ring;

/// What may wait for the thread, in bytes of change sets.
const WAITING_BYTES: usize = 32 * 1024 * 1024;
/// Roughly what a run takes in a change set beside what users put in, and what any other row does.
const RUN_BYTES: usize = 1024;
const ROW_BYTES: usize = 256;
/// The thread gathers for so long before it works, so that the driver does not wake it for each commit.
const GATHER: Duration = Duration::from_millis(2);
/// Between two looks at the fleet.
const LOOK_EVERY_MS: u64 = 500;

/// A change set on its way to the disk, with what its facts need.
pub struct Noted {
    changes: Arc<ChangeSet>,
    names: Vec<Named>,
    bytes: usize,
}

/// What a batch will tell.
pub enum Told {
    Facts(Noted),
    /// Nobody listened when it was taken: so many facts.
    Unheard(u64),
}

enum Parcel {
    Commit(Noted),
    Fleet(Option<Vec<WorkerView>>),
    Skipped(u64),
}

pub struct Outlet {
    ring: Arc<Ring>,
    parcels: Sender<Parcel>,
    waiting: Arc<AtomicUsize>,
    listeners: Arc<Listeners>,
    looked: Option<MonoMs>,
    /// Facts that were not handed over since the last that were.
    skipped: u64,
}

impl Outlet {
    pub fn start(ring: Arc<Ring>, listeners: Arc<Listeners>) -> std::io::Result<Self> {
        let (parcels, queue) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (worked, filled) = (Arc::clone(&waiting), Arc::clone(&ring));
        thread::Builder::new()
            .name("drumtower-tap".into())
            .spawn(move || {
                work(&queue, &filled, &worked);
                filled.close();
            })?;
        Ok(Self {
            ring,
            parcels,
            waiting,
            listeners,
            looked: None,
            skipped: 0,
        })
    }

    /// Notes what a batch will tell once it is durable. Jobs are named now: later the engine may have let go of them.
    /// `document_bytes` is what users wrote of it beside what runs carry.
    pub fn note(&self, engine: &Engine, changes: &Arc<ChangeSet>, document_bytes: usize) -> Told {
        if !self.listeners.any() {
            return Told::Unheard(rows(changes));
        }
        let mut jobs = BTreeSet::new();
        let mut bytes = document_bytes + ROW_BYTES * (1 + changes.len() - changes.runs.len());
        let mut last = None;
        for change in changes.runs.values() {
            let run = change.run();
            bytes += RUN_BYTES + payload(run);
            if last.replace(run.job) != Some(run.job) {
                jobs.insert(run.job);
            }
        }
        let bodies = changes.checkpoints.values().flatten();
        bytes += bodies.map(|it| it.body.len()).sum::<usize>();
        jobs.extend(changes.unfired.keys().map(|(job, _)| *job));
        jobs.extend(changes.breakers.keys().copied());
        let names = jobs.into_iter().filter_map(|id| {
            let (namespace, name) = engine.name_of(id)?;
            Some(Named {
                id,
                namespace: namespace.clone(),
                name: name.clone(),
                deleted: engine.is_deleted(id),
            })
        });
        Told::Facts(Noted {
            names: names.collect(),
            bytes,
            changes: Arc::clone(changes),
        })
    }

    /// The batch is durable.
    pub fn committed(&mut self, told: Told) {
        match told {
            Told::Unheard(0) => {}
            // Whoever began to listen while it was on its way must know that something happened.
            Told::Unheard(count) if self.listeners.any() => self.skip(count),
            Told::Unheard(count) => self.ring.unheard(count),
            Told::Facts(noted) => {
                if self.waiting.load(Ordering::Relaxed) + noted.bytes > WAITING_BYTES {
                    self.skipped += rows(&noted.changes);
                    return;
                }
                self.tell_skipped();
                self.waiting.fetch_add(noted.bytes, Ordering::Relaxed);
                let _ = self.parcels.send(Parcel::Commit(noted));
            }
        }
    }

    /// Nobody knows whether the batch is durable.
    pub fn unknown(&mut self, told: &Told) {
        let count = match told {
            Told::Facts(noted) => rows(&noted.changes),
            Told::Unheard(count) => *count,
        };
        self.skip(count.max(1));
    }

    fn skip(&mut self, count: u64) {
        self.skipped += count;
        self.tell_skipped();
    }

    fn tell_skipped(&mut self) {
        if self.skipped > 0 {
            let _ = self.parcels.send(Parcel::Skipped(self.skipped));
            self.skipped = 0;
        }
    }

    /// Looks at the fleet when it is time and someone wants to know.
    pub fn look(&mut self, now: Now, engine: &Engine) {
        self.tell_skipped();
        if !self.listeners.any_of_workers() {
            if self.looked.take().is_some() {
                let _ = self.parcels.send(Parcel::Fleet(None));
            }
            return;
        }
        let due = |looked: MonoMs| now.mono.0.saturating_sub(looked.0) >= LOOK_EVERY_MS;
        if self.looked.is_none_or(due) {
            self.looked = Some(now.mono);
            let _ = self.parcels.send(Parcel::Fleet(Some(engine.workers(now))));
        }
    }
}

/// How many facts a change set makes.
fn rows(changes: &ChangeSet) -> u64 {
    (changes.runs.len() + changes.jobs.len() + changes.unfired.len() + changes.calendars.len())
        as u64
}

fn payload(run: &Run) -> usize {
    run.params.as_ref().map_or(0, |text| text.as_str().len())
        + run.result.as_ref().map_or(0, |text| text.as_str().len())
        + run.error.as_ref().map_or(0, String::len)
}

/// The thread: until the driver has let go of its end.
fn work(queue: &Receiver<Parcel>, ring: &Ring, waiting: &AtomicUsize) {
    let mut digest = Digest::default();
    loop {
        match queue.recv() {
            Ok(parcel) => open(parcel, &mut digest, ring, waiting),
            Err(_) => return,
        }
        while let Ok(parcel) = queue.try_recv() {
            open(parcel, &mut digest, ring, waiting);
        }
        // Not woken while it sleeps: the driver's sends cost no system call then.
        thread::sleep(GATHER);
    }
}

fn open(parcel: Parcel, digest: &mut Digest, ring: &Ring, waiting: &AtomicUsize) {
    match parcel {
        Parcel::Commit(noted) => {
            ring.publish(digest.commit(&noted.changes, noted.names));
            drop(noted.changes);
            waiting.fetch_sub(noted.bytes, Ordering::Relaxed);
        }
        Parcel::Fleet(Some(workers)) => ring.publish(digest.fleet(workers)),
        Parcel::Fleet(None) => digest.forget_fleet(),
        Parcel::Skipped(count) => ring.skip(count),
    }
}
