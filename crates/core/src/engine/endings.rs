//! Ends of runs that other jobs follow, and how those are told.
//!
//! ```text
//! end_run: row written with the end ──committed──► followers read, a page at a time ──► follow_job for each
//!                                                       ▲                                     │
//!                                                       └── `through` moves in the commit ◄───┘  the last page: row gone
//! ```
//!
//! A page is asked for only after the row is durable, so it holds every job that was made to follow before the end. What a
//! page comes to and how far it went are one commit: whoever boots from the store goes on behind the last follower that
//! was told, and tells nobody twice.
//!
//! Memory holds the first of them; what lies beyond is read when half of those are done with.

use std::collections::BTreeMap;

use crate::fault::{Fault, armed};
use crate::model::{Ending, JobRecord, Now, Run, RunId};

use super::marks::Marks;
use super::{ENDING_ROWS, Engine, FOLLOWER_ROWS, JobRef, LoadKey};

/// Pages that are read at once.
const PAGES_AT_ONCE: usize = 8;

#[derive(Debug)]
struct Held {
    ending: Ending,
    /// The batch that wrote it last.
    written: u64,
    /// A page of its followers is being read.
    asked: bool,
}

#[derive(Debug, Default)]
pub(super) struct Endings {
    held: BTreeMap<RunId, Held>,
    asked: usize,
    /// The store may have some that are not held.
    beyond: bool,
    reading: bool,
    /// Those that are done with: a load from before brings them, and must not.
    done: Marks<RunId, ()>,
}

impl Endings {
    /// What the engine before left, as it was when batch `seq` was durable.
    pub(super) fn new(endings: Vec<Ending>, seq: u64) -> Self {
        let mut all = Self {
            beyond: endings.len() >= ENDING_ROWS,
            ..Self::default()
        };
        for ending in endings {
            all.hold(ending, seq);
        }
        all
    }

    /// Keeps one that batch `written` tells of; beyond what memory holds it lies in the store only.
    fn note(&mut self, ending: Ending, written: u64) {
        if self.held.len() < ENDING_ROWS {
            self.hold(ending, written);
        } else {
            self.beyond = true;
        }
    }

    /// Whether those that lie beyond are to be read now.
    fn begin_reading(&mut self) -> bool {
        let due = self.beyond && !self.reading && self.held.len() <= ENDING_ROWS / 2;
        if due {
            // Whatever does not fit from now on says so again.
            (self.reading, self.beyond) = (true, false);
        }
        due
    }

    /// Those that lay beyond are here, as they were when batch `tag` was durable.
    fn take(&mut self, tag: u64, endings: Vec<Ending>) {
        self.reading = false;
        self.beyond |= endings.len() >= ENDING_ROWS;
        for ending in endings {
            let done = self.done.get(&ending.run);
            let is_done = done.is_some_and(|(seq, ())| seq > tag);
            if is_done || self.held.contains_key(&ending.run) {
                continue;
            }
            // As long as a load brings any, there may be more.
            self.beyond = true;
            if self.held.len() < ENDING_ROWS {
                self.hold(ending, tag);
            }
        }
    }

    fn hold(&mut self, ending: Ending, written: u64) {
        let held = Held {
            ending,
            written,
            asked: false,
        };
        self.held.insert(held.ending.run, held);
    }

