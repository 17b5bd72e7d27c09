//! What is said of the operations of workers.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::namespace;
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::maintenance::{Drain, Standing};
use crate::api::page::Page;
use crate::api::workers::{Full, Worker};

const NAMED: &[(&str, &str)] = &[("name", "$request.path.name")];

pub fn workers(schemas: &mut Schemas) -> Entry {
    Entry::new("listWorkers", Tag::Workers, "List workers")
        .text("Those that are connected, those whose lease has not ended, and those lost lately that are not back. Workers of every namespace are seen by everyone.")
        .answers::<Page<Worker<'static>>>(schemas, 200, "All of them.")
        .refuses(&[Kind::NotReady])
}

pub fn worker(schemas: &mut Schemas) -> Entry {
    Entry::new("showWorker", Tag::Workers, "Show one worker")
        .text("With what it offers, how it enforces limits, and up to 100 of the runs it holds. Of several with one name it is the one that connected last.")
        .answers::<Full<'static>>(schemas, 200, "The worker.")
        .refuses(&[Kind::NoSuchWorker, Kind::NotReady])
}

pub fn drain(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Drain>();
    Entry::new("drainWorker", Tag::Workers, "Take workers out of service")
        .text("Every worker of that name gets nothing new from the moment this is answered, over restarts of worker and server, until it is resumed; also one that is not connected yet. At the deadline what still runs is stopped and goes to other workers, as a loss and not as a failure. A repetition changes nothing but the deadline, if it has one.")
        .takes([namespace()])
        .optional_body(body, json!({"deadline": "10m"}))
        .answers::<Standing>(schemas, 200, "The drain is in force.")
        .leads_to("resumeWorker", NAMED)
        .refuses(&[Kind::ForbiddenNamespace, Kind::NotReady])
}

pub fn resume(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "resumeWorker",
        Tag::Workers,
        "Put workers back into service",
    )
    .text("One that is not drained stays as it is.")
    .takes([namespace()])
    .answers::<Standing>(
        schemas,
        200,
        "In service, unless a drain of all namespaces stays in force.",
    )
    .refuses(&[Kind::NoSuchWorker, Kind::ForbiddenNamespace, Kind::NotReady])
}

pub fn reset(schemas: &mut Schemas) -> Entry {
    Entry::new("resetWorker", Tag::Workers, "Trust a worker again")
        .text("Forgets its losses: one that is FAULTY or on probation is given work at once.")
        .takes([namespace()])
        .answers::<Standing>(schemas, 200, "Nothing is held against it.")
        .refuses(&[Kind::NoSuchWorker, Kind::ForbiddenNamespace, Kind::NotReady])
}
