//! Processes by their id, and what the kernel says about them.
//!
//! A [`Process`] writes its output to a file and is killed when its handle is dropped. Signals go to the id of a process
//! that is a child of ours and was not waited for, so it can be nobody else's.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::clock;
use crate::wait::{PATIENCE, eventually, within};

pub struct Process {
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a program whose output goes to `log`, after what is there.
    pub fn spawn(mut command: Command, log: &Path) -> Self {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log file");
        let again = file.try_clone().expect("the log file once more");
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        Self {
            child,
            log: log.to_owned(),
            ended: None,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a child can be asked");
            if self.ended.is_some() {
                clock::remove_traces(self.pid());
            }
        }
        self.ended
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&mut self, signal: i32) {
        if self.ended().is_none() {
            let pid = libc::pid_t::try_from(self.pid()).expect("an id of a process");
            // SAFETY: no memory is involved; the process is a child that was not waited for, so the id is its own.
            let sent = unsafe { libc::kill(pid, signal) };
            assert_eq!(
                sent,
                0,
                "signal {signal} to {pid}: {}",
                std::io::Error::last_os_error()
            );
        }
    }

    /// As the loss of its machine: no chance to say anything.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.wait();
    }

    /// Asks it to end and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.wait_for(PATIENCE)
    }

    pub fn wait_for(&mut self, patience: Duration) -> ExitStatus {
        let (pid, log) = (self.pid(), self.log.clone());
        within(
            patience,
            &format!("process {pid} ends; its log is {}", log.display()),
            || self.ended(),
        )
    }

    /// Whether it died by SIGKILL.
    pub fn was_killed(&mut self) -> bool {
        self.ended()
            .is_some_and(|status| status.signal() == Some(libc::SIGKILL))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // A frozen process dies of this too.
            let _ = self.child.kill();
            let _ = self.child.wait();
            clock::remove_traces(self.pid());
        }
    }
}

/// The processes, zombies not counted, whose command line holds `marker`.
pub fn alive(marker: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| command_line(*pid).contains(marker) && !is_zombie(*pid))
        .collect()
}

/// Waits until no process carries the marker.
#[track_caller]
pub fn none_alive(marker: &str) {
    eventually(&format!("no process with {marker} is left"), || {
        alive(marker).is_empty().then_some(())
    });
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
