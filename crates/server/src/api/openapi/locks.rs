//! What is said of the operations of locks.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{namespace, paging};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::locks::{Acquire, Lock, Release, Renew};
use crate::api::page::Page;

const NAMED: &[(&str, &str)] = &[
    ("namespace", "$request.path.namespace"),
    ("name", "$request.path.name"),
];

pub fn acquire(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Acquire>();
    Entry::new("acquireLock", Tag::Locks, "Take a lock for a while")
        .text("With `wait` the answer comes when the lock is free, first come, first served. The same owner gets the same hold again, so a request whose answer was lost can be repeated.")
        .body(body, json!({"owner": "billing-7f3a", "ttl": "30s", "wait": "50ms"}))
        .answers::<Lock>(schemas, 200, "The caller holds it.")
        .leads_to("showLock", NAMED)
        .leads_to("breakLock", NAMED)
        .refuses(&[Kind::LockHeld])
}

pub fn renew(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Renew>();
    Entry::new("renewLock", Tag::Locks, "Hold a lock for another while")
        .text("Whoever is refused has lost the lock, and stops what it guards.")
        .body(body, json!({"fence": "123456789"}))
        .answers::<Lock>(schemas, 200, "The caller holds it.")
        .refuses(&[Kind::LockLost])
}

pub fn release(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<Release>();
    Entry::new("releaseLock", Tag::Locks, "Give a lock back")
        .body(body, json!({"fence": "123456789"}))
        .answers_nothing(204, "Given back.")
        .refuses(&[Kind::LockLost])
}

pub fn delete() -> Entry {
    Entry::new("breakLock", Tag::Locks, "Take a lock from whoever holds it")
        .text("For a holder that cannot be asked. The audit log tells of it.")
        .answers_nothing(204, "Nobody holds it, or whoever waited longest.")
        .refuses(&[Kind::NoSuchLock, Kind::LockLost])
}

pub fn show(schemas: &mut Schemas) -> Entry {
    Entry::new("showLock", Tag::Locks, "Show who holds a lock")
        .answers::<Lock>(schemas, 200, "Its holder.")
        .refuses(&[Kind::NoSuchLock])
}

pub fn list(schemas: &mut Schemas) -> Entry {
    Entry::new("listLocks", Tag::Locks, "List the locks that are held")
        .takes([namespace()])
        .takes(paging())
        .answers::<Page<Lock>>(schemas, 200, "A page of locks.")
        .leads_to("listLocks", &[("cursor", "$response.body#/next")])
}
