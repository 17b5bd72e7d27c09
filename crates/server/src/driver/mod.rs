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

mod boot;
mod clock;
mod handle;
mod life;
mod load;
mod perform;
mod writer;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drumtower_core::engine::{self, Engine};
use drumtower_store::{Read, Store};
use tokio::sync::{mpsc, oneshot, watch};

pub use clock::{Clock, SystemClock, wall_now};
pub use handle::{Handle, Health, RunWatch, StreamMessage, Unavailable};

use handle::{Message, Watchers};
use life::{End, Life};
use perform::Performer;
use writer::Writer;

/// Messages that may wait in front of the loop; beyond that callers are refused.
const INBOX: usize = 8_192;
/// Between two tries to begin a life.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub engine: engine::Options,
}

/// Starts the loop on a thread of its own. It is ready when [`Handle::health`] says so.
pub fn start(
    options: Options,
    store: Box<dyn Store>,
    reader: Arc<dyn Read>,
    clock: Arc<dyn Clock>,
) -> std::io::Result<Handle> {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (health, healthy) = watch::channel(Health::Starting);
    let (tokens, tokens_changed) = watch::channel(0);
    let watchers = Watchers::default();
    let writer = Writer::start(options.clone(), store, Arc::clone(&reader), health.clone())?;
    let performer = Performer::new(watchers.clone(), tokens);
    let driver = Driver {
        options,
        reader,
        clock,
        writer,
        messages,
        performer,
        health,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(4)
        .build()?;
    thread::Builder::new()
        .name("drumtower-engine".into())
        .spawn(move || runtime.block_on(driver.run()))?;
    Ok(Handle::new(inbox, watchers, healthy, tokens_changed))
}

struct Driver {
    options: Options,
    reader: Arc<dyn Read>,
    clock: Arc<dyn Clock>,
    writer: Writer,
    messages: mpsc::Receiver<Message>,
    performer: Performer,
    health: watch::Sender<Health>,
}

impl Driver {
    async fn run(mut self) {
        let done = self.lives().await;
        self.messages.close();
        self.refuse_for(Duration::MAX, &Unavailable::Stopping).await;
        self.writer.close().await;
        self.health.send_replace(Health::Stopped);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// One life after another, until someone says stop.
    async fn lives(&mut self) -> Option<oneshot::Sender<()>> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let boot = match self.writer.boot().await {
                Ok(boot) => boot,
                Err(error) => {
                    tracing::error!(%error, "could not take the segments; trying again");
                    self.health
                        .send_replace(Health::Impaired(error.to_string()));
                    match self
                        .refuse_for(pause, &Unavailable::NotReady(error.to_string()))
                        .await
                    {
                        Waited::Stop(done) => return done,
                        Waited::Long => {}
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            };
            pause = SHORTEST_PAUSE;
            let engine = Engine::boot(self.options.engine.clone(), self.clock.now(), boot);
            self.health.send_replace(Health::Ready);
            let life = Life::new(
                self.clock.as_ref(),
                &self.reader,
                &mut self.writer,
                &mut self.messages,
                &mut self.performer,
                engine,
            );
            match life.run().await {
                End::Stopped(done) => return Some(done),
                End::Reset(why) => {
                    tracing::warn!(%why, "starting anew from the store");
                    self.health.send_replace(Health::Impaired(why.to_string()));
                }
            }
        }
    }

    /// Answers whoever comes while there is no engine.
    async fn refuse_for(&mut self, pause: Duration, why: &Unavailable) -> Waited {
        let until = tokio::time::Instant::now().checked_add(pause);
        loop {
            let message = match until {
                Some(until) => match tokio::time::timeout_at(until, self.messages.recv()).await {
                    Ok(message) => message,
                    Err(_) => return Waited::Long,
                },
                None => self.messages.recv().await,
            };
            match message {
                None => return Waited::Stop(None),
                Some(Message::Stop { done }) => return Waited::Stop(Some(done)),
                Some(Message::Command { answer, .. }) => {
                    let _ = answer.send(Err(why.clone()));
                }
                Some(Message::Opened { out, .. }) => {
                    let _ = out.send(StreamMessage::Close {
                        reason: why.to_string(),
                        again: true,
                    });
                }
                Some(Message::Worker { .. } | Message::Workers { .. }) => {}
            }
        }
    }
}

/// How a wait without an engine ended.
enum Waited {
    Long,
    Stop(Option<oneshot::Sender<()>>),
}
