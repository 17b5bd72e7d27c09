//! What is said of the operations of runs.

use drumtower_core::model::{BackfillId, JobName, Limits, Origin, RunState};
use serde_json::{Value, json};

use super::entry::{Entry, Tag};
use super::parameters::{idempotency_key, instant, namespace, paging, query, repeated};
use super::schemas::Schemas;
use crate::api::explain_run::Explanation;
use crate::api::page::Page;
use crate::api::run_view::{RunSummary, RunView};
use crate::api::{Kind, batch, log_lines, rerun, trigger};

const MADE: &[(&str, &str)] = &[("id", "$response.body#/id")];

pub fn trigger(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<trigger::Request<'static>>();
    let example = json!({"params": {"name": "Ada"}, "delay": "30m"});
    Entry::new("triggerRun", Tag::Runs, "Make a run of a job")
        .text("At once, or after `delay`, or `at` an instant up to ten years ahead.")
        .takes([idempotency_key()])
        .optional_body(body, example)
        .answers::<trigger::Answer>(
            schemas,
            200,
            "The key was known: the run of the first request.",
        )
        .answers::<trigger::Answer>(schemas, 201, "Made.")
        .leads_to("showRun", MADE)
        .leads_to("waitRun", MADE)
        .leads_to("explainRun", MADE)
        .leads_to("cancelRun", MADE)
        .leads_to("readLogs", MADE)
        .refuses(&[
            Kind::NoSuchJob,
            Kind::IdempotencyKeyReused,
            Kind::OverlapFull,
            Kind::BreakerOpen,
        ])
}

pub fn batch(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<batch::Batch<'static>>();
    let example = json!({"runs": [
        {"job": "greet", "idempotency_key": "batch-1"},
        {"job": "greet", "namespace": "default", "params": {"name": "Bo"}},
    ]});
    let mut key = idempotency_key();
    let most = Limits::IDEMPOTENCY_KEY_CHARS - 4;
    key["schema"]["pattern"] = json!(format!("^[!-~]{{1,{most}}}$"));
    Entry::new("triggerBatch", Tag::Runs, "Make many runs")
        .text(
            "Up to 1,000, each refused by itself; the answers have the order of the items. With the header \
             `Idempotency-Key`, an item without a key of its own gets the header's, a slash and its place from 0.",
        )
        .takes([key])
        .body(body, example)
        .answers::<batch::Answers<'static>>(schemas, 200, "What became of each.")
        .leads_to("showRun", &[("id", "$response.body#/runs/0/id")])
}

pub fn list(schemas: &mut Schemas) -> Entry {
    let (job, id) = (
        schemas.request::<JobName>(),
        schemas.request::<drumtower_core::model::JobId>(),
    );
    let (state, origin) = (schemas.request::<RunState>(), schemas.request::<Origin>());
    let backfill = schemas.request::<BackfillId>();
    Entry::new("listRuns", Tag::Runs, "List runs")
        .text("Newest first. A page may be short or empty while `next` is set.")
        .takes([
            namespace(),
            query(
                "job",
                "Runs of the job of this name, of `namespace` or the token's own.",
                job,
            ),
            query(
                "job_id",
                "Runs of this job, also of a deleted one; not with `job`.",
                id,
            ),
            repeated("state", "Runs in this state; any of those given.", state),
            query("origin", "Runs made by this.", origin),
            query("backfill", "Runs that this backfill made.", backfill),
            instant("since", "Runs made at or after this instant."),
            instant("until", "Runs made before this instant."),
        ])
        .takes(paging())
        .answers::<Page<RunSummary<'static>>>(schemas, 200, "A page of runs.")
        .leads_to("listRuns", &[("cursor", "$response.body#/next")])
        .refuses(&[Kind::NoSuchJob, Kind::NoSuchBackfill])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showRun", Tag::Runs, "Show a run")
        .text("With its transitions and attempts.")
        .answers::<RunView<'static>>(schemas, 200, "The run.")
        .like(200, example())
        .refuses(&[Kind::NoSuchRun])
}

