//! Who waits for what: one line of ready runs for each requirement, with the workers that could serve it.
//!
//! Memory holds a window of each line, and of all of them together. Beyond it runs are parked in the store under the
//! line's key, and read back in the order of their ids when the line has become short, so that a line without workers
//! never takes more than its window. While anything is parked, new runs of the line are parked too: first come, first
//! served.
//!
//! A line's members are the workers that may have room for one of its runs: who is found to have none when its turn comes
//! leaves the line, and is back in it when it has. So giving a run out costs nothing in lines that nothing waits in. A line that
//! has been empty for a while leaves memory, and comes back with the next run that needs it.
//!
//! Runs that limits hold back do not stand in the line itself: they wait in pens (`pens.rs`), and of those that share a gate one
//! at a time stands in line. So what is blocked takes no place of what is not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{Limits, ProcessId, Requirement, Run, RunId};

use super::in_a_row::Row;
use super::jobs::Compiled;
use super::lot::Lot;
use super::pens::PenId;
use super::time::Timer;
use super::{Engine, LOAD_ROWS, LoadKey};

/// Index of a line; that of one that has left goes to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineIx(usize);

/// A run in line, and how much of the window it takes: one place, and another for each half KiB of parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) run: RunId,
    pub(super) places: usize,
}

/// What is served next in a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    Run,
    Pen(PenId),
}

const PLACE_BYTES: usize = 512;

/// A line has one of so many parts of its window whatever others take.
const SHARES: usize = 64;

/// A line that nothing needed between two looks leaves.
const LOOK_EVERY_MS: u64 = 10_000;

impl Waiting {
    pub(super) fn of(run: &Run) -> Self {
        let bytes = run
            .params
            .as_ref()
            .map_or(0, |params| params.as_str().len());
        Self {
            run: run.id,
            places: 1 + bytes / PLACE_BYTES,
        }
    }
}

/// What a run's line depends on beside its definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// An attempt of it has failed.
    again: bool,
    /// The priority of the backfill that made it.
    priority: Option<u32>,
}

impl Rank {
    pub(super) fn of(run: &Run) -> Self {
        Self {
            again: run.has_failed(),
            priority: run.backfill.map(|mark| mark.priority),
        }
    }
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) requirement: Requirement,
    key: Arc<str>,
    queue: VecDeque<Waiting>,
    /// The sum of the places in `queue`.
    length: usize,
    /// Pens whose turn it may be, by the run at their head.
    ready: BTreeSet<(RunId, PenId)>,
    /// How many runs wait in pens of this line.
    penned: usize,
    /// How many pens it has.
    pens: usize,
    /// Workers that are able and connected, without those that were found to have no room for a run of this line.
    members: Vec<ProcessId>,
    places: BTreeMap<ProcessId, usize>,
    /// Counts picks, for placement.
    pub(super) turn: u64,
    /// Who is given brief runs in a row.
    pub(super) row: Option<Row>,
    lot: Lot,
    /// It is among those that may leave, and has been needed since the last look at them.
    may_leave: bool,
    needed: bool,
    /// Runs wait in it and no worker has room.
    hungry: bool,
}

const PRIORITIES: usize = Limits::PRIORITY as usize + 1;

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// How long a line may be before runs of it are parked.
    window: usize,
    /// How long all may be together, beyond a share that each line has for itself: nobody waits because memory is full of
    /// what has no workers.
    total: usize,
    lines: Vec<Option<Line>>,
    /// Places in `lines` that nobody has.
    vacant: Vec<LineIx>,
    /// Lines that were empty.
    idle: Vec<LineIx>,
    /// Those are looked at when a timer rings.
    looking: bool,
    /// How often anything was changed in a line.
    #[cfg(test)]
    pub(super) changes: usize,
    by_key: BTreeMap<Arc<str>, LineIx>,
    /// Lines with both runs and workers, by priority.
    active: [BTreeSet<LineIx>; PRIORITIES],
    /// Lines that became hungry since they were last asked for.
    hungry: Vec<LineIx>,
    /// Lines that the store may hold more of.
    with_parked: BTreeSet<LineIx>,
    /// The sum of all lines' lengths.
    length: usize,
    /// Whose turn it is, for each priority.
    next: [LineIx; PRIORITIES],
}

impl Lines {
    pub(super) fn new(window: usize, total: usize) -> Self {
        Self {
            window,
            total,
            ..Self::default()
        }
    }

