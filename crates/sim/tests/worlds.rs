//! Worlds in which every promise must be kept. `DRUMTOWER_LONG=1` lets ten times as many happen.

use drumtower_sim::campaign::Campaign;
use drumtower_sim::simulate;

const SEEDS: u64 = 200;

#[test]
fn every_promise_is_kept_in_every_world() {
    let long = std::env::var_os("DRUMTOWER_LONG").is_some_and(|value| value == "1");
    let campaign = Campaign {
        start: 0,
        seeds: if long { 10 * SEEDS } else { SEEDS },
        threads: 1,
        failures: 3,
    };
    let result = campaign.run(|_, _| {});
    let told: Vec<String> = result
        .failed
        .iter()
        .flat_map(|story| {
            let seed = story.seed;
            story.findings.iter().map(move |finding| {
                format!(
                    "seed {seed}: {}: {}\n  cargo xtask sim --start {seed} --seeds 1 --trace",
                    finding.promise, finding.words
                )
            })
        })
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(
        result.tasks > 10 * SEEDS,
        "only {} attempts ran",
        result.tasks
    );
}

#[test]
fn the_same_seed_gives_the_same_world_byte_for_byte() {
    for seed in [1, 5, 23, 41, 0xdead_beef] {
        let (one, other) = (simulate(seed, true), simulate(seed, true));
        assert_eq!(one.hash, other.hash, "seed {seed}");
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert!(one.lines > 20, "seed {seed} has only {} lines", one.lines);
    }
    assert_ne!(simulate(1, false).hash, simulate(2, false).hash);
}

#[test]
fn whether_the_trace_is_kept_changes_nothing() {
    assert_eq!(simulate(7, true).hash, simulate(7, false).hash);
}
