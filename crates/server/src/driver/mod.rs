//! The loop around the engine: gather, step, commit, then act.
//!
//! ```text
//! inbox ─► engine.step ─► batch ─► writer thread (fsync) ─► outcome ─► perform effects
//!             ▲  while one commit is in flight, the next batch is built and not sent  │
//!             └───────────────────────── loads, time ◄────────────────────────────────┘
//! ```
//!
//! The loop has a thread of its own, and so has the store's writer. A life of the loop ends when it is stopped, when its
//! session is fenced off, when an outcome stays unknown or when an invariant breaks; whatever it held in memory is then
//! dropped, callers are told what is known, workers dial again, and the next life boots from the store.

pub mod boot;
mod clock;
mod handle;
mod life;
pub mod load;
mod perform;
mod reads;
pub mod shares;
mod skew;
pub mod tap;
mod vitals;
mod writer;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drumtower_core::engine::{self, Boot, Engine};
use drumtower_core::model::{Actor, Home, Member, SegmentSet};
use drumtower_store::{Read, Store};
use tokio::sync::{mpsc, watch};

pub use clock::{Clock, SystemClock, wall_now};
pub use handle::{Handle, Health, RunWatch, StreamMessage, Unavailable, Waiter};

use handle::{Changed, Message, Stop, Watchers};
use life::{End, Left, Life, Surroundings, guarded};
use perform::Performer;
use skew::{Reading, Skew};
use tap::{Outlet, Tap};
pub use vitals::Vitals;
use writer::Writer;

/// The size of the inbox unless told otherwise.
const INBOX: usize = 8_192;
/// Between two tries to begin a life.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Options {
    pub engine: engine::Options,
    /// Messages that may wait in front of the loop; beyond that callers are refused.
    pub inbox: usize,
    /// How other servers and people know this one; as it is called in what it records unless given.
    pub name: Option<String>,
    /// The URL by which other servers reach this one; `None` when it has no others.
    pub address: Option<String>,
    /// Where it keeps the output of runs; `None` when it has no others.
    pub home: Option<Home>,
}

impl Options {
    /// Who this server is to others.
    pub fn member(&self) -> Member {
        Member {
            server: match &self.name {
                Some(name) => Actor::new(name),
                None => self.engine.server.clone(),
            },
            address: self.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.home,
            lease_ms: self.engine.terms.lease_ms,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: engine::Options::default(),
            inbox: INBOX,
            name: None,
            address: None,
            home: None,
        }
    }
}

