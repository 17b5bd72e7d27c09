//! Backfills: every fitting time once, never more at once than allowed, the live schedule untouched.

mod holding;
mod making;
mod tending;

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use super::tables::Tables;
use super::world::*;
use crate::backfill::{Newest, Page, Records, times};
use crate::model::*;
use crate::schedule::AnyDay;

/// Few, so that a backfill needs several.
const PAGE: usize = 4;

impl Tables {
    pub(super) fn times(&self, wanted: &TimesWanted) -> Page {
        let version = &self.versions[&(wanted.job, wanted.version)];
        let schedule = version.spec.compiled_schedule(&AnyDay).expect("valid");
        let schedule = schedule.expect("a schedule");
        let interval = (wanted.from, wanted.to);
        let times = times(&schedule, interval, wanted.order, wanted.after, PAGE);
        let mut newest = Newest::default();
        let runs = self.active.values().chain(self.history.values());
        for run in runs.filter(|run| run.job == wanted.job) {
            if let Some(nominal) = run.nominal {
                newest.add(nominal, run.id, run.state);
            }
        }
        let of_job = self.unfired.values().filter(|it| it.job == wanted.job);
        let unfired: Vec<Unfired> = of_job.cloned().collect();
        let records = Records {
            record: &self.record(wanted.job).expect("a job"),
            runs: &newest,
            unfired: &unfired,
            kept_since: WallMs(0),
        };
        Page::of(wanted.which, &times, |at| records.fate(at))
    }

    fn backfilled(&self, id: BackfillId) -> Vec<&Run> {
        let runs = self.active.values().chain(self.history.values());
        let of = |run: &&Run| run.backfill.is_some_and(|mark| mark.backfill == id);
        runs.filter(of).collect()
    }

    /// What holds of every backfill in every snapshot.
    pub(super) fn check_backfills(&self) {
        for (id, row) in &self.backfills {
            let runs = self.backfilled(*id);
            let mut states = BTreeMap::new();
            for run in &runs {
                *states.entry(run.state).or_insert(0_u64) += 1;
            }
            let ended = |state| states.get(&state).copied().unwrap_or(0);
            assert_eq!(row.completed, ended(RunState::Completed), "{row:#?}");
            assert_eq!(row.failed, ended(RunState::Failed), "{row:#?}");
            assert_eq!(row.cancelled, ended(RunState::Cancelled), "{row:#?}");
            assert_eq!(row.made, runs.len() as u64, "{row:#?}");
            let live = runs.iter().filter(|run| !run.state.is_terminal());
            let live: BTreeSet<RunId> = live.map(|run| run.id).collect();
            assert_eq!(row.live.iter().copied().collect::<BTreeSet<_>>(), live);
            assert!(live.len() <= row.max_active as usize, "{row:#?}");
            let times: BTreeSet<_> = runs.iter().map(|run| run.nominal).collect();
            assert_eq!(times.len(), runs.len(), "a time was made twice by {id}");
            let inside = |at: WallMs| (row.from..row.to).contains(&at);
            assert!(runs.iter().all(|run| run.nominal.is_some_and(inside)));
            if row.state == BackfillState::Completed {
                assert_eq!(row.made + row.skipped, row.times, "{row:#?}");
                assert!(row.live.is_empty());
            }
        }
    }
}

/// A backfill of `[from, to)` in seconds after the start.
pub(super) fn seconds(from: i64, to: i64) -> BackfillPlan {
    BackfillPlan::over(WallMs(START + from * 1000), WallMs(START + to * 1000))
}

/// What the edge makes of a wish: the version and its times.
pub(super) fn asked(world: &World, job: &str, plan: BackfillPlan) -> NewBackfill {
    let tables = &world.tables;
    let named = |row: &&JobRow| row.name.as_str() == job && !row.deleted;
    let row = tables.jobs.values().find(named).expect("a job");
    let version = tables.versions[&(row.id, row.version)].clone();
    let schedule = version.spec.compiled_schedule(&AnyDay).expect("valid");
    let count = |schedule: crate::schedule::Schedule| {
        schedule.count_between(plan.from.0 - 1, plan.to.0 - 1, Limits::BACKFILL_TIMES + 1)
    };
    NewBackfill {
        job: job_ref(job),
        times: schedule.map_or(0, count),
        version,
        plan,
        idempotency_key: None,
    }
}

