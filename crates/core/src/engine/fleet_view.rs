//! The fleet as people see it: a copy of what the engine knows of each worker.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{NamespaceName, RunId, WallMs, WorkerName};

use super::{Enforcement, Load};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum WorkerState {
    /// Connected, with room.
    Online,
    /// Connected, all its weight in use.
    Busy,
    /// Connected and taking no more work.
    Draining,
    /// Its stream is broken and its lease has not ended.
    Offline,
}

#[derive(Clone, Debug)]
pub struct WorkerView {
    pub name: WorkerName,
    pub state: WorkerState,
    pub host: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    pub namespace: Option<NamespaceName>,
    pub exec: bool,
    pub http: bool,
    pub enforcement: Enforcement,
    pub handlers: Vec<String>,
    pub capacity: u32,
    /// Weight the server may still assign.
    pub credit: u64,
    /// Attempts it holds.
    pub attempts: usize,
    /// The runs of the first of them, oldest first.
    pub running: Vec<RunId>,
    pub load: Load,
    /// The worker's clock minus the server's at the last heartbeat, not corrected for the way.
    pub skew_ms: i64,
    pub connected: WallMs,
    pub last_heartbeat: Option<WallMs>,
}
