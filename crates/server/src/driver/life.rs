//! One life of the loop: from a session's first commit until it is stopped, deposed or broken.
//!
//! Inputs are stepped while a commit is in flight; their decisions become the next batch. So a batch is as large as the
//! last commit was slow, and no timer decides its size. Effects leave in the order of their batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use drumtower_core::engine::{Effect, Engine, Input, LoadRequest, Loaded, Step, WorkerEvent};
use drumtower_core::model::Now;
use drumtower_store::Read;
use tokio::sync::{mpsc, oneshot};

use super::clock::Clock;
use super::handle::{Message, Unavailable};
use super::load::load;
use super::perform::Performer;
use super::writer::{Outcome, Writer};

/// How many messages are taken from the inbox before the batch is looked at.
const GATHER: usize = 512;
/// The longest the loop sleeps; the wheel decides when it wakes earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Why a life ended.
#[derive(Debug)]
pub(super) enum End {
    Stopped(oneshot::Sender<()>),
    /// All state is to be dropped and read anew.
    Reset(Unavailable),
}

struct Flight {
    seq: u64,
    effects: Vec<Effect>,
    outcome: oneshot::Receiver<Outcome>,
}

type LoadAnswer = (Result<Loaded, drumtower_store::Error>, Option<Box<Input>>);

pub(super) struct Life<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) reader: &'a Arc<dyn Read>,
    pub(super) writer: &'a mut Writer,
    pub(super) inbox: &'a mut mpsc::Receiver<Message>,
    pub(super) performer: &'a mut Performer,
    engine: Engine,
    flight: Option<Flight>,
    loads: mpsc::UnboundedSender<LoadAnswer>,
    loaded: mpsc::UnboundedReceiver<LoadAnswer>,
    stopping: Option<oneshot::Sender<()>>,
}

impl<'a> Life<'a> {
    pub(super) fn new(
        clock: &'a dyn Clock,
        reader: &'a Arc<dyn Read>,
        writer: &'a mut Writer,
        inbox: &'a mut mpsc::Receiver<Message>,
        performer: &'a mut Performer,
        engine: Engine,
    ) -> Self {
        let (loads, loaded) = mpsc::unbounded_channel();
        Self {
            clock,
            reader,
            writer,
            inbox,
            performer,
            engine,
            flight: None,
            loads,
            loaded,
            stopping: None,
        }
    }

    pub(super) async fn run(mut self) -> End {
        let mut gathered = Vec::with_capacity(GATHER);
        loop {
            if let Err(end) = self.turn() {
                return self.end(end);
            }
            if self.flight.is_none()
                && let Some(done) = self.stopping.take()
            {
                self.performer.drop_all(&Unavailable::Stopping);
                return End::Stopped(done);
            }
            let sleep = self.sleep();
            let room = !self.engine.is_full();
            let turned = tokio::select! {
                outcome = in_flight(&mut self.flight) => self.landed(outcome),
                Some((loaded, waiting)) = self.loaded.recv() => self.take_loaded(loaded, waiting),
                count = self.inbox.recv_many(&mut gathered, GATHER), if room && self.stopping.is_none() => {
                    if count == 0 {
                        // Every handle is gone: nobody waits for the end, but it must come.
                        self.stopping = Some(oneshot::channel().0);
                    }
                    self.gathered(&mut gathered)
                }
                () = tokio::time::sleep(sleep), if room => Ok(()),
            };
            if let Err(end) = turned {
                return self.end(end);
            }
        }
    }

    /// Lets time pass, sends the next batch if none is in flight, and starts the loads that the engine wants.
    fn turn(&mut self) -> Result<(), Unavailable> {
        let now = self.clock.now();
        if self
            .engine
            .next_wakeup(now)
            .is_some_and(|at| at <= now.mono)
        {
            self.step(now, Input::Tick)?;
        }
        if self.flight.is_none() {
            let engine = AssertUnwindSafe(&mut self.engine);
            let batch = guarded(move || { engine }.take_batch(now))?;
            match batch {
                None => {}
                Some(batch) => match batch.changes {
                    None => self.performer.perform(batch.effects),
                    Some(changes) => {
                        let seq = changes.seq;
                        let outcome = self.writer.commit(Arc::new(changes));
                        self.flight = Some(Flight {
                            seq,
                            effects: batch.effects,
                            outcome,
                        });
                    }
                },
            }
        }
        for request in self.engine.take_loads() {
            self.start_load(request, None);
        }
        Ok(())
    }

    fn step(&mut self, now: Now, input: Input) -> Result<(), Unavailable> {
        let engine = AssertUnwindSafe(&mut self.engine);
        match guarded(move || { engine }.step(now, input))? {
            Step::Done => Ok(()),
            Step::Need { request, input } => {
                self.start_load(request, Some(input));
                Ok(())
            }
        }
    }

