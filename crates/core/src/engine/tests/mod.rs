//! The engine by itself: steps in, batches out, against a tiny store of maps.

mod fires;
mod leases;
mod parks;
mod races;
mod random;
mod tables;
mod triggers;
mod world;

use super::Engine;
use crate::model::RunId;

impl Engine {
    fn resident_runs(&self) -> Vec<RunId> {
        self.runs.ids()
    }
}
