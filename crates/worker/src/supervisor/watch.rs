//! The supervisor's loop, from its first system call to its report.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::BootMs;
use super::cgroup::Cgroup;
use super::clock::wall_ms;
use super::launch::{launch, remove_scratch};
use super::link::{AgentGone, Link};
use super::result_file;
use super::resume_files;
use super::sys::{self, Events, Pid, Reaped};
use super::tree::{Measured, Tree};
use super::wire::{Command, Excess, Exited, Limits, Reason, Start, Started, Status};

const SAMPLE_FIRST: Duration = Duration::from_millis(20);
const SAMPLE_LATER: Duration = Duration::from_secs(1);
/// Where nothing but the samples holds a tree to its limits.
const SAMPLE_LIMITED: Duration = Duration::from_millis(50);
const NEVER: BootMs = BootMs(u64::MAX);

pub fn supervise() -> io::Result<()> {
    sys::forbid_inspection();
    sys::close_inherited();
    sys::reset_signals();
    sys::block_signals()?;
    sys::set_plain_umask();
    sys::new_session()?;
    sys::become_subreaper()?;
    let mut link = Link::new(UnixStream::from(sys::take_stdin()?))?;
    let events = Events::new()?;
    let Ok(mut start) = await_start(&mut link, &events)? else {
        return Ok(());
    };
    let Ok(killed) = early_orders(&mut link, &mut start) else {
        return Ok(());
    };
    let over = (start.deadline <= BootMs::now()).then_some(Reason::Deadline);
    if let Some(reason) = killed.or(over) {
        let error = "killed, or its lease was over, before the command could be started".to_owned();
        link.send(&Status::NotStarted { reason, error });
    } else if let Some(watch) = Watch::begin(start, link, events) {
        watch.run();
    }
    Ok(())
}

fn await_start(link: &mut Link, events: &Events) -> io::Result<Result<Start, AgentGone>> {
    loop {
        match link.next() {
            Ok(Some(Command::Start(start))) => return Ok(Ok(*start)),
            // Nothing can be extended or killed yet, and the agent sends neither before the start.
            Ok(Some(_)) | Err(AgentGone) => return Ok(Err(AgentGone)),
            Ok(None) => events.wait(Some(link.as_fd()), NEVER)?,
        };
    }
}

/// On a busy machine renewals, or a kill, may have come by the time this process runs.
fn early_orders(link: &mut Link, start: &mut Start) -> Result<Option<Reason>, AgentGone> {
    while let Some(command) = link.next()? {
        match command {
            Command::Extend { deadline } => start.deadline = start.deadline.max(deadline),
            Command::Kill { reason, .. } => return Ok(Some(Reason::Killed(reason))),
            Command::Start(_) => return Err(AgentGone),
        }
    }
    Ok(None)
}

/// One running command.
struct Watch {
    start: Start,
    link: Link,
    events: Events,
    tree: Tree,
    cgroup: Option<Cgroup>,
    command: Pid,
    started: BootMs,
    ended: Option<Ended>,
    stopping: Option<Stopping>,
    deadline: BootMs,
    timeout: BootMs,
    sampler: Sampler,
}

/// The command itself ended; its descendants may live.
struct Ended {
    status: ExitStatus,
    at: BootMs,
}

/// SIGTERM was sent.
struct Stopping {
    reason: Reason,
    kill_at: BootMs,
}

struct Sampler {
    next: BootMs,
    interval: Duration,
    /// The longest time between two samples.
    slowest: Duration,
    peak_bytes: u64,
}

