//! The edge as callers meet it: a real server on a loopback port, real HTTP, real streams, the embedded store.

mod backups;
mod batches;
mod calendars;
mod changes;
mod checkpoints;
mod client;
mod codes;
mod definitions;
mod explaining;
mod faults;
mod jobs;
mod listings;
mod logs;
mod metrics;
mod next;
mod openapi;
mod problems;
mod records;
mod runs;
mod server;
mod starting;
mod sweep;
mod tokens;
mod versions;
mod worker;
mod workers;
