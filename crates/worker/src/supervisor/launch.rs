//! Starts the command: in its [`Surroundings`], with exactly the environment it was given, signals at their
//! defaults, no descriptors but the three standard ones, in a process group of its own.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::cgroup::Cgroup;
use super::surroundings::Surroundings;
use super::sys::{self, Pid};
use super::wire::Start;

/// Makes the scratch directory and starts the command in it. The error is for people: it says what could not be
/// done and to what.
pub fn launch(start: &Start, cgroup: Option<&Cgroup>) -> Result<Pid, String> {
    make_scratch(&start.scratch).map_err(|error| {
        format!(
            "cannot make scratch directory {}: {error}",
            start.scratch.display()
        )
    })?;
    let started = start_in(start, cgroup);
    if started.is_err() {
        remove_scratch(&start.scratch);
    }
    started
}

fn start_in(start: &Start, cgroup: Option<&Cgroup>) -> Result<Pid, String> {
    let program = start.argv.first().ok_or("argv is empty; name a program")?;
    let surroundings = Surroundings::prepare(start, cgroup.is_some_and(Cgroup::limits))?;
    spawn(start, program, surroundings, cgroup)
        .map_err(|error| format!("cannot start {program:?}: {}", explain(&error)))
}

fn spawn(
    start: &Start,
    program: &str,
    mut surroundings: Surroundings,
    cgroup: Option<&Cgroup>,
) -> io::Result<Pid> {
    let mut command = Command::new(program);
    command
        .args(&start.argv[1..])
        .env_clear()
        .envs(std::mem::take(&mut surroundings.env))
        .envs(start.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&surroundings.cwd)
        .stdin(
            surroundings
                .stdin
                .take()
                .map_or_else(Stdio::null, Stdio::from),
        )
        .process_group(0);
    let parent = std::process::id() as Pid;
    let limited = cgroup.is_some_and(Cgroup::limits);
    let entrance = match cgroup.map(Cgroup::entrance).transpose() {
        Err(error) if limited => return Err(error),
        entrance => entrance.ok().flatten(),
    };
    let enter = move || {
        sys::reset_signals();
        if let Some(mut entrance) = entrance.as_ref() {
            let entered = entrance.write(b"0");
            // Left outside, the command is still found by the walk, but held to nothing.
            if limited {
                entered?;
            }
        }
        surroundings.enter()?;
        // A change of user takes the parent-death signal away, so it is asked for last.
        sys::die_with_parent(parent)
    };
    // SAFETY: the closure makes async-signal-safe system calls only and allocates nothing, and this process has one
    // thread.
    unsafe { command.pre_exec(enter) };
    // The handle is dropped without waiting: children are reaped by `sys::reap` only.
    Ok(command.spawn()?.id() as Pid)
}

fn explain(error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            "; give a path, or a name found in /usr/local/bin, /usr/bin, /bin or their sbin"
        }
        Some(libc::EACCES) => "; make the file executable and readable for the worker's user",
        Some(libc::ENOEXEC) => "; a script needs a first line that names its interpreter",
        Some(libc::E2BIG) => "; argv and environment together are too long for the kernel",
        _ => "",
    };
    format!("{error}{remedy}")
}

fn make_scratch(scratch: &Path) -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.mode(0o700);
    if let Some(root) = scratch.parent() {
        private.recursive(true).create(root)?;
    }
    // Two attempts must never share a directory: one that exists is an error.
    private.recursive(false).create(scratch)
}

/// Removes the directory; the answer is why it could not, if so.
pub fn remove_scratch(scratch: &Path) -> Option<String> {
    let removed = fs::remove_dir_all(scratch).or_else(|_| {
        open_up(scratch);
        fs::remove_dir_all(scratch)
    });
    match removed {
        Ok(()) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!(
            "cannot remove scratch directory {}: {error}",
            scratch.display()
        )),
    }
}

/// A command may take its own rights away from directories, as caches of read-only modules do. Root needs no rights and must
/// not change those of what another user put there.
fn open_up(scratch: &Path) {
    if sys::effective_user() == 0 {
        return;
    }
    let root = scratch
        .parent()
        .and_then(|root| sys::open_directory(root).ok());
    if let (Some(root), Some(name)) = (root, scratch.file_name()) {
        open_up_in(&root, name, scratch);
    }
}

/// Rights are changed in directories that are held open, by names that are not followed if they are links. The path serves
/// to learn names only.
fn open_up_in(above: &OwnedFd, name: &OsStr, path: &Path) {
    let Ok(directory) = sys::own_directory(above, name) else {
        return;
    };
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up_in(&directory, &entry.file_name(), &entry.path());
        }
    }
}
