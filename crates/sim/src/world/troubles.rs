//! Trouble happens, and ends.

use drumtower_core::model::{JobId, OnFull, OverlapPolicy, Run, RunState, SegmentSet};
use drumtower_store::{JobFilter, Read, RunFilter};

use super::event::{Event, Side};
use super::net::ConnId;
use super::{World, note};
use crate::clock::{At, MINUTE, MS, SECOND};
use crate::plan::{CommitTrouble, Trouble};

/// What is tried again within this time is waited for.
const SOON_MS: i64 = 60_000;

/// What holds for a while.
#[derive(Debug, Default)]
pub struct Weather {
    /// Until when, and how slow at most.
    pub slow_network: (At, u64),
    pub commits: Vec<(CommitTrouble, At)>,
    pub slow_loads: At,
    /// The next load fails.
    pub load_error: bool,
    /// Until when requests leave copies behind.
    pub late_copies: At,
    /// Nobody does anything before this.
    pub outage: At,
    /// Rows of the table of coverage that count, and until when.
    felt: Vec<(usize, At)>,
}

impl World {
    /// Counts a deed under every trouble that is felt.
    pub(crate) fn cover(&mut self, deed: &str) {
        let deed = crate::coverage::deed(deed);
        let at = self.at;
        self.weather.felt.retain(|(_, until)| *until > at);
        if self.weather.felt.is_empty() {
            self.coverage.count(0, deed);
        }
        for (row, _) in &self.weather.felt {
            self.coverage.count(*row, deed);
        }
    }

    pub(crate) fn trouble(&mut self, index: usize) {
        if self.calm {
            return;
        }
        let trouble = self.plan.troubles[index].1;
        if self.weather.outage > self.at {
            let at = self
                .weather
                .outage
                .plus(self.random.between(MS, 20 * SECOND));
            self.push(at, Event::Trouble { index });
            return;
        }
        note!(self, "trouble {trouble:?}");
        self.coverage.troubles[trouble.index()] += 1;
        let until = self.at.plus(trouble.lasts_us());
        self.weather.felt.push((trouble.index(), until));
        let (server, worker) = (self.any_server(), self.any_worker());
        match trouble {
            Trouble::CrashServer { down_us } => self.crash_server(server, down_us),
            Trouble::CrashAmidEffects { effects, down_us } => {
                self.servers[server].dies_after = Some((effects, down_us));
            }
            Trouble::FreezeServer { for_us } => {
                let node = &mut self.servers[server];
                node.frozen = node.frozen.max(self.at.plus(for_us));
            }
            Trouble::CutStore { for_us } => {
                self.servers[server].storeless = self.at.plus(for_us);
            }
            Trouble::CutWorkers { for_us } => self.cut_workers(server, for_us),
            Trouble::LeaveServer { down_us } => self.stop_server(server, down_us),
            Trouble::StepStore { ms } => self.store_clock.step(ms),
            Trouble::StepServer { ms } => {
                self.look_at_clocks();
                self.checks.clock_stepped(ms);
                self.servers[server].clock.step(ms);
                self.look_at_clocks();
            }
            Trouble::KillWorker { down_us } => self.kill_worker(worker, down_us),
            Trouble::FlapWorker {
                times,
                down_us,
                up_us,
            } => self.flap(worker, times, down_us, up_us),
            Trouble::DrainWorker { within_us, down_us } => {
                self.drain_worker(worker, within_us, down_us);
            }
            Trouble::FreezeWorker { for_us } => {
                self.workers[worker].freeze(self.at.plus(for_us));
            }
            Trouble::StepWorker { ms } => {
                self.look_at_clocks();
                self.workers[worker].clock.step(ms);
                self.look_at_clocks();
            }
            Trouble::CutStream => {
                let noticed = [
                    self.random.between(MS, SECOND),
                    self.random.between(MS, SECOND),
                ];
                self.cut_of(worker, true, true, noticed);
            }
            Trouble::CutUp { noticed_us } => {
                let noticed = [noticed_us, self.random.between(MS, 2 * noticed_us)];
                self.cut_of(worker, true, false, noticed);
            }
            Trouble::CutDown { noticed_us } => {
                let noticed = [self.random.between(MS, 2 * noticed_us), noticed_us];
                self.cut_of(worker, false, true, noticed);
            }
            Trouble::LateEchoes { for_us, latency_us } => {
                self.workers[worker].hears_late = (self.at.plus(for_us), latency_us);
                if let Some(conn) = self.any_conn(worker) {
                    let at = self.at.plus(self.random.between(SECOND, for_us));
                    let noticed = [30 * SECOND, 30 * SECOND];
                    self.push(at, Event::CutUp { conn, noticed });
                }
            }
            Trouble::Partition { for_us } => {
                self.workers[worker].unreachable = self.at.plus(for_us);
                let noticed = [
                    self.random.between(SECOND, 20 * SECOND),
                    self.random.between(SECOND, 20 * SECOND),
                ];
                self.cut_all_of(worker, noticed);
            }
            Trouble::SlowNetwork { for_us, latency_us } => {
                self.weather.slow_network = (self.at.plus(for_us), latency_us);
            }
            Trouble::Commits { kind, for_us } => {
                self.weather.commits.push((kind, self.at.plus(for_us)));
            }
            Trouble::SlowLoads { for_us } => self.weather.slow_loads = self.at.plus(for_us),
            Trouble::LoadError => self.weather.load_error = true,
            Trouble::RepeatWords { to_worker: false } => self.repeat_words(worker),
            Trouble::RepeatWords { to_worker: true } => self.repeat_heard(worker),
            Trouble::LateCopies { for_us } => self.weather.late_copies = self.at.plus(for_us),
            Trouble::Outage { for_us } => self.outage(for_us),
        }
    }

