//! What every store must do, as exercises that any implementation can be put through.
//!
//! A test makes a [`World`] over its store for each of [`EXERCISES`] and runs it; an exercise panics with what it found.
//! A verb or a promise begins with an exercise here. Stores whose rows outlive the process pass the suite twice: once
//! as they are, and once opened anew after every commit.

mod backfills;
mod calendars;
mod checkpoints;
mod fencing;
mod followers;
mod history;
mod jobs;
mod keys;
mod letters;
mod records;
mod retention;
mod rollups;
mod runs;
pub mod sample;
mod scope;
mod starts;
mod system;

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, Run, RunId, SessionId};

use crate::{Commit, Error, Read, RunFilter, Store};

/// A writer and a reader of one store.
pub type Opened = (Box<dyn Store>, Box<dyn Read>);

/// Opens the same store each time it is called; the last pair it gave is gone by then.
pub type Open = Box<dyn FnMut() -> Opened>;

/// One exercise, by name.
pub type Exercise = (&'static str, fn(&mut World));

/// A store under exercise, with a session that commits to it.
pub struct World {
    opened: Option<Opened>,
    open: Open,
    reopen_each_time: bool,
    session: SessionId,
    seq: u64,
}

pub const EXERCISES: &[Exercise] = &[
    (
        "a new store has its meta row and every segment",
        system::begins,
    ),
    ("a session commits in order", fencing::commits_in_order),
    (
        "a commit out of order is fenced and changes nothing",
        fencing::fences,
    ),
    ("a revoked session is fenced for ever", fencing::revoked),
    (
        "the same set sent again is fenced, and the session tells that it was done",
        fencing::resubmission,
    ),
    (
        "a take-over revokes and takes the segments in one commit",
        fencing::take_over,
    ),
    ("epochs and marks do not fall", fencing::segments_only_grow),
    ("a segment is taken by one", fencing::taken_once),
    ("session ids are not reused", fencing::session_ids),
    ("a session says whose it is", fencing::members),
    (
        "owners are told with how much they own, and when they took it",
        fencing::owners,
    ),
    (
        "a change of tokens or settings is counted",
        system::definitions,
    ),
    ("segments are tied together for good", system::ties),
    ("who leaves ends its own session", fencing::leaves),
    ("a set with one bad row changes nothing", fencing::atomic),
    ("rows under foreign keys are refused", fencing::shape),
    ("a job is read by name and by id", jobs::read),
    ("a name is taken once and free after deletion", jobs::names),
    ("versions are immutable", jobs::versions),
    ("a schedule moves only from where it stands", jobs::cursor),
    (
        "jobs are listed in pages, by namespace, label and pause",
        jobs::list,
    ),
    ("due jobs come in order", jobs::due),
    (
        "what a loop reads is confined to its segments",
        scope::confined,
    ),
    (
        "live scheduled runs are counted, parked ones too",
        jobs::live_scheduled,
    ),
    (
        "runs are counted by what they are to their job's overlap",
        jobs::tallies,
    ),
    (
        "a circuit breaker is kept, replaced and removed",
        jobs::breakers,
    ),
    ("unfired ranges are kept and extended", jobs::unfired),
    (
        "who follows a job is told by the definitions",
        followers::followed,
    ),
    (
        "what has come of the jobs before is kept, replaced and removed",
        followers::waits,
    ),
    (
        "ends are kept until every follower was told",
        followers::endings,
    ),
    (
        "jobs come in order of id, without deleted ones",
        calendars::by_id,
    ),
    (
        "a calendar has versions that follow each other",
        calendars::versioned,
    ),
    ("old versions of a calendar go", calendars::bounded),
    (
        "a calendar's users follow the definitions",
        calendars::users,
    ),
    ("sweeps are inserted and replaced", calendars::sweeps),
    (
        "the version of the time-zone data changes",
        calendars::tz_version,
    ),
    ("a run is inserted, changed and finished", runs::life),
    ("every field of a run comes back", runs::every_field),
    ("a run is inserted once", runs::insert_twice),
    (
        "a run that is not there cannot change or finish",
        runs::missing,
    ),
    (
        "a run made and ended in one set goes to the history",
        runs::insert_finished,
    ),
    (
        "active runs come in pages, without parked ones",
        runs::active,
    ),
    ("parked runs come by key", runs::parked_runs),
    (
        "parked runs come by when they must start",
        starts::parked_starts,
    ),
    ("long payloads come back", runs::payloads),
    ("ids beyond the store are refused or unknown", runs::beyond),
    (
        "runs of a job are listed newest first across buckets",
        history::by_job,
    ),
    (
        "runs that did not complete are listed by job",
        history::failed,
    ),
    (
        "all runs are listed newest first, whatever their class",
        history::everything,
    ),
    ("a run that ends late keeps its place", history::late),
    ("listings filter by namespace and state", history::filters),
    ("an idempotency key is found until it expires", keys::expiry),
    (
        "an idempotency key is taken once while it lasts",
        keys::taken,
    ),
    ("many idempotency keys", keys::many),
    ("tokens are inserted and replaced", system::tokens),
    ("settings are inserted and replaced", records::settings),
    ("queues are inserted and replaced", records::queues),
    ("rates are inserted, replaced and removed", records::rates),
    ("locks are taken, replaced and given back", records::locks),
    ("drains begin, change and end", records::drains),
    (
        "the audit log is listed newest first, by filter",
        records::audit,
    ),
    (
        "old entries of the audit log go in small steps",
        records::old_entries_go,
    ),
    (
        "a checkpoint is replaced by newer ones only, and removed",
        checkpoints::never_back,
    ),
    (
        "a checkpoint stays with its failed run and goes with it",
        checkpoints::pruned,
    ),
    (
        "dead letters are kept, listed by filter and removed",
        letters::letters,
    ),
    (
        "old dead letters go in small steps",
        letters::old_letters_go,
    ),
    (
        "a backfill moves only from the step it stands at",
        backfills::steps,
    ),
    (
        "backfills are listed newest first, by filter",
        backfills::lists,
    ),
    (
        "old backfills go in small steps, open ones stay",
        backfills::old_ones_go,
    ),
    (
        "each namespace has its own bound of backfills",
        backfills::each_namespace_has_its_own_bound,
    ),
    ("runs are found by their backfill", backfills::runs),
    (
        "a job's versions are listed newest first",
        jobs::version_list,
    ),
    ("counters are absolute", system::counters),
    ("roll-ups count each finished run once", rollups::counts),
    ("roll-ups of many jobs and minutes", rollups::many),
    (
        "retention removes the oldest of each class",
        retention::runs,
    ),
    (
        "retention is bounded and fair to the classes",
        retention::bounded,
    ),
    (
        "retention removes payloads, roll-ups, keys and ranges",
        retention::the_rest,
    ),
    ("a run may end and go at once", retention::at_once),
];

/// How long a session goes on after each commit. A commit may take half of that, and no exercise is about being slow.
pub const SESSION_MS: i64 = 60_000;

/// Puts a store through every exercise. `open` is called once for each, for an opener of an empty store.
pub fn run_all(mut fresh: impl FnMut() -> Open, reopen_each_time: bool) {
    for (name, exercise) in EXERCISES {
        println!("{name}");
        exercise(&mut World::new(fresh(), reopen_each_time));
    }
}

/// All pages of a listing, one after the other. A cursor that does not go on is a fault, not an endless listing.
pub fn all_runs(read: &dyn Read, filter: &RunFilter, limit: usize) -> Vec<Run> {
    let (mut all, mut before): (Vec<Run>, Option<RunId>) = (Vec::new(), None);
    loop {
        let page = read.runs(filter, before, limit).expect("they are read");
        assert!(page.runs.len() <= limit, "a page has at most {limit} runs");
        all.extend(page.runs);
        let Some(next) = page.next else { return all };
        assert!(
            before.is_none_or(|before| next < before),
            "{filter:?}: the cursor stays at {next}"
        );
        before = Some(next);
    }
}

impl World {
    pub fn new(mut open: Open, reopen_each_time: bool) -> Self {
        let opened = open();
        let mut world = Self {
            opened: Some(opened),
            open,
            reopen_each_time,
            session: SessionId(0),
            seq: 0,
        };
        world.new_session();
        world
    }

    /// Begins a session that the next commits are made in.
    pub fn new_session(&mut self) -> SessionId {
        let session = self
            .store()
            .begin_session(&Member::alone("server-1"), SESSION_MS)
            .expect("a session begins");
        (self.session, self.seq) = (session, 0);
        session
    }

    /// Goes on committing in a session that stands at `seq`.
    pub fn use_session(&mut self, session: SessionId, seq: u64) {
        (self.session, self.seq) = (session, seq);
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn store(&mut self) -> &mut dyn Store {
        self.opened.as_mut().expect("the store is open").0.as_mut()
    }

    pub fn read(&self) -> &dyn Read {
        self.opened.as_ref().expect("the store is open").1.as_ref()
    }

    /// The set as the next commit of the session.
    pub fn next(&self, changes: ChangeSet) -> ChangeSet {
        ChangeSet {
            session: self.session,
            seq: self.seq + 1,
            extend_ms: SESSION_MS,
            ..changes
        }
    }

    /// Commits what must succeed.
    pub fn commit(&mut self, changes: ChangeSet) {
        let outcome = self.try_commit(changes);
        assert_eq!(outcome.expect("the commit succeeds"), Commit::Done);
    }

    /// Commits what must be refused as a broken invariant.
    pub fn refuse(&mut self, changes: ChangeSet) {
        let outcome = self.try_commit(changes);
        assert!(
            matches!(outcome, Err(Error::Invariant(_))),
            "an invariant refuses it, not {outcome:?}"
        );
    }

    pub fn try_commit(&mut self, changes: ChangeSet) -> Result<Commit, Error> {
        let changes = self.next(changes);
        let outcome = self.store().commit(&changes);
        if matches!(outcome, Ok(Commit::Done)) {
            self.seq += 1;
        }
        if self.reopen_each_time {
            self.reopen();
        }
        outcome
    }

    /// Lets the store go without closing it, and opens it again.
    pub fn reopen(&mut self) {
        self.opened = None;
        self.opened = Some((self.open)());
    }
}