    pub(super) fn line(&self, ix: LineIx) -> &Line {
        match &self.lines[ix.0] {
            Some(line) => line,
            None => panic!("a line has left that is in use"),
        }
    }

    pub(super) fn line_mut(&mut self, ix: LineIx) -> &mut Line {
        match &mut self.lines[ix.0] {
            Some(line) => line,
            None => panic!("a line has left that is in use"),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (LineIx, &Line)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(index, line)| Some((LineIx(index), line.as_ref()?)))
    }

    fn find(&self, key: &str) -> Option<LineIx> {
        self.by_key.get(key).copied()
    }

    fn add(&mut self, key: Arc<str>, requirement: Requirement) -> LineIx {
        let line = Line {
            requirement,
            key: Arc::clone(&key),
            queue: VecDeque::new(),
            length: 0,
            ready: BTreeSet::new(),
            penned: 0,
            pens: 0,
            members: Vec::new(),
            places: BTreeMap::new(),
            turn: 0,
            row: None,
            lot: Lot::default(),
            may_leave: false,
            needed: true,
            hungry: false,
        };
        let ix = self.vacant.pop().unwrap_or(LineIx(self.lines.len()));
        match self.lines.get_mut(ix.0) {
            Some(place) => *place = Some(line),
            None => self.lines.push(Some(line)),
        }
        self.by_key.insert(key, ix);
        self.settle(ix);
        ix
    }

    /// Lets go of the lines that nothing has needed since the last call. Returns them.
    fn remove_idle(&mut self) -> BTreeSet<LineIx> {
        let mut gone = BTreeSet::new();
        for ix in std::mem::take(&mut self.idle) {
            let line = self.line_mut(ix);
            if !line.is_idle() {
                line.may_leave = false;
            } else if std::mem::take(&mut line.needed) {
                self.idle.push(ix);
            } else {
                let key = Arc::clone(&line.key);
                self.by_key.remove(&key);
                self.lines[ix.0] = None;
                self.vacant.push(ix);
                gone.insert(ix);
            }
        }
        gone
    }

    pub(super) fn must_park(&self, ix: LineIx) -> bool {
        let line = self.line(ix);
        line.lot.has_parked() || line.length >= self.room(self.length >= self.total)
    }

    /// How long a line may be, whether memory is full or not.
    fn room(&self, full: bool) -> usize {
        match full {
            true => (self.window / SHARES).max(1),
            false => self.window,
        }
    }

    /// A run of the line goes into the store instead of memory, by batch `seq`.
    pub(super) fn parked(&mut self, ix: LineIx, seq: u64, run: RunId) {
        self.line_mut(ix).lot.park(seq, run);
        self.with_parked.insert(ix);
    }

    /// The line has a pen more, or one less.
    pub(super) fn pens(&mut self, ix: LineIx, change: isize) {
        let line = self.line_mut(ix);
        line.pens = line.pens.saturating_add_signed(change);
        self.settle(ix);
    }

    pub(super) fn push(&mut self, ix: LineIx, waiting: Waiting) {
        self.line_mut(ix).queue.push_back(waiting);
        self.grown(ix, waiting);
    }

    /// Puts a run back where it was: it has waited longest.
    pub(super) fn push_front(&mut self, ix: LineIx, waiting: Waiting) {
        self.line_mut(ix).queue.push_front(waiting);
        self.grown(ix, waiting);
    }

    /// A pen stands in line, or no more.
    pub(super) fn set_ready(&mut self, ix: LineIx, head: RunId, pen: PenId, ready: bool) {
        let pens = &mut self.line_mut(ix).ready;
        match ready {
            true => pens.insert((head, pen)),
            false => pens.remove(&(head, pen)),
        };
        self.settle(ix);
    }

    /// So many more runs wait in pens of the line, or fewer.
    pub(super) fn penned(&mut self, ix: LineIx, change: isize) {
        let line = self.line_mut(ix);
        line.penned = line.penned.saturating_add_signed(change);
    }

    /// Takes all these runs out of their lines.
    pub(super) fn remove_all(&mut self, runs: &BTreeSet<RunId>) {
        for index in 0..self.lines.len() {
            let Some(line) = &mut self.lines[index] else {
                continue;
            };
            let mut places = 0;
            line.queue.retain(|waiting| {
                let gone = runs.contains(&waiting.run);
                places += if gone { waiting.places } else { 0 };
                !gone
            });
            if places > 0 {
                self.shrunk(LineIx(index), places);
            }
        }
    }

