//! Conservation: what counters say, what the rows say, and what retention took away.

use std::collections::BTreeMap;

use drumtower_core::model::{NamespaceName, RunState};
use drumtower_store::Read;

use super::report::{Class, Report};
use crate::Error;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub live: u64,
}

impl Tally {
    pub fn count(&mut self, state: RunState, report: &mut Report) {
        let (mine, total) = match state {
            RunState::Completed => (&mut self.completed, &mut report.counts.completed),
            RunState::Failed => (&mut self.failed, &mut report.counts.failed),
            RunState::Cancelled => (&mut self.cancelled, &mut report.counts.cancelled),
            RunState::Pending | RunState::Scheduled | RunState::Running => {
                (&mut self.live, &mut report.counts.live)
            }
        };
        *mine += 1;
        *total += 1;
    }
}

/// Compares namespace by namespace. Returns how many runs retention removed.
pub(super) fn check(
    store: &dyn Read,
    found: &BTreeMap<NamespaceName, Tally>,
    report: &mut Report,
) -> Result<u64, Error> {
    let mut expected: BTreeMap<NamespaceName, (Tally, u64)> = BTreeMap::new();
    for ((_, namespace), counters) in store.counters()? {
        let (tally, created) = expected.entry(namespace).or_default();
        tally.completed += counters.completed;
        tally.failed += counters.failed;
        tally.cancelled += counters.cancelled;
        *created += counters.created;
    }
    let mut actual = found.clone();
    for row in store.pruned()? {
        let tally = actual.entry(row.namespace).or_default();
        tally.completed += row.completed;
        tally.failed += row.failed;
        tally.cancelled += row.cancelled;
        report.counts.pruned += row.completed + row.failed + row.cancelled;
    }
    for namespace in actual.keys() {
        expected.entry(namespace.clone()).or_default();
    }
    for (namespace, (mut counted, created)) in expected {
        counted.live =
            created.saturating_sub(counted.completed + counted.failed + counted.cancelled);
        let tally = actual.get(&namespace).copied().unwrap_or_default();
        if tally != counted {
            report.add(Class::Other, "V8", &namespace, || {
                format!(
                    "{created} were created; by its counters {counted:?}, by its rows {tally:?}"
                )
            });
        }
    }
    Ok(report.counts.pruned)
}
