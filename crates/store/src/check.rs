//! What every store asks of a change set before it looks at a row: keys agree with their rows, states with their verbs.
//!
//! A set that fails here is a fault of its maker. The stores share the check so that they refuse the same sets.

use drumtower_core::change::{ChangeSet, LetterChange, RunChange};
use drumtower_core::model::{SegmentId, SegmentRow, SessionId};

use crate::Error;

/// Ids are kept as signed 64-bit integers, which every database has; ids made before 2094 fit.
pub(crate) const GREATEST_ID: u64 = i64::MAX as u64;

pub(crate) fn shape(changes: &ChangeSet) -> Result<(), Error> {
    let ids = [changes.session.0, changes.seq]
        .into_iter()
        .chain(changes.revoke.iter().map(|session| session.0));
    let ids = ids
        .chain(changes.jobs.keys().map(|job| job.0))
        .chain(changes.runs.keys().map(|run| run.0))
        .chain(changes.checkpoints.iter().map(|(run, checkpoint)| {
            let number = checkpoint.as_ref().map_or(0, |it| it.number);
            run.0.max(number)
        }))
        .chain(changes.letters.keys().map(|run| run.0))
        .chain(changes.endings.keys().map(|run| run.0))
        .chain(changes.waits.keys().map(|job| job.0))
        .chain(
            changes
                .backfills
                .iter()
                .map(|(id, change)| id.0.max(change.row.step)),
        )
        .chain(changes.audit.keys().map(|entry| entry.0));
    let ids = ids.chain(changes.versions.keys().map(|(job, _)| job.0));
    if let Some(id) = ids.max().filter(|id| *id > GREATEST_ID) {
        return Err(Error::Invariant(format!(
            "the number {id} is beyond what a store can keep"
        )));
    }
    let keeps = |row: &SegmentRow| row.owner == changes.session;
    if changes.revoke.contains(&changes.session) && changes.segments.values().any(keeps) {
        return Err(Error::Invariant(format!(
            "session {} may not revoke itself and keep segments",
            changes.session.0
        )));
    }
    keys(changes)?;
    changes.runs.values().try_for_each(run)
}

/// Whether `session` may change a segment's row in this way. `owned` tells that the session in the old row is another's
/// that is not revoked.
///
/// Marks never fall. The owner raises its mark or gives the segment up, under the same epoch; whoever takes it raises the
/// epoch by one. So of two that read the same row and want to take it, the second is refused.
pub fn segment(old: &SegmentRow, new: &SegmentRow, session: SessionId, owned: bool) -> bool {
    let kept = old.owner == session && new.epoch == old.epoch;
    let kept = kept && (new.owner == session || new.owner == SessionId(0));
    let taken = new.owner == session && new.epoch.0 == old.epoch.0 + 1 && !owned;
    old.id_mark <= new.id_mark && (kept || taken)
}

fn keys(changes: &ChangeSet) -> Result<(), Error> {
    use drumtower_core::change::JobChange::{Insert, Update};
    let segments = changes
        .segments
        .iter()
        .all(|(key, row)| *key == row.id && key.0 < SegmentId::COUNT);
    let jobs = changes
        .jobs
        .iter()
        .all(|(key, Insert(row) | Update(row))| *key == row.id);
    let versions = changes
        .versions
        .iter()
        .all(|(key, row)| *key == (row.job, row.version));
    let schedules = changes
        .schedules
        .iter()
        .all(|(key, change)| *key == change.row.job);
    let runs = changes
        .runs
        .iter()
        .all(|(key, change)| *key == change.run().id);
    let unfired = changes
        .unfired
        .iter()
        .all(|(key, row)| *key == (row.job, row.first));
    let calendars = changes
        .calendars
        .iter()
        .all(|(key, row)| *key == (row.calendar(), row.version));
    let sweeps = changes.sweeps.iter().all(|(key, row)| *key == row.cause);
    let tokens = changes.tokens.iter().all(|(key, row)| *key == row.id);
    let locks = changes.locks.iter();
    let locks = locks
        .filter_map(|(lock, row)| Some((lock, row.as_ref()?)))
        .all(|(lock, row)| *lock == row.lock);
    let drains = changes.drains.iter();
    let drains = drains
        .filter_map(|(workers, row)| Some((workers, row.as_ref()?)))
        .all(|(workers, row)| *workers == row.worker);
    let settings = changes.settings.iter().all(|(key, row)| *key == row.key);
    let queues = changes.queues.iter().all(|(key, row)| *key == row.queue());
    let letters = changes.letters.iter().all(|(key, change)| match change {
        LetterChange::Insert(run) => *key == run.id,
        LetterChange::Remove => true,
    });
    let endings = changes.endings.iter();
    let endings = endings
        .filter_map(|(run, ending)| Some((run, ending.as_ref()?)))
        .all(|(run, ending)| *run == ending.run);
    let backfills = changes
        .backfills
        .iter()
        .all(|(key, change)| *key == change.row.id);
    let audit = changes.audit.iter().all(|(key, row)| *key == row.id);
    let entries = changes.keys.iter().all(|(key, entry)| *key == entry.hash);
    let named = [
        ("segment", segments),
        ("job", jobs),
        ("job version", versions),
        ("schedule", schedules),
        ("run", runs),
        ("unfired range", unfired),
        ("ending", endings),
        ("calendar", calendars),
        ("sweep", sweeps),
        ("token", tokens),
        ("setting", settings),
        ("lock", locks),
        ("queue", queues),
        ("drain", drains),
        ("dead letter", letters),
        ("backfill", backfills),
        ("audit", audit),
        ("idempotency", entries),
    ];
    match named.iter().find(|(_, agrees)| !agrees) {
        Some((kind, _)) => Err(Error::Invariant(format!(
            "a {kind} row stands under a key that is not its own"
        ))),
        None => Ok(()),
    }
}

fn run(change: &RunChange) -> Result<(), Error> {
    let run = change.run();
    let ends = matches!(change, RunChange::Finish(_) | RunChange::InsertFinished(_));
    if ends == run.state.is_terminal() {
        return Ok(());
    }
    let place = if ends {
        "the history"
    } else {
        "the active runs"
    };
    Err(Error::Invariant(format!(
        "{} in state {} does not belong to {place}",
        run.id,
        run.state.as_str()
    )))
}

/// Whether the set changes what every server keeps in memory.
pub fn defines(changes: &ChangeSet) -> bool {
    !changes.tokens.is_empty() || !changes.settings.is_empty() || !changes.drains.is_empty()
}
