//! Keeps the share of segments that is this server's, while the loop works.
//!
//! ```text
//! works ──a look says that something is to move──► finishes: nothing is stepped, what was decided is committed
//!   ▲                                                 │ nothing in flight
//!   └── an engine for the new share, booted from ◄────┴──► one commit moves the segments; if it did not go through,
//!       the store and from what the old one left             the engine works on as it was
//! ```
//!
//! An engine that comes to life with what is tied to a segment of another server gives that up before it works.
//!
//! Meanwhile callers and workers wait in front of the loop; streams stay open. Whoever waited for a lock has to ask again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drumtower_core::engine::{Boot, Engine, Input, Transfer};
use drumtower_core::model::Member;
use drumtower_store::Error;
use tokio::sync::{mpsc, oneshot};

use super::super::boot::Taken;
use super::super::handle::Unavailable;
use super::super::shares::{LOOK_EVERY, Look};
use super::super::writer::Outcome;
use super::{Left, Life, guarded};

/// What a look brought.
pub(super) struct Seen {
    /// The engine that looked.
    engine: u64,
    look: Result<Look, Error>,
}

/// What is known of the others, and what follows from it.
pub(super) struct Shares {
    /// What is to move as soon as nothing is in flight.
    pub(super) change: Option<Transfer>,
    looks: mpsc::Sender<Seen>,
    looked: mpsc::Receiver<Seen>,
    /// A look is under way.
    looking: bool,
    looked_at: Option<Instant>,
    /// How often tokens, settings and drains had changed at the last look.
    definitions: Option<u64>,
    /// That two servers are at one address has been told.
    clash_told: bool,
}

impl Shares {
    /// For an engine that was just booted.
    pub(super) fn of(engine: &Engine) -> Self {
        let (looks, looked) = mpsc::channel(1);
        Self {
            change: engine.strays(),
            looks,
            looked,
            looking: false,
            looked_at: None,
            definitions: None,
            clash_told: false,
        }
    }

    /// What the next look brings.
    pub(super) async fn next(&mut self) -> Option<Seen> {
        self.looked.recv().await
    }
}

