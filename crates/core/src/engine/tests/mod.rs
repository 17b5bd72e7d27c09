//! The engine by itself: steps in, batches out, against a tiny store of maps.

mod after;
mod backfills;
mod breakers;
mod calendars;
mod checkpoints;
mod clock;
mod crew;
mod decisions;
mod deeds;
mod delays;
mod drains;
mod fires;
mod hazards;
mod health;
mod in_a_row;
mod leases;
mod letters;
mod limits;
mod lines;
mod locks;
mod lots;
mod memory;
mod misfires;
mod overlaps;
mod parks;
mod priorities;
mod queues;
mod races;
mod random;
mod rates;
mod reruns;
mod retries;
mod settings;
mod start_limits;
mod succession;
mod supersede;
mod tables;
mod told;
mod triggers;
mod world;

use super::Engine;
use crate::model::RunId;

impl Engine {
    fn resident_runs(&self) -> Vec<RunId> {
        self.runs.ids()
    }
}
