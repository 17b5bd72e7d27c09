//! Hundreds of deaths under load, and then every promise is checked.
//!
//! Jobs of every kind fire many times a second, callers trigger hundreds of runs a second under idempotency keys and ask
//! again until they are answered, tasks and handlers write down what they do. Meanwhile the server dies at chosen points
//! and at random, and so do the workers; they freeze for longer than a lease; connections are cut, fall silent one way and
//! become slow; the disk is full; somebody sets the server's clock. Then it is calm, everything must end, and an independent checker compares what callers and tasks saw with the store.
//!
//! The order of deaths comes from a seed, which is printed; `DRUMTOWER_SEED` sets it. `DRUMTOWER_LONG=1` goes on for ten
//! minutes.

mod chaos;

use std::io::Write;
use std::time::{Duration, Instant};

use chaos::{Chaos, Death, Who};
use drumtower_audit::{Journaled, Options, Report};
use drumtower_e2e::{Site, SmallDisk, Way, long};

/// Tells whoever runs the tests. What `println!` says of a test that passes, the harness keeps to itself.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

/// How often each thing happens, in one round.
const DEATHS: [(Death, usize); 22] = [
    (Death::AtStart, 14),
    (Death::BeforeCommit, 30),
    (Death::AfterCommit, 30),
    (Death::InCheckpoint, 12),
    (Death::Server, 20),
    (Death::Worker(Who::Agent), 14),
    (Death::Worker(Who::Handlers), 14),
    (Death::Step(-1), 4),
    (Death::Step(-3600), 3),
    (Death::Step(3600), 3),
    (Death::FreezeServer, 3),
    (Death::Freeze(Who::Agent), 4),
    (Death::Freeze(Who::Handlers), 5),
    (Death::Cut(Who::Agent), 8),
    (Death::Cut(Who::Handlers), 12),
    (Death::Hold(Who::Agent, Way::Up), 2),
    (Death::Hold(Who::Agent, Way::Down), 2),
    (Death::Hold(Who::Handlers, Way::Up), 3),
    (Death::Hold(Who::Handlers, Way::Down), 3),
    (Death::Slow(Who::Agent), 2),
    (Death::Slow(Who::Handlers), 3),
    (Death::FullDisk, 3),
];
/// How long the long form goes on, round after round.
const LONG: Duration = Duration::from_secs(600);
/// Room for everything that the longest test writes.
const DISK_MEGABYTES: u32 = 2_048;
/// Kinds of deaths, with the one in a migration.
const KINDS: usize = 8;
/// The furthest of the steps back.
const SET_BACK_MS: i64 = 3_600_000;
/// Of each kind, and in all.
const AT_LEAST_EACH: u64 = 10;
const AT_LEAST: u64 = 150;
/// How long everything may take to end once it is calm: a lease with its margin, and time for a busy machine.
const CALM: Duration = Duration::from_secs(120);

#[test]
fn nothing_is_lost_doubled_or_early_whenever_a_process_dies() {
    let began = Instant::now();
    let seed = std::env::var("DRUMTOWER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    tell!("DRUMTOWER_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let site = Site::new();
    let disk = SmallDisk::mount(site.dir("data"), DISK_MEGABYTES);
    if disk.is_none() {
        tell!("SKIPPED: the disk is never full, for this user may not mount a small one");
    }
    let mut chaos = Chaos::begin(&site, disk.as_ref());
    tell!(
        "{:>6.1?} {} deaths in a migration",
        began.elapsed(),
        chaos.migrations()
    );
    loop {
        for death in plan(&mut random) {
            chaos.die(death, &mut random);
            // Now and then things must get going in between.
            if random.u8(..) < 40 {
                chaos.await_fire();
            }
            if long() && chaos.lasted() > LONG {
                break;
            }
        }
        if !long() || chaos.lasted() > LONG {
            break;
        }
    }
    tell!("{:>6.1?} the last death", began.elapsed());
    let lasted = chaos.lasted();
    let store = chaos.calm(CALM);
    tell!("{:>6.1?} calm", began.elapsed());
    let report = check(&site, &store);
    for (trouble, count) in chaos.troubles() {
        tell!("{count:>4} × {trouble}");
    }
    print(&report, &chaos::first_fires(&chaos::journal_dir(&site)));
    tell!(
        "{:.0} runs/s made over {lasted:.0?} of trouble",
        report.checked as f64 / lasted.as_secs_f64()
    );
    tell!("{:>6.1?} checked", began.elapsed());
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert_eq!((report.lost, report.duplicated, report.early), (0, 0, 0));
    assert!(
        report.counts.kills.values().sum::<u64>() >= AT_LEAST,
        "{:?}",
        report.counts.kills
    );
    for (death, count) in &report.counts.kills {
        assert!(*count >= AT_LEAST_EACH, "{death}: {count} times");
    }
    assert_eq!(
        report.counts.kills.len(),
        KINDS,
        "{:?}",
        report.counts.kills
    );
    assert!(
        report.counts.answered >= 5_000 && report.counts.started >= 5_000,
        "too little happened: {:?}",
        report.counts
    );
}

fn plan(random: &mut fastrand::Rng) -> Vec<Death> {
    let mut deaths: Vec<Death> = DEATHS
        .iter()
        .flat_map(|(death, count)| std::iter::repeat_n(*death, *count))
        .collect();
    random.shuffle(&mut deaths);
    deaths
}

fn check(site: &Site, data: &std::path::Path) -> Report {
    let journals = drumtower_audit::journal::files(&chaos::journal_dir(site)).expect("journals");
    let (writer, reader) =
        drumtower_store::sqlite::open(data, drumtower_store::sqlite::Options::default())
            .expect("a store");
    let options = Options {
        grace_ms: 5_000,
        // Right when jobs were paused, and never ahead of the workers' clocks: no time is excused.
        clock_back_ms: SET_BACK_MS,
        settled: true,
        journaled: Journaled::All,
        ..Options::default()
    };
    let report =
        drumtower_audit::check(&journals, &reader, &options).expect("readable journals and store");
    drop(writer);
    report
}

fn print(report: &Report, first_fires: &[i64]) {
    let counts = &report.counts;
    for (death, count) in &counts.kills {
        tell!("killed {count:>4} × {death}");
    }
    tell!("killed {:>4} in all", counts.kills.values().sum::<u64>());
    tell!(
        "{} requests, {} answered, {} without an answer, {} refused",
        counts.sent,
        counts.answered,
        counts.unknown,
        counts.refused
    );
    tell!("{} tasks started, {} ended", counts.started, counts.ended);
    tell!(
        "{} runs: {} completed, {} failed, {} cancelled",
        report.checked,
        counts.completed,
        counts.failed,
        counts.cancelled
    );
    tell!(
        "{} due times: {} fired, {} recorded as unfired",
        counts.due_times,
        counts.fired_times,
        counts.unfired_times
    );
    let at = |share: usize| {
        first_fires
            .get(first_fires.len().saturating_sub(1) * share / 100)
            .copied()
            .unwrap_or_default()
    };
    tell!(
        "from the restart of the server to the first start of a run it made, {} times: p50 {} ms, p90 {} ms, max {} ms",
        first_fires.len(),
        at(50),
        at(90),
        at(100)
    );
    tell!(
        "lost {}, duplicated {}, early {}; the latest start {} ms after its due time",
        report.lost,
        report.duplicated,
        report.early,
        report.latest_start_ms.unwrap_or_default()
    );
}
