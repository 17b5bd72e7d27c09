//! One life of the loop: from a session's first commit until it is stopped, deposed or broken.
//!
//! Inputs are stepped while a commit is in flight; their decisions become the next batch. So a batch is as large as the
//! last commit was slow, and no timer decides its size. A full batch takes nothing more: what was gathered waits in a
//! queue, and what was not waits in the inbox, where callers are refused and workers held back. Effects leave in the
//! order of their batches.

mod leaving;
mod moving;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use drumtower_core::engine::{
    Batch, Effect, Engine, Input, LoadRequest, Loaded, Step, StreamId, Ticket, WorkerEvent,
};
use drumtower_core::model::{MonoMs, Now, SegmentSet};
use drumtower_store::Read;
use tokio::sync::{mpsc, oneshot, watch};

pub(super) use self::leaving::Left;
use self::moving::Shares;
use super::Options;
use super::clock::Clock;
use super::handle::{Health, Message, Stop, Unavailable, Waiter};
use super::load::load;
use super::perform::Performer;
use super::reads::{Length, Reads};
use super::skew::Skew;
use super::tap::{Outlet, Told};
use super::vitals::Vitals;
use super::writer::{Outcome, Writer};

/// How many messages are taken from the inbox before the batch is looked at.
const GATHER: usize = 512;
/// Commands that may wait for rows to be loaded; beyond that callers are refused.
const WAITING: usize = 10_000;
/// The longest the loop sleeps and the engine is not told the time; the wheel decides when it wakes earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How often it is looked for callers that are gone.
const LOOK_FOR_CALLERS: Duration = Duration::from_secs(1);

/// Why a life ended.
#[derive(Debug)]
pub(super) enum End {
    Stopped(Stop),
    /// All state is to be dropped and read anew.
    Reset(Unavailable),
    /// The server may not work on: it has given everything up, or others take it.
    Left(Left),
}

struct Flight {
    seq: u64,
    effects: Vec<Effect>,
    told: Told,
    sent: Instant,
    rows: usize,
    outcome: oneshot::Receiver<Outcome>,
}

/// What was gathered and not stepped yet.
enum Work {
    Message(Message),
    Event(StreamId, WorkerEvent),
    /// A command whose rows have been loaded.
    Again(Box<Input>),
    /// Nobody waits for the answer.
    Gone(Ticket),
}

type LoadResult = Result<Option<Loaded>, drumtower_store::Error>;

/// What was read, and the command that waits for it.
struct LoadAnswer {
    /// The engine that asked.
    engine: u64,
    loaded: LoadResult,
    waiting: Option<Box<Input>>,
}

/// What the loop talks to, from life to life.
pub(super) struct Surroundings<'a> {
    pub(super) options: &'a Options,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) reader: &'a Arc<dyn Read>,
    pub(super) writer: &'a mut Writer,
    pub(super) inbox: &'a mut mpsc::Receiver<Message>,
    pub(super) stops: &'a mut mpsc::Receiver<Stop>,
    pub(super) performer: &'a mut Performer,
    pub(super) outlet: &'a mut Outlet,
    pub(super) vitals: &'a Vitals,
    pub(super) health: &'a watch::Sender<Health>,
    pub(super) owned: &'a watch::Sender<SegmentSet>,
    /// Left for the life after this one.
    pub(super) believed_offset: &'a mut Option<i64>,
    /// What is known of our clock, from life to life.
    pub(super) skew: &'a mut Skew,
    /// Whether others may take over what this server owns.
    pub(super) is_shared: bool,
}

pub(super) struct Life<'a> {
    around: Surroundings<'a>,
    engine: Engine,
    queue: VecDeque<Work>,
    flight: Option<Flight>,
    reads: Reads,
    loads: mpsc::UnboundedSender<LoadAnswer>,
    loaded: mpsc::UnboundedReceiver<LoadAnswer>,
    /// Commands that wait for a load.
    waiting: usize,
    stopping: Option<Stop>,
    /// It is to end without being stopped: nothing is stepped any more.
    leaving: Option<Left>,
    /// When the engine was last told the time.
    ticked: MonoMs,
    /// When it was last looked for callers that are gone.
    looked: MonoMs,
    /// Which of this life's engines this one is: a new one for each change of its share.
    engines: u64,
    shares: Shares,
}

impl<'a> Life<'a> {
    pub(super) fn new(around: Surroundings<'a>, engine: Engine) -> Self {
        let (loads, loaded) = mpsc::unbounded_channel();
        Self {
            shares: Shares::of(&engine),
            around,
            engine,
            queue: VecDeque::new(),
            flight: None,
            reads: Reads::new(),
            loads,
            loaded,
            waiting: 0,
            stopping: None,
            leaving: None,
            ticked: MonoMs::default(),
            looked: MonoMs::default(),
            engines: 0,
        }
    }

