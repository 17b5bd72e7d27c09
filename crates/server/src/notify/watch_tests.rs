//! What is told once, what is told again, and what is not told.

use proptest::prelude::*;

use super::*;
use drumtower_core::model::{JobName, NamespaceName};

fn job(id: u64) -> Arc<JobKey> {
    Arc::new(JobKey {
        id: JobId(id),
        namespace: NamespaceName::default(),
        name: JobName::new(&format!("job-{id}")).unwrap(),
    })
}

fn run(job: &Arc<JobKey>, id: u64, state: RunState, at: i64) -> Sighting<'_> {
    Sighting {
        run: RunId(id),
        job,
        state,
        created: WallMs(0),
        due: WallMs(0),
        at: WallMs(at),
        attempts: 1,
        started: None,
        worker: None,
        exit_code: None,
        error: None,
    }
}

/// Judges everything that waits, as the task does; (run, threshold) of what is told.
fn tick(watch: &mut Watch, now: i64, thresholds: &[u64]) -> Vec<(u64, u64)> {
    let mut told = Vec::new();
    for suspect in watch.suspects(WallMs(now), 1000) {
        let events = suspect.judge(thresholds);
        watch.judged(&suspect, thresholds);
        told.extend(
            events
                .iter()
                .map(|it| (it.run.0, it.late_after_ms.unwrap())),
        );
    }
    told
}

