//! Settings: set, changed under a condition, deleted, kept over restarts.

use super::super::*;
use super::world::*;
use crate::model::*;

fn key() -> SettingKey {
    SettingKey {
        namespace: Some(NamespaceName::default()),
        name: SettingName::Notify,
    }
}

fn put(world: &mut World, text: &str, condition: Condition) -> Result<(u64, bool), Refusal> {
    let value = JsonText::parse("value", text).expect("JSON");
    let command = Command::PutSetting {
        key: key(),
        value,
        condition,
    };
    match world.command(command)? {
        Reply::Setting { row, created } => Ok((row.revision, created)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_setting_is_set_changed_and_deleted() {
    let mut world = World::new();
    let rule = r#"{"rules":[{"on":["failure"],"email":["ops@example.com"]}]}"#;
    assert_eq!(put(&mut world, rule, Condition::Absent), Ok((1, true)));
    assert_eq!(put(&mut world, rule, Condition::Any), Ok((1, false)));
    world.restart();
    assert_eq!(
        put(&mut world, "{}", Condition::Absent),
        Err(Refusal::SettingThere(SettingName::Notify))
    );
    assert_eq!(
        put(&mut world, "{}", Condition::Revision(7)),
        Err(Refusal::StaleSetting {
            name: SettingName::Notify,
            given: 7,
            current: 1
        })
    );
    assert_eq!(
        put(&mut world, "{}", Condition::Revision(1)),
        Ok((2, false))
    );
    let delete = |condition| Command::DeleteSetting {
        key: key(),
        condition,
    };
    world.command(delete(Condition::Revision(2))).unwrap();
    let gone = world.command(delete(Condition::Any)).unwrap_err();
    assert_eq!(gone, Refusal::NoSuchSetting(SettingName::Notify));
    assert_eq!(put(&mut world, rule, Condition::Absent), Ok((4, true)));
    let actions: Vec<&str> = world
        .tables
        .audit
        .values()
        .map(|entry| entry.action.as_str())
        .collect();
    assert_eq!(actions, ["created", "changed", "deleted", "created"]);
}

#[test]
fn a_wrong_value_changes_nothing() {
    let mut world = World::new();
    let refused = put(&mut world, r#"{"rules":[{"on":["late"]}]}"#, Condition::Any);
    assert!(matches!(refused, Err(Refusal::Invalid(error)) if error.field == "value.rules[0]"));
    assert!(world.tables.settings.is_empty() && world.tables.audit.is_empty());
}

fn plain() -> JobSpec {
    serde_json::from_value(noop("j")).expect("a manifest")
}

fn job_settings(world: &mut World, text: &str) {
    world
        .command(Command::PutSetting {
            key: SettingKey::JOBS,
            value: JsonText::parse("value", text).expect("JSON"),
            condition: Condition::Any,
        })
        .unwrap();
}

#[test]
fn a_version_holds_what_the_settings_said_when_it_was_put() {
    let mut world = World::new();
    job_settings(&mut world, r#"{"defaults": {"timeout": "10m"}}"#);
    let timeout = |world: &mut World| {
        let reply = world.command(Command::PutJob {
            spec: Box::new(plain()),
            condition: Condition::Any,
        });
        match reply.unwrap() {
            Reply::Job { record, .. } => (record.row.version, record.version.spec.timeout.clone()),
            other => panic!("{other:?}"),
        }
    };
    let ten = Some("10m".to_owned());
    assert_eq!(timeout(&mut world), (1, ten.clone()));
    // Repeated, it changes nothing, also in the engine after this one.
    world.restart();
    assert_eq!(timeout(&mut world), (1, ten));
    job_settings(&mut world, r#"{"defaults": {"timeout": "20m"}}"#);
    assert_eq!(timeout(&mut world), (2, Some("20m".to_owned())));
}

#[test]
fn what_another_server_wrote_counts_unless_it_is_older() {
    let mut world = World::new();
    job_settings(&mut world, r#"{"defaults": {"timeout": "10m"}}"#);
    let heard = |revision, text: &str| {
        Input::Settings(vec![SettingRow {
            key: SettingKey::JOBS,
            revision,
            value: Some(JsonText::parse("value", text).expect("JSON")),
            updated: WallMs(0),
            actor: Actor("other".into()),
        }])
    };
    let timeout = |world: &World| {
        let mut spec = plain();
        world.engine.complete(&mut spec).unwrap();
        spec.timeout
    };
    let now = world.now;
    world
        .engine
        .step(now, heard(1, r#"{"defaults": {"timeout": "1m"}}"#));
    assert_eq!(timeout(&world).as_deref(), Some("10m"));
    world
        .engine
        .step(now, heard(2, r#"{"defaults": {"timeout": "2m"}}"#));
    assert_eq!(timeout(&world).as_deref(), Some("2m"));
    // Written by a server that knows more than this one.
    world.engine.step(now, heard(3, r#"{"quotas": {}}"#));
    let refused = world.engine.complete(&mut plain()).unwrap_err();
    assert_eq!(refused.field, "settings.jobs");
    assert!(refused.message.contains("`quotas`"), "{refused}");
}

fn put_of(world: &mut World, namespace: usize) -> Result<Reply, Refusal> {
    let namespace = NamespaceName::new(&format!("n{namespace}")).expect("a name");
    let key = SettingKey {
        namespace: Some(namespace),
        name: SettingName::Notify,
    };
    world.command(Command::PutSetting {
        key,
        value: JsonText::parse("value", "{}").expect("JSON"),
        condition: Condition::Any,
    })
}

#[test]
fn a_deleted_setting_takes_no_place() {
    let mut world = World::new();
    for namespace in 0..Limits::SETTINGS {
        put_of(&mut world, namespace).unwrap();
    }
    let refused = put_of(&mut world, Limits::SETTINGS).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(error) if error.field == "settings"));
    let key = SettingKey {
        namespace: Some(NamespaceName::new("n7").expect("a name")),
        name: SettingName::Notify,
    };
    let delete = Command::DeleteSetting {
        key,
        condition: Condition::Any,
    };
    world.command(delete).unwrap();
    put_of(&mut world, Limits::SETTINGS).unwrap();
    let refused = put_of(&mut world, 7);
    assert!(
        refused.is_err(),
        "one that was deleted is one more when it comes back"
    );
}
