//! Commits: one in flight, sent until its outcome is known.
//!
//! The table of what an answer means is that of the driver's writer.

use std::sync::Arc;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Batch, Effect, Transfer};
use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::Now;
use drumtower_server::driver::boot::Taken;
use drumtower_store::{Commit, Error, Store};

use super::guarded;
use crate::check::KeptAway;
use crate::clock::{MS, SECOND};
use crate::plan::CommitTrouble;
use crate::world::event::{Answer, Event, Life};
use crate::world::{World, note};

pub struct Flight {
    pub(super) seq: u64,
    changes: Arc<ChangeSet>,
    pub(super) effects: Vec<Effect>,
    cargo: Cargo,
    /// An answer did not come: a copy may live.
    unknown: bool,
    pause_us: u64,
}

/// What a commit is for.
pub enum Cargo {
    Batch,
    /// Segments move, and so much is owned then.
    Move(Box<(Transfer, Taken)>),
}

impl Flight {
    pub(super) fn new(changes: ChangeSet, effects: Vec<Effect>, cargo: Cargo) -> Self {
        Self {
            seq: changes.seq,
            changes: Arc::new(changes),
            effects,
            cargo,
            unknown: false,
            pause_us: 5 * MS,
        }
    }

    pub(super) fn moves(&self) -> bool {
        matches!(self.cargo, Cargo::Move(_))
    }
}

/// What became of a commit.
enum Outcome {
    Done,
    DoneAndDeposed,
    Never,
    Unknown,
}

impl World {
    /// Hands a batch to the store, or performs it when nothing in it must become durable. False when there is none.
    pub(super) fn send_batch(
        &mut self,
        server: usize,
        life: Life,
        now: Now,
    ) -> Result<bool, String> {
        let Some(live) = self.servers[server].live(life) else {
            return Ok(false);
        };
        if live.flight.is_some() {
            return Ok(false);
        }
        let (kept, owned) = (KeptAway::of(&live.engine.workers(now)), live.engine.owned());
        let engine = &mut live.engine;
        let Some(batch) = guarded(move || engine.take_batch(now))? else {
            return Ok(false);
        };
        if let Some(changes) = &batch.changes {
            self.check_kept_away(&kept, &owned, changes);
        }
        self.send(server, life, batch);
        Ok(true)
    }

    pub(super) fn send(&mut self, server: usize, life: Life, batch: Batch) {
        let Some(changes) = batch.changes else {
            self.check_uncommitted(&batch.effects);
            return self.perform(server, life, batch.effects);
        };
        note!(
            self,
            "server {server} sends commit {}: {} rows, {} effects",
            changes.seq,
            changes.len(),
            batch.effects.len()
        );
        let mut effects = batch.effects;
        if armed(Fault::EffectsBeforeCommit) {
            let early = std::mem::take(&mut effects);
            self.perform(server, life, early);
        }
        self.submit_first(server, life, Flight::new(changes, effects, Cargo::Batch));
    }

    pub(super) fn submit_first(&mut self, server: usize, life: Life, flight: Flight) {
        if let Some(live) = self.servers[server].live(life) {
            live.flight = Some(flight);
            self.submit(server, life);
        }
    }

    /// A process ends with this commit: it is sent once, whatever becomes of it.
    pub(super) fn submit_last(&mut self, server: usize, life: Life, changes: Arc<ChangeSet>) {
        if self.servers[server].storeless > self.at {
            return;
        }
        let slow = match self.random.chance(100) {
            true => 8 * SECOND,
            false => 4 * MS,
        };
        let at = self.at.plus(self.random.skewed(100, slow));
        self.push(
            at,
            Event::Reach {
                server,
                life,
                changes,
                answered: false,
                outlives: true,
            },
        );
    }

