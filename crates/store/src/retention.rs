//! The rules of retention, the same in every store.
//!
//! One step removes at most `limit` rows of each kind. Finished runs leave class by class, the earliest finished first; a
//! class's step ends at the first run that is still too young, so a run that lasted long may outstay its age by as much.

use drumtower_core::model::{AuditEntry, AuditId, IdempotencyEntry, Limits, Retention, WallMs};

use crate::tally;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The classes in the order of this commit: each comes first in turn, so that none starves the others.
pub(crate) fn turn(seq: u64) -> [Retention; 3] {
    let mut classes = [Retention::Day, Retention::Week, Retention::Month];
    classes.rotate_left((seq % 3) as usize);
    classes
}

/// Whether a finished run may go. The age counts from creation.
pub(crate) fn may_go(class: Retention, created: WallMs, now: WallMs) -> bool {
    class.age_ms().is_some_and(|age| now.since(created) >= age)
}

/// Idempotency entries of hours before this one may go: the whole hour is out of its time, and one more for safety.
pub(crate) fn oldest_hour(now: WallMs) -> i64 {
    now.plus(-IdempotencyEntry::KEPT_MS - HOUR_MS)
        .0
        .div_euclid(HOUR_MS)
}

/// Roll-ups of minutes before this one may go.
pub(crate) fn oldest_minute(now: WallMs) -> i64 {
    now.0.div_euclid(60_000) - tally::KEPT_MINUTES
}

/// Ranges of unfired times that ended before this may go.
pub(crate) fn oldest_unfired(now: WallMs) -> WallMs {
    now.plus(-30 * DAY_MS)
}

/// Entries of the audit log below this one may go.
pub(crate) fn first_audit(now: WallMs) -> AuditId {
    AuditId::first_at(now.plus(-AuditEntry::KEPT_MS))
}

/// Dead letters that died before this may go.
pub(crate) fn oldest_letter(now: WallMs) -> WallMs {
    now.plus(-Limits::DEAD_LETTER_MS)
}

/// Backfills that ended before this may go.
pub(crate) fn oldest_backfill(now: WallMs) -> WallMs {
    now.plus(-Limits::BACKFILL_MS)
}

/// Whether this commit looks for dead letters and backfills beyond their bounds: counting them each time would cost too
/// much.
pub(crate) fn counts_letters(seq: u64) -> bool {
    seq.is_multiple_of(64)
}

/// How many go of each namespace that has more than it may keep, `limit` in all: what one has in excess is no other's loss.
pub(crate) fn beyond<N>(
    counts: impl IntoIterator<Item = (N, usize)>,
    most: usize,
    limit: usize,
) -> Vec<(N, usize)> {
    let mut left = limit;
    let mut going = Vec::new();
    for (namespace, count) in counts {
        let excess = count.saturating_sub(most).min(left);
        if excess > 0 {
            left -= excess;
            going.push((namespace, excess));
        }
    }
    going
}

/// Revoked sessions that would have ended before this may go. Those that owned something tell where output lies, and
/// stay longer than output is kept by default.
pub(crate) fn oldest_session(now: WallMs) -> WallMs {
    now.plus(-DAY_MS)
}

/// Likewise, of sessions that owned something.
pub(crate) fn oldest_tenure(now: WallMs) -> WallMs {
    now.plus(-400 * DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_too_many_loses_some() {
        let counts = [("a", 12), ("b", 10), ("c", 15), ("d", 11)];
        assert_eq!(beyond(counts, 10, 100), [("a", 2), ("c", 5), ("d", 1)]);
        assert_eq!(beyond(counts, 10, 4), [("a", 2), ("c", 2)]);
        assert_eq!(beyond(counts, 20, 100), []);
        assert_eq!(beyond(counts, 10, 0), []);
    }
}
