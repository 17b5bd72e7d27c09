//! What processes used, as /proc tells it. Where there is no /proc, nothing is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::machine;

#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub user_us: u64,
    pub system_us: u64,
}

impl Cpu {
    pub fn total_us(self) -> u64 {
        self.user_us + self.system_us
    }

    pub fn of(pid: u32) -> Option<Self> {
        Self::in_fields(pid, 11)
    }

    /// What children used that have ended and were waited for.
    pub fn of_ended_children(pid: u32) -> Option<Self> {
        Self::in_fields(pid, 13)
    }

    /// From two neighbouring fields of the process's state.
    fn in_fields(pid: u32, first: usize) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; fields are counted from behind it.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(first);
        let tick_us = 1_000_000 / ticks_per_second();
        let mut next = || Some(fields.next()?.parse::<u64>().ok()? * tick_us);
        Some(Self {
            user_us: next()?,
            system_us: next()?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
        }
    }
}

fn ticks_per_second() -> u64 {
    // SAFETY: sysconf has no requirements.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks)
        .ok()
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100)
}

/// Totals since the processes began, or between two readings.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// All servers together.
    pub server: Option<Cpu>,
    /// Each of them.
    pub servers: Vec<Option<Cpu>>,
    /// The database they share, if there is one on this machine.
    pub database: Option<Cpu>,
    pub workers: Option<Cpu>,
    /// This process: the load.
    pub load: Option<Cpu>,
    /// CPU of the server's threads, added up by name.
    pub threads_us: BTreeMap<String, u64>,
    pub server_rss_bytes: Option<u64>,
    /// The most it ever was.
    pub server_peak_bytes: Option<u64>,
    /// Bytes that the server handed to the storage layer.
    pub written_bytes: Option<u64>,
    /// Runs that the workers carried out.
    pub ran: u64,
}

impl Usage {
    /// The database is left out: who knows of one adds it.
    pub fn read(servers: &[u32], workers: impl Iterator<Item = u32>, ran: u64) -> Self {
        let each = || servers.iter().copied();
        let mut threads_us = BTreeMap::new();
        for (name, us) in each().filter_map(threads).flatten() {
            *threads_us.entry(name).or_default() += us;
        }
        Self {
            server: all(each()),
            servers: each().map(Cpu::of).collect(),
            database: None,
            workers: all(workers),
            load: Cpu::of(std::process::id()),
            threads_us,
            server_rss_bytes: each().map(machine::resident_bytes_of).sum(),
            server_peak_bytes: each().map(machine::peak_bytes_of).sum(),
            written_bytes: each().map(written_bytes).sum(),
            ran,
        }
    }

    /// What was used since `before`; memory as it is.
    pub fn since(self, before: &Self) -> Self {
        let cpu = |after: Option<Cpu>, before: Option<Cpu>| {
            after.zip(before).map(|(after, before)| after.since(before))
        };
        let mut threads_us = self.threads_us;
        for (name, us) in &mut threads_us {
            *us = us.saturating_sub(before.threads_us.get(name).copied().unwrap_or(0));
        }
        let servers = self.servers.into_iter().zip(&before.servers);
        Self {
            server: cpu(self.server, before.server),
            servers: servers.map(|(after, before)| cpu(after, *before)).collect(),
            database: cpu(self.database, before.database),
            workers: cpu(self.workers, before.workers),
            load: cpu(self.load, before.load),
            threads_us,
            server_rss_bytes: self.server_rss_bytes,
            server_peak_bytes: self.server_peak_bytes,
            written_bytes: self
                .written_bytes
                .zip(before.written_bytes)
                .map(|(after, before)| after.saturating_sub(before)),
            ran: self.ran.saturating_sub(before.ran),
        }
    }
}

/// What several processes used together; nothing when one of them cannot be read.
fn all(pids: impl Iterator<Item = u32>) -> Option<Cpu> {
    pids.map(Cpu::of)
        .try_fold(Cpu::default(), |sum, cpu| Some(sum.plus(cpu?)))
}

fn threads(pid: u32) -> Option<BTreeMap<String, u64>> {
    let mut threads: BTreeMap<String, u64> = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).ok();
        let (Some(name), Some(times)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        let on_cpu_ns = times
            .split(' ')
            .next()
            .and_then(|ns| ns.parse::<u64>().ok())
            .unwrap_or(0);
        *threads.entry(name.trim().to_owned()).or_default() += on_cpu_ns / 1000;
    }
    Some(threads)
}

fn written_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?
        .parse()
        .ok()
}

/// The size of all files below a directory.
pub fn directory_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(file) if file.is_dir() => directory_bytes(&entry.path()),
        Ok(file) => file.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