fn example() -> Value {
    json!({
        "id": "run_06w4grp6yqr00", "namespace": "default", "job": "greet", "job_id": "job_06w4grne5tw00",
        "job_version": 1, "state": "PENDING", "origin": "api", "actor": "ann", "nominal": null,
        "due": "2026-11-15T22:55:51.351Z", "created": "2026-11-15T22:55:51.351Z", "finished": null,
        "params": {"name": "world"}, "idempotency_key": null, "rerun_of": null, "parent_run": null, "root_run": null, "backfill": null, "cancel": null, "result": null, "error": null,
        "transitions": [
            {"to": "PENDING", "at": "2026-11-15T22:55:51.351Z", "reason": "created", "attempt": 0},
        ],
        "attempts": [],
    })
}

pub fn wait(schemas: &mut Schemas) -> Entry {
    let timeout = json!({
        "type": "string",
        "pattern": "^[0-9]{1,3}(ms|s)$",
        "default": "30s",
        "example": "100ms",
    });
    Entry::new("waitRun", Tag::Runs, "Wait until a run has ended")
        .text("Answers with the run when it has ended, or as it is after `timeout`, which is no refusal: look at `state`.")
        .takes([query("timeout", "A duration of at most `5m`; `0s` just reads.", timeout)])
        .answers::<RunView<'static>>(schemas, 200, "The run.")
        .refuses(&[Kind::NoSuchRun])
}

pub fn explain(schemas: &mut Schemas) -> Entry {
    Entry::new("explainRun", Tag::Runs, "Say why a run is where it is")
        .text(
            "Why it waits, was tried again, moved, put off, cancelled or failed, with times and actors, and what to do about \
             it. Also for a run of which only the dead letter is left.",
        )
        .answers::<Explanation<'static>>(schemas, 200, "Its account.")
        .refuses(&[Kind::NoSuchRun])
}

pub fn cancel(schemas: &mut Schemas) -> Entry {
    Entry::new("cancelRun", Tag::Runs, "Cancel a run")
        .text("One that has ended is answered as it ended. One that is under way ends when its worker has stopped it.")
        .answers::<RunView<'static>>(schemas, 200, "The run.")
        .leads_to("rerunRun", &[("id", "$request.path.id")])
        .refuses(&[Kind::NoSuchRun])
}

pub fn rerun(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<rerun::Request<'static>>();
    let example = json!({"params": {"name": "Ada"}, "version": "original"});
    Entry::new("rerunRun", Tag::Runs, "Repeat a run that has ended")
        .text(
            "With its parameters unless others are given, by the job's current definition or the one it had. The new run \
             names it as `rerun_of` and stands for the same time.",
        )
        .takes([idempotency_key()])
        .optional_body(body, example)
        .answers::<trigger::Answer>(schemas, 200, "The key was known: the run of the first request.")
        .answers::<trigger::Answer>(schemas, 201, "Made.")
        .leads_to("showRun", MADE)
        .refuses(&[
            Kind::NoSuchRun,
            Kind::NoSuchJob,
            Kind::RunNotEnded,
            Kind::IdempotencyKeyReused,
        ])
}

pub fn logs() -> Entry {
    let line = json!({"type": "string", "description": "One JSON object a line: `ts`, `stream`, `attempt`, `text`."});
    let stream = json!({"type": "string", "enum": ["stdout", "stderr"]});
    let grep = json!({
        "type": "string",
        "format": "regex",
        "maxLength": log_lines::PATTERN_CHARS,
        "example": "(?i)error",
    });
    Entry::new("readLogs", Tag::Runs, "Read the output of a run")
        .text("JSON lines, or the raw bytes with `Accept: text/plain`. `follow` ends when the run has ended and all is sent.")
        .takes([
            query("follow", "Goes on as output comes.", json!({"type": "boolean", "default": false})),
            query(
                "attempt",
                "Only of this attempt, from 1.",
                json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
            ),
            query("stream", "Only of this stream.", stream),
            instant("since", "Only what was written at or after this instant."),
            query(
                "tail",
                "Only so many lines from the end of what there is; with `follow`, all that comes after.",
                json!({"type": "integer", "minimum": 0, "maximum": log_lines::MOST_LINES}),
            ),
            query("grep", "Only lines in which this regular expression is found.", grep),
        ])
        .answers_as(200, "The output.", "application/x-ndjson", line)
        .answers_as(200, "The output.", "text/plain", json!({"type": "string"}))
        .streams()
        .refuses(&[Kind::NoSuchRun, Kind::LogExpired, Kind::OutputAway])
}
