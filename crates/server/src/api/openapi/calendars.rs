//! What is said of the operations of calendars.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{if_absent, if_match, namespace, paging};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::calendar_view::{Calendar, Full, Version};
use crate::api::page::Page;

const NAMED: &[(&str, &str)] = &[
    ("namespace", "$request.path.namespace"),
    ("name", "$request.path.name"),
];

pub fn put(schemas: &mut Schemas) -> Entry {
    let body = schemas.named_by_path("CalendarSpec");
    let example = json!({"kind": "Calendar", "include": ["12-25", "2026-10-01..2026-10-07"]});
    Entry::new("putCalendar", Tag::Calendars, "Make a calendar, or change it")
        .text("A change is in force for the times after it; jobs that use it are planned anew in the background.")
        .takes([if_match("v"), if_absent()])
        .body(body, example)
        .answers::<Full<'static>>(schemas, 200, "Changed, or unchanged.")
        .answers::<Full<'static>>(schemas, 201, "Made.")
        .tagged()
        .leads_to("showCalendar", NAMED)
        .leads_to("listCalendarVersions", NAMED)
        .leads_to("deleteCalendar", NAMED)
        .refuses(&[
            Kind::NoSuchCalendar,
            Kind::Stale,
            Kind::AlreadyThere,
            Kind::TooManyCalendars,
        ])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showCalendar", Tag::Calendars, "Show a calendar")
        .answers::<Full<'static>>(schemas, 200, "The calendar.")
        .tagged()
        .refuses(&[Kind::NoSuchCalendar])
}

pub fn delete() -> Entry {
    Entry::new("deleteCalendar", Tag::Calendars, "Delete a calendar")
        .takes([if_match("v")])
        .answers_nothing(204, "Deleted.")
        .refuses(&[Kind::NoSuchCalendar, Kind::CalendarInUse, Kind::Stale])
}

pub fn versions(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listCalendarVersions",
        Tag::Calendars,
        "List the versions of a calendar",
    )
    .text("Newest first; also of a deleted one.")
    .takes(paging())
    .answers::<Page<Version<'static>>>(schemas, 200, "A page of versions.")
    .refuses(&[Kind::NoSuchCalendar])
}

pub fn list(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listCalendars",
        Tag::Calendars,
        "List calendars of every namespace",
    )
    .takes([namespace()])
    .takes(paging())
    .answers::<Page<Calendar<'static>>>(schemas, 200, "A page of calendars.")
    .leads_to("listCalendars", &[("cursor", "$response.body#/next")])
}

pub fn list_namespace(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listNamespaceCalendars",
        Tag::Calendars,
        "List calendars of a namespace",
    )
    .takes(paging())
    .answers::<Page<Calendar<'static>>>(schemas, 200, "A page of calendars.")
}