    pub(super) async fn run(mut self) -> End {
        let mut gathered = Vec::with_capacity(GATHER);
        loop {
            if let Err(end) = self.turn() {
                return self.end(end);
            }
            if self.flight.is_none()
                && let Some(left) = self.leaving.take()
            {
                return self.go(left).await;
            }
            if self.flight.is_none()
                && self.stopping.is_none()
                && let Some(change) = self.shares.change.take()
                && let Err(end) = self.change_share(change).await
            {
                return self.end(end);
            }
            if self.flight.is_none()
                && let Some(stop) = self.stopping.take()
            {
                self.around.performer.drop_all(&Unavailable::Stopping);
                if self.around.is_shared {
                    self.leave().await;
                }
                return End::Stopped(stop);
            }
            let sleep = self.sleep();
            let room = !self.engine.is_full() && !self.is_finishing();
            let open = room && self.stopping.is_none();
            tokio::select! {
                outcome = in_flight(&mut self.flight) => {
                    if let Err(end) = self.landed(outcome) {
                        return self.end(end);
                    }
                }
                Some(answer) = self.loaded.recv(), if room => {
                    if let Err(end) = self.take_loaded(answer) {
                        return self.end(end);
                    }
                }
                Some(look) = self.shares.next() => {
                    if let Err(end) = self.take_look(look) {
                        return self.end(end);
                    }
                }
                Some(stop) = self.around.stops.recv() => self.stop(stop),
                count = self.around.inbox.recv_many(&mut gathered, GATHER), if open => {
                    if count == 0 {
                        // Every handle is gone: nobody waits for the end, but it must come.
                        self.stop(oneshot::channel().0);
                    }
                    self.queue.extend(gathered.drain(..).map(Work::Message));
                }
                () = tokio::time::sleep(sleep), if room => {}
            }
        }
    }

    fn stop(&mut self, stop: Stop) {
        self.stopping = Some(stop);
        self.around.writer.give_up_retries();
    }

    /// Lets time pass, steps what was gathered, and sends the next batch if none is in flight.
    fn turn(&mut self) -> Result<(), Unavailable> {
        if self.is_finishing() {
            return self.finish_engine();
        }
        loop {
            let now = self.around.clock.now();
            self.look_around();
            let wake = self.engine.next_wakeup(now);
            if wake.is_some_and(|at| at <= now.mono) || self.has_slept(now) {
                self.ticked = now.mono;
                self.step(now, Input::Tick)?;
            }
            self.look_for_callers(now);
            self.work(now)?;
            self.around.outlet.look(now, &self.engine);
            let sent = self.flight.is_none() && self.send_batch(now)?;
            for request in self.engine.take_loads() {
                self.start_load(request, None);
            }
            let more = !self.queue.is_empty() && !self.engine.is_full();
            if !more && !sent {
                return Ok(());
            }
        }
    }

    /// Who is gone is found when it is answered, and now and then before.
    fn look_for_callers(&mut self, now: Now) {
        if Duration::from_millis(now.mono.0.saturating_sub(self.looked.0)) >= LOOK_FOR_CALLERS {
            self.looked = now.mono;
            self.around.performer.look_for_callers();
        }
        let gone = self.around.performer.take_gone().into_iter();
        self.queue.extend(gone.map(Work::Gone));
    }

    /// Whether the longest sleep has passed: only a tick shows the engine that the wall clock was set meanwhile.
    fn has_slept(&self, now: Now) -> bool {
        Duration::from_millis(now.mono.0.saturating_sub(self.ticked.0)) >= LONGEST_SLEEP
    }

