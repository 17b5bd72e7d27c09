//! What the figures were measured on. Linux tells everything; elsewhere fields are null.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::failure::{Failure, Result};

/// The machine, the system and the build; with the file system that holds `data`, if that matters.
pub fn facts(data: Option<&Path>) -> Value {
    json!({
        "cpu": cpu_model(),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "memory_bytes": memory_bytes(),
        "os": std::env::consts::OS,
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "file_system": data.and_then(file_system),
        "version": env!("CARGO_PKG_VERSION"),
        "optimized": !cfg!(debug_assertions),
        "commit": commit(),
    })
}

fn first_line(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()?
        .lines()
        .next()
        .map(str::to_owned)
}

fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(": ").map(|(_, model)| model.to_owned())
}

fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The type of the file system with the longest mount point above `path`.
fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = fields.filter(|(point, _)| path.starts_with(point));
    above
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

/// The commit of the checkout that this program lies in, marked when files were changed since.
fn commit() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(program.parent()?)
            .args(arguments)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|files| !files.is_empty());
    Some(if changed {
        format!("{head}-dirty")
    } else {
        head
    })
}

/// Resident memory of this process.
pub fn resident_bytes() -> Option<u64> {
    resident_bytes_of(std::process::id())
}

pub fn resident_bytes_of(pid: u32) -> Option<u64> {
    status_bytes(pid, "VmRSS:")
}

/// The most that was ever resident of a process.
pub fn peak_bytes_of(pid: u32) -> Option<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The CPU time of this thread: unlike the clock on the wall, it does not count who else wants the processor.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the write, which is all that is asked.
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
    }
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Gives what the allocator holds back to the system, so that the next growth is seen in full.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim has no requirements.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Refuses a directory that has not so much room.
pub fn require_space(dir: &Path, bytes: u64, flag: &str) -> Result<()> {
    match free_bytes(dir) {
        Some(free) if free < bytes => {
            let (free, needed) = (free / 1_000_000, bytes / 1_000_000);
            let message = format!(
                "{} has {free} MB free, and {needed} MB are needed",
                dir.display()
            );
            Err(Failure::usage(message).remedy(format!("name a larger place with {flag}")))
        }
        _ => Ok(()),
    }
}

fn free_bytes(dir: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).ok()?;
    let mut figures = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero byte, and the call fills the struct when it answers 0.
    let figures = unsafe {
        if libc::statvfs(path.as_ptr(), figures.as_mut_ptr()) != 0 {
            return None;
        }
        figures.assume_init()
    };
    #[allow(
        clippy::useless_conversion,
        reason = "the types differ from system to system"
    )]
    Some(u64::from(figures.f_bavail).saturating_mul(u64::from(figures.f_frsize)))
}
