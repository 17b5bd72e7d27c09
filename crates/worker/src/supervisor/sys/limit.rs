//! Resource limits of a process.

use std::io;
use std::mem::MaybeUninit;

use super::check;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Memory that a process has for itself to write; what it only reserves does not count.
    Data,
    OpenFiles,
}

/// What one limit is called; the type differs between C libraries.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
type Which = libc::__rlimit_resource_t;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
type Which = libc::c_int;

fn present(which: Which) -> io::Result<libc::rlimit> {
    let mut present = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: `present` is writable and large enough; all-zero is a valid rlimit.
    unsafe {
        check(libc::getrlimit(which, present.as_mut_ptr()))?;
        Ok(present.assume_init())
    }
}

/// How many files this process may have open, and how many it may ask for.
pub fn open_files() -> io::Result<(u64, u64)> {
    let present = present(libc::RLIMIT_NOFILE)?;
    Ok((present.rlim_cur, present.rlim_max))
}

/// Sets how many files may be open, as far as the limit for asking allows, which stays. Async-signal-safe.
pub fn soften_open_files(count: u64) -> io::Result<()> {
    let present = present(libc::RLIMIT_NOFILE)?;
    let mut count = count;
    if cfg!(target_os = "macos") {
        // That system takes no more, whatever it says.
        count = count.min(10_240);
    }
    let wanted = libc::rlimit {
        rlim_cur: present.rlim_max.min(count as libc::rlim_t),
        rlim_max: present.rlim_max,
    };
    // SAFETY: `wanted` is live.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) }).map(drop)
}

/// Lowers a limit of this process and of those it starts. One that is lower already stays. Async-signal-safe.
pub fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let which = match resource {
        Resource::Data => libc::RLIMIT_DATA,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
    };
    let present = present(which)?;
    let most = present.rlim_max.min(most as libc::rlim_t);
    let wanted = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: `wanted` is live.
    check(unsafe { libc::setrlimit(which, &wanted) }).map(drop)
}
