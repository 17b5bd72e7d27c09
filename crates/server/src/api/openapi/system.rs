//! What is said of the operations of tokens and of the server itself.

use serde_json::json;

use super::entry::{Entry, Tag};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::backups;
use crate::api::cluster::Cluster;
use crate::api::health::Status;
use crate::api::page::Page;
use crate::api::session::Session;
use crate::api::tokens::{self, Token};
use crate::backup::Backup;

pub fn create_token(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<tokens::Request>();
    let example = json!({"name": "ci", "role": "operator", "namespace": "default"});
    Entry::new("createToken", Tag::Tokens, "Make a token")
        .text("The answer has the secret, once. `Idempotency-Key` is refused: a name makes one token.")
        .body(body, example)
        .answers::<Token<'static>>(schemas, 201, "Made.")
        .leads_to("revokeToken", &[("id", "$response.body#/id")])
        .refuses(&[Kind::TokenNameTaken, Kind::InvalidHeader])
}

pub fn tokens(schemas: &mut Schemas) -> Entry {
    Entry::new("listTokens", Tag::Tokens, "List living tokens").answers::<Page<Token<'static>>>(
        schemas,
        200,
        "All of them.",
    )
}

pub fn revoke_token() -> Entry {
    Entry::new("revokeToken", Tag::Tokens, "Revoke a token")
        .answers_nothing(204, "Revoked.")
        .refuses(&[Kind::NoSuchToken])
}

pub fn sign_in(schemas: &mut Schemas) -> Entry {
    Entry::new("signIn", Tag::Tokens, "Begin or renew a session")
        .text("For browsers: answers with a cookie that stands for the token for seven days. With a session, what changes something needs the header `X-Drumtower-Console`.")
        .answers::<Session<'static>>(schemas, 200, "Signed in.")
}

pub fn session(schemas: &mut Schemas) -> Entry {
    Entry::new("showSession", Tag::Tokens, "Who calls, and what it may do")
        .answers::<Session<'static>>(schemas, 200, "The caller.")
}

pub fn sign_out() -> Entry {
    Entry::new("signOut", Tag::Tokens, "End a session")
        .text("Takes the cookie back and ends the session that it stands for, which no copy of the cookie opens any more. The token and its other sessions stay good.")
        .answers_nothing(204, "Signed out.")
}

pub fn cluster(schemas: &mut Schemas) -> Entry {
    Entry::new("showCluster", Tag::System, "Show the servers and who owns what")
        .text("The servers that share the store, by their sessions, and the 1,024 segments of the job space with their owners. The server that is asked answers, also one that stands by, and asks the others what only they know of themselves; one that does not say it within two seconds has `answered: false`. With an embedded store there is one server, which owns everything.")
        .answers::<Cluster>(schemas, 200, "As the store says it now.")
}

pub fn make_backup(schemas: &mut Schemas) -> Entry {
    let body = schemas.request::<backups::Request>();
    Entry::new("makeBackup", Tag::System, "Make a backup")
        .text("In the directory of backups of the server, checked before it is answered. One at a time.")
        .optional_body(body, json!({"logs": true}))
        .answers::<Backup>(schemas, 201, "Made.")
        .refuses(&[Kind::BackupUnderWay, Kind::BackupFailed])
}

pub fn backups(schemas: &mut Schemas) -> Entry {
    Entry::new("listBackups", Tag::System, "List backups")
        .answers::<Page<Backup>>(schemas, 200, "All of them, newest first.")
        .refuses(&[Kind::BackupFailed])
}

pub fn schema(id: &str, what: &str) -> Entry {
    let summary = format!("The JSON schema of a {what} manifest");
    let schema = json!({"type": "object"});
    Entry::new(id, Tag::System, &summary).answers_as(
        200,
        "The schema.",
        "application/schema+json",
        schema,
    )
}

pub fn openapi() -> Entry {
    Entry::new("showOpenapi", Tag::System, "This document").answers_as(
        200,
        "The document.",
        "application/json",
        json!({"type": "object"}),
    )
}

pub fn problem_page() -> Entry {
    Entry::new("showProblem", Tag::System, "The page about a problem")
        .text("Cause, example, remedy. `type` of a problem leads here.")
        .answers_as(200, "The page.", "text/markdown", json!({"type": "string"}))
        .refuses(&[Kind::NoSuchProblem])
}

pub fn health(schemas: &mut Schemas) -> Entry {
    Entry::new("health", Tag::System, "Whether the process answers")
        .answers::<Status>(schemas, 200, "It does.")
}

pub fn readiness(schemas: &mut Schemas) -> Entry {
    Entry::new(
        "readiness",
        Tag::System,
        "Whether the server can do its work",
    )
    .text("200 when what is acknowledged can be committed.")
    .answers::<Status>(schemas, 200, "It can.")
    .refuses(&[Kind::NotReady, Kind::Stopping])
}
