//! The engine: one step in, decisions out, no input or output of its own.
//!
//! ```text
//! step(now, input) ──► rows changed + effects held back ──► take_batch ──► (driver commits) ──► effects released
//! ```
//!
//! It owns the state of its segments in memory: jobs that are due soon or were asked for, runs that are ready, attempts
//! that are leased, the fleet and its credits. Everything it holds is a copy of what the store has, or of what the batch
//! being built will put there; whoever drives it may drop it at any time and boot another from the store.
//!
//! Invariants:
//! - the job of a resident run is resident, so that no count of live runs is read while a run of the job changes;
//! - every effect belongs to a batch and is performed only after that batch's commit, so nobody is told what may not be;
//! - ids and fences of a segment only grow, and lie under a mark that the same commit stores;
//! - one file for each command, each event of a worker and each thing that time does.
//!
//! A broken invariant panics: the driver drops the engine and boots it anew.

mod admit_run;
mod backfills;
mod batch;
mod boot;
mod breaker;
mod calendars;
mod clock;
mod command;
mod decide;
mod deeds;
mod delays;
mod dispatch;
mod drains;
mod effect;
mod endings;
mod enter_line;
mod evict;
mod figures;
mod fire_job;
mod fleet;
mod fleet_view;
mod follow_job;
mod gates;
mod health;
mod hold_backfill;
mod in_a_row;
mod input;
mod isolate;
mod jobs;
mod keys;
mod lag;
mod letters;
mod limits;
mod lines;
mod load;
mod locks;
mod lot;
mod marks;
mod pens;
mod plan_job;
mod queue_view;
mod queues;
mod read_ahead;
mod read_lots;
mod rests;
mod retry;
mod runs;
mod segments;
mod settings;
mod sort_lots;
mod start_limits;
mod succession;
mod supersede;
mod sweeps;
mod time;
mod turns;
mod worker;

use std::collections::BTreeMap;

use crate::change::ChangeSet;
use crate::lease;
use crate::model::{
    Actor, CalendarRef, Counters, JobId, JobName, JobRecord, Limits, NamespaceName, Now, Run,
    RunId, SegmentId, SegmentSet, SessionId, SettingKey, SettingRow, TokenId, TokenRow,
};
use crate::wheel::Wheel;

pub use batch::Batch;
pub use boot::{Boot, take_over};
pub use effect::{Assign, Effect, Refusal, Reply, ToWorker, Triggered};
pub use figures::{Figures, LineFigures};
pub use fleet_view::{WorkerState, WorkerView};
pub use input::{
    AttemptRef, Command, Condition, ENDING_ROWS, Enforcement, FOLLOWER_ROWS, Finished, Heartbeat,
    Hello, Input, JobRef, LOAD_ROWS, Load, LoadKey, LoadRequest, Loaded, LoadedRow, NewBackfill,
    NewToken, Rerun, StreamId, Ticket, TimesWanted, Trigger, When, WorkerEvent,
};

pub use queue_view::{Held, Hindrance, KeyView, QueueView};

pub use succession::{Legacy, Transfer};

use backfills::Backfills;
use batch::Building;
use calendars::Calendars;
use clock::Hold;
use delays::Delays;
use drains::Drains;
use endings::Endings;
use evict::Idle;
use fleet::Fleet;
use gates::Gates;
use health::Health;
use jobs::Jobs;
use keys::Keys;
use letters::Letters;
use lines::Lines;
use load::Loads;
use locks::Locks;
use pens::Pens;
use queues::Queues;
use read_ahead::ReadAhead;
use rests::Rests;
use runs::Runs;
use segments::Segments;
use sort_lots::Sorts;
use start_limits::StartLimits;
use sweeps::Sweeps;
use time::{Due, Starting, Timer};
use turns::Turns;
use worker::Reports;

#[derive(Clone, Debug)]
pub struct Options {
    /// Who this server is, recorded with what it decides.
    pub server: Actor,
    pub terms: lease::Terms,
    /// How far ahead of their due time jobs are read into memory.
    pub window_ms: i64,
    /// How many jobs are read ahead before some of them must fire.
    pub read_ahead_jobs: usize,
    /// Ready runs of one line held in memory; the rest wait parked in the store.
    pub ready_window: usize,
    /// The same of all lines together, of which each has a share whatever the others take.
    pub ready_total: usize,
    /// How far a commit moves the session's end.
    pub session_ms: i64,
    /// The machine this server runs on: a worker elsewhere is a second opinion on what time it is.
    pub host: String,
    /// The longest an idle loop goes without a commit; `None` when nobody could take its segments.
    pub idle_commit_ms: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            server: Actor::new("server"),
            terms: lease::Terms::default(),
            window_ms: 60_000,
            read_ahead_jobs: 50_000,
            ready_window: Limits::READY_WINDOW,
            ready_total: Limits::READY_TOTAL,
            session_ms: 3_000,
            host: String::new(),
            idle_commit_ms: None,
        }
    }
}

/// What a step came to.
#[derive(Debug)]
pub enum Step {
    Done,
    /// Rows are missing: load them, step their [`Input::Loaded`], then step `input` again.
    Need {
        request: LoadRequest,
        input: Box<Input>,
    },
}