    /// Sends the commit in flight, for the first time or again.
    fn submit(&mut self, server: usize, life: Life) {
        let Some(flight) = self.servers[server]
            .live(life)
            .and_then(|live| live.flight.as_ref())
        else {
            return;
        };
        let (seq, changes) = (flight.seq, Arc::clone(&flight.changes));
        let at = self.at;
        self.weather.commits.retain(|(_, until)| *until > at);
        let struck = self.random.chance(350);
        let trouble = self
            .weather
            .commits
            .first()
            .filter(|_| struck)
            .map(|(kind, _)| *kind);
        let latency = self.random.skewed(100, 4 * MS);
        let outlives = self.random.chance(500);
        let reach = |answered, outlives| Event::Reach {
            server,
            life,
            changes,
            answered,
            outlives,
        };
        let told = |answer| Event::Answered {
            server,
            life,
            seq,
            answer,
        };
        if self.servers[server].storeless > at {
            let silence = self.random.between(200 * MS, 2 * SECOND);
            // The way back may be the one that is cut.
            if self.random.chance(200) {
                self.push(at.plus(latency), reach(false, true));
            }
            return self.push(at.plus(silence), told(Answer::Unknown));
        }
        match trouble {
            None => self.push(at.plus(latency), reach(true, outlives)),
            Some(CommitTrouble::Slow) => {
                let slow = self.random.skewed(5 * MS, 8 * SECOND);
                self.push(at.plus(slow), reach(true, outlives));
            }
            Some(CommitTrouble::Busy) => self.push(at.plus(latency), told(Answer::Busy)),
            Some(CommitTrouble::Refused) => self.push(at.plus(latency), told(Answer::Refused)),
            Some(CommitTrouble::UnknownApplied) => {
                let silence = self.random.skewed(MS, 3 * SECOND);
                self.push(at.plus(latency), reach(false, true));
                self.push(at.plus(latency + silence), told(Answer::Unknown));
            }
            Some(CommitTrouble::UnknownLost) => {
                let silence = self.random.skewed(MS, 3 * SECOND);
                self.push(at.plus(silence), told(Answer::Unknown));
            }
            Some(CommitTrouble::UnknownLate) => {
                let silence = self.random.skewed(MS, SECOND);
                let late = self.random.skewed(MS, 25 * SECOND);
                self.push(at.plus(silence), told(Answer::Unknown));
                self.push(at.plus(silence + late), reach(false, true));
            }
        }
    }

    /// A copy arrives at the store.
    pub(crate) fn reach(
        &mut self,
        server: usize,
        life: Life,
        changes: &Arc<ChangeSet>,
        answered: bool,
        outlives: bool,
    ) {
        if !outlives && self.servers[server].live(life).is_none() {
            return;
        }
        let seq = changes.seq;
        let answer = match self.store.commit(changes) {
            Ok(Commit::Done) => {
                note!(
                    self,
                    "commit {seq} of session {} is durable",
                    changes.session.0
                );
                self.check_commit(changes);
                Answer::Done
            }
            Ok(Commit::Fenced) => {
                note!(
                    self,
                    "commit {seq} of session {} is fenced",
                    changes.session.0
                );
                Answer::Fenced
            }
            // Somebody was faster.
            Err(Error::Invariant(why)) if self.takes(changes) => {
                note!(self, "commit {seq} moves nothing: {why}");
                Answer::Refused
            }
            Err(error) => {
                self.checks.find("store", format!("commit {seq}: {error}"));
                return;
            }
        };
        if answered {
            let latency = self.random.skewed(50, 2 * MS);
            let event = Event::Answered {
                server,
                life,
                seq,
                answer,
            };
            self.push(self.at.plus(latency), event);
        }
    }

