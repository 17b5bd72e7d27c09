//! The edge as callers meet it: a real server on a loopback port, real HTTP, real streams, the embedded store.

mod batches;
mod calendars;
mod client;
mod explaining;
mod jobs;
mod logs;
mod next;
mod problems;
mod runs;
mod server;
mod starting;
mod sweep;
mod tokens;
mod worker;
mod workers;
