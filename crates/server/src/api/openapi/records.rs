//! What is said of the operations of settings and of the audit log.

use drumtower_core::model::{AuditAction, AuditKind, JobSettings, Notify};
use serde_json::{Value, json};

use super::entry::{Entry, Tag};
use super::parameters::{if_absent, if_match, instant, limit, namespace, paging, query};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::audit;
use crate::api::notifications::{Notification, Test, Tested};
use crate::api::page::Page;
use crate::api::settings::Setting;

pub fn audit(schemas: &mut Schemas) -> Entry {
    let kinds: Vec<&str> = AuditKind::ALL.iter().map(|it| it.as_str()).collect();
    let actions: Vec<&str> = AuditAction::ALL.iter().map(|it| it.as_str()).collect();
    let choice = |names: Vec<&str>| json!({"type": "string", "enum": names});
    let any = || -> Value { json!({"type": "string", "maxLength": 128}) };
    Entry::new("listAudit", Tag::System, "List who changed what")
        .text("Newest first. An entry is written in the commit that makes the change, and kept 400 days.")
        .takes([
            namespace(),
            query("kind", "Only this kind of thing.", choice(kinds)),
            query("name", "Only the thing of this name; of a run its id.", any()),
            query("actor", "Only what was done under this name.", any()),
            query("action", "Only this kind of deed.", choice(actions)),
            instant("since", "From this instant on."),
            instant("until", "Before this instant."),
        ])
        .takes(paging())
        .answers::<Page<audit::Entry>>(schemas, 200, "A page of entries.")
        .leads_to("listAudit", &[("cursor", "$response.body#/next")])
}

const NAMED: &[(&str, &str)] = &[
    ("namespace", "$request.path.namespace"),
    ("name", "$request.path.name"),
];

pub fn put_setting(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Notify>();
    let example = json!({"rules": [{"on": ["failure"], "email": ["ops@example.com"]}]});
    Entry::new("putSetting", Tag::System, "Set a setting of a namespace")
        .takes([if_match("s"), if_absent()])
        .body(body, example)
        .answers::<Setting>(schemas, 200, "Changed, or unchanged.")
        .answers::<Setting>(schemas, 201, "Made.")
        .tagged()
        .leads_to("showSetting", NAMED)
        .leads_to("deleteSetting", NAMED)
        .refuses(&[Kind::NoSuchSetting, Kind::Stale, Kind::AlreadyThere])
}

pub fn show_setting(schemas: &mut Schemas) -> Entry {
    Entry::new("showSetting", Tag::System, "Show a setting of a namespace")
        .answers::<Setting>(schemas, 200, "The setting.")
        .tagged()
        .refuses(&[Kind::NoSuchSetting])
}

pub fn delete_setting() -> Entry {
    Entry::new("deleteSetting", Tag::System, "Take a setting back")
        .takes([if_match("s")])
        .answers_nothing(204, "Deleted.")
        .refuses(&[Kind::NoSuchSetting, Kind::Stale])
}

pub fn settings(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listSettings",
        Tag::System,
        "List the settings of a namespace",
    )
    .answers::<Page<Setting>>(schemas, 200, "All of them.")
}

const OF_INSTALLATION: &[(&str, &str)] = &[("name", "$request.path.name")];

pub fn put_installation_setting(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<JobSettings>();
    let example = json!({"defaults": {"retention": "30d"}, "limits": {"timeout": "6h"}});
    Entry::new(
        "putInstallationSetting",
        Tag::System,
        "Set a setting of the installation",
    )
    .text("It holds for each job that is put from then on, at any server within two seconds. Jobs that exist stay as they are. Only for an admin without a namespace.")
    .takes([if_match("s"), if_absent()])
    .body(body, example)
    .answers::<Setting>(schemas, 200, "Changed, or unchanged.")
    .answers::<Setting>(schemas, 201, "Made.")
    .tagged()
    .leads_to("showInstallationSetting", OF_INSTALLATION)
    .leads_to("deleteInstallationSetting", OF_INSTALLATION)
    .refuses(&[Kind::NoSuchSetting, Kind::Stale, Kind::AlreadyThere])
}

pub fn show_installation_setting(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "showInstallationSetting",
        Tag::System,
        "Show a setting of the installation",
    )
    .answers::<Setting>(schemas, 200, "The setting.")
    .tagged()
    .refuses(&[Kind::NoSuchSetting])
}

pub fn delete_installation_setting() -> Entry {
    Entry::new(
        "deleteInstallationSetting",
        Tag::System,
        "Take a setting of the installation back",
    )
    .text("Only for an admin without a namespace.")
    .takes([if_match("s")])
    .answers_nothing(204, "Deleted.")
    .refuses(&[Kind::NoSuchSetting, Kind::Stale])
}

pub fn installation_settings(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listInstallationSettings",
        Tag::System,
        "List the settings of the installation",
    )
    .answers::<Page<Setting>>(schemas, 200, "All of them.")
}

pub fn notifications(schemas: &mut Schemas) -> Entry {
    let states = json!({"type": "string", "enum": ["pending", "delivered", "failed", "dropped"]});
    Entry::new(
        "listNotifications",
        Tag::System,
        "List messages about failures, recoveries and lateness",
    )
    .text("The newest first: those under way, then the last 200 that ended. There is one page.")
    .takes([
        namespace(),
        query("state", "Only those in this state.", states),
        limit(),
    ])
    .answers::<Page<Notification>>(schemas, 200, "Messages and what became of them.")
}

pub fn test_notification(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Test>();
    Entry::new("testNotification", Tag::System, "Send a test message")
        .text("It is sent at once, past grouping and bounds, and answered when it is known what became of it. Exactly one of `job`, `webhook` and `email` is given.")
        .body(body, json!({"email": "ops@example.com"}))
        .answers::<Page<Tested>>(schemas, 200, "What became of it, for each target.")
        .refuses(&[Kind::NoSuchJob])
}
