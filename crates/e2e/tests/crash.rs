//! Hundreds of deaths under load, and then every promise is checked.
//!
//! Jobs of every kind fire many times a second, callers trigger runs under idempotency keys and ask again until they are answered, tasks
//! and handlers write down what they do. Meanwhile the server dies at chosen points and at random, and so do the workers,
//! and somebody sets the server's clock.
//! Then it is calm, everything must end, and an independent checker compares what callers and tasks saw with the store.
//!
//! The order of deaths comes from a seed, which is printed; `DRUMTOWER_SEED` sets it.

mod chaos;

use std::io::Write;
use std::time::{Duration, Instant};

use chaos::{Chaos, Death};
use drumtower_audit::{Journaled, Options, Report};
use drumtower_e2e::{Site, long};

/// Tells whoever runs the tests. What `println!` says of a test that passes, the harness keeps to itself.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

/// How often each death happens, times five when soak sizes are asked for.
const DEATHS: [(Death, usize); 10] = [
    (Death::AtStart, 24),
    (Death::BeforeCommit, 45),
    (Death::AfterCommit, 45),
    (Death::InCheckpoint, 16),
    (Death::Server, 30),
    (Death::Agent, 20),
    (Death::Handlers, 20),
    (Death::Step(-1), 6),
    (Death::Step(-3600), 6),
    (Death::Step(3600), 6),
];
/// Those of them that are written down as deaths, and the one in a migration.
const KINDS: usize = 8;
/// The furthest of the steps back.
const SET_BACK_MS: i64 = 3_600_000;
/// Of each kind, and in all.
const AT_LEAST_EACH: u64 = 10;
const AT_LEAST: u64 = 200;
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
    let mut chaos = Chaos::begin(&site);
    tell!(
        "{:>6.1?} {} deaths in a migration",
        began.elapsed(),
        chaos.migrations()
    );
    let mut deaths = plan(&mut random);
    while let Some(death) = deaths.pop() {
        chaos.die(death, &mut random);
        // Now and then things must get going in between.
        if random.u8(..) < 40 {
            chaos.await_fire();
        }
    }
    tell!("{:>6.1?} the last death", began.elapsed());
    tell!("the server's clock was set {} times", chaos.steps());
    let store = chaos.calm(CALM);
    tell!("{:>6.1?} calm", began.elapsed());
    let report = check(&site, &store);
    print(&report, &chaos::first_fires(&chaos::journal_dir(&site)));
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
        report.counts.answered >= 500 && report.counts.started >= 1000,
        "too little happened: {:?}",
        report.counts
    );
}

fn plan(random: &mut fastrand::Rng) -> Vec<Death> {
    let factor = if long() { 5 } else { 1 };
    let mut deaths: Vec<Death> = DEATHS
        .iter()
        .flat_map(|(death, count)| std::iter::repeat_n(*death, count * factor))
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
        "lost {}, duplicated {}, early {}",
        report.lost,
        report.duplicated,
        report.early
    );
}