impl Watch {
    /// `None` if the command could not be started; the agent has been told.
    fn begin(start: Start, mut link: Link, events: Events) -> Option<Self> {
        // A command that could not be found again must not be started, nor one whose limits cannot be set.
        let launched = Tree::new()
            .map_err(|error| error.to_string())
            .and_then(|tree| {
                let cgroup = group(&start)?;
                let command = launch(&start, cgroup.as_ref())?;
                Ok((tree, cgroup, command))
            });
        // Kept open, the output would merely end with this process.
        let _ = sys::release_output();
        let (mut tree, cgroup, command) = match launched {
            Ok(launched) => launched,
            Err(error) => {
                link.send(&Status::NotStarted {
                    reason: Reason::NotStarted,
                    error,
                });
                return None;
            }
        };
        tree.set_command(command);
        let started = BootMs::now();
        link.send(&Status::Started(Started {
            pid: command as u32,
            at: started,
            wall_ms: wall_ms(),
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()),
        }));
        let timeout = start
            .timeout_ms
            .map_or(NEVER, |ms| started.plus(Duration::from_millis(ms)));
        let sampler = Sampler {
            next: started.plus(SAMPLE_FIRST),
            interval: SAMPLE_FIRST,
            slowest: if measured(&start.limits, cgroup.as_ref()) {
                SAMPLE_LIMITED
            } else {
                SAMPLE_LATER
            },
            peak_bytes: 0,
        };
        Some(Self {
            deadline: start.deadline,
            start,
            link,
            events,
            tree,
            cgroup,
            command,
            started,
            ended: None,
            stopping: None,
            timeout,
            sampler,
        })
    }

    fn run(mut self) {
        // Whatever keeps it from watching, a supervisor clears up before it goes.
        let reason = self.until_over().unwrap_or(Reason::SupervisorLost);
        let exited = self.clear(reason);
        self.link.send(&Status::Exited(exited));
    }

    /// Waits until the tree has to be cleared away, and says why.
    fn until_over(&mut self) -> io::Result<Reason> {
        loop {
            let childless = self.reap();
            let now = BootMs::now();
            let stop_reason = self.stopping.as_ref().map(|stopping| stopping.reason);
            // While a grace runs it is for the whole tree: a shell dies of SIGTERM at once, its child may need it.
            if self.ended.is_some() && (childless || stop_reason.is_none()) {
                return Ok(stop_reason.unwrap_or(Reason::Exited));
            }
            if self.deadline <= now {
                return Ok(stop_reason.unwrap_or(Reason::Deadline));
            }
            match &self.stopping {
                Some(stopping) if stopping.kill_at <= now => return Ok(stopping.reason),
                None if self.timeout <= now => {
                    self.stop(Reason::Timeout, self.start.timeout_grace_ms, now);
                    continue;
                }
                _ => {}
            }
            if let Some(reached) = self.sampler.sample_if_due(&self.tree, now)
                && measured(&self.start.limits, self.cgroup.as_ref())
                && let Some(excess) = self.excess_of(reached)
            {
                return Ok(stop_reason.unwrap_or(Reason::Excess(excess)));
            }
            if self
                .events
                .wait(Some(self.link.as_fd()), self.next_moment())?
                && self.obey().is_err()
            {
                return Ok(Reason::AgentGone);
            }
        }
    }

    /// Whether the tree as measured is beyond a limit.
    fn excess_of(&self, reached: Measured) -> Option<Excess> {
        let limits = &self.start.limits;
        // Pages that processes share were counted for each of them: before anybody is killed they are counted once.
        let is_over = |most: u64| reached.rss_bytes > most && self.tree.own_bytes() > most;
        if limits.memory_bytes.is_some_and(is_over) {
            return Some(Excess::Memory);
        }
        limits
            .processes
            .is_some_and(|most| reached.processes > most)
            .then_some(Excess::Processes)
    }

    fn next_moment(&self) -> BootMs {
        let stop = self
            .stopping
            .as_ref()
            .map_or(self.timeout, |stopping| stopping.kill_at);
        stop.min(self.deadline).min(self.sampler.next)
    }

    fn obey(&mut self) -> Result<(), AgentGone> {
        while let Some(command) = self.link.next()? {
            match command {
                Command::Extend { deadline } => self.deadline = self.deadline.max(deadline),
                Command::Kill { grace_ms, reason } => {
                    self.stop(Reason::Killed(reason), grace_ms, BootMs::now());
                }
                Command::Start(_) => return Err(AgentGone),
            }
        }
        Ok(())
    }

    /// The first reason stands; a later request can only shorten the grace.
    fn stop(&mut self, reason: Reason, grace_ms: u64, now: BootMs) {
        let kill_at = now.plus(Duration::from_millis(grace_ms));
        match &mut self.stopping {
            Some(stopping) => stopping.kill_at = stopping.kill_at.min(kill_at),
            None => {
                self.stopping = Some(Stopping { reason, kill_at });
                if grace_ms > 0 {
                    self.tree.signal_all(libc::SIGTERM);
                    // A stopped process could not answer.
                    self.tree.signal_all(libc::SIGCONT);
                }
            }
        }
    }

    /// Whether no descendant is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Reaped::Ended(pid, status) => self.note_end(pid, status),
                Reaped::Alive => return false,
                Reaped::Childless => return true,
            }
        }
    }

    fn note_end(&mut self, pid: Pid, status: libc::c_int) {
        if pid == self.command {
            let status = ExitStatus::from_raw(status);
            self.ended = Some(Ended {
                status,
                at: BootMs::now(),
            });
        }
    }

    /// Kills all that is left, removes the scratch directory and takes the account.
    fn clear(&mut self, reason: Reason) -> Exited {
        let _ = self.sampler.sample(&self.tree);
        sys::raise_priority();
        let mut killed = None;
        self.tree
            .kill_all(&self.events, self.cgroup.as_ref(), |pid, status| {
                killed = killed.or((pid == self.command).then_some(status));
            });
        if let Some(status) = killed {
            self.note_end(self.command, status);
        }
        let usage = sys::children_usage();
        let grouped_cpu_ms = self.cgroup.as_ref().map_or(0, Cgroup::cpu_ms);
        let grouped = self.cgroup.as_ref().is_some_and(Cgroup::limits);
        let excess = match reason {
            Reason::Excess(excess) => Some(excess),
            _ => self.cgroup.as_ref().and_then(Cgroup::excess),
        };
        self.cgroup = None;
        let scratch = &self.start.scratch;
        let left = result_file::read(scratch);
        let progress = resume_files::last_line(scratch);
        // Nobody is left to read it: what lies beside the directory would stay.
        let checkpoint = reason != Reason::AgentGone && resume_files::keep(scratch);
        let ended_at = self
            .ended
            .as_ref()
            .map_or_else(BootMs::now, |ended| ended.at);
        let status = self.ended.as_ref().map(|ended| ended.status);
        Exited {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            reason,
            duration_ms: ended_at.ms_since(self.started),
            // A parent that ignores the ends of its children hides them from `getrusage`, not from the group.
            cpu_ms: usage.cpu_ms.max(grouped_cpu_ms),
            peak_rss_bytes: usage.peak_rss_bytes.max(self.sampler.peak_bytes),
            scratch_error: remove_scratch(&self.start.scratch),
            excess,
            grouped,
            left,
            progress,
            checkpoint,
        }
    }
}

/// The command's group, with its limits in force; the error says what could not be set.
fn group(start: &Start) -> Result<Option<Cgroup>, String> {
    if !start.cgroup {
        return Ok(None);
    }
    let Some(cgroup) = Cgroup::create(start.groups.as_ref()) else {
        return Ok(None);
    };
    if cgroup.limits() {
        cgroup.restrict(&start.limits)?;
    }
    Ok(Some(cgroup))
}

/// Whether it is up to the samples to notice an excess.
fn measured(limits: &Limits, cgroup: Option<&Cgroup>) -> bool {
    (limits.memory_bytes.is_some() || limits.processes.is_some())
        && !cgroup.is_some_and(Cgroup::limits)
}

impl Sampler {
    fn sample_if_due(&mut self, tree: &Tree, now: BootMs) -> Option<Measured> {
        (self.next <= now).then(|| {
            self.interval = (self.interval * 2).min(self.slowest);
            self.next = now.plus(self.interval);
            self.sample(tree)
        })
    }

    fn sample(&mut self, tree: &Tree) -> Measured {
        let reached = tree.measure();
        self.peak_bytes = self.peak_bytes.max(reached.rss_bytes);
        reached
    }
}
