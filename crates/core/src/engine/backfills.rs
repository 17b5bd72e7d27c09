//! Backfills that are not over, or of which runs are under way.
//!
//! Each goes through the times of its interval in pages that are read beside the loop, and makes a run of the next fitting
//! time whenever fewer of its runs are under way than it may have. The end of one of its runs makes the next. What it
//! makes is an ordinary run with a nominal time and the priority of the backfill; the live schedule knows nothing of it:
//! not its cursor, nor its count of fires, nor a schedule that counts from the end of the last run; of its overlap only when
//! the backfill obeys that. Whether the job takes one more run is asked in `hold_backfill.rs`.
//!
//! Invariants:
//! - the cursor, the counts and the runs change in one batch, and the row is compared with what it was;
//! - the row names every run of it that has not ended, and no other;
//! - the job and the pinned version of an open backfill are resident.
//!
//! A pause drops the page: what became of the times meanwhile is read anew when it goes on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::backfill::{Page, Pick};
use crate::fault::{Fault, armed};
use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, BackfillId, BackfillMark, BackfillOrder,
    BackfillRow, BackfillState, JobId, NamespaceName, Now, Origin, Run, Standing, WallMs,
};

use super::deeds::Told;
use super::jobs::Compiled;
use super::marks::Marks;
use super::runs::fresh_run;
use super::{Engine, LoadKey, TimesWanted};

#[derive(Debug)]
pub(super) struct Held {
    pub(super) row: BackfillRow,
    /// The step that the store has once the last batch taken is durable; `None` when the row is new.
    stored: Option<u64>,
    pub(super) compiled: Arc<Compiled>,
    /// Times to make runs of, in order.
    picks: VecDeque<Pick>,
    /// What comes after them.
    rest: Rest,
}

/// What is known of the times after the picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Unread,
    Reading,
    /// Some were passed over; then more times follow, or none.
    Passed {
        passed: u64,
        through: Option<WallMs>,
    },
    /// Every time of the interval is settled.
    Nothing,
}

#[derive(Debug, Default)]
pub(super) struct Backfills {
    pub(super) open: BTreeMap<BackfillId, Held>,
    /// Those of each job.
    by_job: BTreeMap<JobId, BTreeSet<BackfillId>>,
    /// Those that wait until their job takes one more run.
    pub(super) held: BTreeMap<JobId, BTreeSet<BackfillId>>,
    /// Jobs of those that something changed for.
    pub(super) stirred: BTreeSet<JobId>,
    /// Those that are over as they ended, until the store tells the same; `None` when there is no such.
    over: Marks<BackfillId, Option<Box<BackfillRow>>>,
}

impl Backfills {
    pub(super) fn get(&self, id: BackfillId) -> Option<&BackfillRow> {
        self.open.get(&id).map(|held| &held.row)
    }

    /// One that is over; `None` when not known, `Some(None)` when there is no such.
    pub(super) fn over(&self, id: BackfillId) -> Option<Option<&BackfillRow>> {
        self.over.get(&id).map(|(_, row)| row.as_deref())
    }

    /// Takes a loaded answer unless something is known already, which is newer.
    pub(super) fn loaded(&mut self, id: BackfillId, row: Option<BackfillRow>, seq: u64) {
        if !self.open.contains_key(&id) && self.over.get(&id).is_none() {
            self.over.put(id, seq, row.map(Box::new));
        }
    }

    pub(super) fn forget(&mut self, safe: u64) {
        self.over.forget(safe);
    }

    /// How many of a namespace are not over.
    pub(super) fn running(&self, namespace: &NamespaceName) -> usize {
        let rows = self.open.values().map(|held| &held.row);
        let of = rows.filter(|row| row.namespace == *namespace);
        of.filter(|row| !row.state.is_over()).count()
    }

    /// One of the job that is not over and has times of the interval.
    pub(super) fn in_the_way(&self, job: JobId, from: WallMs, to: WallMs) -> Option<BackfillId> {
        let overlapping = |row: &BackfillRow| !row.state.is_over() && row.overlaps(from, to);
        let mut ids = self.of_job(job).into_iter();
        ids.find(|id| self.get(*id).is_some_and(overlapping))
    }

    /// Whether one that is open needs the job in memory.
    pub(super) fn need(&self, job: JobId) -> bool {
        self.by_job.contains_key(&job)
    }

    pub(super) fn of_job(&self, job: JobId) -> Vec<BackfillId> {
        let ids = self.by_job.get(&job).into_iter().flatten();
        ids.copied().collect()
    }

