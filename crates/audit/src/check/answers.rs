//! What callers and tasks were told against the runs that are there.

use drumtower_core::model::{IdempotencyEntry, RunId, WallMs};

use super::evidence::Evidence;
use super::report::{Class, Report};
use super::scan::Scan;

/// The shortest time that a finished run is kept.
const SHORTEST_RETENTION_MS: i64 = 24 * 3_600_000;

pub(super) fn check(
    evidence: &Evidence,
    scan: &mut Scan,
    now: WallMs,
    pruned: u64,
    report: &mut Report,
) {
    let gone = |run: RunId| pruned > 0 && now.since(run.created()) > SHORTEST_RETENTION_MS;
    let missing = |run: RunId| scan.ids.binary_search(&run).is_err() && !gone(run);
    for answer in evidence.answers.iter().filter(|answer| missing(answer.run)) {
        report.add(Class::Lost, "V9", answer.run, || {
            format!("a caller was told that it exists (key hash {:016x}) and the store does not have it", answer.key)
        });
    }
    let mut previous = None;
    for start in &evidence.starts {
        if previous.replace(start.run) != Some(start.run) && missing(start.run) {
            report.add(Class::Lost, "V9", start.run, || {
                format!(
                    "a task started for it at {} and the store does not have it",
                    start.wall.0
                )
            });
        }
    }
    one_run_a_key(&scan.keys, report);
}

/// Within the time that keys are kept, a job has one run for each.
fn one_run_a_key(keys: &[(u64, RunId)], report: &mut Report) {
    for pair in keys.windows(2) {
        let ((first_key, first), (second_key, second)) = (pair[0], pair[1]);
        let apart = second.created().since(first.created());
        if first_key == second_key && first != second && apart < IdempotencyEntry::KEPT_MS {
            report.add(Class::Duplicated, "V2", second, || {
                format!("{first} of the same job was made under the same idempotency key {apart} ms before")
            });
        }
    }
}
