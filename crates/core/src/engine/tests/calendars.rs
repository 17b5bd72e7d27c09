//! Calendars: who uses them, what an edit does to plans, and how a sweep goes on.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn put_calendar(world: &mut World, include: &[&str]) -> Result<Reply, Refusal> {
    let spec = json!({"kind": "Calendar", "name": "holidays", "include": include});
    world.command(Command::PutCalendar {
        spec: serde_json::from_value(spec).expect("a calendar"),
        condition: Condition::Any,
    })
}

fn daily(name: &str) -> serde_json::Value {
    let mut spec = noop(name);
    spec["schedule"] = json!([{"cron": "0 12 * * *"}]);
    spec["calendar"] = json!({"minus": ["holidays"]});
    spec
}

fn calendar() -> CalendarRef {
    CalendarRef {
        namespace: NamespaceName::default(),
        name: CalendarName::new("holidays").expect("a name"),
    }
}

fn delete(world: &mut World) -> Result<Reply, Refusal> {
    world.command(Command::DeleteCalendar {
        calendar: calendar(),
        condition: Condition::Any,
    })
}

fn next(world: &World, job: JobId) -> String {
    let next = world.tables.schedules[&job].next_nominal.expect("planned");
    jiff::Timestamp::from_millisecond(next.0)
        .expect("a time")
        .to_string()
}

// The world begins on 2027-01-15 at 08:00 UTC.

#[test]
fn a_job_needs_its_calendars() {
    let mut world = World::new();
    let spec: JobSpec = serde_json::from_value(daily("a")).expect("a manifest");
    let refused = world.command(Command::PutJob {
        spec: Box::new(spec),
        condition: Condition::Any,
    });
    let Err(Refusal::Invalid(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.field.starts_with("calendar.minus"), "{error}");
    assert!(error.message.contains("holidays"), "{error}");
    put_calendar(&mut world, &["2027-01-15"]).expect("put");
    let job = world.put(daily("a"));
    assert_eq!(next(&world, job), "2027-01-16T12:00:00Z");
}

#[test]
fn an_edit_plans_users_anew_whether_in_memory_or_not() {
    let mut world = World::new();
    put_calendar(&mut world, &[]).expect("put");
    let jobs: Vec<JobId> = (0..30)
        .map(|n| world.put(daily(&format!("j{n}"))))
        .collect();
    let other = world.put(every("other", "8760h", "skip"));
    world.tick_through(10_000, 500);
    assert!(world.engine.jobs.ids().is_empty());
    put_calendar(&mut world, &["2027-01-15", "2027-01-16"]).expect("put");
    world.tick_through(1_000, 100);
    for job in &jobs {
        assert_eq!(next(&world, *job), "2027-01-17T12:00:00Z");
    }
    let sweep = &world.tables.sweeps[&SweepCause::Calendar(calendar())];
    assert_eq!(
        (sweep.looked, sweep.changed, sweep.version.as_str()),
        (30, 30, "2")
    );
    assert!(sweep.finished.is_some());
    assert!(world.tables.schedules[&other].next_nominal.is_some());
    // Repeating it changes nothing.
    let Ok(Reply::Calendar { version, created }) =
        put_calendar(&mut world, &["2027-01-15", "2027-01-16"])
    else {
        panic!("refused");
    };
    assert_eq!((version.version, created), (2, false));
}

#[test]
fn a_job_decides_by_the_edited_calendar_before_the_sweep_has_come_to_it() {
    let mut world = World::new();
    put_calendar(&mut world, &[]).expect("put");
    let job = world.put(daily("a"));
    world.pass(4 * 3_600_000 - 1);
    world.commit();
    let spec = json!({"kind": "Calendar", "name": "holidays", "include": ["2027-01-15"]});
    world.step(Input::Command {
        ticket: Ticket(99),
        actor: Actor::new("t"),
        command: Command::PutCalendar {
            spec: serde_json::from_value(spec).expect("a calendar"),
            condition: Condition::Any,
        },
    });
    world.pass(1);
    world.commit();
    assert!(
        world.tables.active.is_empty(),
        "it is a holiday since a millisecond"
    );
    assert_eq!(next(&world, job), "2027-01-16T12:00:00Z");
}

#[test]
fn an_interrupted_sweep_goes_on_after_a_restart() {
    let mut world = World::new();
    put_calendar(&mut world, &[]).expect("put");
    let jobs: Vec<JobId> = (0..20)
        .map(|n| world.put(daily(&format!("j{n}"))))
        .collect();
    put_calendar(&mut world, &["2027-01-15"]).expect("put");
    world.restart();
    world.tick_through(1_000, 100);
    for job in jobs {
        assert_eq!(next(&world, job), "2027-01-16T12:00:00Z");
    }
    let sweep = &world.tables.sweeps[&SweepCause::Calendar(calendar())];
    assert!(sweep.finished.is_some());
}

#[test]
fn a_calendar_in_use_is_not_deleted() {
    let mut world = World::new();
    assert!(matches!(
        delete(&mut world),
        Err(Refusal::NoSuchCalendar(_))
    ));
    put_calendar(&mut world, &[]).expect("put");
    world.put(daily("a"));
    assert!(matches!(
        delete(&mut world),
        Err(Refusal::CalendarInUse { .. })
    ));
    world.tick_through(10_000, 500);
    assert!(world.engine.jobs.ids().is_empty());
    assert!(matches!(
        delete(&mut world),
        Err(Refusal::CalendarInUse { .. })
    ));
    let (job, condition) = (job_ref("a"), Condition::Any);
    world
        .command(Command::DeleteJob { job, condition })
        .expect("deleted");
    assert!(matches!(delete(&mut world), Ok(Reply::Deleted)));
    assert!(matches!(
        delete(&mut world),
        Err(Refusal::NoSuchCalendar(_))
    ));
    let Ok(Reply::Calendar { version, created }) = put_calendar(&mut world, &[]) else {
        panic!("refused");
    };
    assert_eq!((version.version, created), (3, true), "it goes on counting");
}

#[test]
fn a_stale_edit_is_refused() {
    let mut world = World::new();
    put_calendar(&mut world, &[]).expect("put");
    let spec = json!({"kind": "Calendar", "name": "holidays", "include": ["12-25"]});
    let mut put = |condition| {
        world.command(Command::PutCalendar {
            spec: serde_json::from_value(spec.clone()).expect("a calendar"),
            condition,
        })
    };
    assert!(matches!(
        put(Condition::Revision(7)),
        Err(Refusal::StaleCalendar { .. })
    ));
    assert!(matches!(
        put(Condition::Absent),
        Err(Refusal::CalendarThere(_))
    ));
    assert!(put(Condition::Revision(1)).is_ok());
}

#[test]
fn a_calendar_keeps_its_bounds_wherever_it_comes_from() {
    let mut world = World::new();
    let spec = json!({"kind": "Calendar", "name": "c", "description": "x".repeat(5_000)});
    let refused = world.command(Command::PutCalendar {
        spec: serde_json::from_value(spec).expect("a calendar"),
        condition: Condition::Any,
    });
    assert!(matches!(refused, Err(Refusal::Invalid(error)) if error.field == "description"));
}
