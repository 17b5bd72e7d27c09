//! What is said of the operations of dead letters.

use drumtower_core::model::JobName;
use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{instant, namespace, paging, query};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::letters::{Answer, Letter, Selection, reasons};
use crate::api::page::Page;
use crate::api::run_view::RunView;

pub fn list(schemas: &mut Schemas) -> Entry {
    let job = schemas.request::<JobName>();
    let reason = json!({"type": "string", "enum": reasons()});
    Entry::new("listLetters", Tag::Runs, "List dead letters")
        .text("Runs that failed for good, the newest first. A page may be short or empty while `next` is set.")
        .takes([
            query("job", "Runs of the job of this name.", job),
            query("reason", "Runs that failed for this reason.", reason),
            instant("since", "Runs that failed at or after this instant."),
            instant("until", "Runs that failed before this instant."),
        ])
        .takes(paging())
        .answers::<Page<Letter>>(schemas, 200, "A page of dead letters.")
        .leads_to(
            "listLetters",
            &[
                ("namespace", "$request.path.namespace"),
                ("cursor", "$response.body#/next"),
            ],
        )
        .refuses(&[Kind::NoSuchJob])
}

pub fn list_all(schemas: &mut Schemas) -> Entry {
    let reason = json!({"type": "string", "enum": reasons()});
    Entry::new(
        "listAllLetters",
        Tag::Runs,
        "List dead letters of every namespace",
    )
    .text("Of those that the token may see; the newest first. A page may be short or empty while `next` is set.")
    .takes([
        namespace(),
        query("reason", "Runs that failed for this reason.", reason),
        instant("since", "Runs that failed at or after this instant."),
        instant("until", "Runs that failed before this instant."),
    ])
    .takes(paging())
    .answers::<Page<Letter>>(schemas, 200, "A page of dead letters.")
    .leads_to("listAllLetters", &[("cursor", "$response.body#/next")])
    .refuses(&[Kind::ForbiddenNamespace])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showLetter", Tag::Runs, "Show a dead letter")
        .text("The run with all its attempts, also when its retention is over.")
        .answers::<RunView<'static>>(schemas, 200, "The run.")
        .refuses(&[Kind::NoSuchLetter])
}

pub fn requeue(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Selection>();
    Entry::new("requeueLetters", Tag::Runs, "Make new runs of dead letters")
        .text("Each new run has the parameters of the old one and names it as `rerun_of`; the letter is gone. Up to 1,000 a call, each refused by itself: then it stays a letter.")
        .body(body, json!({"job": "greet", "reason": "timed_out", "dry_run": true}))
        .answers::<Answer>(schemas, 200, "What became of each.")
        .refuses(&[Kind::NoSuchJob])
}

pub fn discard(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Selection>();
    Entry::new("discardLetters", Tag::Runs, "Throw dead letters away")
        .text("The runs stay in the history for their retention. Up to 1,000 a call.")
        .body(
            body,
            json!({"job": "greet", "until": "2026-11-01T00:00:00Z"}),
        )
        .answers::<Answer>(schemas, 200, "What became of each.")
        .refuses(&[Kind::NoSuchJob])
}