    pub(super) fn forget(&mut self, safe: u64) {
        self.done.forget(safe);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

impl Engine {
    /// A run has ended: whoever follows its job is to be told.
    pub(super) fn note_ending(&mut self, now: Now, run: &Run) {
        let job = self.jobs.expect(run.job);
        if !job.followed || job.row.deleted {
            return;
        }
        let ending = Ending {
            run: run.id,
            root: run.root_run.unwrap_or(run.id),
            namespace: run.namespace.clone(),
            name: job.row.name.clone(),
            state: run.state,
            at: now.wall,
            through: None,
        };
        if !armed(Fault::EndingNotWritten) {
            self.building.ending(run.id, Some(ending.clone()));
        }
        let seq = self.building_seq();
        self.endings.note(ending, seq);
    }

    /// Asks for the next followers of ends that are durable.
    pub(super) fn read_endings(&mut self) {
        if self.endings.begin_reading() {
            self.want(LoadKey::Endings);
        }
        if self.endings.asked >= PAGES_AT_ONCE || self.endings.asked == self.endings.held.len() {
            return;
        }
        let room = PAGES_AT_ONCE - self.endings.asked;
        let durable = |held: &&mut Held| !held.asked && held.written <= self.acknowledged;
        let mut wanted = Vec::new();
        for held in self.endings.held.values_mut().filter(durable).take(room) {
            held.asked = true;
            wanted.push(LoadKey::Followers {
                ending: held.ending.run,
                job: JobRef {
                    namespace: held.ending.namespace.clone(),
                    name: held.ending.name.clone(),
                },
                after: held.ending.through,
            });
        }
        self.endings.asked += wanted.len();
        for key in wanted {
            self.want(key);
        }
    }

    /// A page of the followers of a job is here: each is told of the end.
    pub(super) fn take_followers(
        &mut self,
        now: Now,
        tag: u64,
        run: RunId,
        followers: Vec<JobRecord>,
    ) {
        let Some(mut held) = self.endings.held.remove(&run) else {
            panic!("followers of the end of {run} were read, and nobody asked");
        };
        self.endings.asked -= 1;
        let all = followers.len() < FOLLOWER_ROWS;
        let last = followers.last().map(|record| record.row.id);
        if followers.is_empty() && held.ending.through.is_none() {
            self.note_unfollowed(&held.ending, tag);
        }
        for record in followers {
            let id = record.row.id;
            self.adopt_job(record);
            self.follow_job(now, id, &held.ending);
            self.consider(id);
        }
        let seq = self.building_seq();
        if all {
            self.endings.done.put(run, seq, ());
            if !armed(Fault::EndingToldTwice) {
                self.building.ending(run, None);
            }
        } else {
            held.ending.through = last;
            self.building.ending(run, Some(held.ending.clone()));
            self.endings.hold(held.ending, seq);
        }
    }

    /// Ends that lay beyond those in memory are here.
    pub(super) fn take_endings(&mut self, tag: u64, endings: Vec<Ending>) {
        self.endings.take(tag, endings);
    }

    /// Nobody follows the job any more, unless somebody began to since the page was asked for.
    fn note_unfollowed(&mut self, ending: &Ending, tag: u64) {
        let name = JobRef {
            namespace: ending.namespace.clone(),
            name: ending.name.clone(),
        };
        if let Some(id) = self.jobs.named(&name) {
            let job = self.jobs.expect_mut(id);
            job.followed &= job.followed_in > tag;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JobName, NamespaceName, RunState, WallMs};

    fn ending(run: u64) -> Ending {
        Ending {
            run: RunId(run),
            root: RunId(run),
            namespace: NamespaceName::default(),
            name: JobName::new("first").expect("a name"),
            state: RunState::Completed,
            at: WallMs(0),
            through: None,
        }
    }

    /// Memory is full again when those beyond it are brought: they are not forgotten.
    #[test]
    fn what_has_no_room_is_read_again() {
        let rows = ENDING_ROWS as u64;
        let mut endings = Endings::new((0..rows).map(ending).collect(), 1);
        endings.note(ending(rows), 2);
        for run in 0..rows / 2 {
            endings.held.remove(&RunId(run));
        }
        assert!(endings.begin_reading());
        for run in 0..rows / 2 {
            endings.note(ending(2 * rows + run), 3);
        }
        endings.take(2, vec![ending(rows)]);
        assert!(!endings.held.contains_key(&RunId(rows)), "there is no room");
        assert!(!endings.begin_reading(), "not before there is");
        endings.held.clear();
        assert!(endings.begin_reading());
        endings.take(4, vec![ending(rows)]);
        assert!(endings.held.contains_key(&RunId(rows)));
        endings.held.clear();
        assert!(endings.begin_reading(), "there may be more");
        endings.take(5, Vec::new());
        assert!(!endings.begin_reading(), "there is none");
    }
}
