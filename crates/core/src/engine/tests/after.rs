//! Jobs that run after others: whose ends count, what is kept until all have come, and that nobody is told twice.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn after(name: &str, jobs: &[&str]) -> serde_json::Value {
    let mut spec = noop(name);
    spec["after"] = json!({ "jobs": jobs });
    spec["overlap"] = "allow".into();
    spec
}

fn any(name: &str, jobs: &[&str], on: &str) -> serde_json::Value {
    let mut spec = after(name, jobs);
    spec["after"]["need"] = "any".into();
    spec["after"]["on"] = on.into();
    spec
}

/// A world with one worker that has room for all.
fn world() -> World {
    let mut world = World::new();
    world.worker(1, 1, 10_000, vec![], 1);
    world
}

/// Triggers a job, whose run ends like this. Returns it, and what was given out then.
fn end(world: &mut World, job: &str, outcome: AttemptOutcome) -> (RunId, Vec<(u64, AttemptRef)>) {
    let made = world.trigger(job, None, None).expect("it is made").run;
    let attempt = given(world, made);
    let effects = world.finish(1, attempt, outcome);
    (made, assignments(&effects))
}

/// The attempt of a run that the worker holds.
fn given(world: &World, run: RunId) -> AttemptRef {
    let run = &world.tables.active[&run];
    let attempt = run.current_attempt().expect("it was given out");
    AttemptRef {
        run: run.id,
        attempt: attempt.number,
        fence: attempt.fence,
    }
}

/// Runs of a job, in order.
fn runs_of(world: &World, job: JobId) -> Vec<&Run> {
    let all = world
        .tables
        .active
        .values()
        .chain(world.tables.history.values());
    let mut runs: Vec<&Run> = all.filter(|run| run.job == job).collect();
    runs.sort_by_key(|run| run.id);
    runs
}

const DONE: AttemptOutcome = AttemptOutcome::Succeeded;

#[test]
fn each_end_that_counts_makes_a_run_that_says_why() {
    let mut world = world();
    world.put(once(noop("first")));
    let on_success = world.put(any("good", &["first"], "success"));
    let on_failure = world.put(any("bad", &["first"], "failure"));
    let on_either = world.put(any("both", &["first"], "either"));
    let (completed, given) = end(&mut world, "first", DONE);
    assert_eq!(given.len(), 2, "they are given out at once");
    let (failed, _) = end(&mut world, "first", AttemptOutcome::Failed);
    let parents = |world: &World, job| {
        let runs = runs_of(world, job).into_iter();
        runs.map(|run| run.parent_run).collect::<Vec<_>>()
    };
    assert_eq!(parents(&world, on_success), [Some(completed)]);
    assert_eq!(parents(&world, on_failure), [Some(failed)]);
    assert_eq!(parents(&world, on_either), [Some(completed), Some(failed)]);
    let run = runs_of(&world, on_success)[0];
    assert_eq!(run.origin, Origin::After);
    assert_eq!(run.root_run, Some(completed));
    assert!(run.standing.counts && run.nominal.is_none());
    assert!(world.tables.endings.is_empty(), "everyone was told");
    world.check_conservation();
}

#[test]
fn a_chain_knows_its_root() {
    let mut world = world();
    world.put(noop("a"));
    let b = world.put(after("b", &["a"]));
    let c = world.put(after("c", &["b"]));
    let (root, given) = end(&mut world, "a", DONE);
    let (stream, attempt) = given[0];
    world.finish(stream, attempt, DONE);
    let last = runs_of(&world, c)[0];
    assert_eq!(last.parent_run, Some(runs_of(&world, b)[0].id));
    assert_eq!(last.root_run, Some(root));
}