    pub(super) fn pop(&mut self, ix: LineIx) -> Option<RunId> {
        let waiting = self.line_mut(ix).queue.pop_front()?;
        self.shrunk(ix, waiting.places);
        Some(waiting.run)
    }

    /// Takes a run out of the line, wherever it stands: it was cancelled.
    pub(super) fn remove(&mut self, ix: LineIx, run: RunId) {
        let queue = &mut self.line_mut(ix).queue;
        let place = queue.iter().position(|waiting| waiting.run == run);
        if let Some(waiting) = place.and_then(|place| queue.remove(place)) {
            self.shrunk(ix, waiting.places);
        }
    }

    fn grown(&mut self, ix: LineIx, waiting: Waiting) {
        self.line_mut(ix).length += waiting.places;
        self.length += waiting.places;
        self.settle(ix);
    }

    fn shrunk(&mut self, ix: LineIx, places: usize) {
        self.line_mut(ix).length -= places;
        self.length -= places;
        self.settle(ix);
    }

    pub(super) fn join(&mut self, ix: LineIx, process: ProcessId) {
        let line = self.line_mut(ix);
        if !line.places.contains_key(&process) {
            line.places.insert(process, line.members.len());
            line.members.push(process);
            self.settle(ix);
        }
    }

    pub(super) fn leave(&mut self, ix: LineIx, process: ProcessId) {
        let line = self.line_mut(ix);
        if let Some(place) = line.places.remove(&process) {
            line.members.swap_remove(place);
            if let Some(moved) = line.members.get(place) {
                line.places.insert(*moved, place);
            }
            self.settle(ix);
        }
    }

    /// The active line whose turn it is among those of the highest priority. The turn passes on with each call, and is
    /// kept between batches.
    pub(super) fn take_turn(&mut self) -> Option<LineIx> {
        let priority = self.active.iter().rposition(|lines| !lines.is_empty())?;
        let active = &self.active[priority];
        let next = active.range(self.next[priority]..).next();
        let ix = next.or_else(|| active.first()).copied()?;
        self.next[priority] = LineIx(ix.0 + 1);
        Some(ix)
    }

    /// Something has changed in a line: it is served or not, and may leave or not.
    fn settle(&mut self, ix: LineIx) {
        #[cfg(test)]
        {
            self.changes += 1;
        }
        let line = self.line_mut(ix);
        let (waits, served) = (line.waits(), !line.members.is_empty());
        let active = waits && served;
        let was_hungry = std::mem::replace(&mut line.hungry, waits && !served);
        let became_hungry = line.hungry && !was_hungry;
        let priority = line.requirement.priority.min(Limits::PRIORITY) as usize;
        line.needed = true;
        if line.is_idle() && !line.may_leave {
            line.may_leave = true;
            self.idle.push(ix);
        }
        match active {
            true => self.active[priority].insert(ix),
            false => self.active[priority].remove(&ix),
        };
        if became_hungry {
            self.hungry.push(ix);
        }
    }

    /// The lines that became hungry since the last call, and still are.
    pub(super) fn take_hungry(&mut self) -> Vec<LineIx> {
        let mut hungry = std::mem::take(&mut self.hungry);
        hungry.retain(|ix| {
            let line = self.lines.get(ix.0).and_then(Option::as_ref);
            line.is_some_and(|line| line.hungry)
        });
        hungry
    }

    /// The reads that short lines need; every batch up to `acknowledged` is visible to them.
    pub(super) fn short_lines(&mut self, acknowledged: u64) -> Vec<LoadKey> {
        let low = self.room(self.length >= self.total) / 4;
        let lines = &mut self.lines;
        let with_parked = self.with_parked.iter();
        with_parked
            .filter_map(|ix| {
                let line = lines[ix.0].as_mut()?;
                let short = line.lot.can_be_read() && line.length <= low;
                short.then(|| LoadKey::Parked {
                    key: line.key.to_string(),
                    after: line.lot.begin_scan(acknowledged),
                    rows: LOAD_ROWS,
                })
            })
            .collect()
    }

