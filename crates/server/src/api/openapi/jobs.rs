//! What is said of the operations of jobs and schedules.

use drumtower_core::explain;
use drumtower_core::schedule::MOST_TIMES;
use serde_json::{Value, json};

use super::entry::{Entry, Tag};
use super::parameters::{if_absent, if_match, instant, limit, namespace, paging, query, repeated};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::explain_view::Explanation;
use crate::api::job_view::Job;
use crate::api::page::Page;
use crate::api::{bulk, next};

const NAMED: &[(&str, &str)] = &[
    ("namespace", "$request.path.namespace"),
    ("name", "$request.path.name"),
];

fn manifest() -> Value {
    json!({
        "kind": "Job",
        "labels": {"team": "docs"},
        "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}],
        "task": {"exec": {"argv": ["echo", "hello"]}},
        "params": {"name": "world"},
    })
}

pub fn put(schemas: &mut Schemas) -> Entry {
    let body = schemas.named_by_path("JobSpec");
    Entry::new("putJob", Tag::Jobs, "Make a job, or change its definition")
        .text("The body is the manifest. A definition that is there already changes nothing.")
        .takes([if_match(""), if_absent()])
        .body(body, manifest())
        .answers::<Job<'static>>(schemas, 200, "Changed, or unchanged.")
        .answers::<Job<'static>>(schemas, 201, "Made.")
        .tagged()
        .leads_to("showJob", NAMED)
        .leads_to("patchJob", NAMED)
        .leads_to("pauseJob", NAMED)
        .leads_to("resumeJob", NAMED)
        .leads_to("resetBreaker", NAMED)
        .leads_to("triggerRun", NAMED)
        .leads_to("nextTimes", NAMED)
        .leads_to("listJobVersions", NAMED)
        .leads_to("diffJob", NAMED)
        .leads_to("restoreJob", NAMED)
        .leads_to("explainJob", NAMED)
        .leads_to("deleteJob", NAMED)
        .refuses(&[
            Kind::NoSuchJob,
            Kind::NoSuchCalendar,
            Kind::Stale,
            Kind::AlreadyThere,
        ])
}

pub fn patch(schemas: &mut Schemas) -> Entry {
    let body = schemas.patch_of("JobSpec");
    let types = ["application/merge-patch+json", "application/json"];
    Entry::new("patchJob", Tag::Jobs, "Change a part of a job's definition")
        .text("A merge patch (RFC 7396): what it names is replaced, `null` takes a key away, the rest stays.")
        .takes([if_match("")])
        .body_as(&types, true, body, json!({"priority": 7, "params": null}))
        .answers::<Job<'static>>(schemas, 200, "The job.")
        .tagged()
        .refuses(&[Kind::NoSuchJob, Kind::NoSuchCalendar, Kind::Stale])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showJob", Tag::Jobs, "Show a job")
        .answers::<Job<'static>>(schemas, 200, "The job.")
        .tagged()
        .like(200, example())
        .refuses(&[Kind::NoSuchJob])
}

fn example() -> Value {
    json!({
        "id": "job_06w4grne5tw00", "namespace": "default", "name": "greet", "version": 1, "revision": 1,
        "paused": null, "created": "2026-11-15T22:55:50.702Z", "updated": "2026-11-15T22:55:50.702Z",
        "actor": "ann", "words": "never by itself, only when triggered", "words_zh": "不自动触发，仅手动触发",
        "next_nominal": null, "next_due": null, "fired_through": "2026-11-15T22:55:50.702Z", "fires": 0,
        "live_scheduled": 0, "queued": 0, "breaker": null, "waits": null, "last_unfired": null,
        "spec": {
            "kind": "Job", "name": "greet", "namespace": "default",
            "task": {"exec": {"argv": ["echo", "hello"]}},
        },
    })
}

pub fn delete() -> Entry {
    Entry::new("deleteJob", Tag::Jobs, "Delete a job")
        .text("Its runs stay until their retention ends.")
        .takes([if_match("")])
        .answers_nothing(204, "Deleted.")
        .refuses(&[Kind::NoSuchJob, Kind::Stale])
}

pub fn pause(schemas: &mut Schemas) -> Entry {
    Entry::new("pauseJob", Tag::Jobs, "Stop a schedule from firing")
        .text("Answered likewise when the job is paused already.")
        .takes([if_match("")])
        .answers::<Job<'static>>(schemas, 200, "The job.")
        .tagged()
        .leads_to("resumeJob", NAMED)
        .refuses(&[Kind::NoSuchJob, Kind::Stale])
}

pub fn resume(schemas: &mut Schemas) -> Entry {
    Entry::new("resumeJob", Tag::Jobs, "Let a schedule fire again")
        .text("Answered likewise when the job is not paused.")
        .takes([if_match("")])
        .answers::<Job<'static>>(schemas, 200, "The job.")
        .tagged()
        .refuses(&[Kind::NoSuchJob, Kind::Stale])
}

