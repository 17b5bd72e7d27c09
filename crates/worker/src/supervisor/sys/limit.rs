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

/// Lowers a limit of this process and of those it starts. One that is lower already stays. Async-signal-safe.
pub fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let which = match resource {
        Resource::Data => libc::RLIMIT_DATA,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
    };
    let mut present = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: `present` is writable and large enough; all-zero is a valid rlimit.
    let present = unsafe {
        check(libc::getrlimit(which, present.as_mut_ptr()))?;
        present.assume_init()
    };
    let most = present.rlim_max.min(most as libc::rlim_t);
    let wanted = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: `wanted` is live.
    check(unsafe { libc::setrlimit(which, &wanted) }).map(drop)
}
