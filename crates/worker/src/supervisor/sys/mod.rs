//! The system calls that a supervisor needs and the standard library does not offer, each behind a safe function.
//! All `unsafe` of this crate is here and in [`super::launch`].
//!
//! What every Unix has is in this file; [`platform`] holds waiting for events and what only Linux can do.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod platform;

mod directory;
mod limit;
mod user;

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

pub use directory::{open_directory, own_directory};
pub use limit::{Resource, limit, open_files, soften_open_files};
pub use platform::{
    CpuSet, Events, become_subreaper, boot_clock_ms, close_inherited, die_with_parent,
    forbid_inspection, raise_priority,
};

#[cfg(target_os = "linux")]
pub use platform::page_bytes;

pub use user::{User, effective_user};

pub type Pid = libc::pid_t;

/// Turns the `-1` convention into an `io::Error`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn clock_ms(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is writable and large enough; all-zero is a valid timespec, should the call fail.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Sends a signal to a process, or to a group if `pid` is negative. A target that is gone is no error.
pub fn signal(pid: Pid, signal: libc::c_int) {
    // These mean everybody, the own group and the first process: never part of a tree.
    if matches!(pid, -1..=1) {
        return;
    }
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, signal) };
}

/// A session and process group of its own, away from the agent's terminal.
pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Files are made for the owner to write and all to read, whatever the agent was started with.
pub fn set_plain_umask() {
    // SAFETY: no memory is passed; cannot fail.
    unsafe { libc::umask(0o022) };
}

/// What `waitpid` knows about the children.
pub enum Reaped {
    /// This child ended, with this wait status.
    Ended(Pid, libc::c_int),
    /// Children are left, none of them has ended.
    Alive,
    /// There is no child, dead or alive.
    Childless,
}

/// Reaps one child, without waiting.
pub fn reap() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable; -1 waits for any child.
        match check(unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) }) {
            Ok(0) => return Reaped::Alive,
            Ok(pid) => return Reaped::Ended(pid, status),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return Reaped::Childless,
        }
    }
}

pub struct Usage {
    pub cpu_ms: u64,
    pub peak_rss_bytes: u64,
}

/// Of all reaped children and their reaped descendants: CPU time in sum, peak resident size of the largest.
pub fn children_usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and large enough; all-zero is a valid rusage, should the call fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ms = |time: libc::timeval| time.tv_sec as u64 * 1000 + time.tv_usec as u64 / 1000;
    let rss_unit = if cfg!(target_os = "linux") { 1024 } else { 1 };
    Usage {
        cpu_ms: ms(usage.ru_utime) + ms(usage.ru_stime),
        peak_rss_bytes: usage.ru_maxrss as u64 * rss_unit,
    }
}

/// Takes standard input for itself (closed on exec, like every descriptor of the standard library) and leaves
/// `/dev/null` in its place.
pub fn take_stdin() -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    let taken = io::stdin().as_fd().try_clone_to_owned()?;
    point_to_null(&[libc::STDIN_FILENO])?;
    Ok(taken)
}

/// Lets go of the command's output, so that its pipes end with the last process of the tree.
pub fn release_output() -> io::Result<()> {
    point_to_null(&[libc::STDOUT_FILENO, libc::STDERR_FILENO])
}

fn point_to_null(standard: &[libc::c_int]) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for fd in standard {
        // SAFETY: both are descriptors of this process; the standard ones are owned by nobody else.
        check(unsafe { libc::dup2(null.as_raw_fd(), *fd) })?;
    }
    Ok(())
}

/// Every signal back to its default action, none blocked. Async-signal-safe.
pub fn reset_signals() {
    // SAFETY: `set` is writable and initialised by `sigemptyset`; default actions hold no pointers. Signals that
    // cannot be changed or do not exist are refused by the kernel without effect.
    unsafe {
        for number in 1..=64 {
            libc::signal(number, libc::SIG_DFL);
        }
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Blocks every signal that can be blocked: a supervisor ends when its tree has ended, not before.
pub fn block_signals() -> io::Result<()> {
    // SAFETY: `set` is writable and initialised by `sigfillset` before it is read.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(set.as_mut_ptr());
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            set.as_ptr(),
            std::ptr::null_mut(),
        ))
        .map(drop)
    }
}

pub struct Space {
    pub used_bytes: u64,
    pub total_bytes: u64,
}

/// Space of the file system that holds `path`, as `df` counts it.
pub fn space(path: &Path) -> io::Result<Space> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is NUL-terminated, `stat` is writable and large enough, and all-zero is a valid statvfs.
    let stat = unsafe {
        check(libc::statvfs(path.as_ptr(), stat.as_mut_ptr()))?;
        stat.assume_init()
    };
    // The widths of these fields differ between platforms.
    #[allow(clippy::unnecessary_cast)]
    let (unit, total, free) = (
        stat.f_frsize as u64,
        stat.f_blocks as u64,
        stat.f_bfree as u64,
    );
    Ok(Space {
        used_bytes: total.saturating_sub(free).saturating_mul(unit),
        total_bytes: total.saturating_mul(unit),
    })
}
