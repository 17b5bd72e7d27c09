//! What a session is told once.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::ProcessId;
use drumtower_proto::worker::v1 as wire;

/// Who the worker is and what it can do.
#[derive(Clone, Debug)]
pub struct Config {
    /// How the worker is called in listings.
    pub worker: String,
    /// Drawn at random when the process starts.
    pub process: ProcessId,
    pub host: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    /// Whether it takes `exec` and `script` tasks.
    pub exec: bool,
    /// Whether it takes `http` tasks.
    pub http: bool,
    /// How it holds commands to their limits.
    pub enforcement: wire::Enforcement,
    pub handlers: BTreeSet<String>,
    /// The weight it runs at once, at most [`Config::CAPACITY_MAX`].
    pub capacity: u32,
    /// How long before its lease ends an attempt is told to stop; bounded by a fifth of the lease.
    pub stop_margin_ms: u64,
    /// How long an attempt that was told to stop may take before it is aborted.
    pub stop_grace_ms: u64,
    /// A start is reported apart from its end once the attempt is this old.
    pub started_delay_ms: u64,
}

impl Config {
    /// Keeps the list of held attempts within a frame.
    pub const CAPACITY_MAX: u32 = 20_000;

    /// A worker that can do nothing yet, with the usual times.
    pub fn new(worker: impl Into<String>, process: ProcessId, capacity: u32) -> Self {
        Self {
            worker: worker.into(),
            process,
            host: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: BTreeMap::new(),
            exec: false,
            http: false,
            enforcement: wire::Enforcement::default(),
            handlers: BTreeSet::new(),
            capacity: capacity.min(Self::CAPACITY_MAX),
            stop_margin_ms: 2_000,
            stop_grace_ms: 5_000,
            started_delay_ms: 20,
        }
    }
}