    /// Hands a batch to the writer, or performs it when nothing in it must become durable. False when there is none.
    fn send_batch(&mut self, now: Now) -> Result<bool, Unavailable> {
        let engine = AssertUnwindSafe(&mut self.engine);
        match guarded(move || { engine }.take_batch(now))? {
            Some(batch) => self.send(batch),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn send(&mut self, batch: Batch) {
        match batch.changes {
            None => self.around.performer.perform(batch.effects),
            Some(changes) => {
                let seq = changes.seq;
                let rows = changes.len();
                let changes = Arc::new(changes);
                let told = self
                    .around
                    .outlet
                    .note(&self.engine, &changes, batch.document_bytes);
                let outcome = self.around.writer.commit(changes);
                self.flight = Some(Flight {
                    seq,
                    effects: batch.effects,
                    told,
                    sent: Instant::now(),
                    rows,
                    outcome,
                });
            }
        }
    }

    fn step(&mut self, now: Now, input: Input) -> Result<(), Unavailable> {
        let engine = AssertUnwindSafe(&mut self.engine);
        match guarded(move || { engine }.step(now, input))? {
            Step::Done => {}
            Step::Need { request, input } => {
                self.waiting += 1;
                self.start_load(request, Some(input));
            }
        }
        Ok(())
    }

    fn work(&mut self, now: Now) -> Result<(), Unavailable> {
        while !self.engine.is_full()
            && let Some(work) = self.queue.pop_front()
        {
            match work {
                Work::Again(input) => self.step(now, *input)?,
                Work::Gone(ticket) => self.step(now, Input::CallerGone(ticket))?,
                Work::Event(stream, event) => {
                    let closed = matches!(event, WorkerEvent::Disconnected | WorkerEvent::Goodbye);
                    self.step(now, Input::Worker { stream, event })?;
                    if closed {
                        self.around.performer.closed(stream);
                    }
                }
                Work::Message(message) => self.open(now, message)?,
            }
        }
        Ok(())
    }

    fn open(&mut self, now: Now, message: Message) -> Result<(), Unavailable> {
        match message {
            Message::Command {
                actor,
                command,
                answer,
            } => {
                if self.waiting >= WAITING {
                    let _ = answer.send(Err(Unavailable::Overloaded { retry_after_s: 1 }));
                    return Ok(());
                }
                let ticket: Ticket = self.around.performer.ticket(answer);
                let input = Input::Command {
                    ticket,
                    actor,
                    command,
                };
                return self.step(now, input);
            }
            Message::Opened { stream, out } => self.around.performer.opened(stream, out),
            Message::Worker { stream, events } => {
                for event in events.into_iter().rev() {
                    self.queue.push_front(Work::Event(stream, event));
                }
            }
            Message::Figures { answer } => {
                let _ = answer.send(Ok((self.engine.figures(now), self.engine.workers(now))));
            }
            Message::Queues { answer } => {
                let _ = answer.send(Ok(self.engine.queues()));
            }
            Message::LockWaiters { locks, answer } => {
                let _ = answer.send(Ok(self.engine.lock_waiters(&locks)));
            }
            Message::Hindrance { of, answer } => {
                let hindrance = match of {
                    Waiter::Run(run) => self.engine.hindrance(&run),
                    Waiter::Job(job) => self.engine.hindrance_of_job(job),
                };
                let _ = answer.send(Ok(hindrance));
            }
            Message::Workers { answer } => {
                let _ = answer.send(Ok(self.engine.workers(now)));
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
                self.around
                    .vitals
                    .committed(flight.sent.elapsed(), flight.rows);
                self.engine.acknowledge(flight.seq);
                self.around.performer.perform(flight.effects);
                self.around.outlet.committed(flight.told);
                Ok(())
            }
            Outcome::DoneAndDeposed => {
                self.around.performer.perform(flight.effects);
                self.around.outlet.committed(flight.told);
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
                self.around.performer.outcome_unknown(flight.effects);
                self.around.outlet.unknown(&flight.told);
                Err(Unavailable::NotReady(
                    "starting anew after a commit of unknown outcome".into(),
                ))
            }
        }
    }

    fn start_load(&self, request: LoadRequest, waiting: Option<Box<Input>>) {
        let reader = Arc::clone(self.around.reader);
        let (answers, engine) = (self.loads.clone(), self.engines);
        self.reads.start(Length::of(&request), move || {
            if !answers.is_closed() {
                let loaded = load(reader.as_ref(), &request);
                let _ = answers.send(LoadAnswer {
                    engine,
                    loaded,
                    waiting,
                });
            }
        });
    }

    fn take_loaded(&mut self, answer: LoadAnswer) -> Result<(), Unavailable> {
        let LoadAnswer {
            engine,
            loaded,
            waiting,
        } = answer;
        if engine != self.engines {
            // What the engine before this one asked for is not known here: the command asks again.
            return self.again(waiting);
        }
        let loaded = loaded.map_err(|error| {
            tracing::error!(%error, "the store could not be read; all state is read anew");
            Unavailable::NotReady(format!("the store could not be read: {error}"))
        })?;
        let loaded = loaded.ok_or_else(|| {
            Unavailable::NotReady("another server took over; starting anew".into())
        })?;
        let now = self.around.clock.now();
        self.step(now, Input::Loaded(loaded))?;
        self.again(waiting)
    }

    fn again(&mut self, waiting: Option<Box<Input>>) -> Result<(), Unavailable> {
        if let Some(input) = waiting {
            self.waiting -= 1;
            self.queue.push_front(Work::Again(input));
        }
        Ok(())
    }

    fn sleep(&self) -> Duration {
        let now = self.around.clock.now();
        let wake = self.engine.next_wakeup(now);
        let wake = wake.map(|at| Duration::from_millis(at.0.saturating_sub(now.mono.0)));
        let next = [wake, self.until_look()].into_iter().flatten().min();
        next.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
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
pub(super) fn guarded<T>(piece: impl FnOnce() -> T) -> Result<T, Unavailable> {
    catch_unwind(AssertUnwindSafe(piece)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let why = text.unwrap_or_else(|| "a broken invariant".to_owned());
        tracing::error!(%why, "the engine broke an invariant; all state is read anew");
        Unavailable::NotReady(format!("starting anew after a broken invariant: {why}"))
    })
}
