//! Scenarios that each broke a promise once.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

const DAY: i64 = 86_400_000;

fn attempt_of(world: &World) -> AttemptRef {
    let run = world
        .tables
        .active
        .values()
        .find(|run| !run.attempts.is_empty())
        .expect("leased");
    let last = run.attempts.last().expect("an attempt");
    AttemptRef {
        run: run.id,
        attempt: last.number,
        fence: last.fence,
    }
}

#[test]
fn the_last_run_of_a_deleted_fixed_delay_job_ends_while_a_load_returns() {
    let mut world = World::new();
    world.worker(1, 1, 4, Vec::new(), 1);
    let mut spec = noop("a");
    spec["schedule"] = json!([{"after_end": "1s"}]);
    world.put(spec);
    world.tick_through(1_500, 100);
    let attempt = attempt_of(&world);
    world
        .command(Command::DeleteJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("deleted");
    // The report is stepped, then any load returns (or a commit in flight lands), then the batch is taken.
    world.report(1, attempt, AttemptOutcome::Succeeded);
    let _ = world.trigger("unknown", None, None);
    assert_eq!(world.tables.active.len(), 0);
}

#[test]
fn a_delayed_run_that_is_due_while_the_batch_is_full_is_assigned_once() {
    let mut world = World::new();
    world.put(noop("a"));
    world.put(noop("b"));
    world.worker(1, 1, 100_000, Vec::new(), 1);
    let trigger = |job: &str, when| Trigger {
        job: job_ref(job),
        params: None,
        idempotency_key: None,
        request: None,
        when,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let later = Command::TriggerRuns {
        triggers: vec![trigger("a", Some(When::After(1_000)))],
    };
    let Ok(Reply::Triggered(made)) = world.command(later) else {
        panic!()
    };
    let run = made[0].as_ref().expect("made").run;
    // A commit is in flight; the next batch fills up.
    for n in 0..3 {
        let triggers = (0..1000).map(|_| trigger("b", None)).collect();
        let (ticket, actor) = (Ticket(1000 + n), Actor::new("t"));
        world.step(Input::Command {
            ticket,
            actor,
            command: Command::TriggerRuns { triggers },
        });
    }
    assert!(world.engine.is_full());
    world.pass(1_000);
    world.step(Input::Tick); // the run's timer comes and waits for room
    world.step_clock(6); // the wall clock is slewed by more than the noise
    world.step(Input::Tick);
    let effects = world.commit();
    let given = assignments(&effects)
        .into_iter()
        .filter(|(_, attempt)| attempt.run == run);
    assert_eq!(given.count(), 1, "assigned once");
}

#[test]
fn a_batch_taken_first_after_a_step_goes_by_the_steady_clock() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(1, 1, 4, Vec::new(), 1);
    let trigger = Trigger {
        job: job_ref("a"),
        params: None,
        idempotency_key: None,
        request: None,
        when: None,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let command = Command::TriggerRuns {
        triggers: vec![trigger],
    };
    world.step(Input::Command {
        ticket: Ticket(99),
        actor: Actor::new("t"),
        command,
    });
    // A commit in flight has kept the batch until now; meanwhile the clock jumped.
    world.step_clock(DAY);
    let batch = world.engine.take_batch(world.now).expect("a batch");
    let changes = batch.changes.expect("changes");
    let run = changes.runs.values().next().expect("a run").run().clone();
    assert!(
        run.attempts[0].assigned <= WallMs(START + 60_000),
        "assigned {} ms ahead",
        run.attempts[0].assigned.0 - START
    );
}

#[test]
fn runs_delayed_by_seconds_obey_the_window_of_memory() {
    let mut world = World::with_window(1_000);
    world.put(noop("a"));
    world.trigger_many("a", 9_000, Some(When::After(5_000)));
    world.tick_through(10_000, 500);
    assert!(
        world.engine.resident_runs().len() <= 4_000,
        "{} resident",
        world.engine.resident_runs().len()
    );
}

#[test]
fn a_minute_read_back_obeys_the_window_of_memory() {
    let mut world = World::with_window(1_000);
    world.put(noop("a"));
    world.trigger_many("a", 9_000, Some(When::After(600_000)));
    assert_eq!(world.engine.resident_runs().len(), 0);
    world.tick_through(601_000, 1_000);
    assert!(
        world.engine.resident_runs().len() <= 4_000,
        "{} resident",
        world.engine.resident_runs().len()
    );
}

#[test]
fn times_that_were_due_before_a_pause_keep_their_own_policy() {
    let mut world = World::new();
    let mut spec = every("a", "10s", "allow");
    spec["misfire"] = json!({"policy": "all", "gap": "30s"});
    world.put(spec);
    world.tick_through(10_500, 500);
    world.pass(50_000);
    world.restart(); // five times are pending; they are to run 30 s apart
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    world.tick_through(1_000, 500);
    world
        .command(Command::ResumeJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("resumed");
    let ranges: Vec<_> = world
        .tables
        .unfired
        .values()
        .map(|r| (r.first.0 - START, r.last.0 - START, r.reason))
        .collect();
    assert_eq!(
        ranges,
        [],
        "the pause of a second swallowed times of before it"
    );
}

#[test]
fn a_heartbeat_with_an_absurd_clock_breaks_nothing() {
    let mut world = World::new();
    world.worker(1, 1, 4, Vec::new(), 1);
    let heartbeat = Heartbeat {
        number: 2,
        acked_position: 0,
        held: Vec::new(),
        load: Load::default(),
        wall: WallMs(i64::MIN),
    };
    world.event(1, WorkerEvent::Heartbeat(heartbeat));
}

#[test]
fn a_heartbeat_with_an_absurd_clock_breaks_nothing_while_a_step_is_held() {
    let mut world = World::new();
    let hello = Hello {
        host: "elsewhere".into(),
        ..hello(1, 1, 4)
    };
    world.event(1, WorkerEvent::Connected(hello));
    world.step_clock(DAY);
    let heartbeat = Heartbeat {
        number: 2,
        acked_position: 0,
        held: Vec::new(),
        load: Load::default(),
        wall: WallMs(i64::MIN + 5),
    };
    world.event(1, WorkerEvent::Heartbeat(heartbeat));
}

#[test]
fn a_worker_that_is_lost_with_much_in_hand_stays_within_a_commit() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(1, 1, 100_000, Vec::new(), 1);
    world.trigger_many("a", 5_000, None);
    world.pass(60_000);
    world.step(Input::Tick);
    let batch = world.engine.take_batch(world.now).expect("a batch");
    let rows = batch.changes.expect("changes").runs.len();
    assert!(rows <= Limits::COMMIT_CHANGES, "{rows} rows");
}

#[test]
fn a_pinned_run_keeps_its_timeout_when_the_calendar_of_its_version_went_away() {
    let mut world = World::new();
    let calendar = json!({"kind": "Calendar", "name": "c", "include": ["2027-01-20"]});
    world
        .command(Command::PutCalendar {
            spec: serde_json::from_value(calendar).expect("c"),
            condition: Condition::Any,
        })
        .expect("put");
    let mut spec = noop("a");
    spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
    spec["calendar"] = json!({"minus": ["c"]});
    spec["timeout"] = json!("5s");
    world.put(spec.clone());
    world.trigger("a", None, None).expect("made"); // pinned to version 1
    spec.as_object_mut().expect("o").remove("calendar");
    world.put(spec);
    let gone = CalendarRef {
        namespace: NamespaceName::default(),
        name: CalendarName::new("c").expect("n"),
    };
    world
        .command(Command::DeleteCalendar {
            calendar: gone,
            condition: Condition::Any,
        })
        .expect("deleted");
    world.restart();
    let effects = world.worker(1, 1, 4, Vec::new(), 1);
    let timeout = effects.iter().find_map(|effect| match effect {
        Effect::Send {
            message: ToWorker::Assign(assign),
            ..
        } => Some(assign.timeout_ms),
        _ => None,
    });
    assert_eq!(timeout, Some(5_000));
}

#[test]
fn a_deleted_job_leaves_memory_after_its_last_run_also_after_a_restart() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(1, 1, 4, Vec::new(), 1);
    world.trigger("a", None, None).expect("made");
    let attempt = attempt_of(&world);
    world
        .command(Command::DeleteJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("deleted");
    world.restart();
    world.worker(1, 2, 4, vec![attempt], 2);
    world.finish(2, attempt, AttemptOutcome::Succeeded);
    world.tick_through(20_000, 500);
    assert_eq!(world.tables.active.len(), 0);
    assert_eq!(world.engine.jobs.ids(), []);
}

#[test]
fn the_engine_does_not_ask_to_be_woken_at_once_when_it_can_do_nothing() {
    let mut world = World::new();
    for n in 0..1_000 {
        world.put(every(&format!("j{n}"), "10s", "allow"));
    }
    world.now.wall = WallMs(START + 10_000 * 60);
    world.now.mono.0 += 10_000 * 60;
    world.step(Input::Tick);
    assert!(!world.engine.is_full(), "the driver goes on");
    assert!(
        world
            .engine
            .next_wakeup(world.now)
            .is_none_or(|at| at > world.now.mono),
        "and spins until the commit in flight lands"
    );
}

/// Nor for a time that has come only by a clock that is not believed.
#[test]
fn a_step_that_is_held_back_does_not_keep_the_engine_awake() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["start_timeout"] = "10m".into();
    world.put(spec);
    let run = world.trigger("a", None, None).expect("made").run;
    world.step_clock(3_600_000);
    world.commit();
    assert_eq!(world.tables.active[&run].state, RunState::Pending);
    assert!(
        world
            .engine
            .next_wakeup(world.now)
            .is_none_or(|at| at > world.now.mono),
        "it spins until the step is believed"
    );
}

fn days(world: &mut World, include: &[&str]) {
    let spec = json!({"kind": "Calendar", "name": "days", "include": include});
    let command = Command::PutCalendar {
        spec: serde_json::from_value(spec).expect("c"),
        condition: Condition::Any,
    };
    world.command(command).expect("put");
}

#[test]
fn a_calendar_edited_while_a_page_of_its_sweep_is_read_is_swept_from_the_start() {
    let mut world = World::new();
    days(&mut world, &["2027-02-01"]);
    let jobs: Vec<JobId> = (0..2_100)
        .map(|n| {
            let mut spec = noop(&format!("j{n}"));
            spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
            spec["calendar"] = json!({"only": ["days"]});
            world.put(spec)
        })
        .collect();
    world.tick_through(30_000, 500);
    assert_eq!(world.engine.jobs.ids().len(), 0);
    days(&mut world, &["2020-01-01"]); // no day ahead: every due time becomes none
    let cause = SweepCause::Calendar(CalendarRef {
        namespace: NamespaceName::default(),
        name: CalendarName::new("days").expect("n"),
    });
    world.tick_through(150, 50);
    assert!(
        world.tables.sweeps[&cause].after.is_some(),
        "the first page is done"
    );
    world.lag = 50;
    world.tick_through(100, 50);
    assert!(world.is_loading(), "the second page is being read");
    days(&mut world, &["2027-01-16"]); // tomorrow
    world.lag = 0;
    world.tick_through(30_000, 100);
    assert!(world.tables.sweeps[&cause].finished.is_some());
    world.tick_through(2 * 86_400_000, 30_000);
    let fired = jobs
        .iter()
        .filter(|job| world.tables.schedules[job].fires > 0)
        .count();
    assert_eq!(
        fired,
        jobs.len(),
        "the rest has no due time and is never read again"
    );
}

#[test]
fn the_read_ahead_waits_for_some_to_fire() {
    let mut world = World::new();
    let at = START + 120_000;
    for n in 0..9_000 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] =
            json!([{"at": jiff::Timestamp::from_millisecond(at).expect("t").to_string()}]);
        world.put(spec);
    }
    world.options.read_ahead_jobs = 2_000;
    world.restart();
    world.tick_through(119_000, 500);
    let resident = world.engine.jobs.ids().len();
    assert!(
        resident <= 4_000,
        "{resident} resident before any of them is due"
    );
}