pub fn reset_breaker(schemas: &mut Schemas) -> Entry {
    Entry::new("resetBreaker", Tag::Jobs, "Close a job's circuit breaker")
        .text("Its failures are forgotten. Answered likewise when it is closed already.")
        .answers::<Job<'static>>(schemas, 200, "The job.")
        .tagged()
        .refuses(&[Kind::NoSuchJob])
}

pub fn bulk(schemas: &mut Schemas, id: &str, summary: &str) -> Entry {
    let body = schemas.request::<bulk::Request>();
    Entry::new(id, Tag::Jobs, summary)
        .text(
            "Those of the namespace that have all the labels, or the names, or both. A call takes at most 1,000 jobs; \
             `next` is set when more match, and goes on with them as `cursor`.",
        )
        .body(body, json!({"labels": {"team": "docs"}, "dry_run": true}))
        .answers::<bulk::Answer>(schemas, 200, "What became of each.")
}

fn filters() -> [Value; 4] {
    let pair = json!({"type": "string", "pattern": "^[^=,]+=.*$", "example": "team=docs"});
    let prefix = json!({"type": "string", "pattern": "^[a-z0-9._-]{0,128}$"});
    [
        repeated(
            "label",
            "Jobs with this label, `key=value`; all must match.",
            pair,
        ),
        query(
            "paused",
            "Only paused jobs, or only others.",
            json!({"type": "boolean"}),
        ),
        query("prefix", "Jobs whose name begins so.", prefix),
        query(
            "search",
            "Jobs with this text somewhere in `namespace/name` or in a label, `key=value`; case does not matter. A page may be short or empty while `next` is set.",
            json!({"type": "string", "maxLength": 128}),
        ),
    ]
}

pub fn list(schemas: &mut Schemas) -> Entry {
    Entry::new("listJobs", Tag::Jobs, "List jobs of every namespace")
        .text("In order of namespace and name.")
        .takes([namespace()])
        .takes(filters())
        .takes(paging())
        .answers::<Page<Job<'static>>>(schemas, 200, "A page of jobs.")
        .leads_to("listJobs", &[("cursor", "$response.body#/next")])
}

pub fn list_namespace(schemas: &mut Schemas) -> Entry {
    let on = [
        ("namespace", "$request.path.namespace"),
        ("cursor", "$response.body#/next"),
    ];
    Entry::new("listNamespaceJobs", Tag::Jobs, "List jobs of a namespace")
        .text("In order of name.")
        .takes(filters())
        .takes(paging())
        .answers::<Page<Job<'static>>>(schemas, 200, "A page of jobs.")
        .leads_to("listNamespaceJobs", &on)
}

pub fn validate(schemas: &mut Schemas) -> Entry {
    let body = schemas.named_by_path("JobSpec");
    Entry::new("validateJob", Tag::Jobs, "Try a manifest without applying it")
        .text("Refused as `putJob` would refuse it; else answered with its schedule in words and its next ten times. Nothing changes.")
        .body(body, manifest())
        .answers::<next::Answer>(schemas, 200, "It would be taken.")
}

pub fn next_times(schemas: &mut Schemas) -> Entry {
    let count = json!({"type": "integer", "minimum": 1, "maximum": MOST_TIMES, "default": 10});
    Entry::new("nextTimes", Tag::Schedules, "Tell when a job is due next")
        .takes([
            instant("from", "Times after this instant; now unless given."),
            query("count", "How many times.", count),
            query(
                "backwards",
                "Times at or before `from` instead, the latest first.",
                json!({"type": "boolean", "default": false}),
            ),
        ])
        .answers::<next::Answer>(schemas, 200, "Times and warnings.")
        .refuses(&[Kind::NoSuchJob, Kind::InvalidField])
}

pub fn preview(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<next::Asked>();
    let example = json!({
        "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}],
        "from": "2027-03-27T12:00:00Z",
        "count": 3,
    });
    Entry::new(
        "previewSchedule",
        Tag::Schedules,
        "Try a schedule before it is applied",
    )
    .body(body, example)
    .answers::<next::Answer>(schemas, 200, "Times and warnings.")
}

pub fn explain(schemas: &mut Schemas) -> Entry {
    let mut rows = limit();
    rows["schema"]["maximum"] = json!(explain::ROWS);
    rows["schema"]["default"] = json!(1000);
    let [_, cursor] = paging();
    Entry::new(
        "explainJob",
        Tag::Schedules,
        "Tell what became of each due time",
    )
    .text("Every due time in `[from, to)` lies in exactly one row.")
    .takes([
        instant("from", "A day before `to` unless given."),
        instant("to", "Now unless given."),
        rows,
        cursor,
    ])
    .answers::<Explanation<'static>>(schemas, 200, "The rows.")
    .refuses(&[Kind::NoSuchJob])
}
