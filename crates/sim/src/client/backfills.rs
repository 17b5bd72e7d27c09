//! Backfills as users make and tend them.

use drumtower_core::backfill::times;
use drumtower_core::engine::{Command, Condition, JobRef, NewBackfill};
use drumtower_core::model::{
    BackfillId, BackfillOrder, BackfillPlan, BackfillRow, BackfillState, BackfillWhich, JobRecord,
    Obedience,
};
use drumtower_server::history::schedule_of;
use drumtower_store::{BackfillFilter, Read};

use super::{Deed, Tend, obedience};
use crate::world::World;

/// Times that one of them goes through at most: after the calm has come, it must end.
const MOST_TIMES: u64 = 12;

impl Tend {
    pub(super) fn command(self, backfill: BackfillId) -> Command {
        let (scope, condition) = (None, Condition::Any);
        match self {
            Self::Pause => Command::PauseBackfill {
                backfill,
                scope,
                condition,
            },
            Self::Resume => Command::ResumeBackfill {
                backfill,
                scope,
                condition,
            },
            Self::Cancel { runs } => Command::CancelBackfill {
                backfill,
                scope,
                condition,
                runs,
            },
        }
    }
}

impl World {
    /// A backfill of the newest times of a job, up to a while ago.
    pub(super) fn backfill(&mut self, client: usize, job: JobRecord) -> Option<Deed> {
        let now = self.servers[0].clock.now(self.at).wall;
        let schedule = schedule_of(&self.reader, &job.version).ok()??;
        if schedule.after_end_ms().is_some() {
            return None;
        }
        let user = &mut self.clients[client];
        let random = &mut user.random;
        let to = now.plus(-(random.skewed(1_000, 3_600_000) as i64));
        let most = random.between(1, MOST_TIMES) as usize;
        let whole = (to.plus(-30 * 86_400_000), to);
        let newest = times(&schedule, whole, BackfillOrder::NewestFirst, None, most);
        let (from, _) = newest.bounds()?;
        let plan = BackfillPlan {
            which: *random.pick(&BackfillWhich::ALL),
            order: *random.pick(&BackfillOrder::ALL),
            max_active: random.between(1, 4) as u32,
            priority: random.below(3) as u32,
            overlap: obedience(random),
            force: random.chance(150),
            ..BackfillPlan::over(from, to)
        };
        user.keys += 1;
        let key = format!("c{client}-b{}", user.keys);
        Some(Deed::Backfill(Box::new(NewBackfill {
            job: JobRef {
                namespace: job.row.namespace,
                name: job.row.name,
            },
            version: job.version,
            plan,
            times: newest.times.len() as u64,
            idempotency_key: user.random.chance(700).then_some(key),
        })))
    }

    pub(super) fn tend(&mut self, client: usize) -> Option<Deed> {
        let rows = self.reader.backfills(&BackfillFilter::default(), None, 5);
        let rows = rows.ok().filter(|rows| !rows.is_empty())?;
        let random = &mut self.clients[client].random;
        let row = random.pick(&rows).clone();
        let tend = match random.below(10) {
            0..4 => Tend::Pause,
            4..8 => Tend::Resume,
            8 => Tend::Cancel { runs: false },
            _ => Tend::Cancel { runs: true },
        };
        Some(Deed::Tend(row.id, tend))
    }

    fn running_backfills(&self) -> Vec<BackfillRow> {
        let filter = BackfillFilter {
            states: vec![BackfillState::Running],
            ..BackfillFilter::default()
        };
        let rows = self.reader.backfills(&filter, None, usize::MAX);
        rows.unwrap_or_default()
    }

    /// Those that have no run under way although they may make some: they must go on, or end.
    pub(crate) fn idle_backfills(&self) -> Vec<BackfillId> {
        let rows = self.running_backfills().into_iter();
        let idle = rows.filter(|row| row.live.is_empty() && !self.waits_for_later(row));
        idle.map(|row| row.id).collect()
    }

    /// Whether it obeys the overlap of its job, and runs that are to start later have every place. A clock that was ahead
    /// may have put them off for hours.
    fn waits_for_later(&self, row: &BackfillRow) -> bool {
        let version = self.reader.job_version(row.job, row.job_version);
        let spec = version.ok().flatten().map(|version| version.spec);
        let (Some(spec), Some(overlap)) = (spec, self.overlap_of(row.job)) else {
            return false;
        };
        let params = row.params.as_ref().or(spec.params.as_ref());
        let pinned = spec.overlap.parsed("overlap").ok();
        let key = pinned.and_then(|pinned| pinned.key_in(params));
        let full = || self.is_full_of_later(row.job, key.as_deref(), &overlap);
        row.overlap == Obedience::Obey && full()
    }

    /// Times that those that make runs may still make some of, one after the other where their job lets them.
    pub(crate) fn times_left(&self) -> u64 {
        let rows = self.running_backfills().into_iter();
        rows.map(|row| row.times - row.made - row.skipped).sum()
    }

    /// Those whose runs nobody can run would make one after the other of them.
    pub(super) fn cancel_hopeless_backfills(&mut self) {
        for row in self.running_backfills() {
            let version = self.reader.job_version(row.job, row.job_version);
            let needed = version.ok().flatten().map(|it| it.spec.requirement());
            if !needed.is_some_and(|needed| self.somebody_serves(&needed)) {
                let tend = Tend::Cancel { runs: true };
                self.call(0, Deed::Tend(row.id, tend), 0);
            }
        }
    }
}
