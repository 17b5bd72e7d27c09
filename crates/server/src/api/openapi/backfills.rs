//! What is said of the operations of backfills.

use drumtower_core::model::BackfillState;
use serde_json::{Value, json};

use super::entry::{Entry, Tag};
use super::parameters::{idempotency_key, if_match, namespace, paging, query, repeated};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::backfill_view::{BackfillView, PreviewView};
use crate::api::backfills::Request;
use crate::api::page::Page;

const MADE: &[(&str, &str)] = &[("id", "$response.body#/id")];

fn example() -> Value {
    json!({
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "which": "missing",
        "max_active": 4,
    })
}

pub fn create(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Request<'static>>();
    Entry::new("createBackfill", Tag::Schedules, "Make runs of times that have passed")
        .text(
            "Of the nominal times in `[from, to)` by the job's current schedule, which is pinned. At most `max_active` of its \
             runs are under way at once; the end of one makes the next. The live schedule goes on as if there were no backfill. \
             While the job's circuit breaker is open it waits, unless forced; with `overlap: obey` also while the job is full.",
        )
        .takes([idempotency_key()])
        .body(body, example())
        .answers::<BackfillView<'static>>(
            schemas,
            200,
            "The key was known: the backfill of the first request.",
        )
        .answers::<BackfillView<'static>>(schemas, 201, "Begun.")
        .tagged()
        .leads_to("showBackfill", MADE)
        .leads_to("pauseBackfill", MADE)
        .leads_to("resumeBackfill", MADE)
        .leads_to("cancelBackfill", MADE)
        .refuses(&[
            Kind::NoSuchJob,
            Kind::BackfillInTheWay,
            Kind::IdempotencyKeyReused,
        ])
}

pub fn preview(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Request<'static>>();
    Entry::new(
        "previewBackfill",
        Tag::Schedules,
        "Tell what a backfill would do",
    )
    .text("Makes nothing: counts the times of the interval by what became of them, and names the first of each.")
    .body(body, example())
    .answers::<PreviewView>(schemas, 200, "The times by fate.")
    .refuses(&[Kind::NoSuchJob])
}

fn listing(schemas: &mut Schemas, id: &str, summary: &str) -> Entry {
    let state = schemas.request::<BackfillState>();
    let text = "Backfills in this state; any of those given.";
    Entry::new(id, Tag::Schedules, summary)
        .text("Newest first. Those that are over are listed for 90 days.")
        .takes([repeated("state", text, state)])
        .takes(paging())
        .answers::<Page<BackfillView<'static>>>(schemas, 200, "A page of backfills.")
}

pub fn list(schemas: &mut Schemas) -> Entry {
    listing(schemas, "listBackfills", "List backfills")
        .takes([namespace()])
        .leads_to("listBackfills", &[("cursor", "$response.body#/next")])
}

pub fn list_of_job(schemas: &mut Schemas) -> Entry {
    listing(schemas, "listJobBackfills", "List the backfills of a job").refuses(&[Kind::NoSuchJob])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showBackfill", Tag::Schedules, "Show a backfill")
        .answers::<BackfillView<'static>>(schemas, 200, "The backfill.")
        .tagged()
        .refuses(&[Kind::NoSuchBackfill])
}

fn deed(schemas: &mut Schemas, id: &str, summary: &str, text: &str) -> Entry {
    Entry::new(id, Tag::Schedules, summary)
        .text(text)
        .takes([if_match("b")])
        .answers::<BackfillView<'static>>(schemas, 200, "The backfill.")
        .tagged()
        .refuses(&[Kind::NoSuchBackfill, Kind::Stale])
}

pub fn pause(schemas: &mut Schemas) -> Entry {
    let text = "It makes no more runs until it is resumed; those under way go on.";
    deed(schemas, "pauseBackfill", "Pause a backfill", text).refuses(&[Kind::BackfillOver])
}

pub fn resume(schemas: &mut Schemas) -> Entry {
    let text = "It goes on where it was; what became of the times meanwhile is read anew.";
    deed(schemas, "resumeBackfill", "Resume a backfill", text).refuses(&[Kind::BackfillOver])
}

pub fn cancel(schemas: &mut Schemas) -> Entry {
    let runs = json!({"type": "boolean", "default": false});
    let text = "It makes no more runs, and those that wait are cancelled. One that is over is answered as it is.";
    deed(schemas, "cancelBackfill", "Cancel a backfill", text).takes([query(
        "runs",
        "Whether runs that a worker has are asked to stop too.",
        runs,
    )])
}
