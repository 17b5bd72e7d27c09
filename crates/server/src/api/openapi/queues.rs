//! What is said of the operations of queues.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{if_absent, if_match, namespace, paging};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::page::Page;
use crate::api::queue_view::Queue;

const NAMED: &[(&str, &str)] = &[
    ("namespace", "$request.path.namespace"),
    ("name", "$request.path.name"),
];

pub fn put(schemas: &mut Schemas) -> Entry {
    let body = schemas.named_by_path("QueueSpec");
    let example = json!({"kind": "Queue", "concurrency": 4, "rate": "100/1m"});
    Entry::new("putQueue", Tag::Queues, "Define a queue, or change its limits")
        .text("The limits hold at once for what does not run yet; what runs goes on. A queue that is paused stays so.")
        .takes([if_match("q"), if_absent()])
        .body(body, example)
        .answers::<Queue<'static>>(schemas, 200, "Changed, or unchanged.")
        .answers::<Queue<'static>>(schemas, 201, "Made.")
        .tagged()
        .leads_to("showQueue", NAMED)
        .leads_to("pauseQueue", NAMED)
        .leads_to("deleteQueue", NAMED)
        .refuses(&[Kind::NoSuchQueue, Kind::Stale, Kind::AlreadyThere])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showQueue", Tag::Queues, "Show a queue and how full it is")
        .answers::<Queue<'static>>(schemas, 200, "The queue.")
        .tagged()
        .refuses(&[Kind::NoSuchQueue])
}

pub fn pause(schemas: &mut Schemas) -> Entry {
    Entry::new("pauseQueue", Tag::Queues, "Let a queue give nothing out")
        .text("What runs goes on. Answered likewise when the queue is paused already.")
        .takes([if_match("q")])
        .answers::<Queue<'static>>(schemas, 200, "The queue.")
        .tagged()
        .leads_to("resumeQueue", NAMED)
        .refuses(&[Kind::NoSuchQueue, Kind::Stale])
}

pub fn resume(schemas: &mut Schemas) -> Entry {
    Entry::new("resumeQueue", Tag::Queues, "Let a queue give out again")
        .text("Answered likewise when the queue is not paused.")
        .takes([if_match("q")])
        .answers::<Queue<'static>>(schemas, 200, "The queue.")
        .tagged()
        .refuses(&[Kind::NoSuchQueue, Kind::Stale])
}

pub fn delete() -> Entry {
    Entry::new("deleteQueue", Tag::Queues, "Delete a queue")
        .text("Jobs that name it go on without its limits.")
        .takes([if_match("q")])
        .answers_nothing(204, "Deleted.")
        .refuses(&[Kind::NoSuchQueue, Kind::Stale])
}

pub fn list(schemas: &mut Schemas) -> Entry {
    Entry::new("listQueues", Tag::Queues, "List queues of every namespace")
        .takes([namespace()])
        .takes(paging())
        .answers::<Page<Queue<'static>>>(schemas, 200, "A page of queues.")
        .leads_to("listQueues", &[("cursor", "$response.body#/next")])
}

pub fn list_namespace(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "listNamespaceQueues",
        Tag::Queues,
        "List queues of a namespace",
    )
    .takes(paging())
    .answers::<Page<Queue<'static>>>(schemas, 200, "A page of queues.")
}
