//! The audit log: every change of what people manage leaves one entry, in the commit that makes it.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn told(world: &World) -> Vec<String> {
    let line = |entry: &AuditEntry| {
        let fields: Vec<&str> = entry.changes.iter().map(|it| it.field.as_str()).collect();
        let object = &entry.object;
        format!(
            "{} {} {} {} v{:?} [{}]",
            entry.actor,
            entry.action.as_str(),
            object.kind.as_str(),
            object.name,
            entry.version,
            fields.join(" ")
        )
    };
    world.tables.audit.values().map(line).collect()
}

#[test]
fn the_life_of_a_job_is_told_with_what_changed() {
    let mut world = World::new();
    world.put(noop("a"));
    world.put(noop("a"));
    let mut heavier = noop("a");
    heavier["weight"] = json!(3);
    world.put(heavier);
    let job = || job_ref("a");
    let condition = Condition::Any;
    for _ in 0..2 {
        world
            .command(Command::PauseJob {
                job: job(),
                condition,
            })
            .unwrap();
    }
    world
        .command(Command::ResumeJob {
            job: job(),
            condition,
        })
        .unwrap();
    world
        .command(Command::DeleteJob {
            job: job(),
            condition,
        })
        .unwrap();
    let told = told(&world);
    assert!(
        told[0].starts_with("tester created job a vSome(1) [kind name namespace"),
        "{told:?}"
    );
    assert_eq!(
        told[1..],
        [
            "tester changed job a vSome(2) [weight]",
            "tester paused job a vSome(2) [paused]",
            "tester resumed job a vSome(2) [paused]",
            "tester deleted job a vSome(2) [kind name namespace task weight]",
        ]
    );
    let said = |entry: usize, field: &str| {
        let entry = world.tables.audit.values().nth(entry).unwrap();
        let change = entry.changes.iter().find(|it| it.field == field).unwrap();
        let text = |value: &Option<JsonText>| value.as_ref().map(|it| it.as_str().to_owned());
        (text(&change.before), text(&change.after))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(said(2, "paused"), (text("false"), text("true")));
    assert_eq!(said(3, "paused"), (text("true"), text("false")));
    assert_eq!(said(4, "weight"), (text("3"), None));
    let weight = &world.tables.audit.values().nth(1).unwrap().changes[0];
    assert_eq!(weight.before, None);
    assert_eq!(weight.after.as_ref().map(JsonText::as_str), Some("3"));
}

#[test]
fn calendars_tokens_and_cancels_are_told_once() {
    let mut world = World::new();
    let days = |weekly: &[&str]| {
        let spec = json!({"kind": "Calendar", "name": "days", "weekly": weekly});
        Command::PutCalendar {
            spec: serde_json::from_value(spec).unwrap(),
            condition: Condition::Any,
        }
    };
    world.command(days(&["mon"])).unwrap();
    world.command(days(&["mon"])).unwrap();
    world.command(days(&["tue"])).unwrap();
    let calendar = CalendarRef {
        namespace: NamespaceName::default(),
        name: CalendarName::new("days").unwrap(),
    };
    let condition = Condition::Any;
    world
        .command(Command::DeleteCalendar {
            calendar,
            condition,
        })
        .unwrap();
    let token = NewToken {
        name: "ann".to_owned(),
        role: Role::Viewer,
        namespace: None,
        hash: [7; 32],
    };
    let Ok(Reply::Token(row)) = world.command(Command::CreateToken { token }) else {
        panic!("no token");
    };
    for _ in 0..2 {
        world.command(Command::RevokeToken { id: row.id }).unwrap();
    }
    world.put(noop("a"));
    let run = world.trigger("a", None, None).unwrap().run;
    for _ in 0..2 {
        world
            .command(Command::CancelRun { run, scope: None })
            .unwrap();
    }
    let told: Vec<String> = told(&world)
        .into_iter()
        .filter(|line| !line.contains(" job "))
        .collect();
    let mut expected = vec![
        "tester created calendar days vSome(1) [kind name namespace weekly]".to_owned(),
        "tester changed calendar days vSome(2) [weekly[0]]".to_owned(),
        "tester deleted calendar days vSome(3) [kind name namespace weekly]".to_owned(),
        "tester created token ann vNone [id namespace role]".to_owned(),
        "tester revoked token ann vNone [revoked]".to_owned(),
        format!("tester cancelled run {run} vNone []"),
    ];
    // Ids of different segments at the same millisecond are in the order of the segments.
    let mut told = told;
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
    for entry in world.tables.audit.values() {
        let text = format!("{entry:?}");
        assert!(!text.contains("[7, 7, 7"), "a token's hash is told: {text}");
    }
}
