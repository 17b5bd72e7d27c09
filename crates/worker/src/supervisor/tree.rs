//! The descendants of this process: finding, measuring and killing them.
//!
//! A walk is a picture of a moving thing: a process may fork or end while it is taken. So nothing here trusts one
//! walk. Killing first freezes (a stopped process does not fork) until a walk finds nobody that was not stopped
//! before, then kills, then asks `waitpid` whether anybody is left, and goes round again until nobody is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::Duration;

use super::BootMs;
use super::cgroup::Cgroup;
use super::sys::{self, Events, Pid, Reaped};

/// Walks after which frozen or not, all that was found is killed: progress against a tree that forks faster than
/// it can be stopped.
const FREEZE_WALKS: usize = 64;
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

pub struct Measured {
    /// Resident bytes, summed. Pages that processes share count for each of them.
    pub rss_bytes: u64,
    pub processes: u64,
}

pub struct Tree {
    root: Pid,
    /// Whether the kernel lists the children of a task; otherwise every process must be looked at.
    listed: bool,
    page_bytes: u64,
}

impl Tree {
    /// The descendants of this process.
    pub fn new() -> io::Result<Self> {
        let root = std::process::id() as Pid;
        fs::metadata("/proc/self/stat").map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot see processes, mount /proc: {error}"),
            )
        })?;
        let listed = fs::exists(format!("/proc/{root}/task/{root}/children")).unwrap_or(false);
        Ok(Self {
            root,
            listed,
            page_bytes: sys::page_bytes(),
        })
    }

    /// Only the platforms without a walk need to know the command.
    pub fn set_command(&mut self, _command: Pid) {}

    /// Sends a signal to everyone found, once.
    pub fn signal_all(&self, signal: libc::c_int) {
        for pid in self.descendants() {
            sys::signal(pid, signal);
        }
    }

    /// What the tree uses at this moment.
    pub fn measure(&self) -> Measured {
        let descendants = self.descendants();
        let pages = descendants
            .iter()
            .filter_map(|pid| resident_pages(*pid))
            .sum::<u64>();
        Measured {
            rss_bytes: pages * self.page_bytes,
            processes: descendants.len() as u64,
        }
    }

    /// Resident bytes with pages that processes share counted once. Slower than [`Tree::measure`] by far.
    pub fn own_bytes(&self) -> u64 {
        let one = |pid: Pid| {
            proportional_bytes(pid)
                .or_else(|| Some(resident_pages(pid)? * self.page_bytes))
                .unwrap_or(0)
        };
        self.descendants().into_iter().map(one).sum()
    }

    /// Returns when no descendant is left. Each child that ends on the way is told to `on_end`.
    pub fn kill_all(
        &self,
        events: &Events,
        cgroup: Option<&Cgroup>,
        mut on_end: impl FnMut(Pid, libc::c_int),
    ) {
        let mut pause = PAUSE_MIN;
        loop {
            if let Some(cgroup) = cgroup {
                cgroup.kill();
            }
            self.freeze();
            self.signal_all(libc::SIGKILL);
            loop {
                match sys::reap() {
                    Reaped::Ended(pid, status) => on_end(pid, status),
                    Reaped::Alive => break,
                    Reaped::Childless => return,
                }
            }
            if events.wait(None, BootMs::now().plus(pause)).is_err() {
                std::thread::sleep(pause);
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn freeze(&self) {
        let mut stopped = BTreeSet::new();
        for _ in 0..FREEZE_WALKS {
            let mut found_more = false;
            for pid in self.descendants() {
                if stopped.insert(pid) {
                    found_more = true;
                    sys::signal(pid, libc::SIGSTOP);
                }
            }
            if !found_more {
                return;
            }
        }
    }

    /// Parents come before their children.
    fn descendants(&self) -> Vec<Pid> {
        if self.listed {
            walk(self.root, children)
        } else {
            let parents = children_by_parent();
            walk(self.root, |pid| {
                parents.get(&pid).cloned().unwrap_or_default()
            })
        }
    }
}

fn walk(root: Pid, children: impl Fn(Pid) -> Vec<Pid>) -> Vec<Pid> {
    let mut found = children(root);
    let mut seen = found.iter().copied().chain([root]).collect::<BTreeSet<_>>();
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        // A process id that was used again while the walk went on could close a circle.
        found.extend(
            children(pid)
                .into_iter()
                .filter(|child| seen.insert(*child)),
        );
    }
    found
}

/// The children of all threads of a process, as the kernel lists them.
fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            listed
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<Pid>().ok()),
        );
    }
    found
}

fn children_by_parent() -> BTreeMap<Pid, Vec<Pid>> {
    let mut parents = BTreeMap::<Pid, Vec<Pid>>::new();
    for process in processes() {
        parents.entry(process.parent).or_default().push(process.pid);
    }
    parents
}

struct Process {
    pid: Pid,
    state: u8,
    parent: Pid,
    session: Pid,
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // The name in the second field may hold any bytes.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(pid, &String::from_utf8_lossy(&stat))
    })
}

/// The name, in brackets, may itself hold spaces and brackets: fields are counted from its end.
fn parse_stat(pid: Pid, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(Process {
        pid,
        state: *fields.next()?.as_bytes().first()?,
        parent: fields.next()?.parse().ok()?,
        session: fields.nth(1)?.parse().ok()?,
    })
}

fn resident_pages(pid: Pid) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What the kernel counts for a process when it divides shared pages among those who share them.
fn proportional_bytes(pid: Pid) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Kills the members of a session whose leader died, and returns when none is left or they do not die.
/// The leader must not have been reaped yet, so that its id cannot mean another session. (Only the platforms without
/// a view of sessions need to know the command.)
pub fn kill_session(leader: Pid, _command: Option<Pid>) {
    const ROUNDS: u32 = 200;
    for _ in 0..ROUNDS {
        let alive = processes()
            .filter(|process| process.session == leader && process.state != b'Z')
            .map(|process| process.pid)
            .collect::<Vec<_>>();
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            sys::signal(pid, libc::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_shift_the_fields() {
        let process = parse_stat(7, "7 (a) R 1 1 (b)) S 42 7 9 0 -1").unwrap();
        assert_eq!(
            (process.state, process.parent, process.session),
            (b'S', 42, 9)
        );
        assert!(parse_stat(7, "7 (cut").is_none());
    }

    #[test]
    fn a_walk_ends_on_a_circle_and_puts_parents_first() {
        let edges = BTreeMap::from([(1, vec![2, 3]), (2, vec![4]), (4, vec![2, 5])]);
        let found = walk(1, |pid| edges.get(&pid).cloned().unwrap_or_default());
        assert_eq!(found, [2, 3, 4, 5]);
    }

    #[test]
    fn both_ways_of_walking_see_a_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let mut tree = Tree::new().unwrap();
        for listed in [tree.listed, false] {
            tree.listed = listed;
            assert!(
                tree.descendants().contains(&(child.id() as Pid)),
                "listed: {listed}"
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