    /// A scan brought rows up to `last`; `all` says there are no more. Returns the read that continues it.
    pub(super) fn scanned(&mut self, key: &str, last: Option<RunId>, all: bool) -> Option<LoadKey> {
        let ix = self.find(key)?;
        let room = self.room(self.length >= self.total);
        let line = self.line_mut(ix);
        if !all && line.length < room {
            return Some(LoadKey::Parked {
                key: key.to_owned(),
                after: last,
                rows: LOAD_ROWS,
            });
        }
        let next = last.filter(|_| !all);
        line.lot.end_scan(next, !armed(Fault::ScanNotRepeated));
        if !line.lot.has_parked() {
            self.with_parked.remove(&ix);
        }
        self.settle(ix);
        None
    }
}

impl Line {
    /// Whether a run of it could be given out, or read, if there is a worker.
    pub(super) fn waits(&self) -> bool {
        !self.queue.is_empty() || !self.ready.is_empty()
    }

    /// Nothing of it is in memory or in the store.
    fn is_idle(&self) -> bool {
        !self.waits() && self.pens == 0 && self.lot.is_idle()
    }

    /// How many runs stand in it, or wait in its pens.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + self.penned
    }

    /// The run at its head, those in pens aside.
    pub(super) fn head(&self) -> Option<RunId> {
        self.queue.front().map(|waiting| waiting.run)
    }

    /// The oldest runs of which it is the turn: of those in line, and of the pens that stand in it.
    pub(super) fn firsts(&self) -> impl Iterator<Item = RunId> + '_ {
        let pen = self.ready.first().map(|(run, _)| *run);
        self.head().into_iter().chain(pen)
    }

    /// What is served next: the older of the run at the head and the first pen.
    pub(super) fn next(&self) -> Option<Head> {
        match (self.head(), self.ready.first()) {
            (None, None) => None,
            (Some(run), Some((first, pen))) if *first < run => Some(Head::Pen(*pen)),
            (None, Some((_, pen))) => Some(Head::Pen(*pen)),
            (Some(_), _) => Some(Head::Run),
        }
    }

    /// What its runs are parked under.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn has_parked(&self) -> bool {
        self.lot.has_parked()
    }

    pub(super) fn members(&self) -> &[ProcessId] {
        &self.members
    }
}

impl Engine {
    /// The line of a run of a definition; a new line finds its workers first.
    pub(super) fn line_of(&mut self, compiled: &Compiled, rank: Rank) -> LineIx {
        if let Some(priority) = rank.priority {
            return self.line_with_priority(compiled, priority);
        }
        let (key, requirement) = compiled.wanted(rank.again);
        match self.lines.find(key) {
            Some(ix) => ix,
            None => self.add_line(Arc::clone(key), requirement.clone()),
        }
    }

    fn line_with_priority(&mut self, compiled: &Compiled, priority: u32) -> LineIx {
        let requirement = Requirement {
            priority,
            ..compiled.requirement.clone()
        };
        let key = requirement.park_key();
        match self.lines.find(&key) {
            Some(ix) => ix,
            None => self.add_line(Arc::from(key), requirement),
        }
    }

    /// A line that has parked runs in the store, known by its key alone.
    pub(super) fn line_with_parked(&mut self, key: &str) {
        let ix = self.line_keyed(key);
        self.lines.parked(ix, 0, RunId(0));
    }

    pub(super) fn line_keyed(&mut self, key: &str) -> LineIx {
        match (self.lines.find(key), Requirement::from_park_key(key)) {
            (Some(ix), _) => ix,
            (None, Some(requirement)) => self.add_line(Arc::from(key), requirement),
            (None, None) => panic!("`{key}` is not a key that runs are parked under"),
        }
    }

    fn add_line(&mut self, key: Arc<str>, requirement: Requirement) -> LineIx {
        let ix = self.lines.add(key, requirement);
        for process in self.fleet.able(&self.lines.line(ix).requirement) {
            self.stand_in(process, ix);
        }
        ix
    }

    /// Looks after a while which lines nothing needs.
    pub(super) fn look_at_lines_later(&mut self) {
        if !self.lines.looking && !self.lines.idle.is_empty() {
            self.lines.looking = true;
            let at = self.now.mono.plus(LOOK_EVERY_MS);
            self.wheel.insert(at.0, Timer::IdleLines);
        }
    }

    pub(super) fn drop_idle_lines(&mut self) {
        self.lines.looking = false;
        let gone = self.lines.remove_idle();
        if !gone.is_empty() {
            self.fleet.forget_lines(&gone);
        }
    }
}
