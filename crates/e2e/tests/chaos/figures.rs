//! What the journals say about how long things took.

use std::path::Path;

use drumtower_audit::Record;
use drumtower_audit::journal::{Reader, files};
use drumtower_core::model::WallMs;

/// For each life of the server that got so far: how long after its start a run was started whose time in the schedule
/// had come since; in order of length.
pub fn first_fires(dir: &Path) -> Vec<i64> {
    let (mut restarts, mut kills, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(dir).expect("journals") {
        for record in Reader::open(&path).expect("a journal") {
            match record.expect("a record") {
                Record::Restarted { wall_ms, .. } => restarts.push(wall_ms),
                Record::Killed { what, wall_ms, .. } if what == "server" => kills.push(wall_ms),
                Record::Started {
                    nominal_ms: Some(nominal),
                    wall_ms,
                    ..
                } => starts.push((nominal, wall_ms)),
                _ => {}
            }
        }
    }
    let first = |restart: &WallMs| {
        let end = kills
            .iter()
            .filter(|kill| *kill > restart)
            .min()
            .copied()
            .unwrap_or(WallMs(i64::MAX));
        let own = starts
            .iter()
            .filter(|(nominal, start)| nominal > restart && *start < end);
        own.map(|(_, start)| start.since(*restart)).min()
    };
    let mut fires: Vec<i64> = restarts.iter().filter_map(first).collect();
    fires.sort_unstable();
    fires
}