    fn gathered(&mut self, messages: &mut Vec<Message>) -> Result<(), Unavailable> {
        let now = self.clock.now();
        for message in messages.drain(..) {
            match message {
                Message::Command {
                    actor,
                    command,
                    answer,
                } => {
                    let ticket = self.performer.ticket(answer);
                    self.step(
                        now,
                        Input::Command {
                            ticket,
                            actor,
                            command,
                        },
                    )?;
                }
                Message::Opened { stream, out } => self.performer.opened(stream, out),
                Message::Worker { stream, events } => {
                    for event in events {
                        let closed =
                            matches!(event, WorkerEvent::Disconnected | WorkerEvent::Goodbye);
                        self.step(now, Input::Worker { stream, event })?;
                        if closed {
                            self.performer.closed(stream);
                        }
                    }
                }
                Message::Workers { answer } => {
                    let _ = answer.send(self.engine.workers());
                }
                Message::Stop { done } => {
                    self.stopping = Some(done);
                    self.writer.give_up_retries();
                }
            }
        }
        Ok(())
    }

    /// A commit's outcome is known: its effects may happen, or nothing of this life may.
    fn landed(&mut self, outcome: Outcome) -> Result<(), Unavailable> {
        let Some(flight) = self.flight.take() else {
            return Ok(());
        };
        match outcome {
            Outcome::Done => {
                drumtower_store::failpoint::hit("after_commit");
                self.engine.acknowledge(flight.seq);
                self.performer.perform(flight.effects);
                Ok(())
            }
            Outcome::DoneAndDeposed => {
                self.performer.perform(flight.effects);
                Err(Unavailable::NotReady(
                    "another server took over; starting anew".into(),
                ))
            }
            Outcome::Never(why) => {
                tracing::error!(%why, seq = flight.seq, "a commit was refused; all state is read anew");
                Err(Unavailable::NotReady(format!("starting anew: {why}")))
            }
            Outcome::Unknown => {
                tracing::error!(
                    seq = flight.seq,
                    "the outcome of a commit stays unknown; all state is read anew"
                );
                self.performer.outcome_unknown(flight.effects);
                Err(Unavailable::NotReady(
                    "starting anew after a commit of unknown outcome".into(),
                ))
            }
        }
    }

    fn start_load(&self, request: LoadRequest, waiting: Option<Box<Input>>) {
        let reader = Arc::clone(self.reader);
        let answers = self.loads.clone();
        let now = self.clock.now().wall;
        tokio::task::spawn_blocking(move || {
            let _ = answers.send((load(reader.as_ref(), &request, now), waiting));
        });
    }

    fn take_loaded(
        &mut self,
        loaded: Result<Loaded, drumtower_store::Error>,
        waiting: Option<Box<Input>>,
    ) -> Result<(), Unavailable> {
        let loaded = loaded.map_err(|error| {
            tracing::error!(%error, "the store could not be read; all state is read anew");
            Unavailable::NotReady(format!("the store could not be read: {error}"))
        })?;
        let now = self.clock.now();
        self.step(now, Input::Loaded(loaded))?;
        match waiting {
            Some(input) => self.step(now, *input),
            None => Ok(()),
        }
    }

    fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let wake = self.engine.next_wakeup(now);
        wake.map_or(LONGEST_SLEEP, |at| {
            Duration::from_millis(at.0.saturating_sub(now.mono.0)).min(LONGEST_SLEEP)
        })
    }

    fn end(&mut self, why: Unavailable) -> End {
        if let Some(flight) = self.flight.take() {
            self.performer.outcome_unknown(flight.effects);
        }
        self.performer.drop_all(&why);
        match self.stopping.take() {
            Some(done) => End::Stopped(done),
            None => End::Reset(why),
        }
    }
}

/// Waits for the commit in flight; for ever when there is none.
async fn in_flight(flight: &mut Option<Flight>) -> Outcome {
    match flight {
        Some(flight) => (&mut flight.outcome).await.unwrap_or(Outcome::Unknown),
        None => std::future::pending().await,
    }
}

/// Runs a piece of the engine; a broken invariant ends this life, not the process.
fn guarded<T>(piece: impl FnOnce() -> T) -> Result<T, Unavailable> {
    catch_unwind(AssertUnwindSafe(piece)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let why = text.unwrap_or_else(|| "a broken invariant".to_owned());
        tracing::error!(%why, "the engine broke an invariant; all state is read anew");
        Unavailable::NotReady(format!("starting anew after a broken invariant: {why}"))
    })
}
