//! What is said of the versions of a job.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{if_match, paging, query};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::job_view::Job;
use crate::api::page::Page;
use crate::api::versions::{Diff, Request, Version};

pub fn list(schemas: &mut Schemas) -> Entry {
    let one = [
        ("namespace", "$request.path.namespace"),
        ("name", "$request.path.name"),
        ("version", "$response.body#/items/0/version"),
    ];
    Entry::new("listJobVersions", Tag::Jobs, "List the versions of a job")
        .text("Newest first.")
        .takes(paging())
        .answers::<Page<Version<'static>>>(schemas, 200, "A page of versions.")
        .leads_to("showJobVersion", &one)
        .refuses(&[Kind::NoSuchJob])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showJobVersion", Tag::Jobs, "Show a version of a job")
        .answers::<Version<'static>>(schemas, 200, "The version.")
        .refuses(&[Kind::NoSuchJob, Kind::NoSuchVersion])
}

pub fn diff(schemas: &mut Schemas) -> Entry {
    let number = json!({"type": "integer", "minimum": 1, "maximum": u32::MAX});
    Entry::new(
        "diffJob",
        Tag::Jobs,
        "Tell what changed between two versions",
    )
    .takes([
        query("from", "The one before `to` unless given.", number.clone()),
        query("to", "The current one unless given.", number),
    ])
    .answers::<Diff>(schemas, 200, "The changes, field by field.")
    .refuses(&[Kind::NoSuchJob, Kind::NoSuchVersion])
}

pub fn restore(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Request>();
    Entry::new(
        "restoreJob",
        Tag::Jobs,
        "Give a job the content of an earlier version",
    )
    .text("It becomes a new version; nothing changes when the job has that content already.")
    .takes([if_match("")])
    .body(body, json!({"version": 1}))
    .answers::<Job<'static>>(schemas, 200, "The job.")
    .tagged()
    .refuses(&[
        Kind::NoSuchJob,
        Kind::NoSuchVersion,
        Kind::NoSuchCalendar,
        Kind::Stale,
    ])
}
