//! Rates: never faster than they say, over restarts and steps of the clock, and never for hours.

use serde_json::json;

use super::crew::*;
use super::world::*;
use crate::model::*;

fn crew(limits: serde_json::Value) -> Crew {
    let mut crew = Crew::of(World::with_window(1_000));
    crew.put(with("a", json!({"limits": limits})));
    crew
}

fn starts_after(crew: &mut Crew, from: u64) -> Vec<u64> {
    let starts = crew.starts.iter().map(|(at, _)| *at - from);
    starts.collect()
}

#[test]
fn starts_are_spread_after_a_burst() {
    let mut crew = crew(json!({"rate": "10/10s", "burst": 3}));
    let from = crew.world.now.mono.0;
    crew.trigger_many("a", "{}", 6);
    crew.pass(5_000);
    assert_eq!(
        starts_after(&mut crew, from),
        [0, 0, 0, 1_000, 2_000, 3_000]
    );
    crew.drain();
    assert!(!crew.world.tables.rates.is_empty(), "it may still matter");
    crew.pass(10_000);
    assert!(crew.world.tables.rates.is_empty(), "it is over");
    crew.is_empty();
}

#[test]
fn further_attempts_count() {
    let mut crew = crew(json!({"rate": "1/2s"}));
    crew.put(with(
        "a",
        json!({
            "limits": {"rate": "1/2s"},
            "retry": {"initial": "0s", "max_attempts": 3},
        }),
    ));
    let from = crew.world.now.mono.0;
    let run = crew.trigger("a", "{}");
    crew.end(run, AttemptOutcome::Failed);
    assert!(crew.running.is_empty());
    crew.pass(2_000);
    crew.end(run, AttemptOutcome::Succeeded);
    assert_eq!(starts_after(&mut crew, from), [0, 2_000]);
}

#[test]
fn a_rate_goes_on_over_a_restart() {
    let mut crew = crew(json!({"rate": "1/10s"}));
    let from = crew.world.now.mono.0;
    crew.trigger_many("a", "{}", 3);
    crew.pass(4_000);
    crew.world.restart();
    crew.dial();
    crew.pass(20_000);
    assert_eq!(starts_after(&mut crew, from), [0, 10_000, 20_000]);
}

/// Whatever the wall clock does, the distance is kept, and nobody waits for hours.
#[test]
fn steps_of_the_clock_change_nothing() {
    for step in [-7_200_000, -3_000, 3_000, 7_200_000] {
        for restarted in [false, true] {
            let mut crew = crew(json!({"rate": "6/1m", "burst": 2}));
            let from = crew.world.now.mono.0;
            crew.trigger_many("a", "{}", 2);
            crew.pass(2_000);
            crew.world.step_clock(step);
            crew.pass(2_000);
            if restarted {
                crew.world.reset();
                crew.dial();
            }
            crew.trigger_many("a", "{}", 3);
            crew.pass(60_000);
            let starts = starts_after(&mut crew, from);
            assert_eq!(starts, [0, 0, 10_000, 20_000, 30_000], "{step} {restarted}");
        }
    }
}

/// The clock was set back by a day while the server was down: a burst's time passes, not a day.
#[test]
fn a_clock_set_back_while_nobody_looked_delays_by_a_burst_at_most() {
    let mut crew = crew(json!({"rate": "6/1m", "burst": 2}));
    let from = crew.world.now.mono.0;
    crew.trigger_many("a", "{}", 2);
    crew.world.step_clock(-86_400_000);
    crew.world.restart();
    crew.dial();
    crew.trigger("a", "{}");
    crew.pass(30_000);
    let starts = starts_after(&mut crew, from);
    assert_eq!(starts, [0, 0, 10_000]);
}

#[test]
fn another_rate_holds_at_once() {
    let mut crew = crew(json!({"rate": "1/30d"}));
    crew.trigger_many("a", "{}", 4);
    crew.pass(20_000);
    assert_eq!(crew.running.len(), 1);
    crew.put(with("a", json!({"limits": {"rate": "1/1s"}})));
    crew.pass(1_000);
    assert_eq!(crew.running.len(), 2);
    crew.put(noop("a"));
    assert_eq!(crew.running.len(), 4);
    crew.drain();
    crew.pass(1_000);
    crew.is_empty();
}

#[test]
fn a_queue_and_its_jobs_have_their_own_rates() {
    let mut crew = crew(json!({"rate": "1/5s"}));
    crew.queue(json!({"kind": "Queue", "name": "q", "rate": "1/2s"}));
    crew.put(with("a", json!({"queue": "q", "limits": {"rate": "1/5s"}})));
    crew.put(with("b", json!({"queue": "q"})));
    let from = crew.world.now.mono.0;
    crew.trigger_many("a", "{}", 3);
    crew.world.pass(1);
    crew.trigger_many("b", "{}", 3);
    crew.pass(16_000);
    assert_eq!(
        starts_after(&mut crew, from),
        [0, 2_001, 4_001, 6_001, 8_001, 11_001]
    );
}

/// A parked backlog goes on at its rate.
#[test]
fn a_long_backlog_keeps_to_the_rate() {
    let mut crew = crew(json!({"rate": "100/1s", "burst": 100}));
    let made = crew.trigger_many("a", "{}", 400);
    assert_eq!(crew.running.len(), 100);
    for second in 2..5 {
        crew.pass(1_000);
        assert_eq!(crew.running.len(), second * 100);
    }
    let started: Vec<RunId> = crew.starts.iter().map(|(_, run)| *run).collect();
    assert_eq!(started, made);
}