#[test]
fn jobs_that_only_a_sweep_asked_for_leave_at_once() {
    let mut world = World::new();
    days(&mut world, &["2027-02-01"]);
    for n in 0..50 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
        spec["calendar"] = json!({"only": ["days"]});
        world.put(spec);
    }
    world.tick_through(30_000, 500);
    assert_eq!(world.engine.jobs.ids().len(), 0);
    days(&mut world, &["2027-03-01"]);
    world.tick_through(2_000, 100);
    assert_eq!(world.engine.jobs.ids().len(), 0);
}

#[test]
fn a_new_period_moves_the_due_time_of_a_jittered_job() {
    let mut world = World::new();
    // Only the 16th and the 30th: the 16th may be put off by days.
    days(&mut world, &["2027-01-16", "2027-01-30"]);
    let mut late = Vec::new();
    for n in 0..20 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
        spec["calendar"] = json!({"only": ["days"]});
        spec["jitter"] = json!("240h");
        late.push(world.put(spec));
    }
    days(&mut world, &["2027-01-16", "2027-01-17", "2027-01-30"]);
    world.tick_through(30_000, 100);
    let next = START + 4 * 3_600_000 + 2 * DAY; // the 17th at noon
    let wrong = late
        .iter()
        .filter(|job| world.tables.schedules[job].next_due.expect("planned").0 >= next)
        .count();
    assert_eq!(wrong, 0, "due after the next nominal time");
}

