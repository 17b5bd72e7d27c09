//! The jobs that are run.

use std::sync::atomic::{AtomicU32, Ordering};

use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};
use ureq::http::Method;

use super::interrupt;
use super::worker::HANDLER;
use crate::client::{Call, Client};
use crate::connect::Target;
use crate::failure::{Failure, Result};

const CONNECTIONS: u32 = 16;

pub fn name(number: u32) -> String {
    format!("bench-{number:05}")
}

/// The first so many of them.
pub fn names(count: u32) -> Vec<String> {
    (0..count).map(name).collect()
}

/// Jobs that run only when triggered.
pub fn put_plain(target: &Target, count: u32) -> Result<()> {
    put(target, count, |_| json!([]))
}

/// One job for each run a second, every second, each at its own time within the second.
pub fn put_scheduled(target: &Target, count: u32) -> Result<()> {
    put(
        target,
        count,
        |number| json!([{ "every": "1s", "anchor": anchor(number, count) }]),
    )
}

fn anchor(number: u32, count: u32) -> String {
    let ms = u64::from(number) * 1000 / u64::from(count);
    format!("2025-01-01T00:00:00.{ms:03}Z")
}

/// Puts jobs over several connections, since each waits for its commit.
fn put(target: &Target, count: u32, schedule: impl Fn(u32) -> Value + Sync) -> Result<()> {
    let next = AtomicU32::new(0);
    let one_after_another = || {
        let client = Client::to(target.clone());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            interrupt::check()?;
            super::progress(|| format!("{number} of {count} jobs put"));
            let path = format!(
                "/api/v1/namespaces/{}/jobs/{}",
                NamespaceName::default(),
                name(number)
            );
            let job = json!({
                "kind": "Job",
                "name": name(number),
                "schedule": schedule(number),
                "overlap": "allow",
                "task": { "handler": { "name": HANDLER } },
            });
            client.value(Call::new(Method::PUT, path).json(job))?;
        }
    };
    std::thread::scope(|scope| {
        let putting: Vec<_> = (0..CONNECTIONS.min(count))
            .map(|_| scope.spawn(one_after_another))
            .collect();
        let mut ended = putting.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| {
            ended.unwrap_or_else(|_| Err(Failure::failed("a connection panicked")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_spread_over_the_whole_second() {
        assert_eq!(anchor(0, 4), "2025-01-01T00:00:00.000Z");
        assert_eq!(anchor(3, 4), "2025-01-01T00:00:00.750Z");
        assert_eq!(anchor(23_147, 23_148), "2025-01-01T00:00:00.999Z");
    }
}
