//! The edge as callers meet it: a real server on a loopback port, real HTTP, real streams, the embedded store.

mod batches;
mod client;
mod jobs;
mod logs;
mod problems;
mod runs;
mod server;
mod starting;
mod sweep;
mod tokens;
mod worker;
mod workers;
