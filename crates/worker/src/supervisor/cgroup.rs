//! A control group (version 2) for one command: the kernel kills its members in one call, counts their CPU time and, where
//! the group has the controllers, holds them to their limits.
//!
//! Without controllers it is an aid. Where it may not be made, or the command leaves it, the walk over the tree does the work
//! alone.
//!
//! The kernel divides the controllers of a group among its children only while no process is in it directly. So [`prepare`], at
//! the start of a worker that is alone in its group, moves the worker into a child; a worker in company leaves all as it is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::wire::{Excess, Limits};

/// The group that the worker itself moves into.
const OWN: &str = "drumtower-worker";
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The span over which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// Where groups for commands are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    path: PathBuf,
    /// Groups there can hold their members to limits.
    limits: bool,
}

/// How the limits of commands are enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// By control groups; else by resource limits and measuring.
    pub by_groups: bool,
    /// Why that, for people.
    pub why: String,
}

/// Finds out what the system allows, and makes ready for it. Once in the life of a worker, before it runs anything.
pub fn prepare() -> (Option<Groups>, Enforcement) {
    let measured = |why: String| Enforcement {
        by_groups: false,
        why,
    };
    let Some(mut path) = own_group() else {
        let why = "this system has no control groups of version 2".to_owned();
        return (None, measured(why));
    };
    if path.ends_with(OWN) {
        path.pop();
    }
    let shown = path.display().to_string();
    if let Err(error) = probe(&path) {
        let why = format!("no control group can be made in {shown}: {error}");
        return (None, measured(why));
    }
    let enforcement = match divide(&path, std::process::id()) {
        Ok(()) => Enforcement {
            by_groups: true,
            why: format!("control groups in {shown}"),
        },
        Err(why) => measured(why),
    };
    let groups = Groups {
        path,
        limits: enforcement.by_groups,
    };
    (Some(groups), enforcement)
}

fn probe(path: &Path) -> io::Result<()> {
    let probe = path.join(format!("drumtower-probe-{}", std::process::id()));
    fs::create_dir(&probe)?;
    let kills = probe.join("cgroup.kill").exists();
    fs::remove_dir(&probe)?;
    if kills {
        Ok(())
    } else {
        Err(io::Error::other("the kernel is older than 5.14"))
    }
}

/// Gives the controllers of a group to its children; the error is for people.
fn divide(path: &Path, own: u32) -> Result<(), String> {
    let shown = path.display();
    let read = |name: &str| {
        fs::read_to_string(path.join(name)).map_err(|error| format!("{shown}/{name}: {error}"))
    };
    let missing = |list: &str| {
        let has = |name: &&str| list.split_whitespace().any(|it| it == *name);
        let mut missing = CONTROLLERS.to_vec();
        missing.retain(|name| !has(name));
        missing
    };
    let lacking = missing(&read("cgroup.controllers")?);
    if !lacking.is_empty() {
        return Err(format!(
            "the control group {shown} has no controller for {}",
            lacking.join(", ")
        ));
    }
    let wanted = missing(&read("cgroup.subtree_control")?);
    if wanted.is_empty() {
        return Ok(());
    }
    let switch = wanted
        .iter()
        .map(|name| format!("+{name}"))
        .collect::<Vec<_>>()
        .join(" ");
    let control = path.join("cgroup.subtree_control");
    if fs::write(&control, &switch).is_ok() {
        return Ok(());
    }
    let alone = read("cgroup.procs")?
        .split_whitespace()
        .all(|pid| pid == own.to_string());
    if !alone {
        return Err(format!(
            "other processes share the control group {shown}: run the worker as a service of its own (systemd: Delegate=yes)"
        ));
    }
    let into_own = || -> io::Result<()> {
        let inner = path.join(OWN);
        match fs::create_dir(&inner) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::write(inner.join("cgroup.procs"), own.to_string())?;
        fs::write(&control, &switch)
    };
    into_own().map_err(|error| {
        format!("the controllers of {shown} cannot be handed on: {error} (systemd: Delegate=yes)")
    })
}

pub struct Cgroup {
    path: PathBuf,
    limits: bool,
}

impl Cgroup {
    /// Makes a group, under that of this process unless told where; `None` where the system does not allow it.
    pub fn create(groups: Option<&Groups>) -> Option<Self> {
        let (parent, limits) = match groups {
            Some(groups) => (groups.path.clone(), groups.limits),
            None => (own_group()?, false),
        };
        let path = parent.join(format!("drumtower-attempt-{}", std::process::id()));
        // A supervisor with this process id may have died and left its empty group.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).ok()?;
        let group = Self { path, limits };
        // Without the kill file (before Linux 5.14) the group would add nothing; dropping it removes it.
        group.path.join("cgroup.kill").exists().then_some(group)
    }

    /// Whether it holds its members to limits.
    pub fn limits(&self) -> bool {
        self.limits
    }