    /// The row as it goes into the batch that is taken, and the step that the store has.
    pub(super) fn written(&mut self, id: BackfillId) -> (Option<u64>, BackfillRow) {
        match self.open.get_mut(&id) {
            Some(held) => {
                let expected = held.stored.replace(held.row.step);
                (expected, held.row.clone())
            }
            None => {
                let row = self.over(id).flatten();
                let row = row.unwrap_or_else(|| panic!("{id} changed and is not here"));
                let before = row.step.checked_sub(1).filter(|step| *step > 0);
                (before, row.clone())
            }
        }
    }
}

impl Engine {
    /// One that was open when the last engine ended. Its job and version are here.
    pub(super) fn revive_backfill(&mut self, now: Now, row: BackfillRow) {
        let (id, stored) = (row.id, Some(row.step));
        self.hold_backfill(row, stored);
        self.advance_backfill(now, id);
    }

    fn hold_backfill(&mut self, row: BackfillRow, stored: Option<u64>) {
        let compiled = self.pinned(row.job, row.job_version);
        let held = Held {
            row,
            stored,
            compiled,
            picks: VecDeque::new(),
            rest: Rest::Unread,
        };
        let (job, id) = (held.row.job, held.row.id);
        self.backfills.by_job.entry(job).or_default().insert(id);
        self.backfills.open.insert(id, held);
    }

    /// One that did not exist.
    pub(super) fn begin_backfill(&mut self, now: Now, row: BackfillRow) {
        let id = row.id;
        self.hold_backfill(row, None);
        self.note_backfill(id);
        self.advance_backfill(now, id);
    }

    /// Its row changed: it goes into the batch, one step further.
    pub(super) fn note_backfill(&mut self, id: BackfillId) {
        if self.building.backfill(id)
            && let Some(held) = self.backfills.open.get_mut(&id)
        {
            held.row.step += 1;
        }
    }

    /// Makes as many runs as it may have at once; asks for more times when there are none; ends it when all is done.
    pub(super) fn advance_backfill(&mut self, now: Now, id: BackfillId) {
        while let Some(held) = self.backfills.open.get_mut(&id) {
            let row = &held.row;
            let full = row.live.len() >= row.max_active as usize;
            if row.state != BackfillState::Running || (full && !armed(Fault::BackfillUnbounded)) {
                break;
            }
            if !held.picks.is_empty() {
                let Some(standing) = self.next_standing(now, id) else {
                    break;
                };
                self.make_picked(now, id, standing);
                continue;
            }
            match held.rest {
                Rest::Reading => break,
                Rest::Unread => {
                    held.rest = Rest::Reading;
                    let wanted = wanted(&held.row);
                    self.want(LoadKey::Times(wanted));
                    break;
                }
                Rest::Passed { passed, through } => {
                    held.row.skipped += passed;
                    held.row.cursor = Some(through.unwrap_or(end_of(&held.row)));
                    held.rest = through.map_or(Rest::Nothing, |_| Rest::Unread);
                    self.note_backfill(id);
                }
                Rest::Nothing if held.row.live.is_empty() => {
                    self.end_backfill(now, id, BackfillState::Completed);
                    break;
                }
                Rest::Nothing => break,
            }
        }
        self.let_backfill_go(id);
    }

    fn make_picked(&mut self, now: Now, id: BackfillId, standing: Standing) {
        let Some(held) = self.backfills.open.get_mut(&id) else {
            return;
        };
        let Some(pick) = held.picks.pop_front() else {
            return;
        };
        let compiled = Arc::clone(&held.compiled);
        let row = &mut held.row;
        let run_id = self.segments.run_id(row.job.segment(), now.wall);
        let job = self.jobs.expect_mut(row.job);
        let run = Run {
            nominal: Some(pick.at),
            job_version: row.job_version,
            retention: compiled.version.spec.retention(),
            params: row.params.clone(),
            backfill: Some(BackfillMark {
                backfill: id,
                priority: row.priority,
            }),
            standing,
            ..fresh_run(run_id, job, Origin::Backfill, row.actor.clone(), now)
        };
        let job_id = row.job;
        row.made += 1;
        row.skipped += pick.passed;
        row.cursor = Some(pick.at);
        row.live.push(run_id);
        if armed(Fault::BackfillMovesCursor)
            && let Some(next) = job.schedule.next_nominal
        {
            job.schedule.fired_through = next;
            self.plan_next(job_id);
            self.arm_job(job_id);
        }
        if !armed(Fault::BackfillNotWritten) {
            self.note_backfill(id);
        }
        self.create_run(run, &compiled);
        self.note_probe(now, job_id, run_id, now.wall);
    }

