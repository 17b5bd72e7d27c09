//! The command's process group: all that can be reached without a subreaper. A descendant that makes its own group
//! or session escapes; nothing is measured but what `getrusage` knows.

use std::io;
use std::time::Duration;

use super::BootMs;
use super::cgroup::Cgroup;
use super::sys::{self, Events, Pid, Reaped};

const PAUSE: Duration = Duration::from_millis(10);

pub struct Measured {
    pub rss_bytes: u64,
    pub processes: u64,
}

pub struct Tree {
    command: Option<Pid>,
}

impl Tree {
    pub fn new() -> io::Result<Self> {
        Ok(Self { command: None })
    }

    pub fn set_command(&mut self, command: Pid) {
        self.command = Some(command);
    }

    pub fn signal_all(&self, signal: libc::c_int) {
        if let Some(command) = self.command {
            sys::signal(-command, signal);
        }
    }

    pub fn measure(&self) -> Measured {
        Measured {
            rss_bytes: 0,
            processes: 0,
        }
    }

    pub fn own_bytes(&self) -> u64 {
        0
    }

    pub fn kill_all(
        &self,
        events: &Events,
        _cgroup: Option<&Cgroup>,
        mut on_end: impl FnMut(Pid, libc::c_int),
    ) {
        loop {
            self.signal_all(libc::SIGKILL);
            loop {
                match sys::reap() {
                    Reaped::Ended(pid, status) => on_end(pid, status),
                    Reaped::Alive => break,
                    Reaped::Childless => return,
                }
            }
            if events.wait(None, BootMs::now().plus(PAUSE)).is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Without a view of sessions only the command's group can be reached.
pub fn kill_session(_leader: Pid, command: Option<Pid>) {
    if let Some(command) = command {
        sys::signal(-command, libc::SIGKILL);
    }
}
