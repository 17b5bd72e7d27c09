//! Who is kept away from work gets none: a name that was lost again and again nothing, one on probation a run at a time.
//!
//! Whom the server keeps away it says itself, before it decides on a batch; what it gives them is seen in the batch.

use std::collections::BTreeSet;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::WorkerView;
use drumtower_core::model::{ProcessId, Run, RunId, SegmentSet, WorkerName};
use drumtower_store::Read;

use crate::world::World;

/// Whom a server keeps away from work.
#[derive(Debug, Default)]
pub(crate) struct KeptAway {
    isolated: BTreeSet<WorkerName>,
    on_probation: BTreeSet<WorkerName>,
}

impl KeptAway {
    pub(crate) fn of(views: &[WorkerView]) -> Self {
        let named = |kept: fn(&WorkerView) -> bool| {
            let kept = views.iter().filter(|view| kept(view));
            kept.map(|view| view.name.clone()).collect()
        };
        Self {
            isolated: named(|view| view.faulty_until.is_some()),
            on_probation: named(|view| view.probation),
        }
    }
}

impl World {
    /// A batch that is about to be committed, decided on while these were kept away.
    pub(crate) fn check_kept_away(
        &mut self,
        kept: &KeptAway,
        owned: &SegmentSet,
        changes: &ChangeSet,
    ) {
        if kept.isolated.is_empty() && kept.on_probation.is_empty() {
            return;
        }
        let mut tried: BTreeSet<ProcessId> = BTreeSet::new();
        for change in changes.runs.values() {
            let run = change.run();
            let known = self.attempts_of(run.id);
            for attempt in run.attempts.iter().skip(known) {
                if kept.isolated.contains(&attempt.worker) {
                    let words = format!("{} is given to {}", run.id, attempt.worker);
                    self.checks.find("isolation", words);
                }
                if kept.on_probation.contains(&attempt.worker) {
                    tried.insert(attempt.process);
                }
            }
        }
        for process in tried {
            let held = self.held_after(process, owned, changes);
            if held > 1 {
                let words = format!("process {:x} on probation holds {held} runs", process.0);
                self.checks.find("isolation", words);
            }
        }
    }

    fn attempts_of(&self, run: RunId) -> usize {
        let run = self.reader.run(run).ok().flatten();
        run.map_or(0, |run| run.attempts.len())
    }

    /// How many attempts of these segments a process holds once the batch is committed.
    fn held_after(&self, process: ProcessId, owned: &SegmentSet, changes: &ChangeSet) -> usize {
        let holds = |run: &Run| {
            let current = run.current_attempt();
            current.is_some_and(|attempt| attempt.process == process)
        };
        let active = self.reader.active_runs(owned, None, usize::MAX);
        let untouched = active.unwrap_or_default().into_iter();
        let untouched = untouched.filter(|run| !changes.runs.contains_key(&run.id));
        let changed = changes.runs.values().filter(|change| holds(change.run()));
        untouched.filter(holds).count() + changed.count()
    }
}