/// Starts the loop on a thread of its own. It is ready when [`Handle::health`] says so.
pub fn start(
    mut options: Options,
    store: Box<dyn Store>,
    reader: Arc<dyn Read>,
    clock: Arc<dyn Clock>,
) -> std::io::Result<Handle> {
    let is_shared = store.is_shared();
    let reader = reader.of_the_loop().unwrap_or(reader);
    if is_shared {
        options.engine.idle_commit_ms = Some(options.engine.session_ms.unsigned_abs() / 3);
    }
    let (inbox, messages) = mpsc::channel(options.inbox);
    let (stop, stops) = mpsc::channel(1);
    let (health, healthy) = watch::channel(Health::Starting);
    let (tokens, tokens_changed) = watch::channel(0);
    let (settings, settings_changed) = watch::channel(0);
    let (owned, owned_changed) = watch::channel(SegmentSet::NONE);
    let (outdated, outdated_changed) = watch::channel(None);
    let watchers = Watchers::default();
    let vitals = Arc::new(Vitals::default());
    let writer = Writer::start(
        options.clone(),
        store,
        Arc::clone(&reader),
        health.clone(),
        Arc::clone(&vitals),
    )?;
    let performer = Performer::new(watchers.clone(), tokens, settings);
    let (tap, outlet) = Tap::start()?;
    let driver = Driver {
        options,
        reader,
        clock,
        writer,
        messages,
        stops,
        performer,
        outlet,
        vitals: Arc::clone(&vitals),
        health,
        owned,
        outdated,
        believed_offset: None,
        skew: Skew::default(),
        is_shared,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(reads::THREADS)
        .build()?;
    thread::Builder::new()
        .name("drumtower-engine".into())
        .spawn(move || runtime.block_on(driver.run()))?;
    let changed = Changed {
        tokens: tokens_changed,
        settings: settings_changed,
        owned: owned_changed,
        outdated: outdated_changed,
    };
    Ok(Handle::new(
        inbox, stop, watchers, healthy, changed, tap, vitals,
    ))
}

struct Driver {
    options: Options,
    reader: Arc<dyn Read>,
    clock: Arc<dyn Clock>,
    writer: Writer,
    messages: mpsc::Receiver<Message>,
    stops: mpsc::Receiver<Stop>,
    performer: Performer,
    outlet: Outlet,
    vitals: Arc<Vitals>,
    health: watch::Sender<Health>,
    owned: watch::Sender<SegmentSet>,
    /// Why this program may not write to the store any more.
    outdated: watch::Sender<Option<String>>,
    /// What the last life believed of the wall clock: a step that it held back is not believed for its end.
    believed_offset: Option<i64>,
    skew: Skew,
    /// Whether others may take over what this server owns.
    is_shared: bool,
}

impl Driver {
    async fn run(mut self) {
        let done = self.lives().await;
        self.refuse_the_rest().await;
        self.writer.close().await;
        self.health.send_replace(Health::Stopped);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// One life after another, until someone says stop or this program is too old.
    async fn lives(&mut self) -> Option<Stop> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let began = tokio::time::Instant::now();
            let why = match self.live().await {
                End::Stopped(stop) => return Some(stop),
                End::Left(Left::Outdated(why)) => {
                    tracing::error!(%why, "this server ends");
                    self.outdated.send_replace(Some(why));
                    return None;
                }
                End::Left(far_off @ Left::FarOff(_)) => {
                    let why = Unavailable::NotReady(far_off.to_string());
                    self.health
                        .send_replace(Health::Impaired(far_off.to_string()));
                    if let Waited::Stop(stop) = self.refuse_for(shares::LOOK_EVERY, &why).await {
                        return stop;
                    }
                    continue;
                }
                End::Reset(why) => why,
            };
            tracing::warn!(%why, "starting anew from the store");
            self.health.send_replace(Health::Impaired(why.to_string()));
            // A life that ends as soon as it begins would otherwise begin again at once, for ever.
            if began.elapsed() > LONGEST_PAUSE {
                pause = SHORTEST_PAUSE;
            }
            if let Waited::Stop(stop) = self.refuse_for(pause, &why).await {
                return stop;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn live(&mut self) -> End {
        if let Some(left) = self.judge_clock().await {
            return End::Left(left);
        }
        let began = tokio::time::Instant::now();
        let boot = match self.writer.boot().await {
            Ok(boot) => Boot {
                believed_offset: self.believed_offset,
                ..*boot
            },
            Err(error) => return End::Reset(Unavailable::NotReady(error.to_string())),
        };
        let (options, now) = (self.options.engine.clone(), self.clock.now());
        let engine = match guarded(move || Engine::boot(options, now, boot)) {
            Ok(engine) => engine,
            Err(why) => return End::Reset(why),
        };
        let took_ms = began.elapsed().as_millis();
        tracing::info!(took_ms, "read from the store");
        self.performer.look_again();
        self.owned.send_replace(engine.owned());
        self.health.send_replace(Health::Ready);
        let around = Surroundings {
            options: &self.options,
            clock: &self.clock,
            reader: &self.reader,
            writer: &mut self.writer,
            inbox: &mut self.messages,
            stops: &mut self.stops,
            performer: &mut self.performer,
            outlet: &mut self.outlet,
            vitals: &self.vitals,
            health: &self.health,
            owned: &self.owned,
            believed_offset: &mut self.believed_offset,
            skew: &mut self.skew,
            is_shared: self.is_shared,
        };
        Life::new(around, engine).run().await
    }

    /// Whether our clock is too wrong to own anything by. What cannot be read is told by whoever boots.
    async fn judge_clock(&mut self) -> Option<Left> {
        if !self.is_shared {
            return None;
        }
        let (reader, clock) = (Arc::clone(&self.reader), Arc::clone(&self.clock));
        let read = move || {
            let before = clock.now();
            let (theirs, _) = reader.sessions()?;
            Ok::<_, drumtower_store::Error>(Reading::new(before, clock.now(), theirs))
        };
        let reading = tokio::task::spawn_blocking(read).await;
        let reading = reading.ok().and_then(Result::ok)?;
        self.skew.take(reading, &self.vitals)
    }

    /// Answers whoever comes while there is no engine.
    async fn refuse_for(&mut self, pause: Duration, why: &Unavailable) -> Waited {
        let until = tokio::time::Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Waited::Long,
                Some(stop) = self.stops.recv() => return Waited::Stop(Some(stop)),
                message = self.messages.recv() => match message {
                    Some(message) => message.refuse(why),
                    None => return Waited::Stop(None),
                },
            }
        }
    }

    /// Answers whoever came too late.
    async fn refuse_the_rest(&mut self) {
        self.messages.close();
        while let Some(message) = self.messages.recv().await {
            message.refuse(&Unavailable::Stopping);
        }
    }
}

/// How a wait without an engine ended.
enum Waited {
    Long,
    Stop(Option<Stop>),
}
