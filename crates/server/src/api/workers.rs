//! The fleet as this server knows it.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Load, WorkerState, WorkerView};
use drumtower_core::model::{NamespaceName, WorkerName};
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::page::Page;
use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use crate::auth::Principal;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Worker")]
pub struct Worker<'a> {
    name: &'a WorkerName,
    state: WorkerState,
    host: &'a str,
    version: &'a str,
    labels: &'a BTreeMap<String, String>,
    namespace: Option<&'a NamespaceName>,
    exec: bool,
    handlers: &'a [String],
    capacity: u32,
    credit: u64,
    attempts: usize,
    load: LoadView,
    skew_ms: i64,
    connected: Time,
    last_heartbeat: Option<Time>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Load")]
struct LoadView {
    cpu_permille: u32,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
    network_received_bytes_per_s: u64,
    network_sent_bytes_per_s: u64,
    running_weight: u32,
}

/// Workers that serve every namespace belong to none, and everyone sees them.
pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let fleet = edge.handle.workers().await?;
    let seen = fleet.iter().filter(|worker| {
        worker
            .namespace
            .as_ref()
            .is_none_or(|namespace| principal.sees(namespace))
    });
    let page = Page::whole(seen.map(Worker::from));
    Ok(Json(page).into_response())
}

impl<'a> From<&'a WorkerView> for Worker<'a> {
    fn from(view: &'a WorkerView) -> Self {
        Self {
            name: &view.name,
            state: view.state,
            host: &view.host,
            version: &view.version,
            labels: &view.labels,
            namespace: view.namespace.as_ref(),
            exec: view.exec,
            handlers: &view.handlers,
            capacity: view.capacity,
            credit: view.credit,
            attempts: view.attempts,
            load: view.load.into(),
            skew_ms: view.skew_ms,
            connected: view.connected.into(),
            last_heartbeat: view.last_heartbeat.map(Time),
        }
    }
}

impl From<Load> for LoadView {
    fn from(load: Load) -> Self {
        Self {
            cpu_permille: load.cpu_permille,
            memory_used_bytes: load.memory_used_bytes,
            memory_total_bytes: load.memory_total_bytes,
            disk_used_bytes: load.disk_used_bytes,
            disk_total_bytes: load.disk_total_bytes,
            network_received_bytes_per_s: load.network_received_bytes_per_s,
            network_sent_bytes_per_s: load.network_sent_bytes_per_s,
            running_weight: load.running_weight,
        }
    }
}