    pub(crate) fn commit_answered(&mut self, server: usize, life: Life, seq: u64, answer: Answer) {
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let Some(flight) = live.flight.as_mut().filter(|flight| flight.seq == seq) else {
            return;
        };
        match answer {
            Answer::Done => self.landed(server, life, Outcome::Done),
            Answer::Refused if flight.unknown => self.landed(server, life, Outcome::Unknown),
            Answer::Refused => self.landed(server, life, Outcome::Never),
            Answer::Fenced => {
                let outcome = self.why_fenced(server, life);
                self.landed(server, life, outcome);
            }
            Answer::Unknown if armed(Fault::ResubmissionSkipped) => {
                self.landed(server, life, Outcome::Done);
            }
            Answer::Busy | Answer::Unknown => {
                flight.unknown |= answer == Answer::Unknown;
                let pause = flight.pause_us;
                flight.pause_us = (pause * 2).min(SECOND);
                note!(
                    self,
                    "server {server} has no outcome of commit {seq}: {answer:?}"
                );
                let again = Event::Resubmit { server, life, seq };
                self.push(self.at.plus(pause), again);
            }
        }
    }

    pub(crate) fn resubmit(&mut self, server: usize, life: Life, seq: u64) {
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let Some(flight) = live.flight.as_ref().filter(|flight| flight.seq == seq) else {
            return;
        };
        // Whoever is to stop gives up what does not go through.
        match (live.stopping.is_some(), flight.unknown) {
            (false, _) => self.submit(server, life),
            (true, false) => self.landed(server, life, Outcome::Never),
            (true, true) => self.landed(server, life, Outcome::Unknown),
        }
    }

    /// The session row did not stand where it should: find out why.
    fn why_fenced(&mut self, server: usize, life: Life) -> Outcome {
        let Some(flight) = self.servers[server]
            .live(life)
            .and_then(|live| live.flight.as_ref())
        else {
            return Outcome::Unknown;
        };
        let (seq, session, unknown) = (flight.seq, flight.changes.session, flight.unknown);
        match self.store.session(session) {
            Ok(Some(row)) if row.seq == seq && row.revoked => Outcome::DoneAndDeposed,
            Ok(Some(row)) if row.seq == seq => {
                if !unknown {
                    let words = format!(
                        "commit {seq} of session {} was sent once and is there twice",
                        session.0
                    );
                    self.checks.find("V14", words);
                }
                Outcome::Done
            }
            Ok(Some(row)) if row.seq + 1 == seq && row.revoked => Outcome::Never,
            _ => Outcome::Unknown,
        }
    }

    fn landed(&mut self, server: usize, life: Life, outcome: Outcome) {
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let Some(flight) = live.flight.take() else {
            return;
        };
        if let Cargo::Move(moved) = &flight.cargo {
            return self.moved(server, life, outcome, moved);
        }
        match outcome {
            Outcome::Done => {
                let engine = &mut live.engine;
                if let Err(why) = guarded(move || engine.acknowledge(flight.seq)) {
                    self.checks.find("panic", why);
                    return;
                }
                self.perform(server, life, flight.effects);
                self.wake_server(server);
            }
            Outcome::DoneAndDeposed => {
                self.perform(server, life, flight.effects);
                self.reset(server, "another server took over");
            }
            Outcome::Never => self.reset(server, "a commit was refused"),
            Outcome::Unknown => {
                live.flight = Some(flight);
                self.reset(server, "the outcome of a commit stays unknown");
            }
        }
    }

    fn has_strays(&mut self, server: usize, life: Life) -> bool {
        let live = self.servers[server].live(life);
        live.is_some_and(|live| live.engine.strays().is_some())
    }

    fn moved(
        &mut self,
        server: usize,
        life: Life,
        outcome: Outcome,
        (change, taken): &(Transfer, Taken),
    ) {
        match outcome {
            Outcome::Done => self.share_changed(server, life, change, *taken),
            Outcome::Never if self.has_strays(server, life) => {
                self.reset(server, "what belongs to another server was not given up");
            }
            Outcome::Never => {
                note!(self, "server {server} has moved nothing");
                self.wake_server(server);
            }
            Outcome::DoneAndDeposed | Outcome::Unknown => {
                self.reset(server, "starting anew after segments were to be moved");
            }
        }
    }
}
