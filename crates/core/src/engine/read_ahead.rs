//! Reading jobs into memory before they are due.
//!
//! One cursor moves through the stored order (next_due, id). Every job up to it is resident, and stays so until it has
//! fired and is due beyond what is covered; so what lies behind the cursor is never read again. It moves to the end of
//! the window in pages. When more jobs are due within the window than memory should hold, it stops early and goes on as
//! they fire and leave.

use crate::model::{JobId, JobRecord, MonoMs, Now, WallMs};
use crate::wheel;

use super::time::Timer;
use super::{Engine, LOAD_ROWS, LoadKey};

/// How soon a pass that was cut short goes on, at least.
const PASS_PAUSE_MS: u64 = 20;

#[derive(Debug)]
pub(super) struct ReadAhead {
    /// Every job before this place in the order is resident.
    cursor: Option<(WallMs, JobId)>,
    /// Every job due before this is resident.
    horizon: WallMs,
    /// Where the pass under way is going.
    target: Option<WallMs>,
    read: usize,
    /// When it goes on.
    timed: Option<(MonoMs, wheel::Key)>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self {
            cursor: None,
            horizon: WallMs(i64::MIN),
            target: None,
            read: 0,
            timed: None,
        }
    }
}

impl ReadAhead {
    /// Whether a job in this place of the order is still to be read; if not it must stay until it has fired.
    pub(super) fn will_read(&self, due: WallMs, id: JobId) -> bool {
        self.target.is_none_or(|target| due >= target)
            && self.cursor.is_none_or(|cursor| (due, id) > cursor)
    }
}

impl Engine {
    pub(super) fn read_ahead(&mut self, now: Now) {
        self.open_minutes(now);
        if self.ahead.target.is_some() {
            return;
        }
        let before = now.wall.plus(self.options.window_ms);
        if before <= self.ahead.horizon {
            // The wall clock went back.
            self.read_ahead_at(now, self.ahead.horizon);
            return;
        }
        self.ahead.target = Some(before);
        self.ahead.read = 0;
        self.want(LoadKey::Due {
            before,
            after: self.ahead.cursor,
        });
    }

    pub(super) fn take_due(&mut self, now: Now, before: WallMs, jobs: Vec<JobRecord>) {
        let last = jobs
            .last()
            .and_then(|record| Some((record.schedule.next_due?, record.row.id)));
        let all = jobs.len() < LOAD_ROWS;
        self.ahead.read += jobs.len();
        for record in jobs {
            self.adopt_job(record);
        }
        match last {
            Some(last) if !all => {
                self.ahead.cursor = Some(last);
                self.ahead.horizon = last.0;
                if self.ahead.read < self.options.read_ahead_jobs {
                    self.want(LoadKey::Due {
                        before,
                        after: Some(last),
                    });
                } else {
                    self.ahead.target = None;
                    self.read_ahead_at(now, last.0);
                }
            }
            _ => {
                self.ahead.cursor = Some((before.plus(-1), JobId(u64::MAX)));
                self.ahead.horizon = before;
                self.ahead.target = None;
                self.read_ahead_at(now, before);
            }
        }
    }

    /// Goes on when half of the time to the horizon has passed. A timer that comes later than that, set while the wall clock
    /// was behind, gives way.
    fn read_ahead_at(&mut self, now: Now, horizon: WallMs) {
        let half = u64::try_from(horizon.since(now.wall) / 2).unwrap_or(0);
        let at = now.mono.plus(half.max(PASS_PAUSE_MS));
        if let Some((before, timer)) = self.ahead.timed {
            if before <= at {
                return;
            }
            self.wheel.cancel(timer);
        }
        let timer = self.wheel.insert(at.0, Timer::ReadAhead);
        self.ahead.timed = Some((at, timer));
    }

    pub(super) fn read_ahead_due(&mut self, now: Now) {
        self.ahead.timed = None;
        let most = self.options.read_ahead_jobs;
        if self.due.len() > most || self.jobs.len() >= 2 * most && self.ahead.horizon > now.wall {
            self.read_ahead_at(now, self.ahead.horizon);
        } else {
            self.read_ahead(now);
        }
    }

    /// After the wall clock went forward: what is covered may not be enough any more.
    pub(super) fn read_ahead_if_short(&mut self, now: Now) {
        if now.wall.plus(self.options.window_ms / 2) > self.ahead.horizon {
            self.read_ahead(now);
        } else {
            self.read_ahead_at(now, self.ahead.horizon);
        }
    }
}
