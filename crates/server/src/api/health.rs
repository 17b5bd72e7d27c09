//! Whether the server lives, and whether it can do its work. Open to everyone, so they say no more than that.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Edge;
use super::problem::{Kind, Problem};
use crate::driver::Health;

/// Alive: the process answers.
pub async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Ready: what is acknowledged can be committed.
pub async fn readiness(State(edge): State<Edge>) -> Result<Json<Value>, Problem> {
    let health = edge.handle.health().borrow().clone();
    match health {
        Health::Ready => Ok(Json(json!({"status": "ready"}))),
        Health::Starting => Err(Problem::new(Kind::NotReady, "the server is starting")),
        Health::Impaired(why) => Err(Problem::new(Kind::NotReady, why)),
        Health::Stopped => Err(Problem::new(Kind::Stopping, "the server is stopping")),
    }
}
