//! The engine by itself: steps in, batches out, against a tiny store of maps.

mod fires;
mod leases;
mod parks;
mod random;
mod triggers;
mod world;
