//! A process that this bench started, and its end.
//!
//! It has a process group of its own, so that Ctrl-C reaches only the bench, which then ends it in order; it is killed
//! when it is dropped, and on Linux also when the bench itself is killed.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::interrupt;
use crate::failure::{Failure, Result};

pub struct Process {
    name: String,
    child: Child,
    /// What it wrote to standard error.
    words: PathBuf,
}

impl Process {
    /// Starts this program with other arguments. Its output goes to files in `dir`.
    pub fn start(
        name: &str,
        dir: &std::path::Path,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("this program cannot be found: {error}")))?;
        let words = dir.join(format!("{name}.err"));
        let file = |path: &PathBuf| File::create(path).map_err(|error| Failure::file(path, &error));
        let mut command = Command::new(program);
        arguments(&mut command);
        command
            .stdin(Stdio::null())
            .stdout(file(&dir.join(format!("{name}.out")))?)
            .stderr(file(&words)?)
            .process_group(0);
        die_with_parent(&mut command);
        let child = command
            .spawn()
            .map_err(|error| Failure::failed(format!("the {name} cannot be started: {error}")))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            words,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails when it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(&format!("ended too early, with {status}"))),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    /// Asks it to end and waits until it has.
    pub fn stop(mut self, patience: Duration) -> Result<()> {
        self.ask_to_end();
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.failure(&format!("ended with {status}"))),
                Ok(None) if Instant::now() > until => return Err(self.failure("does not end")),
                Ok(None) => interrupt::check()?,
                Err(error) => return Err(self.failure(&error.to_string())),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) -> Result<()> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed
            .map(drop)
            .map_err(|error| self.failure(&error.to_string()))
    }

    /// Asks it to end, without waiting.
    pub fn ask_to_end(&self) {
        let Ok(pid) = libc::pid_t::try_from(self.child.id()) else {
            return;
        };
        // SAFETY: no memory is touched. The child has not been waited for, so the id is still its own.
        unsafe {
            libc::kill(pid, libc::SIGTERM);
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let words = std::fs::read_to_string(&self.words).unwrap_or_default();
        let last: Vec<&str> = words.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Failure::failed(format!("the {} {what}\n{}", self.name, last.join("\n")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel kills it when the thread that started it ends: the bench starts everything from its main thread.
fn die_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    // SAFETY: prctl is async-signal-safe and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