#[test]
fn a_recovery_is_the_first_completion_after_failures() {
    use RunState::{Cancelled, Completed, Failed};
    let (mut watch, one, two) = (Watch::default(), job(1), job(2));
    let mut kinds = Vec::new();
    let ends = [
        (&one, 1, Completed),
        (&one, 2, Failed),
        (&one, 3, Failed),
        (&two, 4, Completed),
        (&one, 5, Cancelled),
        (&one, 6, Completed),
        (&one, 7, Completed),
    ];
    for (at, (job, id, state)) in ends.into_iter().enumerate() {
        let (event, late) = watch.see(&run(job, id, state, at as i64));
        assert!(late.is_none());
        kinds.extend(event.map(|it| (it.run.0, it.kind)));
    }
    let expected = [
        (2, NotifyOn::Failure),
        (3, NotifyOn::Failure),
        (6, NotifyOn::Recovery),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn what_was_told_is_not_told_again_and_an_old_completion_is_no_recovery() {
    let one = job(1);
    let mut watch = Watch::default();
    watch.see(&run(&one, 2, RunState::Failed, 20));
    let mut watch = Watch::resume(watch.failing().clone(), watch.told(10));
    assert_eq!(watch.see(&run(&one, 2, RunState::Failed, 20)).0, None);
    assert_eq!(watch.see(&run(&one, 1, RunState::Completed, 10)).0, None);
    let (event, _) = watch.see(&run(&one, 3, RunState::Completed, 30));
    assert_eq!(event.unwrap().kind, NotifyOn::Recovery);
}

#[test]
fn a_run_that_waits_is_told_once_for_each_threshold() {
    let (mut watch, one) = (Watch::default(), job(1));
    watch.see(&run(&one, 1, RunState::Pending, 0));
    let rules = [5000, 60_000];
    assert_eq!(tick(&mut watch, 4999, &rules), []);
    assert_eq!(tick(&mut watch, 5000, &rules), [(1, 5000)]);
    assert_eq!(tick(&mut watch, 30_000, &rules), []);
    assert_eq!(tick(&mut watch, 90_000, &rules), [(1, 60_000)]);
    assert_eq!(tick(&mut watch, 900_000, &rules), []);
    let started = Sighting {
        started: Some(WallMs(900_000)),
        ..run(&one, 1, RunState::Running, 900_000)
    };
    let (_, late) = watch.see(&started);
    assert!(late.unwrap().judge(&rules).is_empty());
}

#[test]
fn a_late_start_is_told_though_nobody_looked_before() {
    let (mut watch, one) = (Watch::default(), job(1));
    watch.see(&run(&one, 1, RunState::Pending, 0));
    let started = Sighting {
        started: Some(WallMs(7000)),
        ..run(&one, 1, RunState::Running, 7000)
    };
    let late = watch.see(&started).1.unwrap().judge(&[5000, 60_000]);
    assert_eq!(late.len(), 1);
    assert_eq!(
        (late[0].at, late[0].started),
        (WallMs(5000), Some(WallMs(7000)))
    );
    assert!(watch.see(&started).1.is_none(), "it has started already");
}

#[test]
fn after_a_restart_only_what_became_late_since_is_told() {
    let one = job(1);
    for (judged, told) in [(4000, 1), (5000, 0)] {
        let mut watch = Watch::default();
        watch.wait(&run(&one, 1, RunState::Pending, 0), WallMs(judged));
        assert_eq!(tick(&mut watch, 20_000, &[5000]).len(), told, "{judged}");
    }
    // A run that is made after its time is late when it is made.
    let mut watch = Watch::default();
    let made = Sighting {
        created: WallMs(8000),
        ..run(&one, 1, RunState::Pending, 8000)
    };
    watch.wait(&made, WallMs(7000));
    assert_eq!(tick(&mut watch, 8000, &[5000]), [(1, 5000)]);
}

#[test]
fn more_than_can_be_watched_is_known_to_be_missing() {
    let (mut watch, one) = (Watch::default(), job(1));
    for id in 0..=WAITING as u64 {
        watch.see(&run(&one, id, RunState::Pending, 0));
    }
    assert!(!watch.incomplete(), "there is no room yet");
    for id in 0..WAITING as u64 {
        watch.see(&run(&one, id, RunState::Cancelled, 1));
    }
    assert!(watch.incomplete());
}

proptest! {
    /// However runs wait, start and end: for each run and threshold one message at most, and exactly one when the run was
    /// still waiting, or started, past the instant.
    #[test]
    fn lateness_is_told_exactly_once(
        runs in prop::collection::vec((0..20_000i64, 0..5000i64, 0..100_000i64), 1..20),
        ticks in prop::collection::vec(1..5000i64, 1..60),
    ) {
        let (one, rules) = (job(1), [2000u64, 30_000]);
        let mut watch = Watch::default();
        let mut told: Vec<(u64, u64)> = Vec::new();
        let end: i64 = ticks.iter().sum();
        let (mut now, mut began) = (0, BTreeSet::new());
        let sight = |id: usize, due: i64, delay: i64| Sighting {
            created: WallMs(due + delay),
            due: WallMs(due),
            ..run(&one, id as u64, RunState::Pending, due + delay)
        };
        for step in &ticks {
            now += step;
            for (id, (due, delay, start)) in runs.iter().enumerate() {
                let (made, starts) = (due + delay, due + delay + start);
                if made <= now && !began.contains(&id) {
                    watch.see(&sight(id, *due, *delay));
                    if starts <= now {
                        began.insert(id);
                        let started = Sighting { started: Some(WallMs(starts)), ..sight(id, *due, *delay) };
                        if let Some(late) = watch.see(&started).1 {
                            let events = late.judge(&rules);
                            told.extend(events.iter().map(|it| (it.run.0, it.late_after_ms.unwrap())));
                        }
                    }
                }
            }
            told.extend(tick(&mut watch, now, &rules));
        }
        let mut expected = Vec::new();
        for (id, (due, delay, start)) in runs.iter().enumerate() {
            for threshold in rules {
                let at = (due + threshold as i64).max(due + delay);
                let waits_until = (due + delay + start).min(end);
                if due + delay <= end && at <= waits_until && at > i64::MIN {
                    expected.push((id as u64, threshold));
                }
            }
        }
        told.sort_unstable();
        // A check happens at ticks: what became late after the last one is not told yet.
        prop_assert_eq!(told, expected);
    }
}
