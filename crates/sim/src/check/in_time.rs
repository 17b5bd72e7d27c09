//! V4: once all is calm, nothing that could run waits while a worker that could run it has nothing to do.
//!
//! Runs under a limit or in a queue have other reasons to wait and are left out, and so are workers that the server says it
//! keeps away from work on purpose.

use std::collections::BTreeMap;

use drumtower_core::model::{JobSpec, Run, RunState, Task, WallMs};
use drumtower_store::{Read, RunFilter};

use crate::clock::{At, MS, SECOND};
use crate::plan::WorkerPlan;
use crate::server::Phase;
use crate::world::World;
use crate::world::net::{Conn, ConnId};

/// How long a run and a worker may miss each other.
const PATIENCE_US: u64 = 20 * SECOND;

/// Workers without a task, on which stream and since when.
pub(super) type Idle = BTreeMap<usize, (ConnId, At)>;

impl World {
    /// Looked at again and again while everything comes to its end.
    pub(crate) fn check_in_time(&mut self) {
        self.look_at_idle();
        let long = self.checks.idle.iter().filter(|(_, (_, since))| {
            let idle_us = self.at.since(*since);
            idle_us > PATIENCE_US
        });
        let idle: Vec<usize> = long.map(|(worker, _)| *worker).collect();
        if idle.is_empty() {
            return;
        }
        let Some(now) = self.believed_wall() else {
            return;
        };
        let filter = RunFilter {
            states: vec![RunState::Pending],
            ..RunFilter::default()
        };
        let waiting = self.reader.runs(&filter, None, usize::MAX);
        let patience_ms = i64::try_from(PATIENCE_US / MS).unwrap_or(i64::MAX);
        for run in waiting.unwrap_or_default().runs {
            let overdue = now.since(run.ready()) > patience_ms;
            let waits = run.standing.queued || run.cancel.is_some();
            let Some(spec) = self.pinned_free(&run).filter(|_| overdue && !waits) else {
                continue;
            };
            let able = idle
                .iter()
                .find(|worker| can_run(&self.workers[**worker].shape, &run, &spec));
            if let Some(worker) = able {
                let words = format!(
                    "{} has been ready for {} ms and worker {worker} has nothing to do",
                    run.id,
                    now.since(run.ready())
                );
                self.checks.find("V4", words);
                return;
            }
        }
    }

    /// What the engine takes the wall clock to be. A step forward that nobody has confirmed is not believed for a while.
    fn believed_wall(&self) -> Option<WallMs> {
        let server = &self.servers[self.owner];
        let Phase::Ready(live) = &server.phase else {
            return None;
        };
        let now = server.clock.now(self.at);
        let unmoved = now.mono.0.cast_signed() + live.engine.believed_offset();
        Some(now.wall.min(WallMs(unmoved)))
    }

    fn look_at_idle(&mut self) {
        let Phase::Ready(live) = &self.servers[self.owner].phase else {
            self.checks.idle.clear();
            return;
        };
        let views = live
            .engine
            .workers(self.servers[self.owner].clock.now(self.at));
        for (index, worker) in self.workers.iter().enumerate() {
            let tasks = worker.live.as_ref().map_or(1, |live| live.tasks.len());
            let wanted = views
                .iter()
                .any(|view| view.name.as_str() == worker.name && view.state.takes_work());
            let conn = worker
                .conn
                .filter(|_| tasks == 0 && wanted && worker.is_connected())
                .filter(|conn| self.conns.get(conn).is_some_and(Conn::is_whole));
            match conn {
                Some(conn) => {
                    let since = self.checks.idle.entry(index).or_insert((conn, self.at));
                    if since.0 != conn {
                        *since = (conn, self.at);
                    }
                }
                None => drop(self.checks.idle.remove(&index)),
            }
        }
    }

    /// What a run was made from, unless something beside workers may hold it back.
    fn pinned_free(&self, run: &Run) -> Option<JobSpec> {
        let job = self.reader.job(run.job).ok()??;
        let current = job.version.spec;
        if current.limits.is_some() || current.queue.is_some() {
            return None;
        }
        self.spec(run.job, run.job_version)
    }
}

fn can_run(worker: &WorkerPlan, run: &Run, spec: &JobSpec) -> bool {
    let open = worker.namespace.as_deref();
    let offers = match &spec.task {
        Task::Handler(handler) => worker.handlers.contains(&handler.name),
        Task::Exec(_) => worker.exec,
        _ => false,
    };
    offers && spec.weight <= worker.capacity && open.is_none_or(|it| it == run.namespace.as_str())
}
