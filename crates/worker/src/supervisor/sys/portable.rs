//! Unix without subreapers and descriptors for signals: a short tick stands in for the events that have none.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Pid, check, clock_ms};
use crate::supervisor::BootMs;

const TICK_MS: u64 = 20;

/// On macOS this clock goes on during sleep.
pub fn boot_clock_ms() -> u64 {
    clock_ms(libc::CLOCK_MONOTONIC)
}

pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub fn die_with_parent(_parent: Pid) -> io::Result<()> {
    Ok(())
}

pub fn close_inherited() {}

pub fn forbid_inspection() {}

pub fn raise_priority() {}

/// Processes cannot be kept to processors here.
pub struct CpuSet;

impl CpuSet {
    pub fn of(_count: u32) -> Option<Self> {
        None
    }

    pub fn apply(&self) {}
}

pub struct Events;

impl Events {
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Returns on the first event, or without one; whether `socket` is readable.
    pub fn wait(&self, socket: Option<BorrowedFd<'_>>, until: BootMs) -> io::Result<bool> {
        let tick = until.ms_since(BootMs::now()).min(TICK_MS) as libc::c_int;
        let fd = socket.map_or(-1, |socket| socket.as_raw_fd());
        let mut polled = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one live, writable entry; a negative descriptor is skipped.
        match check(unsafe { libc::poll(&mut polled, 1, tick) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Err(_) => Ok(false),
            Ok(_) => Ok(polled.revents != 0),
        }
    }
}
