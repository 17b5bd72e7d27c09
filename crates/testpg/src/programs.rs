//! Where the programs of PostgreSQL are, and as whom they run.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of one version.
pub struct Programs {
    directory: PathBuf,
    /// Somebody without rights, when we are root.
    user: Option<(u32, u32)>,
}

/// Finds the newest version that is installed.
pub fn find() -> io::Result<Programs> {
    let missing = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            "PostgreSQL is not installed: install Debian's package `postgresql`",
        )
    };
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|_| missing())?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let directory = entry.path().join("bin");
            directory
                .join("initdb")
                .is_file()
                .then_some((version, directory))
        })
        .collect();
    found.sort();
    let (_, directory) = found.pop().ok_or_else(missing)?;
    let root = fs::metadata("/proc/self")?.uid() == 0;
    let user = if root { Some(somebody()?) } else { None };
    Ok(Programs { directory, user })
}

/// The user that the package makes, or the one that every system has.
fn somebody() -> io::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let ids = |name: &str| {
        let mut lines = users.lines();
        let line = lines.find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).ok_or_else(|| {
        io::Error::other(
            "PostgreSQL does not run as root, and there is no user `postgres` or `nobody`",
        )
    })
}

impl Programs {
    pub fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }

    /// One of PostgreSQL's programs.
    pub fn command(&self, program: &str) -> Command {
        self.unprivileged(self.path(program))
    }

    pub(crate) fn unprivileged(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env_remove("PGSSLMODE");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Makes a file theirs.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match self.user {
            Some((user, group)) => std::os::unix::fs::chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}
