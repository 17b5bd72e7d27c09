//! Going through an interval from one thing to the next: a range, a run, something taken away, or a stretch of times that
//! nothing is recorded of.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::slice::Iter;

use crate::model::{MisfirePolicy, Unfired, UnfiredReason, WallMs};
use crate::schedule::Excluded;

use super::reigns::Reign;
use super::{Answer, COUNT_CAP, Fate, ROWS, Row, RunFact, Runs, Timeline, Unmade, WALKED};

pub(super) struct Walk<'a> {
    timeline: &'a Timeline<'a>,
    runs: &'a Runs,
    /// Every time up to here is told.
    cursor: WallMs,
    /// The last instant that this answer tells of.
    last: WallMs,
    /// Whether the interval goes on after it.
    cut: bool,
    ranges: Peekable<Iter<'a, Unfired>>,
    excluded: VecDeque<Excluded>,
    rows: Vec<Row>,
    most: usize,
    walked_left: u64,
}

enum Event<'a> {
    Range(&'a Unfired),
    Run(WallMs, RunFact),
    Excluded(Excluded),
    /// A time without any record, and the last instant before the next other event.
    Times(WallMs, WallMs),
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        timeline: &'a Timeline<'a>,
        from: WallMs,
        to: WallMs,
        runs: &'a Runs,
        most: usize,
    ) -> Self {
        let (cursor, last) = (from.plus(-1), to.plus(-1));
        let excluded = timeline.excluded(cursor, last);
        // Those that follow are looked up by the next answer.
        let cut = excluded.len() >= ROWS;
        let last = match excluded.last() {
            Some(end) if cut => last.min(WallMs(end.first).plus(-1)),
            _ => last,
        };
        Self {
            timeline,
            runs,
            cursor,
            last,
            cut,
            ranges: timeline.history.unfired.iter().peekable(),
            excluded: excluded.into(),
            rows: Vec::new(),
            most,
            walked_left: WALKED,
        }
    }

    pub(super) fn answer(mut self) -> Answer {
        while !self.is_full() {
            let Some(event) = self.next_event() else {
                self.cursor = self.last;
                break;
            };
            match event {
                Event::Range(range) => self.tell_range(range),
                Event::Run(at, fact) => self.tell_run(at, fact),
                Event::Excluded(excluded) => self.tell_excluded(excluded),
                Event::Times(first, end) => self.tell_times(first, end),
            }
        }
        let next = Some(self.cursor.plus(1)).filter(|next| self.cut || *next <= self.last);
        if let Some(next) = next {
            self.end_before(next);
        }
        Answer {
            rows: self.rows,
            next,
        }
    }

    /// Whether the answer may end here. It may not between exclusions that begin together: the next would not see them.
    fn is_full(&self) -> bool {
        (self.rows.len() >= self.most || self.walked_left == 0) && !self.excluded_now()
    }

    fn excluded_now(&self) -> bool {
        let front = self.excluded.front();
        front.is_some_and(|excluded| WallMs(excluded.first) <= self.cursor)
    }

    /// Leaves to the next answer what exclusions take away from there on.
    fn end_before(&mut self, next: WallMs) {
        for row in self.rows.iter_mut().filter(|row| row.last >= next) {
            let Fate::Excluded(told) = &row.fate else {
                continue;
            };
            let mut parts = self.timeline.excluded(row.first.plus(-1), next.plus(-1));
            parts.retain(|part| part.entry == told.entry && part.first == told.first);
            if let Some(part) = parts.pop() {
                (row.last, row.count) = (WallMs(part.last), part.count);
                row.fate = Fate::Excluded(Box::new(part));
            }
        }
    }

    fn next_event(&mut self) -> Option<Event<'a>> {
        if self.excluded_now() {
            return self.excluded.pop_front().map(Event::Excluded);
        }
        if self.cursor >= self.last {
            return None;
        }
        let cursor = self.cursor;
        while self.ranges.next_if(|range| range.last <= cursor).is_some() {}
        let range = self.ranges.peek().copied();
        let range_at = range.map(|range| range.first.max(cursor.plus(1)));
        let mut runs = self.runs.range(cursor.plus(1)..);
        let run = runs.next().map(|(at, fact)| (*at, *fact));
        let excluded_at = self.excluded.front().map(|excluded| WallMs(excluded.first));
        let time = self.timeline.next_after(cursor);
        let inside = |at: &WallMs| *at <= self.last;

        let recorded = [range_at, run.map(|(at, _)| at)]
            .into_iter()
            .flatten()
            .min();
        let other = [recorded, excluded_at].into_iter().flatten().min();
        // What is recorded of a time wins over the time itself, and the time over an exclusion that coincides.
        let time_first = time.filter(|time| {
            recorded.is_none_or(|at| *time < at) && excluded_at.is_none_or(|at| *time <= at)
        });
        if let Some(first) = time_first {
            let end = other.map_or(self.last, |other| other.plus(-1).max(first));
            return Some(Event::Times(first, end.min(self.last))).filter(|_| inside(&first));
        }
        let at = other.filter(inside)?;
        if range_at == Some(at) {
            return range.map(Event::Range);
        }
        match run {
            Some((nominal, fact)) if nominal == at => Some(Event::Run(nominal, fact)),
            _ => self.excluded.pop_front().map(Event::Excluded),
        }
    }

    fn tell_run(&mut self, at: WallMs, fact: RunFact) {
        self.push(Row {
            first: at,
            last: at,
            count: 1,
            due: Some(fact.due).filter(|due| *due != at),
            version: fact.version,
            fate: Fate::Run(fact),
        });
        self.cursor = at;
    }

    fn tell_excluded(&mut self, excluded: Excluded) {
        let first = WallMs(excluded.first);
        let version = self.timeline.reign_at(first);
        self.push(Row {
            first,
            last: WallMs(excluded.last),
            count: excluded.count,
            due: None,
            version: version.map_or(0, |reign| reign.version.version),
            fate: Fate::Excluded(Box::new(excluded)),
        });
        self.cursor = self.cursor.max(first);
    }

    /// A range is stepped over. The part of it that lies in the interval is told.
    fn tell_range(&mut self, range: &Unfired) {
        let (first, last) = self.clipped(range);
        let whole = (first, last) == (range.first, range.last);
        self.cursor = range.last.min(self.last);
        let passed = self.cursor;
        while self
            .excluded
            .pop_front_if(|excluded| WallMs(excluded.first) <= passed)
            .is_some()
        {}
        if first > last {
            return;
        }
        let count = if whole {
            range.count
        } else {
            self.timeline.count(first.plus(-1), last, COUNT_CAP).max(1)
        };
        let fate = Fate::Unfired(self.unmade(range));
        self.push(Row {
            first,
            last,
            count,
            due: None,
            version: range.version,
            fate,
        });
    }

    /// The first and the last time of a range that lie in the interval; crossed when none does.
    fn clipped(&self, range: &Unfired) -> (WallMs, WallMs) {
        let first = if range.first > self.cursor {
            range.first
        } else {
            let next = self.timeline.next_after(self.cursor);
            next.unwrap_or(range.last).min(range.last)
        };
        let last = if range.last <= self.last {
            range.last
        } else {
            let last = self.timeline.last_until(self.last);
            last.unwrap_or(range.first).max(range.first)
        };
        (first, last)
    }

    fn unmade(&self, range: &Unfired) -> Unmade {
        match range.reason {
            UnfiredReason::Overlap => Unmade::Overlap,
            UnfiredReason::QueueFull => Unmade::QueueFull,
            UnfiredReason::Breaker => Unmade::Breaker,
            UnfiredReason::Paused => Unmade::Paused,
            UnfiredReason::Edited => Unmade::Edited,
            UnfiredReason::Misfire => self.missed(range),
        }
    }

    /// Whether the time after a missed range was decided together with it: it was late itself, or it was so close that the
    /// last of the range would have made the run otherwise.
    fn missed(&self, range: &Unfired) -> Unmade {
        let Some(reign) = self.timeline.reign_at(range.last) else {
            return Unmade::Missed;
        };
        let misfire = reign.misfire();
        if misfire.policy == MisfirePolicy::Skip {
            return Unmade::MissedAndSkipped;
        }
        let next = self.timeline.next_after(range.last);
        let Some(run) = next.and_then(|next| self.runs.get(&next)) else {
            return Unmade::Missed;
        };
        let late = run.created.since(run.due) > super::reigns::GRACE_MS;
        let close = run.due.since(reign.due_of(range.last)) <= misfire.window_ms;
        if misfire.policy == MisfirePolicy::Latest && (late || close) {
            Unmade::MissedButNewest {
                of: range.count.saturating_add(1),
            }
        } else {
            Unmade::Missed
        }
    }

    /// Times from `first` on, at most to `end`, that nothing is recorded of: as far as they have one fate.
    fn tell_times(&mut self, first: WallMs, end: WallMs) {
        let Some(reign) = self.timeline.reign_at(first) else {
            self.cursor = first;
            return;
        };
        let (fate, until) = self.fate_of(reign, first);
        let end = end.min(until).min(reign.through);
        let last = reign.last_until(end).unwrap_or(first).max(first);
        let cap = COUNT_CAP.min(self.walked_left.max(1));
        let count = reign.count(first.plus(-1), last, cap).max(1);
        let due = reign.due_of(first);
        self.walked_left = self.walked_left.saturating_sub(count);
        self.push(Row {
            first,
            last,
            count,
            due: Some(due).filter(|due| count == 1 && *due != first),
            version: reign.version.version,
            fate,
        });
        self.cursor = last;
    }

    /// The fate of a time without a record, and the last instant for which it is the same.
    fn fate_of(&self, reign: &Reign<'_>, at: WallMs) -> (Fate, WallMs) {
        let history = &self.timeline.history;
        let (decided, now) = (history.record.schedule.fired_through, history.now);
        if at <= decided {
            return if self.was_used_up(reign, at) {
                let most = reign.max_fires().unwrap_or_default();
                (Fate::UsedUp { most }, decided)
            } else if at < history.kept_since {
                (Fate::Forgotten, decided.min(history.kept_since.plus(-1)))
            } else {
                (Fate::Unrecorded, decided)
            };
        }
        let end = match self.last_fire(reign) {
            Some(last) if at > last => {
                let most = reign.max_fires().unwrap_or_default();
                return (Fate::UsedUp { most }, WallMs(i64::MAX));
            }
            Some(last) => last,
            None => WallMs(i64::MAX),
        };
        match (&history.record.row.paused, at <= now) {
            (Some(pause), true) => (Fate::Paused(pause.clone()), now.min(end)),
            (Some(pause), false) => (Fate::PlannedPaused(pause.clone()), end),
            (None, true) => (Fate::Pending, now.min(end)),
            (None, false) => (Fate::Planned, end),
        }
    }

    /// The last time that makes a run before the schedule has made all it may, if every one from the cursor on does.
    fn last_fire(&self, reign: &Reign<'_>) -> Option<WallMs> {
        let row = &self.timeline.history.record.schedule;
        let left = reign.max_fires()?.saturating_sub(row.fires);
        let mut last = row.fired_through;
        for _ in 0..left.min(WALKED) {
            last = reign.next_after(last)?;
        }
        (left <= WALKED).then_some(last)
    }

    /// Whether a version had made all its runs before a time: nothing of it is recorded later.
    fn was_used_up(&self, reign: &Reign<'_>, at: WallMs) -> bool {
        let fires = self.timeline.history.record.schedule.fires;
        let all_made = reign.max_fires().is_some_and(|most| fires >= most);
        let later_run = || self.runs.range(at..=reign.through).next().is_some();
        let unfired = &self.timeline.history.unfired;
        let later_range = || {
            let mut ranges = unfired.iter();
            ranges.any(|range| range.first >= at && range.first <= reign.through)
        };
        all_made && !later_run() && !later_range()
    }

    /// Adds a row, or makes the last one longer.
    fn push(&mut self, row: Row) {
        let alone = matches!(row.fate, Fate::Run(_) | Fate::Excluded(_));
        match self.rows.last_mut() {
            Some(last) if !alone && last.version == row.version && last.fate == row.fate => {
                last.last = row.last;
                last.count = last.count.saturating_add(row.count);
                last.due = None;
            }
            _ => self.rows.push(row),
        }
    }
}