#[test]
fn all_of_them_must_have_ended_since_the_last_time() {
    let mut world = world();
    for job in ["x", "y"] {
        world.put(once(noop(job)));
    }
    let sum = world.put(after("sum", &["x", "y"]));
    end(&mut world, "x", DONE);
    let (newest, _) = end(&mut world, "x", DONE);
    end(&mut world, "y", AttemptOutcome::Failed);
    assert!(runs_of(&world, sum).is_empty(), "one failed");
    let kept = &world.tables.waits[&sum].arrived;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept.values().next().map(|it| it.run), Some(newest));
    // What has come survives a restart.
    world.restart();
    world.worker(1, 2, 10_000, vec![], 2);
    let made = world.trigger("y", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    world.finish(2, attempt, DONE);
    assert_eq!(runs_of(&world, sum).len(), 1);
    assert!(!world.tables.waits.contains_key(&sum), "all is used up");
    let made = world.trigger("y", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    world.finish(2, attempt, DONE);
    assert_eq!(runs_of(&world, sum).len(), 1, "x has not run again");
}

#[test]
fn what_made_no_run_is_told() {
    let mut world = world();
    world.put(noop("first"));
    let mut spec = any("second", &["first"], "success");
    spec["overlap"] = "skip".into();
    let second = world.put(spec);
    let unmade = |world: &World| world.tables.waits.get(&second).and_then(|row| row.unmade);
    end(&mut world, "first", DONE);
    assert_eq!(unmade(&world), None);
    let (left_out, _) = end(&mut world, "first", DONE);
    let told = unmade(&world).expect("it is told");
    assert_eq!((told.count, told.run), (1, left_out));
    assert_eq!(told.reason, UnfiredReason::Overlap);
    world
        .command(Command::PauseJob {
            job: job_ref("second"),
            condition: Condition::Any,
        })
        .expect("it is paused");
    end(&mut world, "first", DONE);
    let told = unmade(&world).expect("it is told");
    assert_eq!((told.count, told.reason), (2, UnfiredReason::Paused));
    assert_eq!(runs_of(&world, second).len(), 1);
}

#[test]
fn runs_of_a_deleted_job_set_nothing_off() {
    let mut world = world();
    let first = world.put(noop("first"));
    let second = world.put(any("second", &["first"], "either"));
    let made = world.trigger("first", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    world
        .command(Command::DeleteJob {
            job: job_ref("first"),
            condition: Condition::Any,
        })
        .expect("it is deleted");
    world.finish(1, attempt, DONE);
    assert!(runs_of(&world, second).is_empty());
    assert!(world.tables.endings.is_empty());
    // A job of the same name takes its place.
    let again = world.put(noop("first"));
    assert_ne!(again, first);
    end(&mut world, "first", DONE);
    assert_eq!(runs_of(&world, second).len(), 1);
}

#[test]
fn a_job_may_wait_for_one_that_is_made_later() {
    for restarts in [false, true] {
        let mut world = world();
        let second = world.put(any("second", &["first"], "success"));
        if restarts {
            world.restart();
            world.worker(1, 2, 10_000, vec![], 2);
        }
        world.put(noop("first"));
        let made = world.trigger("first", None, None).expect("it is made").run;
        let (stream, attempt) = (if restarts { 2 } else { 1 }, given(&world, made));
        world.finish(stream, attempt, DONE);
        assert_eq!(runs_of(&world, second).len(), 1, "restarts: {restarts}");
    }
}

#[test]
fn an_edit_forgets_what_is_not_waited_for_any_more() {
    let mut world = world();
    for job in ["x", "y", "z"] {
        world.put(noop(job));
    }
    let sum = world.put(after("sum", &["x", "y"]));
    end(&mut world, "x", DONE);
    world.put(after("sum", &["y", "z"]));
    assert!(!world.tables.waits.contains_key(&sum));
    end(&mut world, "x", DONE);
    assert!(!world.tables.waits.contains_key(&sum));
    assert!(world.tables.endings.is_empty());
    end(&mut world, "z", DONE);
    end(&mut world, "y", DONE);
    assert_eq!(runs_of(&world, sum).len(), 1);
    world.put(noop("sum"));
    end(&mut world, "z", DONE);
    assert!(!world.tables.waits.contains_key(&sum));
    assert_eq!(runs_of(&world, sum).len(), 1);
}

#[test]
fn a_circle_is_refused_with_its_jobs() {
    let mut world = world();
    world.put(after("a", &["d"]));
    world.put(after("b", &["a"]));
    world.put(after("c", &["x", "b"]));
    let refused = |world: &mut World, spec: serde_json::Value| {
        let spec: JobSpec = serde_json::from_value(spec).expect("a valid manifest");
        let put = Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        };
        world.command(put).expect_err("it is refused").to_string()
    };
    let words = "after.jobs: `d` runs after `c` runs after `b` runs after `a` runs after `d`: they would wait for each other for ever; take one of them out";
    assert_eq!(refused(&mut world, after("d", &["c"])), words);
    // What is not in memory is read.
    world.restart();
    assert_eq!(refused(&mut world, after("d", &["c"])), words);
    world.put(after("d", &["x"]));
}

#[test]
fn many_followers_are_told_in_pages_and_none_twice() {
    let mut world = world();
    world.put(noop("first"));
    let count = 2 * FOLLOWER_ROWS + 10;
    for n in 0..count {
        world.put(any(&format!("follower-{n}"), &["first"], "success"));
    }
    let made = world.trigger("first", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    world.report(1, attempt, DONE);
    // The server dies again and again, each time after the commit of a page.
    let mut lives = 0;
    while world.tables.active.contains_key(&made) || !world.tables.endings.is_empty() {
        lives += 1;
        assert!(lives < 50, "it comes to an end");
        let before = world.tables.endings.clone();
        for _ in 0..9 {
            world.commit_once();
            if world.tables.endings != before {
                break;
            }
        }
        if world.tables.history.contains_key(&made) {
            world.engine = World::boot(&world.tables, world.now, world.options.clone(), None);
        }
    }
    let runs = world
        .tables
        .active
        .values()
        .filter(|run| run.origin == Origin::After);
    let jobs: std::collections::BTreeSet<JobId> = runs.clone().map(|run| run.job).collect();
    assert_eq!((runs.count(), jobs.len()), (count, count));
    assert!(lives > 3, "they were told in pages: {lives}");
    world.check_conservation();
}

#[test]
fn more_ends_than_memory_holds_are_read_from_the_store() {
    let mut world = world();
    let first = world.put(noop("first"));
    let second = world.put(any("second", &["first"], "success"));
    let ending = |n: u64| Ending {
        run: RunId(n),
        root: RunId(n),
        namespace: NamespaceName::default(),
        name: JobName::new("first").expect("a name"),
        state: RunState::Completed,
        at: world.now.wall,
        through: None,
    };
    let count = ENDING_ROWS as u64 + 100;
    world.tables.endings = (1..=count).map(|n| (RunId(n), ending(n))).collect();
    world.restart();
    world.commit();
    assert!(world.tables.endings.is_empty());
    assert_eq!(world.engine.endings.len(), 0);
    let made = runs_of(&world, second);
    let parents: std::collections::BTreeSet<_> = made.iter().map(|run| run.parent_run).collect();
    assert_eq!((made.len() as u64, parents.len() as u64), (count, count));
    assert!(runs_of(&world, first).is_empty());
}

#[test]
fn nobody_is_asked_about_jobs_that_none_follows() {
    let mut world = world();
    world.put(noop("first"));
    world.put(any("second", &["first"], "success"));
    world.put(noop("second"));
    // The first end finds out; later ones write nothing.
    end(&mut world, "first", DONE);
    let made = world.trigger("first", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    world.report(1, attempt, DONE);
    world.step(Input::Tick);
    let batch = world.engine.take_batch(world.now).expect("there is one");
    let changes = batch.changes.expect("it ends a run");
    assert!(changes.endings.is_empty());
}

#[test]
fn runs_of_a_backfill_set_nothing_off() {
    let mut world = world();
    world.put(every("first", "1s", "allow"));
    let second = world.put(any("second", &["first"], "success"));
    let given = assignments(&world.tick_through(3_000, 500));
    for (stream, attempt) in given {
        world.finish(stream, attempt, DONE);
    }
    let live = runs_of(&world, second).len();
    assert!(live > 0, "those of the schedule do");
    world
        .command(Command::PauseJob {
            job: job_ref("first"),
            condition: Condition::Any,
        })
        .expect("it is paused");
    let plan = BackfillPlan {
        which: BackfillWhich::All,
        ..super::backfills::seconds(0, 3)
    };
    let backfill = Box::new(super::backfills::asked(&world, "first", plan));
    world
        .command(Command::CreateBackfill { backfill })
        .expect("it begins");
    let mut filled = 0;
    while let Some(run) = world
        .tables
        .active
        .values()
        .find(|run| run.origin == Origin::Backfill && run.current_attempt().is_some())
    {
        let attempt = self::given(&world, run.id);
        world.finish(1, attempt, DONE);
        filled += 1;
    }
    assert!(filled > 0);
    assert_eq!(runs_of(&world, second).len(), live);
}

#[test]
fn an_edit_of_what_counts_forgets_what_does_not() {
    let mut world = world();
    for job in ["x", "y"] {
        world.put(once(noop(job)));
    }
    let sum = world.put(after("sum", &["x", "y"]));
    end(&mut world, "x", DONE);
    let mut spec = after("sum", &["x", "y"]);
    spec["after"]["on"] = "failure".into();
    world.put(spec);
    end(&mut world, "y", AttemptOutcome::Failed);
    assert!(runs_of(&world, sum).is_empty(), "x has not failed");
}

#[test]
fn a_page_from_before_says_nothing_of_a_job_that_was_made_since() {
    let mut world = world();
    world.put(noop("u"));
    world.put(any("gone", &["u"], "success"));
    let delete = |job: &str| Command::DeleteJob {
        job: job_ref(job),
        condition: Condition::Any,
    };
    world.command(delete("gone")).expect("it is deleted");
    let made = world.trigger("u", None, None).expect("it is made").run;
    let attempt = given(&world, made);
    // Nobody follows it; the page that says so takes long.
    world.lag = 200;
    world.finish(1, attempt, DONE);
    assert!(world.is_loading());
    world.command(delete("u")).expect("it is deleted");
    let follower = world.put(any("follower", &["u"], "success"));
    world.put(noop("u"));
    assert!(world.is_loading(), "it is still under way");
    world.lag = 0;
    while world.is_loading() {
        world.loads();
    }
    world.commit();
    end(&mut world, "u", DONE);
    assert_eq!(runs_of(&world, follower).len(), 1);
}
