//! How busy this machine is, for heartbeats: CPU and network since the last sample, memory and disk as they stand.
//!
//! Load is advice for placement. What cannot be read is zero, never an error; outside Linux only the disk is known.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::supervisor::sys;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Of all cores together, busy time in thousandths.
    pub cpu_permille: u32,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
    /// Of the file system that holds the scratch directories.
    pub disk_used_bytes: u64,
    pub disk_total_bytes: u64,
    /// All interfaces but loopback.
    pub network_rx_bytes_per_s: u64,
    pub network_tx_bytes_per_s: u64,
}

/// Remembers the last sample's counters; rates are zero in the first.
pub struct Sampler {
    scratch_root: PathBuf,
    last: Option<(Instant, Counters)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    cpu_busy: u64,
    cpu_total: u64,
    network_rx: u64,
    network_tx: u64,
}

impl Sampler {
    pub fn new(scratch_root: impl Into<PathBuf>) -> Self {
        Self {
            scratch_root: scratch_root.into(),
            last: None,
        }
    }

    /// Reads a few small files of `/proc`; takes well under a millisecond.
    pub fn sample(&mut self) -> Load {
        let counters = read_counters();
        let now = Instant::now();
        let (memory_used_bytes, memory_total_bytes) = parse_memory(&read("/proc/meminfo"));
        let (disk_used_bytes, disk_total_bytes) = disk(&self.scratch_root);
        let mut load = Load {
            memory_used_bytes,
            memory_total_bytes,
            disk_used_bytes,
            disk_total_bytes,
            ..Load::default()
        };
        if let Some((then, last)) = self.last.replace((now, counters)) {
            load.cpu_permille = permille(
                counters.cpu_busy.saturating_sub(last.cpu_busy),
                counters.cpu_total.saturating_sub(last.cpu_total),
            );
            let ms = u64::try_from((now - then).as_millis())
                .unwrap_or(u64::MAX)
                .max(1);
            let rate = |now: u64, then: u64| now.saturating_sub(then).saturating_mul(1000) / ms;
            load.network_rx_bytes_per_s = rate(counters.network_rx, last.network_rx);
            load.network_tx_bytes_per_s = rate(counters.network_tx, last.network_tx);
        }
        load
    }
}

/// The root may not exist before the first attempt: its nearest ancestor that does is on the same file system.
fn disk(root: &Path) -> (u64, u64) {
    root.ancestors()
        .find_map(|path| sys::space(path).ok())
        .map_or((0, 0), |space| (space.used_bytes, space.total_bytes))
}

fn permille(part: u64, whole: u64) -> u32 {
    match part.min(whole).saturating_mul(1000).checked_div(whole) {
        Some(share) => share as u32,
        None => 0,
    }
}

fn read(path: &str) -> String {
    if cfg!(target_os = "linux") {
        std::fs::read_to_string(path).unwrap_or_default()
    } else {
        String::new()
    }
}

fn read_counters() -> Counters {
    let (cpu_busy, cpu_total) = parse_cpu(&read("/proc/stat"));
    let (network_rx, network_tx) = parse_network(&read("/proc/net/dev"));
    Counters {
        cpu_busy,
        cpu_total,
        network_rx,
        network_tx,
    }
}

/// Busy and total ticks. Guest time, from the ninth column on, is part of user time already.
fn parse_cpu(stat: &str) -> (u64, u64) {
    let line = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .unwrap_or_default();
    let ticks = line
        .split_ascii_whitespace()
        .map_while(|column| column.parse::<u64>().ok())
        .take(8)
        .collect::<Vec<_>>();
    let total = ticks.iter().sum::<u64>();
    let idle = ticks.iter().skip(3).take(2).sum::<u64>();
    (total - idle, total)
}

/// Used and total bytes; what the kernel could give back counts as unused.
fn parse_memory(meminfo: &str) -> (u64, u64) {
    let bytes = |name: &str| {
        let rest = meminfo
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = rest.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0).saturating_mul(1024)
    };
    let total = bytes("MemTotal");
    (total.saturating_sub(bytes("MemAvailable")), total)
}

/// Received and sent bytes since the machine started.
fn parse_network(dev: &str) -> (u64, u64) {
    let mut sum = (0u64, 0u64);
    for (name, columns) in dev.lines().filter_map(|line| line.split_once(':')) {
        let columns = columns.split_ascii_whitespace().collect::<Vec<_>>();
        let column = |index: usize| {
            columns
                .get(index)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        if name.trim() != "lo" {
            sum = (
                sum.0.saturating_add(column(0)),
                sum.1.saturating_add(column(8)),
            );
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_counts_idle_and_iowait_as_free_and_guests_once() {
        let stat = "cpu  100 10 30 800 60 5 5 0 40 2\ncpu0 1 2 3 4\n";
        assert_eq!(parse_cpu(stat), (150, 1010));
        assert_eq!(parse_cpu("noise"), (0, 0));
    }

    #[test]
    fn memory_counts_what_is_available_as_unused() {
        let meminfo = "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n";
        assert_eq!(parse_memory(meminfo), (600 * 1024, 1000 * 1024));
        assert_eq!(parse_memory(""), (0, 0));
    }

    #[test]
    fn network_leaves_loopback_out() {
        let dev = "Inter-|   Receive\n face |bytes packets\n    \
            lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n  \
            eth0: 500 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n eth1:1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n";
        assert_eq!(parse_network(dev), (501, 72));
    }

    #[test]
    fn a_share_stays_between_none_and_all() {
        assert_eq!(permille(1, 4), 250);
        assert_eq!(permille(9, 4), 1000);
        assert_eq!(permille(1, 0), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory_and_a_disk() {
        let mut sampler = Sampler::new("/not/made/yet");
        let first = sampler.sample();
        assert_eq!((first.cpu_permille, first.network_rx_bytes_per_s), (0, 0));
        let load = sampler.sample();
        assert!(load.memory_used_bytes > 0 && load.memory_used_bytes < load.memory_total_bytes);
        assert!(load.disk_total_bytes >= load.disk_used_bytes && load.disk_total_bytes > 0);
        assert!(load.cpu_permille <= 1000);
    }
}
