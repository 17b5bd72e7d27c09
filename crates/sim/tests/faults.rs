//! The simulator bites: each fault that is put into the engine, the session or the store on purpose is found.
//!
//! One fault is armed in a process at a time, so they are tried one after the other, and in a process of their own. The
//! table in docs/simulator.md says in which world each was found first: that one is tried before all others. A change of
//! the worlds makes the table untrue; then the fault is looked for from the first world on, and what is printed belongs
//! into the table.

use std::collections::BTreeMap;

use drumtower_core::fault::{self, Fault};
use drumtower_sim::Story;
use drumtower_sim::campaign::Campaign;

/// So many worlds are enough for each; most are found within a hundred.
const WORLDS: u64 = 2_000;
/// Worlds that are tried around the one of the table: two happen at a time, so it may name a neighbour.
const AROUND: u64 = 2;

const TABLE: &str = include_str!("../../../docs/simulator.md");

/// In which world each fault was found, counted from 1.
fn known() -> BTreeMap<&'static str, u64> {
    let rows = TABLE.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        let world = cells.get(4)?.parse().ok()?;
        Some((name, world))
    });
    rows.collect()
}

fn find(start: u64, seeds: u64) -> Option<Story> {
    let campaign = Campaign {
        start,
        seeds,
        threads: 2,
        failures: 1,
    };
    campaign.run(|_, _| {}).failed.into_iter().next()
}

#[test]
fn every_deliberate_fault_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let (known, mut missed) = (known(), Vec::new());
    for fault in Fault::ALL {
        fault::arm(Some(*fault));
        let stated = known.get(fault.name());
        let near = stated.and_then(|world| find(world.saturating_sub(AROUND), AROUND + 1));
        let found = near.or_else(|| find(0, WORLDS));
        fault::arm(None);
        match (found, stated) {
            (Some(story), Some(_)) => println!(
                "{}: {} in world {}",
                fault.name(),
                story.findings[0].promise,
                story.seed + 1
            ),
            (Some(_), None) => missed.push(format!("{} is not in the table", fault.name())),
            (None, _) => missed.push(format!("{} is not found", fault.name())),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "{}", missed.join(", "));
}
