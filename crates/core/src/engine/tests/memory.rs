//! What memory holds: jobs that are due soon or were asked for, and no others.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn resident(world: &World) -> usize {
    world.engine.jobs.ids().len()
}

fn yearly(name: &str) -> serde_json::Value {
    let mut spec = noop(name);
    spec["schedule"] = json!([{"every": "8760h"}]);
    spec
}

#[test]
fn jobs_that_are_not_due_soon_leave() {
    let mut world = World::new();
    for n in 0..50 {
        world.put(yearly(&format!("far-{n}")));
        world.put(noop(&format!("never-{n}")));
    }
    let near = world.put(every("near", "10s", "allow"));
    assert_eq!(resident(&world), 101);
    world.tick_through(8_000, 500);
    assert_eq!(world.engine.jobs.ids(), [near]);
}

#[test]
fn a_job_comes_back_when_it_is_due_or_asked_for() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["schedule"] = json!([{"every": "10m"}]);
    let job = world.put(spec);
    world.tick_through(10_000, 500);
    assert_eq!(resident(&world), 0);
    world.trigger("a", None, None).expect("asked for");
    assert_eq!(resident(&world), 1, "its run is live");
    world.worker(1, 1, 4, Vec::new(), 1);
    let run = *world.tables.active.keys().next().expect("a run");
    let attempt = world.tables.active[&run].attempts[0].clone();
    let attempt = AttemptRef {
        run,
        attempt: attempt.number,
        fence: attempt.fence,
    };
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    world.tick_through(10_000, 500);
    assert_eq!(resident(&world), 0);
    world.tick_through(600_000, 1_000);
    let fired = world.tables.schedules[&job].fires;
    assert_eq!(fired, 1, "read ahead in time, and fired");
}

#[test]
fn every_due_time_is_kept_while_jobs_come_and_go() {
    let mut world = World::new();
    let jobs: Vec<JobId> = (1..40)
        .map(|n| {
            let mut spec = noop(&format!("j{n}"));
            spec["schedule"] = json!([{"every": format!("{}s", 37 * n)}]);
            spec["overlap"] = json!("allow");
            world.put(spec)
        })
        .collect();
    let mut least = usize::MAX;
    for n in 0..3_000 {
        world.pass(1_000);
        if n % 701 == 700 {
            world.restart();
        }
        world.commit();
        least = least.min(resident(&world));
    }
    // Their runs wait for a worker, which keeps their jobs here; those that have not fired are not.
    assert!(least < 10, "{least} stayed");
    for (n, job) in (1..40).zip(jobs) {
        let period = 37_000 * n;
        let expected = world.now.wall.0 / period - START / period;
        assert_eq!(world.tables.schedules[&job].fires as i64, expected, "j{n}");
    }
}

#[test]
fn more_jobs_than_a_page_are_read_ahead() {
    let mut world = World::new();
    for n in 0..2 * LOAD_ROWS + 10 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] = json!([{"at": "2027-01-15T08:05:00Z"}]);
        world.put(spec);
    }
    world.tick_through(60_000, 1_000);
    assert_eq!(resident(&world), 0);
    world.tick_through(240_000, 1_000);
    assert_eq!(world.tables.active.len(), 2 * LOAD_ROWS + 10);
}

#[test]
fn a_pass_that_is_cut_short_loses_nobody() {
    let mut world = World::new();
    world.engine.options.read_ahead_jobs = LOAD_ROWS;
    for n in 0..2 * LOAD_ROWS + 10 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] = json!([{"at": "2027-01-15T08:05:00Z"}]);
        world.put(spec);
    }
    // The window is read every half minute: at 08:04:30 they come into sight, the others when half of the rest has passed.
    world.tick_through(280_000, 1_000);
    assert_eq!(resident(&world), LOAD_ROWS, "those behind the cursor stay");
    world.tick_through(20_000, 1_000);
    assert_eq!(world.tables.active.len(), 2 * LOAD_ROWS + 10);
}

#[test]
fn a_name_that_left_memory_is_still_taken() {
    let mut world = World::new();
    let job = world.put(yearly("a"));
    world.tick_through(10_000, 500);
    assert_eq!(resident(&world), 0);
    assert_eq!(world.put(yearly("a")), job);
}
