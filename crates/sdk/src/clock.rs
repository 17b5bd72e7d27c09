//! The two clocks of a worker: one for leases, which counts suspension, and the wall clock, for people.

use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::model::{MonoMs, Now, WallMs};

#[cfg(target_os = "linux")]
const LEASE_CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
/// On macOS this clock goes on during sleep.
#[cfg(not(target_os = "linux"))]
const LEASE_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

pub(crate) fn now() -> Now {
    Now {
        wall: wall(),
        mono: mono(),
    }
}

pub(crate) fn mono() -> MonoMs {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes into `time`, which lives beyond it.
    let status = unsafe { libc::clock_gettime(LEASE_CLOCK, &mut time) };
    assert_eq!(status, 0, "this system lacks the clock that leases run on");
    let seconds_ms = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1000);
    MonoMs(seconds_ms + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000)
}

pub(crate) fn wall() -> WallMs {
    let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    WallMs(ms)
}