    /// Puts limits in force; the error says which could not be.
    pub fn restrict(&self, limits: &Limits) -> Result<(), String> {
        let set = |file: &str, value: String| {
            fs::write(self.path.join(file), &value)
                .map_err(|error| format!("cannot set {file} of the control group: {error}"))
        };
        if let Some(bytes) = limits.memory_bytes {
            set("memory.max", bytes.to_string())?;
            // What does not fit must not go to swap instead; a kernel without swap has no such file.
            let _ = set("memory.swap.max", "0".to_owned());
            let _ = set("memory.oom.group", "1".to_owned());
        }
        if let Some(milli) = limits.cpu_milli {
            let quota = u64::from(milli) * CPU_PERIOD / 1000;
            set("cpu.max", format!("{quota} {CPU_PERIOD}"))?;
        }
        match limits.processes {
            Some(count) => set("pids.max", count.to_string()),
            None => Ok(()),
        }
    }

    /// The limit that the kernel says was reached.
    pub fn excess(&self) -> Option<Excess> {
        let count = |file: &str, key: &str| {
            let events = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            let value = events.lines().find_map(|line| {
                let (name, value) = line.split_once(' ')?;
                (name == key).then(|| value.parse::<u64>().ok())?
            });
            value.unwrap_or(0)
        };
        if !self.limits {
            None
        } else if count("memory.events", "oom_kill") > 0 {
            Some(Excess::Memory)
        } else if count("pids.events", "max") > 0 {
            Some(Excess::Processes)
        } else {
            None
        }
    }

    /// A group that another process made.
    pub fn existing(path: PathBuf) -> Self {
        Self {
            path,
            limits: false,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file through which a process enters by writing `0`.
    pub fn entrance(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .open(self.path.join("cgroup.procs"))
    }

    pub fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Whether no member lives. A group that cannot be read has none to wait for.
    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.path.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    /// CPU time of all members so far, dead ones included; zero if unknown.
    pub fn cpu_ms(&self) -> u64 {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).unwrap_or_default();
        let usage = stat
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        usage.and_then(|us| us.parse::<u64>().ok()).unwrap_or(0) / 1000
    }
}

impl Drop for Cgroup {
    /// Succeeds only when no member is left, which is when it should.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn own_group() -> Option<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    locate(&membership, &mounts)
}

/// Where this process's version 2 group is in the file system.
fn locate(membership: &str, mounts: &str) -> Option<PathBuf> {
    let group = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        if filesystem.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(Path::new(mount_point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a group, as far as files go: what the kernel does with it is not tried here.
    fn look_alike(controllers: &str, enabled: &str, members: &str) -> tempfile::TempDir {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(group.path().join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(group.path().join("cgroup.procs"), members).unwrap();
        group
    }

    #[test]
    fn controllers_are_handed_on_or_the_reason_is_told() {
        let bare = look_alike("cpuset io\n", "", "7\n");
        let why = divide(bare.path(), 7).unwrap_err();
        assert!(why.contains("no controller for cpu, memory, pids"), "{why}");
        let done = look_alike("cpu memory pids\n", "cpu memory pids\n", "");
        assert_eq!(divide(done.path(), 7), Ok(()));
        let part = look_alike("cpu memory pids\n", "cpu\n", "");
        assert_eq!(divide(part.path(), 7), Ok(()));
        let written = fs::read_to_string(part.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(written, "+memory +pids");
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let place = tempfile::tempdir().unwrap();
        let group = Cgroup {
            path: place.path().to_owned(),
            limits: true,
        };
        let limits = Limits {
            memory_bytes: Some(512 << 20),
            cpu_milli: Some(1500),
            open_files: Some(9),
            processes: Some(64),
        };
        group.restrict(&limits).unwrap();
        let said = |file: &str| fs::read_to_string(place.path().join(file)).unwrap();
        assert_eq!(said("memory.max"), "536870912");
        assert_eq!(said("cpu.max"), "150000 100000");
        assert_eq!(said("pids.max"), "64");
        assert_eq!(group.excess(), None);
        fs::write(place.path().join("pids.events"), "max 2\n").unwrap();
        assert_eq!(group.excess(), Some(Excess::Processes));
        fs::write(
            place.path().join("memory.events"),
            "low 0\noom 1\noom_kill 1\n",
        )
        .unwrap();
        assert_eq!(group.excess(), Some(Excess::Memory));
    }

    const HYBRID: &str = "\
        36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn finds_the_version_2_group_beside_version_1() {
        let found = locate("4:memory:/a\n0::/system.slice/drumtower\n", HYBRID);
        assert_eq!(
            found,
            Some("/sys/fs/cgroup/unified/system.slice/drumtower".into())
        );
    }

    #[test]
    fn follows_a_mount_of_a_part() {
        let mounts = "9 1 0:2 /pod7 /sys/fs/cgroup rw - cgroup2 none rw\n";
        assert_eq!(
            locate("0::/pod7/a\n", mounts),
            Some("/sys/fs/cgroup/a".into())
        );
        assert_eq!(locate("0::/elsewhere\n", mounts), None);
    }

    #[test]
    fn has_none_under_version_1_alone() {
        assert_eq!(locate("4:memory:/a\n", HYBRID), None);
    }
}
