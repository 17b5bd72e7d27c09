//! V4: once all is calm, nothing that could run waits while a worker that could run it has nothing to do.
//!
//! Runs under a limit or in a queue have other reasons to wait and are left out, and so are workers that the server says it
//! keeps away from work on purpose.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{JobSpec, Run, RunState, SegmentId, Task, WallMs};
use drumtower_store::{Read, RunFilter};

use crate::clock::{At, MS, SECOND};
use crate::plan::WorkerPlan;
use crate::server::Phase;
use crate::world::World;
use crate::world::net::{Conn, ConnId};

/// How long a run and a worker may miss each other.
const PATIENCE_US: u64 = 20 * SECOND;
/// How long credit may take from one server to another besides.
const CREDIT_MOVES_US: u64 = 20 * SECOND;

/// Workers without a task, on which streams and since when.
pub(super) type Idle = BTreeMap<usize, (Vec<ConnId>, At)>;

impl World {
    /// Looked at again and again while everything comes to its end.
    pub(crate) fn check_in_time(&mut self) {
        self.look_at_idle();
        let patience_us = match self.is_cluster() {
            true => PATIENCE_US + CREDIT_MOVES_US,
            false => PATIENCE_US,
        };
        let long = self.checks.idle.iter().filter(|(_, (_, since))| {
            let idle_us = self.at.since(*since);
            idle_us > patience_us
        });
        let idle: Vec<usize> = long.map(|(worker, _)| *worker).collect();
        if idle.is_empty() {
            return;
        }
        let filter = RunFilter {
            states: vec![RunState::Pending],
            ..RunFilter::default()
        };
        let waiting = self.reader.runs(&filter, None, usize::MAX);
        let patience_ms = i64::try_from(patience_us / MS).unwrap_or(i64::MAX);
        for run in waiting.unwrap_or_default().runs {
            let Some(now) = self.believed_wall(run.id.segment()) else {
                continue;
            };
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

    /// What the engine that owns a segment takes the wall clock to be. A step forward that nobody has confirmed is not believed
    /// for a while.
    fn believed_wall(&self, segment: SegmentId) -> Option<WallMs> {
        let server = &self.servers[self.owner_of(segment)?];
        let Phase::Ready(live) = &server.phase else {
            return None;
        };
        let now = server.clock.now(self.at);
        let unmoved = now.mono.0.cast_signed() + live.engine.believed_offset();
        Some(now.wall.min(WallMs(unmoved)))
    }

    /// The workers that every server would give something to; `None` while one of them is not at work.
    fn wanted(&self) -> Option<BTreeSet<String>> {
        let mut wanted: Option<BTreeSet<String>> = None;
        for server in &self.servers {
            let Phase::Ready(live) = &server.phase else {
                return None;
            };
            if live.is_moving() {
                return None;
            }
            let views = live.engine.workers(server.clock.now(self.at)).into_iter();
            let takes = views.filter(|view| view.state.takes_work());
            let names: BTreeSet<String> = takes.map(|view| view.name.to_string()).collect();
            wanted = Some(match wanted {
                None => names,
                Some(before) => before.intersection(&names).cloned().collect(),
            });
        }
        wanted
    }

    fn look_at_idle(&mut self) {
        let Some(wanted) = self.wanted() else {
            self.checks.idle.clear();
            return;
        };
        for (index, worker) in self.workers.iter().enumerate() {
            let tasks = worker.live.as_ref().map_or(1, |live| live.tasks.len());
            let connected = (0..self.servers.len()).all(|it| worker.is_connected_to(it));
            let conns: Vec<ConnId> = worker.conns().collect();
            let mut held = conns.iter().map(|conn| self.conns.get(conn));
            let whole = held.all(|conn| conn.is_some_and(Conn::is_whole));
            if tasks == 0 && connected && whole && wanted.contains(&worker.name) {
                let fresh = (conns, self.at);
                let since = self.checks.idle.entry(index).or_insert(fresh.clone());
                if since.0 != fresh.0 {
                    *since = fresh;
                }
            } else {
                self.checks.idle.remove(&index);
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
