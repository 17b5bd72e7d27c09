//! Who waits for what: one line of ready runs for each requirement, with the workers that could serve it.
//!
//! Memory holds a window of each line. Beyond it runs are parked in the store under the line's key, and read back in the
//! order of their ids when the line has become short, so that a line without workers never takes more than its window.
//! While anything is parked, new runs of the line are parked too: first come, first served.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::model::{Limits, ProcessId, Requirement, RunId};

use super::jobs::Compiled;
use super::{Engine, LoadKey};

/// Index of a line; lines are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineIx(usize);

#[derive(Debug)]
pub(super) struct Line {
    pub(super) requirement: Requirement,
    key: Arc<str>,
    queue: VecDeque<RunId>,
    /// Workers that are able, connected, fresh and have credit for one run of this line.
    members: Vec<ProcessId>,
    places: BTreeMap<ProcessId, usize>,
    /// Counts picks, for placement.
    pub(super) turn: u64,
    /// The store may hold parked runs of this line.
    parked: bool,
    scan: Option<Scan>,
}

/// A read of parked runs under way.
#[derive(Debug, Default)]
struct Scan {
    /// Something was parked since it began: what it finds is not all.
    more: bool,
}

const LOW_MARK: usize = Limits::READY_WINDOW / 4;

#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    by_key: BTreeMap<Arc<str>, LineIx>,
    /// Lines with both runs and workers.
    active: BTreeSet<LineIx>,
}

impl Lines {
    pub(super) fn line(&self, ix: LineIx) -> &Line {
        &self.lines[ix.0]
    }

    pub(super) fn line_mut(&mut self, ix: LineIx) -> &mut Line {
        &mut self.lines[ix.0]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (LineIx, &Line)> {
        self.lines
            .iter()
            .enumerate()
            .map(|(index, line)| (LineIx(index), line))
    }

    fn find(&self, key: &str) -> Option<LineIx> {
        self.by_key.get(key).copied()
    }

    fn add(&mut self, key: Arc<str>, requirement: Requirement) -> LineIx {
        let ix = LineIx(self.lines.len());
        self.by_key.insert(Arc::clone(&key), ix);
        self.lines.push(Line {
            requirement,
            key,
            queue: VecDeque::new(),
            members: Vec::new(),
            places: BTreeMap::new(),
            turn: 0,
            parked: false,
            scan: None,
        });
        ix
    }

    pub(super) fn must_park(&self, ix: LineIx) -> bool {
        let line = self.line(ix);
        line.parked || line.queue.len() >= Limits::READY_WINDOW
    }

    /// A run of the line was put into the store instead of memory.
    pub(super) fn parked(&mut self, ix: LineIx) {
        let line = self.line_mut(ix);
        line.parked = true;
        if let Some(scan) = &mut line.scan {
            scan.more = true;
        }
    }

    pub(super) fn push(&mut self, ix: LineIx, run: RunId) {
        self.line_mut(ix).queue.push_back(run);
        self.settle(ix);
    }

    /// Puts a run back where it was: it has waited longest.
    pub(super) fn push_front(&mut self, ix: LineIx, run: RunId) {
        self.line_mut(ix).queue.push_front(run);
        self.settle(ix);
    }

    pub(super) fn pop(&mut self, ix: LineIx) -> Option<RunId> {
        let run = self.line_mut(ix).queue.pop_front();
        self.settle(ix);
        run
    }

    /// Takes a run out of the line, wherever it stands: it was cancelled.
    pub(super) fn remove(&mut self, ix: LineIx, run: RunId) {
        self.line_mut(ix).queue.retain(|waiting| *waiting != run);
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

    /// The next active line at or after `from`, in circular order.
    pub(super) fn next_active(&self, from: LineIx) -> Option<LineIx> {
        self.active
            .range(from..)
            .next()
            .or_else(|| self.active.first())
            .copied()
    }

    fn settle(&mut self, ix: LineIx) {
        let line = &self.lines[ix.0];
        if line.queue.is_empty() || line.members.is_empty() {
            self.active.remove(&ix);
        } else {
            self.active.insert(ix);
        }
    }

    /// The read that a short line needs, if the store may hold more of it.
    pub(super) fn short_lines(&mut self) -> Vec<LoadKey> {
        let short =
            |line: &&mut Line| line.parked && line.scan.is_none() && line.queue.len() <= LOW_MARK;
        let scan = |line: &mut Line| {
            line.scan = Some(Scan::default());
            LoadKey::Parked {
                key: line.key.to_string(),
                after: None,
            }
        };
        self.lines.iter_mut().filter(short).map(scan).collect()
    }

    /// A scan brought rows up to `last`; `all` says there are no more. Returns the read that continues it.
    pub(super) fn scanned(&mut self, key: &str, last: Option<RunId>, all: bool) -> Option<LoadKey> {
        let ix = self.find(key)?;
        let line = self.line_mut(ix);
        if !all && line.queue.len() < Limits::READY_WINDOW {
            return Some(LoadKey::Parked {
                key: key.to_owned(),
                after: last,
            });
        }
        let scan = line.scan.take().unwrap_or_default();
        line.parked = !all || scan.more;
        None
    }
}

impl Line {
    pub(super) fn members(&self) -> &[ProcessId] {
        &self.members
    }
}

impl LineIx {
    pub(super) const FIRST: Self = Self(0);

    pub(super) fn after(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Engine {
    /// The line of a definition; a new one finds its workers first.
    pub(super) fn line_of(&mut self, compiled: &Compiled) -> LineIx {
        match self.lines.find(&compiled.park_key) {
            Some(ix) => ix,
            None => self.add_line(Arc::clone(&compiled.park_key), compiled.requirement.clone()),
        }
    }

    /// A line that has parked runs in the store, known by its key alone.
    pub(super) fn line_with_parked(&mut self, key: &str) {
        let ix = match (self.lines.find(key), Requirement::from_park_key(key)) {
            (Some(ix), _) => ix,
            (None, Some(requirement)) => self.add_line(Arc::from(key), requirement),
            (None, None) => panic!("`{key}` is not a key that runs are parked under"),
        };
        self.lines.parked(ix);
    }

    fn add_line(&mut self, key: Arc<str>, requirement: Requirement) -> LineIx {
        let ix = self.lines.add(key, requirement);
        for process in self.fleet.able(&self.lines.line(ix).requirement) {
            self.fleet.serve(process, ix);
            self.place_in_lines(process);
        }
        ix
    }
}