impl Life<'_> {
    /// Looks around now and then, if there is anybody to look for.
    pub(super) fn look_around(&mut self) {
        let rests = |at: Instant| at.elapsed() < LOOK_EVERY;
        let idle = self.shares.looking || self.shares.looked_at.is_some_and(rests);
        if idle || !self.around.is_shared || self.stopping.is_some() {
            return;
        }
        self.shares.looking = true;
        self.shares.looked_at = Some(Instant::now());
        let (reader, looks) = (Arc::clone(self.around.reader), self.shares.looks.clone());
        let (me, engine) = (self.engine.session(), self.engines);
        let known = self.shares.definitions;
        let clock = Arc::clone(self.around.clock);
        // On a thread of its own: however much is being read, a server that is gone is to be noticed.
        let looking = thread::Builder::new().name("drumtower-look".into());
        let looking = looking.spawn(move || {
            let look = Look::around(reader.as_ref(), me, known, &|| clock.now());
            let _ = looks.try_send(Seen { engine, look });
        });
        self.shares.looking = looking.is_ok();
    }

    /// How long the loop may sleep before the next look.
    pub(super) fn until_look(&self) -> Option<Duration> {
        let idle = self.shares.looking || !self.around.is_shared || self.stopping.is_some();
        let passed = self.shares.looked_at.map(|at| at.elapsed());
        (!idle).then(|| LOOK_EVERY.saturating_sub(passed.unwrap_or(LOOK_EVERY)))
    }

    pub(super) fn take_look(&mut self, seen: Seen) -> Result<(), Unavailable> {
        self.shares.looking = false;
        let look = match seen.look {
            Ok(look) => look,
            Err(Error::Newer { found, known }) => {
                self.begin_to_leave(Left::Outdated(format!(
                    "a newer drumtower has brought the database to schema version {found}, and this one, which knows {known}, may not write to it any more: start the newer one in its place"
                )));
                return Ok(());
            }
            Err(error) => {
                tracing::debug!(%error, "the other servers cannot be seen");
                return Ok(());
            }
        };
        if let Some(left) = self.around.skew.take(look.reading, self.around.vitals) {
            self.begin_to_leave(left);
        }
        // While nothing is to be stepped there is nothing to do; the next look shows the same.
        if self.is_finishing() {
            return Ok(());
        }
        if self.shares.definitions.replace(look.definitions) != Some(look.definitions) {
            self.around.performer.look_again();
        }
        if let Some(drains) = look.drains {
            let now = self.around.clock.now();
            self.step(now, Input::Drains(drains))?;
        }
        if let Some(settings) = look.settings {
            let now = self.around.clock.now();
            self.step(now, Input::Settings(settings))?;
        }
        self.tell_of_clash(look.clash.as_deref());
        // What was seen before segments moved says nothing of what is left to move.
        if !look.plan.is_nothing() && seen.engine == self.engines {
            self.shares.change = Some(look.plan);
        }
        Ok(())
    }

    /// A configuration that was copied with its `advertise`: requests for one of the two reach the other. Told once while it lasts.
    fn tell_of_clash(&mut self, clash: Option<&(Member, Member)>) {
        let was_told = std::mem::replace(&mut self.shares.clash_told, clash.is_some());
        let Some((one, other)) = clash.filter(|_| !was_told) else {
            return;
        };
        let home = |member: &Member| member.home.map(|home| format!("{:016x}", home.0));
        tracing::warn!(
            address = one.address,
            one = %one.server.0,
            other = %other.server.0,
            home_of_one = home(one),
            home_of_other = home(other),
            "two servers with different data directories are reached at one address: give each an `advertise` of its own; `home` is in the file logs/home of its data directory"
        );
    }

    /// Commits what was decided, and decides nothing more.
    pub(super) fn finish_engine(&mut self) -> Result<(), Unavailable> {
        if self.flight.is_some() {
            return Ok(());
        }
        let now = self.around.clock.now();
        let engine = AssertUnwindSafe(&mut self.engine);
        if let Some(batch) = guarded(move || { engine }.take_last_batch(now))? {
            self.send(batch);
        }
        Ok(())
    }

    /// Moves segments and goes on with an engine for what is owned then.
    pub(super) async fn change_share(&mut self, mut change: Transfer) -> Result<(), Unavailable> {
        let began = Instant::now();
        self.engine.keep_tied(&mut change);
        if change.is_nothing() {
            return Ok(());
        }
        let changes = self.engine.moves(&change);
        let taken = Taken {
            session: changes.session,
            seq: changes.seq,
            segments: self.engine.owns_after(&change),
        };
        let commit = self.around.writer.commit_once(Arc::new(changes));
        match self.hear_stops(commit).await.unwrap_or(Outcome::Unknown) {
            Outcome::Done => {}
            Outcome::Never(why) if self.engine.strays().is_some() => {
                return Err(Unavailable::NotReady(format!(
                    "starting anew: what belongs to another server was not given up: {why}"
                )));
            }
            Outcome::Never(why) => {
                tracing::info!(%why, "segments were not moved; looking again");
                return Ok(());
            }
            Outcome::DoneAndDeposed | Outcome::Unknown => {
                return Err(Unavailable::NotReady(
                    "starting anew after segments were to be moved".into(),
                ));
            }
        }
        let legacy = self.engine.bequeath(&change.give);
        let why = Unavailable::NotReady("segments have moved: ask again".into());
        self.around.performer.ask_again(&legacy.waiting, &why);
        let boot = self.around.writer.reread(taken).await;
        let boot = boot.map_err(|error| Unavailable::NotReady(error.to_string()))?;
        let boot = Boot {
            believed_offset: Some(self.engine.believed_offset()),
            ..*boot
        };
        let (options, now) = (self.around.options.engine.clone(), self.around.clock.now());
        self.engine = guarded(move || Engine::succeed(options, now, boot, legacy))?;
        self.engines += 1;
        self.shares.change = self.engine.strays();
        self.around.owned.send_replace(taken.segments);
        self.around.performer.look_again();
        let (took_ms, segments) = (began.elapsed().as_millis(), taken.segments.len());
        tracing::info!(
            came = change.take.len(),
            went = change.give.len(),
            segments,
            took_ms,
            "segments have moved"
        );
        Ok(())
    }

    /// Waits for an answer of the writer; whoever wants the server to stop meanwhile is heard.
    async fn hear_stops<T>(&mut self, mut answer: oneshot::Receiver<T>) -> Option<T> {
        loop {
            tokio::select! {
                answer = &mut answer => return answer.ok(),
                Some(stop) = self.around.stops.recv() => self.stop(stop),
            }
        }
    }
}
