//! Whether the server doubts workers that are all well.
//!
//! Of many workers each is heard of every three seconds, and one that is silent for six is given nothing. Every second the
//! server is asked how many it sees in which state. All of them are there until the bench ends, so one that is offline or
//! faulty is doubted for no fault of its own. A doubt shorter than a second may go unseen; a loss is remembered by the
//! server and read at the end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::connect::Target;
use crate::failure::Result;

const EVERY: Duration = Duration::from_secs(1);
/// With fewer workers every state is seen without asking so often.
const MANY: u32 = 100;

pub struct Suspicion {
    many: bool,
    next: Instant,
    looks: u64,
    most: u64,
}

impl Suspicion {
    pub fn of(workers: u32) -> Self {
        Self {
            many: workers >= MANY,
            next: Instant::now() + EVERY,
            looks: 0,
            most: 0,
        }
    }

    /// Asks when it is time. A server that does not answer is another's concern.
    pub fn look(&mut self, target: &Target) {
        if !self.many || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let client = Client::to(target.clone());
        let lines = client.text_lines(Call::get("/metrics"));
        let text = lines.and_then(|lines| lines.collect::<Result<Vec<_>>>());
        if let Ok(text) = text {
            self.looks += 1;
            self.most = self.most.max(doubted(&text));
        }
    }

    /// What was seen, and what the server remembers.
    pub fn value(&self, target: &Target) -> Result<Value> {
        let fleet = Client::to(target.clone()).value(Call::get("/api/v1/workers"))?;
        let workers = fleet["items"].as_array().cloned().unwrap_or_default();
        let state = |worker: &&Value| {
            ["OFFLINE", "FAULTY"]
                .iter()
                .any(|it| worker["state"] == *it)
        };
        let doubted = workers.iter().filter(state).count() as u64;
        let losses: u64 = workers
            .iter()
            .filter_map(|worker| worker["losses"].as_u64())
            .sum();
        Ok(json!({
            "known": workers.len(),
            "suspected_at_most": self.most.max(doubted),
            "looks": self.looks + 1,
            "losses": losses,
        }))
    }
}

/// Workers that are offline or faulty, from the lines of the metrics.
fn doubted(metrics: &[String]) -> u64 {
    let of = |line: &String| {
        let (labels, count) = line.strip_prefix("drumtower_workers{")?.split_once("} ")?;
        let bad = labels.contains("\"offline\"") || labels.contains("\"faulty\"");
        bad.then(|| count.trim().parse::<f64>().ok())?
    };
    metrics.iter().filter_map(of).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_offline_or_faulty_is_doubted() {
        let metrics = [
            "# TYPE drumtower_workers gauge",
            "drumtower_workers{state=\"online\"} 9990",
            "drumtower_workers{state=\"offline\"} 7",
            "drumtower_workers{state=\"faulty\"} 2",
            "drumtower_worker_up{worker=\"offline\"} 1",
        ];
        assert_eq!(doubted(&metrics.map(str::to_owned)), 9);
        assert_eq!(doubted(&[]), 0);
    }
}