    /// A worker dies, stays away for longer than its lease, and dies again soon after it is back.
    pub(crate) fn flap(&mut self, worker: usize, left: u64, down_us: u64, up_us: u64) {
        if self.calm || self.weather.outage > self.at {
            return;
        }
        self.kill_worker(worker, down_us);
        if let Some(left) = left.checked_sub(1) {
            let at = self.at.plus(down_us + up_us);
            let flap = Event::Flap {
                worker,
                left,
                down_us,
                up_us,
            };
            self.push(at, flap);
        }
    }

    fn any_server(&mut self) -> usize {
        match self.servers.len() {
            1 => 0,
            count => self.random.below(count as u64) as usize,
        }
    }

    fn cut_workers(&mut self, server: usize, for_us: u64) {
        self.servers[server].unreachable = self.at.plus(for_us);
        for conn in self.conns_of_server(server) {
            let noticed = [
                self.random.between(SECOND, 20 * SECOND),
                self.random.between(SECOND, 20 * SECOND),
            ];
            self.cut(conn, true, true, noticed);
        }
    }

    fn any_worker(&mut self) -> usize {
        self.random.below(self.workers.len() as u64) as usize
    }

    fn cut_of(&mut self, worker: usize, up: bool, down: bool, noticed: [u64; 2]) {
        if let Some(conn) = self.any_conn(worker) {
            self.cut(conn, up, down, noticed);
        }
    }

    fn outage(&mut self, for_us: u64) {
        self.weather.outage = self.at.plus(for_us);
        // Keys do not last for ever: what is repeated after such a time is another request.
        for client in &mut self.clients {
            client.made.clear();
        }
        for server in 0..self.servers.len() {
            self.crash_server(server, for_us + 1_000 * server as u64);
        }
        for worker in 0..self.workers.len() {
            let late = self.random.skewed(0, 20 * SECOND);
            self.kill_worker(worker, for_us + late);
        }
    }

    pub(crate) fn conns_of_server(&self, server: usize) -> Vec<ConnId> {
        let of = |(id, conn): (&ConnId, &super::Conn)| {
            (conn.server == server && !conn.server_gone).then_some(*id)
        };
        self.conns.iter().filter_map(of).collect()
    }

    /// From here on nothing goes wrong any more, and everything must come to its end. What is frozen thaws in its time.
    pub(crate) fn calm_down(&mut self) {
        if self.weather.outage > self.at {
            self.push(self.weather.outage.plus(20 * SECOND), Event::Calm);
            return;
        }
        note!(self, "calm");
        self.calm = true;
        let felt = std::mem::take(&mut self.weather.felt);
        self.weather = Weather {
            felt,
            ..Weather::default()
        };
        self.look_at_clocks();
        for server in &mut self.servers {
            server.dies_after = None;
            server.storeless = At(0);
            server.unreachable = At(0);
            self.checks.clock_stepped(server.clock.set_right());
        }
        for worker in &mut self.workers {
            worker.unreachable = At(0);
            worker.hears_late = (At(0), 0);
            worker.clock.set_right();
        }
        self.store_clock.set_right();
        let live = self.live_runs();
        let lease_us = self.plan.longest_lease_ms() * MS;
        // One after the other, each at the slowest rate and tried again.
        let work_us = live as u64 * (4 * self.plan.figures.longest_task_ms * MS + 4 * SECOND);
        // What waits for its turn waits for every retry, and every probe of a breaker, of those before it.
        let turns_us = (self.queued_runs() as u64 + self.times_left()) * 2 * MINUTE;
        let bound = 15 * MINUTE + 6 * lease_us + work_us + turns_us;
        self.checks.drained_at_last = self.at.plus(bound);
        self.still_draining();
        self.push(self.at.plus(SECOND), Event::Poll);
    }

    /// A task has come to its end, or all is calm from now on. What waits while nothing comes to its end for two hours has been
    /// forgotten: no task takes that long, and queues let go of what is older than an hour.
    pub(crate) fn still_draining(&mut self) {
        let by = self.at.plus(120 * MINUTE);
        self.checks.drained_by = by.min(self.checks.drained_at_last);
    }

