//! Backlogs of runs that limits hold back: memory stays bounded, every scan gets on, nobody is forgotten.

use serde_json::json;

use super::super::*;
use super::crew::*;
use super::world::*;
use crate::model::*;

const WINDOW: usize = 64;

fn crew() -> Crew {
    Crew::of(World::with_window(WINDOW))
}

fn key(number: usize) -> String {
    format!(r#"{{"c": {number}}}"#)
}

/// One trigger for each of these parameters, many in a commit.
fn trigger_each(crew: &mut Crew, job: &str, params: impl Iterator<Item = String>) -> Vec<RunId> {
    let trigger = |params: String| Trigger {
        params: Some(JsonText::parse("params", &params).expect("JSON")),
        ..Trigger::of(job_ref(job))
    };
    let triggers: Vec<Trigger> = params.map(trigger).collect();
    let before: Vec<RunId> = crew.world.tables.active.keys().copied().collect();
    for some in triggers.chunks(500) {
        let triggers = some.to_vec();
        crew.command(Command::TriggerRuns { triggers });
    }
    let now = crew.world.tables.active.keys().copied();
    now.filter(|run| before.binary_search(run).is_err())
        .collect()
}

/// What is in memory beyond what is leased: runs, and pens with the gates that they wait at.
#[track_caller]
fn check_memory(crew: &Crew) {
    let leased = crew.running.len();
    let resident = crew.world.engine.resident_runs().len();
    assert!(
        resident <= WINDOW + leased + 2,
        "{resident} runs are in memory, {leased} of them leased"
    );
    let pens = crew.world.engine.pens.len();
    assert!(pens <= 2 * (WINDOW + leased) + 8, "{pens} pens");
    let gates = crew.world.engine.gates.len();
    assert!(gates <= 2 * (WINDOW + leased) + 8, "{gates} gates");
}

/// Its line is served and its queue is open: what blocks is the job, between the keys and the queue.
#[test]
fn a_full_job_of_many_keys_in_an_open_queue_takes_bounded_memory() {
    let mut crew = crew();
    let limits = json!({"concurrency": 2, "key": "/c", "per_key": 1});
    crew.put(with("a", json!({"queue": "q", "limits": limits})));
    crew.put(with("b", json!({"queue": "q"})));
    let made = trigger_each(&mut crew, "a", (0..1_000).map(key));
    check_memory(&crew);
    assert_eq!(crew.running.len(), 2);
    crew.pass(2_000);
    check_memory(&crew);
    // Another job of the same line and queue, behind all of it.
    let other = crew.trigger("b", "{}");
    assert!(crew.runs_now().contains(&other), "it is given out at once");
    let mut order = Vec::new();
    while !crew.running.is_empty() {
        let run = crew.end_first();
        order.extend((run != other).then_some(run));
        check_memory(&crew);
    }
    assert_eq!(order, made, "first come, first served");
    crew.is_empty();
}

/// A value of the queue's key is full, and the runs behind it have a key of their job each.
#[test]
fn a_full_key_of_a_queue_with_many_keys_of_a_job_takes_bounded_memory() {
    let mut crew = crew();
    crew.queue(json!({"kind": "Queue", "name": "q", "key": "/r", "per_key": 1}));
    let limits = json!({"key": "/c", "per_key": 1});
    crew.put(with("a", json!({"queue": "q", "limits": limits})));
    let made = trigger_each(
        &mut crew,
        "a",
        (0..800).map(|n| format!(r#"{{"c": {n}, "r": "eu"}}"#)),
    );
    check_memory(&crew);
    crew.pass(2_000);
    check_memory(&crew);
    let free = crew.trigger("a", r#"{"c": "x", "r": "us"}"#);
    assert_eq!(crew.runs_now(), [made[0], free]);
    crew.end(free, AttemptOutcome::Succeeded);
    for expected in made {
        assert_eq!(crew.end_first(), expected);
        check_memory(&crew);
    }
    crew.is_empty();
}

/// Each pen whose turn comes reads as much of its backlog as may be given out, not a page.
#[test]
fn many_keys_with_long_backlogs_take_bounded_memory() {
    let mut crew = crew();
    let limits = json!({"key": "/c", "per_key": 1});
    crew.put(with("a", json!({"queue": "q", "limits": limits})));
    let made = trigger_each(&mut crew, "a", (0..2_500).map(|n| key(n % 150)));
    check_memory(&crew);
    let mut ended = 0;
    while !crew.running.is_empty() {
        crew.end_first();
        ended += 1;
        check_memory(&crew);
    }
    assert_eq!(ended, made.len());
    crew.is_empty();
}

/// Each scan is broken off after a page, since others take the places of the queue.
#[test]
fn a_scan_that_is_broken_off_again_and_again_comes_to_its_end() {
    let mut crew = crew();
    crew.world.lag = 1;
    crew.queue(json!({"kind": "Queue", "name": "q", "concurrency": 2}));
    let limits = json!({"concurrency": 1, "key": "/c", "per_key": 1});
    crew.put(with("a", json!({"queue": "q", "limits": limits})));
    crew.put(with("b", json!({"queue": "q", "weight": 2})));
    crew.put(with("c", json!({"queue": "q"})));
    // A full job, and behind it the run of another one.
    let first = trigger_each(&mut crew, "a", (0..6_000).map(key));
    let last = crew.trigger("c", "{}");
    crew.settle();
    let mut rounds = 0;
    while !crew.runs_now().contains(&last) {
        // While a page is read, the place that was free goes to another line.
        let other = crew.trigger("b", "{}");
        for _ in 0..3 {
            crew.settle();
        }
        if crew.runs_now().contains(&other) {
            crew.end(other, AttemptOutcome::Succeeded);
        }
        crew.settle();
        rounds += 1;
        assert!(rounds < 200, "it waits for ever");
        check_memory(&crew);
    }
    assert!(crew.runs_now().contains(&first[0]), "it holds its place");
    let read = crew.world.parked_read;
    assert!(read < 3 * first.len(), "{read} rows were read");
}

/// What lies in the same queue and no worker takes is not even read.
#[test]
fn what_no_worker_takes_is_not_read_for_what_one_takes() {
    let mut crew = crew();
    let mut missing = with("a", json!({"queue": "q"}));
    missing["task"]["handler"]["name"] = "missing".into();
    crew.put(missing);
    crew.put(with("b", json!({"queue": "q"})));
    crew.queue(json!({"kind": "Queue", "name": "q", "key": "/c", "per_key": 1}));
    trigger_each(&mut crew, "a", (0..5_000).map(key));
    let before = crew.world.parked_read;
    for n in 0..50 {
        let run = crew.trigger("b", &key(n));
        assert_eq!(crew.runs_now(), [run]);
        crew.end(run, AttemptOutcome::Succeeded);
        check_memory(&crew);
    }
    let read = crew.world.parked_read - before;
    assert!(read <= 100, "{read} rows were read");
}

/// An earlier program parked under a gate alone.
#[test]
fn what_an_earlier_program_parked_is_found() {
    for paused in [false, true] {
        let mut crew = crew();
        let limits = json!({"concurrency": 1, "key": "/c", "per_key": 1});
        crew.put(with("a", json!({"queue": "q", "limits": limits})));
        crew.put(with("b", json!({"limits": limits})));
        let condition = Condition::Any;
        if paused {
            crew.queue(json!({"kind": "Queue", "name": "q"}));
            let queue = queue_ref("q");
            crew.command(Command::PauseQueue { queue, condition });
        }
        let made = trigger_each(&mut crew, "a", (0..2_500).map(key));
        let others = trigger_each(&mut crew, "b", (0..300).map(key));
        let mut old = 0;
        for run in crew.world.tables.active.values_mut() {
            if let Some(key) = &mut run.parked {
                let (gates, _) = parked_at(key).expect("a lot");
                *key = gates.last().expect("a gate").to_string();
                old += 1;
            }
        }
        assert!(old > 2_600, "{old}");
        crew.world.restart();
        crew.dial();
        crew.settle();
        check_memory(&crew);
        let resident = crew.world.engine.resident_runs();
        for (id, run) in &crew.world.tables.active {
            let moved = |key: &String| key.starts_with("@pen/") || resident.contains(id);
            assert!(run.parked.as_ref().is_none_or(moved), "{run:?}");
        }
        if paused {
            let queue = queue_ref("q");
            crew.command(Command::ResumeQueue { queue, condition });
        }
        let order = crew.drain();
        for job in [&made, &others] {
            let of_job = order.iter().filter(|run| job.binary_search(run).is_ok());
            assert_eq!(of_job.count(), job.len());
        }
        crew.is_empty();
    }
}

/// While what is parked is older, what comes later waits behind it, in whichever lot that lies.
#[test]
fn those_that_come_later_are_not_served_before() {
    let mut crew = crew();
    let limits = json!({"concurrency": 1, "key": "/c", "per_key": 1});
    crew.put(with("a", json!({"queue": "q", "limits": limits})));
    let mut made = trigger_each(&mut crew, "a", (0..500).map(|n| key(n % 7)));
    let mut order = Vec::new();
    for n in 0..300 {
        order.push(crew.end_first());
        made.extend(trigger_each(&mut crew, "a", std::iter::once(key(n % 7))));
    }
    order.extend(crew.drain());
    for value in 0..7 {
        let params = JsonText::parse("params", &key(value)).expect("JSON");
        let history = &crew.world.tables.history;
        let of_key = |run: &&RunId| history[*run].params.as_ref() == Some(&params);
        let given: Vec<&RunId> = order.iter().filter(of_key).collect();
        assert!(given.is_sorted(), "first come, first served for {value}");
    }
    assert_eq!(order.len(), made.len());
    crew.is_empty();
}
