//! A wall clock that tests can set, for one process or several: libfaketime between the process and its system.
//!
//! Only the wall clock is false. The clocks that count elapsed time stay true, as on a machine whose date somebody set.
//! A clock lies in a file that is read anew for each question, so it may be set while a process runs, and a process that
//! is started again finds it as it was left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use jiff::Timestamp;

use crate::Site;

/// Safe for processes with threads.
const LIBRARY: &str = "libfaketimeMT.so.1";

#[derive(Clone, Debug)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
    /// False minus true time.
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A clock that is right until it is set. `None`, with words, where the library does not exist.
    pub fn new(site: &Site) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !cfg!(target_os = "linux") {
            eprintln!("SKIPPED: setting a server's clock needs libfaketime and Linux");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let clock = Self {
            library: library(),
            file: site.path().join(format!("clock.{number}")),
            offset_ms: Arc::default(),
        };
        clock.write();
        Some(clock)
    }

    /// A clock that shows `instant` now.
    pub fn at(site: &Site, instant: &str) -> Option<Self> {
        let clock = Self::new(site)?;
        clock.set(instant);
        Some(clock)
    }

    pub fn now_ms(&self) -> i64 {
        Timestamp::now().as_millisecond() + self.offset_ms()
    }

    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }

    /// Sets it to an instant.
    pub fn set(&self, instant: &str) {
        let instant: Timestamp = instant.parse().expect("an instant");
        self.set_offset(instant.as_millisecond() - Timestamp::now().as_millisecond());
    }

    /// Sets it forward, or back.
    pub fn step(&self, ms: i64) {
        self.set_offset(self.offset_ms() + ms);
    }

    /// Sets it so far from the true time.
    pub fn set_offset(&self, ms: i64) {
        self.offset_ms.store(ms, Ordering::Relaxed);
        self.write();
    }

    /// In one move, so that nobody reads half of it.
    fn write(&self) {
        let ms = self.offset_ms();
        let (sign, whole, rest) = (
            if ms < 0 { '-' } else { '+' },
            ms.unsigned_abs() / 1000,
            ms.unsigned_abs() % 1000,
        );
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{sign}{whole}.{rest:03}\n")).expect("a file in the site");
        std::fs::rename(&next, &self.file).expect("a file in the site");
    }

    /// Has a program that is about to start go by this clock.
    pub fn apply(&self, command: &mut Command) {
        command.envs(self.env());
    }

    /// The environment of a program that goes by this clock.
    pub fn env(&self) -> Vec<(String, String)> {
        let pairs = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// What the library leaves behind when its process is killed. Another process of the same id could not start.
pub(crate) fn remove_traces(pid: u32) {
    for name in [
        format!("faketime_shm_{pid}"),
        format!("sem.faketime_sem_{pid}"),
    ] {
        let _ = std::fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

fn library() -> PathBuf {
    let machines = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let of_machines = machines.flatten().map(|entry| entry.path());
    let plain = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    plain
        .into_iter()
        .chain(of_machines)
        .map(|dir| dir.join("faketime").join(LIBRARY))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!("{LIBRARY} is not there: install the package faketime, or run `cargo xtask test` as root")
        })
}
