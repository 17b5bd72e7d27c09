//! How an engine comes to life: take the segments, then read them, then serve.
//!
//! A take-over is an ordinary commit of the taker's own session: it revokes the sessions that had the segments and raises
//! every epoch. Only after that commit is known are the segments read. Attempts that the store knows as leased are left
//! alone for a whole term plus margin from then on, unless their worker dials in and names what it holds.

use std::collections::BTreeMap;

use crate::change::ChangeSet;
use crate::fault::{Fault, armed};
use crate::lease::Terms;
use crate::model::{
    BackfillRow, CalendarVersion, Counters, DrainRow, Ending, Epoch, GateKey, JobRecord,
    JobVersion, LockRow, MonoMs, NamespaceName, Now, QueueRow, RateRow, Run, RunState, SegmentId,
    SegmentRow, SegmentSet, SessionId, SettingRow, SweepCause, SweepRow, TokenRow, WallMs,
};
use crate::wheel::Wheel;

use super::backfills::Backfills;
use super::batch::Building;
use super::calendars::Calendars;
use super::delays::{Delays, minute_of_key};
use super::drains::Drains;
use super::endings::Endings;
use super::enter_line::Enter;
use super::evict::Idle;
use super::fleet::{Fleet, Held};
use super::gates::Gates;
use super::health::Health;
use super::jobs::Jobs;
use super::keys::Keys;
use super::letters::Letters;
use super::lines::Lines;
use super::load::Loads;
use super::locks::Locks;
use super::pens::Pens;
use super::queues::Queues;
use super::read_ahead::ReadAhead;
use super::rests::Rests;
use super::runs::Runs;
use super::segments::Segments;
use super::sort_lots::Sorts;
use super::start_limits::StartLimits;
use super::sweeps::Sweeps;
use super::time::{Due, Starting};
use super::turns::{TurnRef, Turns};
use super::worker::Reports;
use super::{Effect, Engine, Options};

/// What an engine begins with, read after its take-over is known to be durable.
#[derive(Debug, Default)]
pub struct Boot {
    pub session: SessionId,
    /// The number of the take-over commit.
    pub seq: u64,
    pub segments: Vec<SegmentRow>,
    pub counters: Vec<((SegmentId, NamespaceName), Counters)>,
    pub tokens: Vec<TokenRow>,
    pub settings: Vec<SettingRow>,
    /// Every queue that was ever defined.
    pub queues: Vec<QueueRow>,
    /// How far rates have been used.
    pub rates: Vec<(GateKey, RateRow)>,
    /// Every lock that is held.
    pub locks: Vec<LockRow>,
    /// The longest lease that a session before this one may have granted; workers go on by it whatever is granted now.
    pub lease_ms: u64,
    /// Segments that belong together.
    pub ties: SegmentSet,
    /// Every drain that is in force.
    pub drains: Vec<DrainRow>,
    /// Every backfill that is open.
    pub backfills: Vec<BackfillRow>,
    /// The first [`ENDING_ROWS`](super::ENDING_ROWS) ends that followers have to be told of.
    pub endings: Vec<Ending>,
    /// The jobs of the active runs and the open backfills, deleted ones too.
    pub jobs: Vec<JobRecord>,
    /// Versions that they are pinned to and that are not current.
    pub versions: Vec<JobVersion>,
    /// Every run that has not ended and is not parked.
    pub active: Vec<Run>,
    /// Keys that runs are parked under.
    pub parked_keys: Vec<String>,
    /// The first time by which a parked run must start.
    pub first_start_by: Option<WallMs>,
    /// Every version of every calendar that is kept, in order.
    pub calendars: Vec<CalendarVersion>,
    pub sweeps: Vec<SweepRow>,
    /// Wall minus monotonic time as the engine before this one believed it, in the same process.
    pub believed_offset: Option<i64>,
    /// The version of this program's time-zone data, when the stored due times were computed with another.
    pub new_time_zones: Option<String>,
}

/// The change set by which `session`, as its commit `seq`, takes all `segments` from `revoke`.
pub fn take_over(
    session: SessionId,
    seq: u64,
    extend_ms: i64,
    revoke: Vec<SessionId>,
    segments: Vec<SegmentRow>,
) -> ChangeSet {
    let raise = |row: SegmentRow| {
        (
            row.id,
            SegmentRow {
                owner: session,
                epoch: Epoch(row.epoch.0 + 1),
                ..row
            },
        )
    };
    let segments: BTreeMap<SegmentId, SegmentRow> = segments.into_iter().map(raise).collect();
    ChangeSet {
        session,
        seq,
        extend_ms,
        revoke,
        segments,
        ..ChangeSet::default()
    }
}

impl Engine {
    /// An engine over what the store holds. Its first wish is to read the jobs that are due.
    pub fn boot(options: Options, now: Now, boot: Boot) -> Self {
        Self::boot_with(options, now, boot, Fleet::default(), Health::default())
    }

