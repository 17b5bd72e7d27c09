//! Whether the server lives, and whether it can do its work. Open to everyone, so they say no more than that.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::problem::{Kind, Problem};
use crate::driver::Health;

#[derive(Serialize, JsonSchema)]
pub struct Status {
    /// `ok`, `ready`, or `standby` while other servers own all segments and get what is asked here.
    status: &'static str,
}

/// Alive: the process answers.
pub async fn health() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// Ready: what is acknowledged can be committed.
pub async fn readiness(State(edge): State<Edge>) -> Result<Json<Status>, Problem> {
    let health = edge.handle.health().borrow().clone();
    match health {
        Health::Ready if edge.cluster.owns_nothing() => Ok(Json(Status { status: "standby" })),
        Health::Ready => Ok(Json(Status { status: "ready" })),
        Health::Starting => Err(Problem::new(Kind::NotReady, "the server is starting")),
        Health::Impaired(why) => Err(Problem::new(Kind::NotReady, why)),
        Health::Stopped => Err(Problem::new(Kind::Stopping, "the server is stopping")),
    }
}