#[derive(Debug)]
pub struct Engine {
    options: Options,
    session: SessionId,
    segments: Segments,
    jobs: Jobs,
    runs: Runs,
    lines: Lines,
    fleet: Fleet,
    health: Health,
    drains: Drains,
    keys: Keys,
    locks: Locks,
    letters: Letters,
    backfills: Backfills,
    endings: Endings,
    loads: Loads,
    tokens: BTreeMap<TokenId, TokenRow>,
    settings: BTreeMap<SettingKey, SettingRow>,
    counters: BTreeMap<(SegmentId, NamespaceName), Counters>,
    wheel: Wheel<Timer>,
    starting: Starting,
    reports: Reports,
    /// Wall minus monotonic time when the timers of schedules were last placed.
    offset: i64,
    /// When this engine came to life.
    booted: Now,
    /// The time of the last step.
    now: Now,
    /// A step of the wall clock that is not believed yet.
    hold: Option<Hold>,
    /// Jobs that are due and wait for room in a batch.
    due: Due,
    ahead: ReadAhead,
    idle: Idle,
    delays: Delays,
    starts: StartLimits,
    turns: Turns,
    rests: Rests,
    calendars: Calendars,
    sorts: Sorts,
    sweeps: Sweeps,
    queues: Queues,
    gates: Gates,
    pens: Pens,
    building: Building,
    /// Runs that a command asked for and that are finished or unknown; gone after that command.
    looked_up: BTreeMap<RunId, Option<Run>>,
    /// Stored users of a calendar that a command asked for; gone after that command.
    users_asked: BTreeMap<CalendarRef, Vec<JobRecord>>,
    /// The last batch taken, and the last one known to be durable.
    taken: u64,
    acknowledged: u64,
}

impl Engine {
    /// Decides what one input means.
    pub fn step(&mut self, now: Now, input: Input) -> Step {
        let now = self.follow_clock(now);
        let step = self.decide(now, input);
        self.advance_stirred(now);
        step
    }

    fn decide(&mut self, now: Now, input: Input) -> Step {
        match input {
            Input::Tick => {
                self.tick(now);
                Step::Done
            }
            Input::Command {
                ticket,
                actor,
                command,
            } => self.command(now, ticket, actor, command),
            Input::Worker { stream, event } => {
                self.worker_event(now, stream, event);
                Step::Done
            }
            Input::Loaded(loaded) => {
                self.loaded(now, loaded);
                Step::Done
            }
            Input::Drains(rows) => {
                self.take_drains(rows);
                Step::Done
            }
            Input::Settings(rows) => {
                self.take_settings(rows);
                Step::Done
            }
            Input::CallerGone(ticket) => {
                self.withdraw_from_locks(now, ticket);
                Step::Done
            }
        }
    }

    /// Closes the batch that was being built: assigns what is ready, then hands over rows and effects.
    ///
    /// Call it only when no commit is in flight. `None` when there is nothing to commit and nothing to tell.
    pub fn take_batch(&mut self, now: Now) -> Option<Batch> {
        let now = self.follow_clock(now);
        self.dispatch(now);
        let due = self.building.needs_commit() || self.idle_too_long(now);
        if !due && self.building.effects.is_empty() {
            return None;
        }
        Some(self.close_batch(now, due))
    }

    /// The commit of batch `seq` is durable.
    pub fn acknowledge(&mut self, seq: u64) {
        assert_eq!(
            seq, self.taken,
            "only the batch in flight can be acknowledged"
        );
        self.acknowledged = seq;
        self.forget_marks();
    }

    /// The last change set of this engine: its segments are anybody's at once, and its session is over.
    ///
    /// Call it when every batch is acknowledged; the engine is of no use after it.
    pub fn leave(self) -> ChangeSet {
        assert_eq!(
            self.taken, self.acknowledged,
            "whoever leaves has nothing in flight"
        );
        ChangeSet {
            session: self.session,
            seq: self.taken + 1,
            // As long as any other commit: it has more rows than most.
            extend_ms: self.options.session_ms,
            segments: self.segments.given_up(),
            // Whoever looks around sees at once that nobody is behind it.
            revoke: vec![self.session],
            ..ChangeSet::default()
        }
    }

    /// Loads that the engine wants by itself, to be answered by [`Input::Loaded`].
    pub fn take_loads(&mut self) -> Vec<LoadRequest> {
        self.loads.take_wanted()
    }

    /// Whether the batch is as large as a commit may be: step nothing more before it is taken.
    pub fn is_full(&self) -> bool {
        self.building.is_full()
    }

    /// The session that it commits under.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// What it owns.
    pub fn owned(&self) -> SegmentSet {
        self.segments.owned()
    }

    /// How a job that is held in memory is called; the jobs of a batch are, until its commit is acknowledged.
    pub fn name_of(&self, job: JobId) -> Option<(&NamespaceName, &JobName)> {
        let row = &self.jobs.get(job)?.row;
        Some((&row.namespace, &row.name))
    }

    /// Whether a job that is held in memory was deleted; runs of such a job may still be under way.
    pub fn is_deleted(&self, job: JobId) -> bool {
        self.jobs.get(job).is_some_and(|job| job.row.deleted)
    }

    fn effect(&mut self, effect: Effect) {
        self.building.effects.push(effect);
    }
}

#[cfg(test)]
mod tests;