    pub(super) fn boot_with(
        options: Options,
        now: Now,
        boot: Boot,
        fleet: Fleet,
        health: Health,
    ) -> Self {
        let lines = Lines::new(options.ready_window, options.ready_total);
        let mut engine = Self {
            options,
            session: boot.session,
            segments: Segments::new(boot.segments, boot.ties),
            jobs: Jobs::default(),
            runs: Runs::default(),
            lines,
            fleet,
            health,
            drains: Drains::default(),
            keys: Keys::default(),
            locks: Locks::default(),
            letters: Letters::default(),
            backfills: Backfills::default(),
            endings: Endings::new(boot.endings, boot.seq),
            loads: Loads::default(),
            tokens: boot
                .tokens
                .into_iter()
                .map(|token| (token.id, token))
                .collect(),
            settings: boot
                .settings
                .into_iter()
                .map(|row| (row.key.clone(), row))
                .collect(),
            counters: boot.counters.into_iter().collect(),
            wheel: Wheel::new(now.mono.0),
            starting: Starting::default(),
            reports: Reports::default(),
            offset: boot.believed_offset.unwrap_or_else(|| now.offset()),
            booted: now,
            now,
            hold: None,
            due: Due::default(),
            ahead: ReadAhead::default(),
            idle: Idle::default(),
            delays: Delays::default(),
            starts: StartLimits::default(),
            turns: Turns::default(),
            rests: Rests::default(),
            calendars: Calendars::default(),
            sorts: Sorts::default(),
            sweeps: Sweeps::default(),
            queues: Queues::default(),
            gates: Gates::default(),
            pens: Pens::default(),
            building: Building::default(),
            looked_up: BTreeMap::new(),
            users_asked: BTreeMap::new(),
            taken: boot.seq,
            acknowledged: boot.seq,
        };
        let now = engine.follow_clock(now);
        engine.booted = now;
        for (calendar, fault) in engine.calendars.load(boot.calendars) {
            let text = format!(
                "the stored calendar `{}` of namespace `{}` is not valid any more and holds no day: {fault}; apply it anew",
                calendar.name, calendar.namespace
            );
            engine.effect(Effect::Alarm { text });
        }
        engine.sweeps.load(boot.sweeps);
        let is_shared = engine.options.idle_commit_ms.is_some();
        if is_shared {
            engine.sweeps.begin_anew(now.wall);
        }
        for row in boot.queues {
            engine.queues.put(row);
        }
        let home = engine.segments.owned().contains(SegmentId::HOME);
        for (key, row) in boot.rates {
            if key.job().map_or(home, |job| engine.owns(job.segment())) {
                engine.revive_rate(now, &key, row);
            }
        }
        for record in boot.jobs {
            engine.adopt_job(record);
        }
        for version in boot.versions {
            engine.adopt_version(version);
        }
        for row in boot.drains {
            engine.revive_drain(row);
        }
        for run in boot.active {
            engine.revive(now, run, boot.lease_ms);
        }
        for row in boot.backfills {
            engine.revive_backfill(now, row);
        }
        for row in boot.locks {
            engine.revive_lock(now, row);
        }
        for key in boot.parked_keys {
            match (minute_of_key(&key), TurnRef::from_park_key(&key)) {
                (Some(minute), _) => engine.minute_parked(minute),
                (None, Some(queue)) => engine.queue_found(queue),
                (None, None) if key.starts_with('@') => engine.lot_known(&key),
                (None, None) => engine.line_with_parked(&key),
            }
        }
        engine.revive_starts(boot.first_start_by);
        engine.committed_at(now);
        engine.read_ahead(now);
        if let Some(version) = boot.new_time_zones {
            // Written by one for all: the others go by it only after they have swept what they own.
            if engine.owns(SegmentId::HOME) {
                engine.building.tz_version(version.clone());
            }
            engine.begin_sweep(now, SweepCause::TimeZones, version);
        }
        engine.next_page(now);
        engine
    }

    /// A run that was ready or leased when the last engine ended.
    fn revive(&mut self, now: Now, run: Run, lease_ms: u64) {
        let id = run.id;
        let compiled = self.pinned(run.job, run.job_version);
        let leased = run.current_attempt().map(|attempt| {
            (
                attempt.worker.clone(),
                attempt.process,
                attempt.number,
                attempt.fence,
            )
        });
        let state = run.state;
        let ready = run.ready();
        self.hold_run(run, compiled);
        match (state, leased) {
            (RunState::Pending, None) if ready > now.wall => self.arm_run(id, ready),
            (RunState::Pending, None) => self.enter_line(id, Enter::Kept),
            (RunState::Scheduled | RunState::Running, Some((worker, process, attempt, fence))) => {
                self.expect_worker(now, &worker, process);
                let arrives_by = self.may_run_until(now, lease_ms);
                let attempts = &mut self.fleet.expect_mut(process).attempts;
                attempts.entry(id).or_insert(Held {
                    attempt,
                    fence,
                    sent: None,
                    arrives_by,
                });
                self.join_pen_of(id);
                self.hold_places(id);
            }
            (state, _) => panic!(
                "{id} is {} in the active table with an attempt that does not fit",
                state.as_str()
            ),
        }
    }

    /// Until when an attempt of an engine before this one may run, or come to its worker, whatever this one grants.
    fn may_run_until(&self, now: Now, lease_ms: u64) -> MonoMs {
        let own = &self.options.terms;
        let is_longer = lease_ms > own.lease_ms && !armed(Fault::OldTermForgotten);
        let granted = Terms {
            lease_ms: if is_longer { lease_ms } else { own.lease_ms },
            ..*own
        };
        // Nobody else gave it out where one server is all there is: from now on its worker is heard of, or not, here.
        match self.options.idle_commit_ms {
            None if !is_longer => now.mono,
            _ => granted.over_at(now.mono),
        }
    }
}