fn row_of(reply: Result<Reply, Refusal>) -> Result<BackfillRow, Refusal> {
    match reply? {
        Reply::Backfill { row, .. } => Ok(*row),
        other => panic!("{other:?}"),
    }
}

fn create(world: &mut World, job: &str, plan: BackfillPlan) -> Result<BackfillRow, Refusal> {
    let backfill = Box::new(asked(world, job, plan));
    row_of(world.command(Command::CreateBackfill { backfill }))
}

fn pause(world: &mut World, backfill: BackfillId) -> Result<BackfillRow, Refusal> {
    row_of(world.command(Tend::Pause.command(backfill)))
}

fn resume(world: &mut World, backfill: BackfillId) -> Result<BackfillRow, Refusal> {
    row_of(world.command(Tend::Resume.command(backfill)))
}

fn cancel(world: &mut World, backfill: BackfillId, runs: bool) -> Result<BackfillRow, Refusal> {
    let tend = if runs { Tend::CancelRuns } else { Tend::Cancel };
    row_of(world.command(tend.command(backfill)))
}

/// A job that fires each second and is paused, a minute after it was made, so that all of the minute is missing.
fn paused_for_a_minute() -> (World, JobId) {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    let (name, condition) = (job_ref("a"), Condition::Any);
    world
        .command(Command::PauseJob {
            job: name,
            condition,
        })
        .expect("paused");
    world.pass(60_000);
    world.commit();
    (world, job)
}

fn nominals(world: &World, id: BackfillId) -> Vec<i64> {
    let mut runs = world.tables.backfilled(id);
    runs.sort_by_key(|run| run.id);
    let at = |run: &&Run| (run.nominal.expect("a time").0 - START) / 1000;
    runs.iter().map(at).collect()
}

/// One worker that succeeds at everything until nothing is left.
fn work_off(world: &mut World) {
    let mut effects = world.worker(7, 1, 50, vec![], 1);
    let mut total = 50;
    loop {
        let assigned = assignments(&effects);
        if assigned.is_empty() {
            return;
        }
        for (stream, attempt) in &assigned {
            world.report(*stream, *attempt, AttemptOutcome::Succeeded);
        }
        total += assigned.len() as u64;
        world.event(1, WorkerEvent::Granted { total });
        effects = world.commit();
    }
}

/// What people do to a backfill.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tend {
    Pause,
    Resume,
    Cancel,
    CancelRuns,
}

impl Tend {
    pub(super) const ALL: [Self; 4] = [Self::Pause, Self::Resume, Self::Cancel, Self::CancelRuns];

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
            Self::Cancel | Self::CancelRuns => Command::CancelBackfill {
                backfill,
                scope,
                condition,
                runs: matches!(self, Self::CancelRuns),
            },
        }
    }
}

/// A backfill over so many seconds up to so many seconds ago; the rest follows from one number.
pub(super) fn drawn(world: &World, job: &str, length: i64, ago: i64, choice: u32) -> Command {
    let to = world.engine.believed(world.now).wall.plus(-ago * 1000);
    let plan = BackfillPlan {
        which: BackfillWhich::ALL[choice as usize % 3],
        order: BackfillOrder::ALL[choice as usize % 2],
        max_active: choice,
        priority: choice,
        overlap: match choice % 4 {
            0 | 1 => Obedience::Ignore,
            _ => Obedience::Obey,
        },
        force: choice.is_multiple_of(5),
        ..BackfillPlan::over(to.plus(-length * 1000), to)
    };
    let backfill = Box::new(asked(world, job, plan));
    Command::CreateBackfill { backfill }
}