#[test]
fn a_page_of_a_sweep_and_a_large_command_stay_within_a_commit() {
    let mut world = World::new();
    days(&mut world, &["2027-02-01"]);
    for n in 0..2_000 {
        let mut spec = noop(&format!("j{n}"));
        spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
        spec["calendar"] = json!({"only": ["days"]});
        world.put(spec);
    }
    world.tick_through(30_000, 500);
    world.lag = 50;
    days(&mut world, &["2027-03-01"]);
    world.tick_through(150, 50);
    assert!(world.is_loading());
    world.lag = 0;
    let trigger = |n: usize| Trigger {
        job: job_ref("j0"),
        params: None,
        idempotency_key: Some(format!("k{n}")),
        request: None,
        when: None,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    for n in 0..2u64 {
        let triggers = (0..1000).map(|k| trigger(n as usize * 1000 + k)).collect();
        world.step(Input::Command {
            ticket: Ticket(5000 + n),
            actor: Actor::new("t"),
            command: Command::TriggerRuns { triggers },
        });
    }
    for _ in 0..60 {
        world.loads(); // as the driver does: loads are stepped whether or not the batch is full
    }
    let batch = world
        .engine
        .take_batch(world.now)
        .expect("a batch")
        .changes
        .expect("changes");
    let rows = batch.runs.len() + batch.keys.len() + batch.schedules.len();
    assert!(rows <= Limits::COMMIT_CHANGES, "{rows} rows");
}

#[test]
fn days_added_to_a_calendar_are_accounted_for_when_the_server_dies_before_the_sweep() {
    let mut world = World::new();
    days(&mut world, &["2027-01-20"]);
    let mut spec = noop("a");
    spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
    spec["calendar"] = json!({"only": ["days"]});
    let job = world.put(spec);
    world.tick_through(30_000, 500);
    // The edit is acknowledged; the server dies before the first page, and is down for six days.
    days(&mut world, &["2027-01-16", "2027-01-17", "2027-01-20"]);
    world.pass(6 * DAY as u64);
    world.restart();
    world.tick_through(10_000, 100);
    let runs = world
        .tables
        .active
        .values()
        .filter(|run| run.job == job)
        .count() as u64;
    let unfired: u64 = world.tables.unfired.values().map(|range| range.count).sum();
    assert_eq!(runs + unfired, 3, "{runs} runs, {unfired} recorded");
}

/// Commits hold a bounded number of bytes, whatever the bytes belong to.
#[test]
fn definitions_and_settings_fill_a_batch_with_their_bytes() {
    let long = "x".repeat(60_000);
    let job = |n: usize| {
        let spec = serde_json::json!({
            "kind": "Job", "namespace": "default", "name": format!("j{n}"),
            "task": {"exec": {"argv": ["true", &long]}},
        });
        Command::PutJob {
            spec: Box::new(serde_json::from_value(spec).expect("a valid manifest")),
            condition: Condition::Any,
        }
    };
    let calendar = |n: usize| {
        let days: Vec<String> = (0..3_000)
            .map(|day| {
                format!(
                    "{}-{:02}-{:02}",
                    2030 + day / 336,
                    day / 28 % 12 + 1,
                    day % 28 + 1
                )
            })
            .collect();
        let spec = serde_json::json!({
            "kind": "Calendar", "namespace": "default", "name": format!("c{n}"), "include": days,
        });
        Command::PutCalendar {
            spec: serde_json::from_value(spec).expect("a valid manifest"),
            condition: Condition::Any,
        }
    };
    let setting = |n: usize| {
        let rule = serde_json::json!({
            "on": ["failure"],
            "email": (0..20).map(|m| format!("{m}@{}.example", "x".repeat(60))).collect::<Vec<_>>(),
        });
        let value = serde_json::json!({"rules": vec![rule; 8]});
        Command::PutSetting {
            key: SettingKey {
                namespace: Some(NamespaceName::new(&format!("n{n}")).expect("a name")),
                name: SettingName::Notify,
            },
            value: JsonText::parse("value", &value.to_string()).expect("JSON"),
            condition: Condition::Any,
        }
    };
    let commands: [&dyn Fn(usize) -> Command; 3] = [&job, &calendar, &setting];
    for (kind, command) in commands.into_iter().enumerate() {
        let mut world = World::new();
        world.commit();
        let mut count = 0;
        while !world.engine.is_full() {
            count += 1;
            assert!(count < 500, "command {kind} brings no bytes");
            world.step(Input::Command {
                ticket: Ticket(count as u64),
                actor: Actor::new("t"),
                command: command(count),
            });
        }
        let batch = world.engine.take_batch(world.now).expect("a batch");
        assert!(batch.document_bytes >= Limits::COMMIT_BYTES / 2, "{kind}");
    }
}
