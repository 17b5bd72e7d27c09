//! Which of a job's pending times make runs: a pure function of its schedule, its cursor and the time.
//!
//! Pending are the nominal times above the cursor whose due time has come. They fall into two groups, in order: those of a
//! pause that is over, which obey `on_resume`, and the others, which obey `misfire`. In each group the policy keeps some
//! of the newest; whatever is older makes no run and is told as a range. The newest of the second group is on time within
//! min(60 s, period) and then needs no policy.
//!
//! Every pending time appears in exactly one step, in order, or lies above the new cursor: that is what keeps a due time
//! from being lost or doubled.

use crate::model::{CatchUp, JobId, MisfirePolicy, UnfiredReason, WallMs};
use crate::schedule::Schedule;

use super::jobs::Planned;

/// The longest that a time counts as on time.
const GRACE_MS: i64 = 60_000;
/// Counts of times in a range stop here: nobody reads a larger one, and counting holds everything else up.
pub(super) const COUNT_CAP: u64 = 10_000;

/// What a decision is made of.
pub(super) struct Pending<'a> {
    pub(super) job: JobId,
    pub(super) schedule: &'a Schedule,
    /// The first time above the cursor.
    pub(super) oldest: WallMs,
    /// Times up to here passed while the job was paused.
    pub(super) paused_through: Option<WallMs>,
    pub(super) misfire: CatchUp,
    pub(super) on_resume: CatchUp,
    pub(super) now: WallMs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The time makes a run, if the job's overlap allows it.
    Run(WallMs),
    /// The times from the first to the last make none.
    Unfired {
        first: WallMs,
        last: WallMs,
        count: u64,
        reason: UnfiredReason,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// In the order of time.
    pub(super) fates: Vec<Fate>,
    /// The earliest that the next decision may be made, when runs that catch up are spaced.
    pub(super) wait_until: Option<WallMs>,
}

/// A row of pending times that obey one policy.
struct Group {
    first: WallMs,
    last: WallMs,
    policy: CatchUp,
    reason: UnfiredReason,
    /// Whether the last may be on time, so that it makes a run whatever the policy.
    fresh: bool,
}

impl Pending<'_> {
    /// Nothing when no time is due.
    pub(super) fn decide(&self) -> Decision {
        let mut decision = Decision::default();
        let Some(newest) = self.newest_due() else {
            return decision;
        };
        for group in self.groups(newest) {
            self.decide_group(&group, &mut decision);
            if decision.wait_until.is_some() {
                break;
            }
        }
        decision
    }

    /// The newest time that is due. Every one before it is due as well: none is put off past the next.
    fn newest_due(&self) -> Option<WallMs> {
        let latest = self.schedule.prev_at_or_before(self.now.0)?;
        let latest = if self.due(WallMs(latest)) > self.now {
            self.schedule.prev_at_or_before(latest - 1)?
        } else {
            latest
        };
        Some(WallMs(latest)).filter(|latest| *latest >= self.oldest)
    }

    fn groups(&self, newest: WallMs) -> Vec<Group> {
        let of_pause = self.paused_through.and_then(|through| {
            let last = self.last_until(through.min(newest))?;
            Some(Group {
                first: self.oldest,
                last,
                policy: self.on_resume,
                reason: UnfiredReason::Paused,
                fresh: false,
            })
        });
        let first = match &of_pause {
            Some(pause) => self.schedule.next_after(pause.last.0).map(WallMs),
            None => Some(self.oldest),
        };
        let missed = first.filter(|first| *first <= newest).map(|first| Group {
            first,
            last: newest,
            policy: self.misfire,
            reason: UnfiredReason::Misfire,
            fresh: true,
        });
        of_pause.into_iter().chain(missed).collect()
    }

    fn decide_group(&self, group: &Group, decision: &mut Decision) {
        let kept = self.kept(group);
        let unfired_through = match kept.first() {
            Some(first) if *first == group.first => None,
            Some(first) => self.last_until(first.plus(-1)),
            None => Some(group.last),
        };
        if let Some(last) = unfired_through.filter(|last| *last >= group.first) {
            decision.fates.push(Fate::Unfired {
                first: group.first,
                last,
                count: self
                    .schedule
                    .count_between(group.first.0 - 1, last.0, COUNT_CAP),
                reason: group.reason,
            });
        }
        if group.policy.gap_ms > 0 && kept.len() > 1 {
            decision.fates.push(Fate::Run(kept[0]));
            decision.wait_until = Some(self.now.plus(group.policy.gap_ms));
        } else {
            decision.fates.extend(kept.into_iter().map(Fate::Run));
        }
    }

    /// The times of a group that make runs, oldest first: always the newest ones of it, without holes.
    fn kept(&self, group: &Group) -> Vec<WallMs> {
        let most = match group.policy.policy {
            MisfirePolicy::Skip => 0,
            MisfirePolicy::Latest => 1,
            MisfirePolicy::All => group.policy.max as usize,
        };
        let young = |at: WallMs| self.now.since(self.due(at)) <= group.policy.window_ms;
        let mut kept = Vec::new();
        let mut next = Some(group.last);
        while let Some(at) = next
            && kept.len() < most
            && young(at)
        {
            kept.push(at);
            let more = at > group.first && kept.len() < most;
            next = if more {
                self.last_until(at.plus(-1))
            } else {
                None
            };
        }
        if kept.is_empty() && group.fresh && self.is_on_time(group.last) {
            kept.push(group.last);
        }
        kept.reverse();
        kept
    }

    fn is_on_time(&self, at: WallMs) -> bool {
        let period = self.schedule.period_at(at.0).unwrap_or(GRACE_MS);
        self.now.since(self.due(at)) <= period.min(GRACE_MS)
    }

    fn due(&self, at: WallMs) -> WallMs {
        WallMs(self.schedule.due_of(self.job.0, at.0))
    }

    /// The last pending time at or before `until`.
    fn last_until(&self, until: WallMs) -> Option<WallMs> {
        let last = self.schedule.prev_at_or_before(until.0).map(WallMs)?;
        (last >= self.oldest).then_some(last)
    }
}

/// What becomes of the one pending time of a schedule that counts from the end of the last run.
pub(super) fn decide_after_end(
    (nominal, due): Planned,
    delay_ms: i64,
    misfire: CatchUp,
    now: WallMs,
) -> Fate {
    let late = now.since(due);
    let on_time = late <= delay_ms.min(GRACE_MS);
    let made_up = misfire.policy != MisfirePolicy::Skip && late <= misfire.window_ms;
    if on_time || made_up {
        Fate::Run(nominal)
    } else {
        Fate::Unfired {
            first: nominal,
            last: nominal,
            count: 1,
            reason: UnfiredReason::Misfire,
        }
    }
}
