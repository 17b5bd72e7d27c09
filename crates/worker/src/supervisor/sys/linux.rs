//! Linux: signals and lease ends arrive as readable descriptors, so one `poll` waits for everything.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{Pid, check, clock_ms};
use crate::supervisor::BootMs;

pub fn boot_clock_ms() -> u64 {
    clock_ms(libc::CLOCK_BOOTTIME)
}

/// Orphans among the descendants become children of this process.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: this option takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Called in the child: SIGKILL comes when `parent` dies, also if that has happened already. Async-signal-safe.
pub fn die_with_parent(parent: Pid) -> io::Result<()> {
    // SAFETY: this option takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
    // SAFETY: no arguments.
    if unsafe { libc::getppid() } == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Closes what the agent's own parents may have leaked to it.
pub fn close_inherited() {
    // SAFETY: nothing but the standard descriptors is open on purpose yet; nothing owns the others. A kernel
    // without the call refuses it, and the descriptors that the agent opened itself close on exec anyway.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Other processes of the same user can neither trace this one nor read its memory and environment; only root can. What it
/// executes starts without that.
pub fn forbid_inspection() {
    // SAFETY: this option takes integers only. It cannot fail with this value.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Helps the killer against thousands of runnable processes. Needs privilege; without it nothing changes.
pub fn raise_priority() {
    // SAFETY: integers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}

pub fn page_bytes() -> u64 {
    // SAFETY: no memory is passed.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Processors that a command is kept to.
pub struct CpuSet(libc::cpu_set_t);

impl CpuSet {
    /// So many of those that this process may use, another choice in each process; `None` when that is no restriction.
    pub fn of(count: u32) -> Option<Self> {
        let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `allowed` is writable and of the size given; all-zero is a valid set.
        let allowed = unsafe {
            check(libc::sched_getaffinity(
                0,
                size_of::<libc::cpu_set_t>(),
                allowed.as_mut_ptr(),
            ))
            .ok()?;
            allowed.assume_init()
        };
        let numbers = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the numbers are below the size of the set.
        let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &allowed) };
        let usable: Vec<usize> = numbers.filter(is_in).collect();
        let count = count as usize;
        if count >= usable.len() {
            return None;
        }
        let first = std::process::id() as usize % usable.len();
        // SAFETY: all-zero is the empty set, and the numbers are below its size.
        let chosen = unsafe {
            let mut chosen = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
            for cpu in usable.iter().cycle().skip(first).take(count) {
                libc::CPU_SET(*cpu, &mut chosen);
            }
            chosen
        };
        Some(Self(chosen))
    }

    /// Keeps this process and those it starts to the set. Async-signal-safe. A refusal changes nothing.
    pub fn apply(&self) {
        // SAFETY: the set is live and of the size given.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) };
    }
}

/// Waits for the agent, for the end of a child, and for a moment on the boot clock. Signals must be blocked before.
pub struct Events {
    child_signals: OwnedFd,
    alarm: OwnedFd,
}

impl Events {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            child_signals: child_signals()?,
            alarm: boot_alarm()?,
        })
    }

    /// Returns on the first event, or without one; whether `socket` is readable.
    pub fn wait(&self, socket: Option<BorrowedFd<'_>>, until: BootMs) -> io::Result<bool> {
        self.set_alarm(until)?;
        // A negative descriptor is skipped by `poll`.
        let socket = socket.map_or(-1, |socket| socket.as_raw_fd());
        let mut polled = [
            socket,
            self.child_signals.as_raw_fd(),
            self.alarm.as_raw_fd(),
        ]
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the array is live, writable and of the length given.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        match check(ready) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Err(_) => return Ok(false),
            Ok(_) => {}
        }
        if polled[1].revents != 0 {
            self.consume_child_signals();
        }
        Ok(polled[0].revents != 0)
    }

    fn set_alarm(&self, until: BootMs) -> io::Result<()> {
        // Zero would disarm the timer; a moment far in the past fires at once. Beyond what the type can hold is never.
        let at = until.0.max(1);
        let spec = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(at / 1000).unwrap_or(libc::time_t::MAX),
                tv_nsec: (at % 1000 * 1_000_000) as libc::c_long,
            },
        };
        // SAFETY: `spec` is live; no old value is asked for. Setting the time also clears an expiry not read yet.
        check(unsafe {
            libc::timerfd_settime(
                self.alarm.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &spec,
                std::ptr::null_mut(),
            )
        })
        .map(drop)
    }

    /// Several ends may share one signal, so its content says nothing: the caller reaps until none is left.
    fn consume_child_signals(&self) {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is writable for `size` bytes. The descriptor does not block.
        while unsafe {
            libc::read(
                self.child_signals.as_raw_fd(),
                info.as_mut_ptr().cast(),
                size,
            )
        } > 0
        {}
    }
}

fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is writable and initialised before `signalfd` reads it.
    owned(unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    })
}

fn boot_alarm() -> io::Result<OwnedFd> {
    // SAFETY: integers only.
    owned(unsafe {
        libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
    })
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the kernel just made this descriptor for us and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
