//! A control group (version 2) for one command: the kernel kills its members in one call and counts their CPU time.
//!
//! It is an aid. Where it may not be made, or the command leaves it, the walk over the tree does the work alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group under that of this process; `None` where the system does not allow it.
    pub fn create() -> Option<Self> {
        let path = own_group()?.join(format!("drumtower-attempt-{}", std::process::id()));
        // A supervisor with this process id may have died and left its empty group.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        // Without the kill file (before Linux 5.14) the group would add nothing; dropping it removes it.
        group.path.join("cgroup.kill").exists().then_some(group)
    }

    /// A group that another process made.
    pub fn existing(path: PathBuf) -> Self {
        Self { path }
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
