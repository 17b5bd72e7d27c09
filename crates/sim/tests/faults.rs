//! The simulator bites: each fault that is put into the engine, the session or the store on purpose is found.
//!
//! One fault is armed in a process at a time, so they are tried one after the other, and in a process of their own.

use drumtower_core::fault::{self, Fault};
use drumtower_sim::campaign::Campaign;

/// So many worlds are enough for each; docs/simulator.md says how many it took.
const WORLDS: u64 = 400;

#[test]
fn every_deliberate_fault_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        fault::arm(Some(*fault));
        let campaign = Campaign {
            start: 0,
            seeds: WORLDS,
            threads: 2,
            failures: 1,
        };
        let result = campaign.run(|_, _| {});
        fault::arm(None);
        match result.failed.first() {
            Some(story) => println!(
                "{}: {} in world {}",
                fault.name(),
                story.findings[0].promise,
                result.worlds
            ),
            None => missed.push(fault.name()),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}