    fn queued_runs(&self) -> usize {
        let states = vec![RunState::Pending];
        let filter = RunFilter {
            states,
            ..RunFilter::default()
        };
        let runs = self.reader.runs(&filter, None, usize::MAX);
        let queued = |page: drumtower_store::RunPage| {
            let runs = page.runs.iter();
            runs.filter(|run| run.standing.queued).count()
        };
        runs.map_or(0, queued)
    }

    fn live_runs(&self) -> usize {
        let states = vec![RunState::Pending, RunState::Scheduled, RunState::Running];
        let filter = RunFilter {
            states,
            ..RunFilter::default()
        };
        let runs = self.reader.runs(&filter, None, usize::MAX);
        runs.map_or(0, |page| page.runs.len())
    }

    /// Looks whether everything is done, and lets the janitor do what is needed for it.
    pub(crate) fn poll(&mut self) {
        self.check_in_time();
        let filter = JobFilter::default();
        let jobs = self
            .reader
            .jobs(&filter, None, usize::MAX)
            .unwrap_or_default();
        let busy: Vec<_> = jobs
            .jobs
            .into_iter()
            .filter(|job| job.row.paused.is_none() && !job.version.spec.schedule.is_empty())
            .collect();
        let runs = self.due_runs();
        let connected = self.all_connected();
        let quiet = self.calls.is_empty() && connected && self.is_quiet();
        let filling = self.idle_backfills();
        let untold = self.reader.endings(&SegmentSet::ALL, 1);
        let told = untold.is_ok_and(|endings| endings.is_empty());
        if busy.is_empty() && runs.is_empty() && filling.is_empty() && told && quiet {
            note!(self, "drained");
            self.check_end();
            self.finish();
            return;
        }
        if self.at > self.checks.drained_by {
            let some: Vec<String> = runs
                .iter()
                .take(5)
                .map(|run| format!("{} {} parked {:?}", run.id, run.state.as_str(), run.parked))
                .collect();
            let words = format!(
                "not drained: {} jobs not paused, {} runs ({}), backfills without runs {filling:?}, all workers connected: {connected}, {} calls open, all ends told: {told}, servers quiet: {}",
                busy.len(),
                runs.len(),
                some.join(", "),
                self.calls.len(),
                self.is_quiet(),
            );
            self.checks.find("V16", words);
            return;
        }
        if self.calls.is_empty() {
            self.tidy_up(busy, &runs);
        }
        self.push(self.at.plus(2 * SECOND), Event::Poll);
    }

    fn all_connected(&self) -> bool {
        let servers = 0..self.servers.len();
        let to_all = |worker: &Worker| servers.clone().all(|it| worker.is_connected_to(it));
        self.workers.iter().all(to_all)
    }

    /// Runs that have not ended and whose time has come, or that are tried again soon.
    fn due_runs(&self) -> Vec<Run> {
        let states = vec![RunState::Pending, RunState::Scheduled, RunState::Running];
        let filter = RunFilter {
            states,
            ..RunFilter::default()
        };
        let page = self
            .reader
            .runs(&filter, None, usize::MAX)
            .unwrap_or_default();
        let runs = page.runs.into_iter();
        // Who waits for its turn waits as long as those before it: a clock that was ahead may have put them off for hours.
        let waits = |run: &Run| {
            let key = run.standing.key.as_deref();
            let full = |overlap: &OverlapPolicy| {
                // One that is to start later stops for nobody else.
                overlap.on_full != OnFull::CancelOld && self.is_full_of_later(run.job, key, overlap)
            };
            run.standing.queued && self.overlap_of(run.job).as_ref().is_some_and(full)
        };
        runs.filter(|run| !self.is_put_off(run) && !waits(run))
            .collect()
    }

    /// Whether a run is to start later, and later than it is soon tried again.
    fn is_put_off(&self, run: &Run) -> bool {
        let now = self.wall_at(run.id.segment());
        let soon = match run.attempts.is_empty() {
            true => now,
            false => now.plus(SOON_MS),
        };
        run.ready() > soon
    }

    pub(crate) fn overlap_of(&self, job: JobId) -> Option<OverlapPolicy> {
        let job = self.reader.job(job).ok().flatten()?;
        job.version.spec.overlap.parsed("overlap").ok()
    }

    /// Whether every place of a job, or of a key of it, is taken by a run that is to start later.
    pub(crate) fn is_full_of_later(
        &self,
        job: JobId,
        key: Option<&str>,
        overlap: &OverlapPolicy,
    ) -> bool {
        let live = self.reader.live_runs(job, key, usize::MAX);
        let live = live.unwrap_or_default();
        let put_off = live.iter().filter(|run| self.is_put_off(run)).count();
        overlap.most().is_some_and(|most| put_off >= most as usize)
    }

    /// Lets go of a stream on one side, once.
    pub(crate) fn let_go(&mut self, conn: ConnId, side: Side) -> bool {
        let Some(held) = self.conns.get_mut(&conn) else {
            return false;
        };
        let gone = match side {
            Side::Server => &mut held.server_gone,
            Side::Worker => &mut held.worker_gone,
        };
        let first = !std::mem::replace(gone, true);
        self.forget(conn);
        first
    }
}

use crate::worker::Worker;