    /// A page of times has come.
    pub(super) fn take_times(&mut self, now: Now, wanted: &TimesWanted, page: Page) {
        let Some(held) = self.backfills.open.get_mut(&wanted.backfill) else {
            return;
        };
        // One that was paused since asks anew when it goes on.
        if held.rest == Rest::Reading && held.row.cursor == wanted.after {
            held.picks = page.picks.into();
            held.rest = Rest::Passed {
                passed: page.passed,
                through: page.through,
            };
            self.advance_backfill(now, wanted.backfill);
        }
    }

    /// A run that it made has ended.
    pub(super) fn backfilled_run_ended(&mut self, now: Now, run: &Run, mark: BackfillMark) {
        let id = mark.backfill;
        let Some(held) = self.backfills.open.get_mut(&id) else {
            panic!("{} ended and {id} is not here", run.id);
        };
        held.row.count_end(run.id, run.state);
        self.note_backfill(id);
        self.advance_backfill(now, id);
    }

    /// It makes no more runs; those under way are left to themselves.
    pub(super) fn end_backfill(&mut self, now: Now, id: BackfillId, state: BackfillState) {
        self.release_backfill(id);
        if let Some(held) = self.backfills.open.get_mut(&id) {
            held.row.state = state;
            held.row.ended = Some(now.wall);
            held.drop_page();
            self.note_backfill(id);
            self.let_backfill_go(id);
        }
    }

    /// One that is over leaves memory with its last run.
    fn let_backfill_go(&mut self, id: BackfillId) {
        if self.backfills.get(id).is_none_or(BackfillRow::is_open) {
            return;
        }
        let seq = self.building_seq();
        if let Some(held) = self.backfills.open.remove(&id) {
            let job = held.row.job;
            if let Some(ids) = self.backfills.by_job.get_mut(&job) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.backfills.by_job.remove(&job);
                }
            }
            self.backfills.over.put(id, seq, Some(Box::new(held.row)));
            self.consider(job);
        }
    }

    /// Ends the backfills of a job that is deleted.
    pub(super) fn end_backfills_of(&mut self, now: Now, actor: &Actor, job: JobId) {
        for id in self.backfills.of_job(job) {
            let over = |row: &BackfillRow| row.state.is_over();
            if !self.backfills.get(id).is_none_or(over) {
                self.touch_backfill(now, actor, id, AuditAction::Cancelled);
                self.end_backfill(now, id, BackfillState::Cancelled);
            }
        }
    }

    /// Stops or goes on making runs; what was read of the times is read anew.
    pub(super) fn set_backfill_state(&mut self, now: Now, id: BackfillId, state: BackfillState) {
        self.release_backfill(id);
        if let Some(held) = self.backfills.open.get_mut(&id) {
            held.row.state = state;
            held.drop_page();
            self.note_backfill(id);
            self.advance_backfill(now, id);
        }
    }

    /// Notes a deed of `actor` in the row and in the audit log.
    pub(super) fn touch_backfill(
        &mut self,
        now: Now,
        actor: &Actor,
        id: BackfillId,
        action: AuditAction,
    ) {
        let Some(held) = self.backfills.open.get_mut(&id) else {
            return;
        };
        held.row.revision += 1;
        let revision = held.row.revision;
        let object = AuditObject {
            kind: AuditKind::Backfill,
            namespace: Some(held.row.namespace.clone()),
            name: id.to_string(),
        };
        let told = Told {
            version: Some(revision),
            changes: Vec::new(),
        };
        self.note_backfill(id);
        self.record_deed(now, actor, id.segment(), action, object, told);
    }
}

impl Held {
    fn drop_page(&mut self) {
        self.picks.clear();
        self.rest = Rest::Unread;
    }
}

fn wanted(row: &BackfillRow) -> TimesWanted {
    TimesWanted {
        backfill: row.id,
        job: row.job,
        version: row.job_version,
        from: row.from,
        to: row.to,
        which: row.which,
        order: row.order,
        after: row.cursor,
    }
}

/// Where the cursor stands when there are no more times.
fn end_of(row: &BackfillRow) -> WallMs {
    match row.order {
        BackfillOrder::OldestFirst => row.to,
        BackfillOrder::NewestFirst => row.from,
    }
}
