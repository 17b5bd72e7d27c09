//! Where `Now` comes from: the wall clock, and a monotonic clock that counts suspension.

use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::model::{MonoMs, Now, WallMs};

/// Read once for each step. Tests bring their own.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Now;
}

pub struct SystemClock;

/// Two readings further apart than this were interrupted in between and do not belong together.
const APART_MS: u64 = 1;
const TRIES: usize = 5;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let mut now = read_both();
        for _ in 1..TRIES {
            if mono_now().0 - now.mono.0 <= APART_MS {
                break;
            }
            now = read_both();
        }
        now
    }
}

fn read_both() -> Now {
    let mono = mono_now();
    Now {
        wall: wall_now(),
        mono,
    }
}

pub fn wall_now() -> WallMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn mono_now() -> MonoMs {
    #[cfg(target_os = "linux")]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    // On macOS this one goes on while the machine sleeps.
    #[cfg(not(target_os = "linux"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for one timespec, and the call writes nothing else.
    let failed = unsafe { libc::clock_gettime(CLOCK, &raw mut time) } != 0;
    assert!(!failed, "the system has no monotonic clock");
    MonoMs(time.tv_sec.unsigned_abs() * 1000 + time.tv_nsec.unsigned_abs() / 1_000_000)
}
