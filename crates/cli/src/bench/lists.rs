//! How long it takes to list the newest runs of one job while the server is at work.
//!
//! One connection asks at a steady pace, for one job after another, and each answer is timed from the moment at which it
//! should have been asked for: a slow answer delays the next question, and the delay shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::figures::Delays;
use crate::client::{Call, Client};
use crate::connect::Target;
use crate::failure::{Failure, Result};

/// As the console and the command line ask.
const LIMIT: u32 = 50;

pub struct Lists {
    over: Arc<AtomicBool>,
    asking: JoinHandle<Result<Value>>,
}

impl Lists {
    /// Begins to ask for these jobs in turn, so often a second; `None` when nobody is to ask.
    pub fn start(target: &Target, jobs: Vec<String>, per_s: u32) -> Option<Self> {
        if per_s == 0 || jobs.is_empty() {
            return None;
        }
        let over = Arc::new(AtomicBool::new(false));
        let (client, until) = (Client::to(target.clone()), Arc::clone(&over));
        let every = Duration::from_secs(1) / per_s;
        let asking = std::thread::spawn(move || ask(&client, &jobs, every, &until));
        Some(Self { over, asking })
    }

    /// Ends it, and gives the delays.
    pub fn finish(self) -> Result<Value> {
        self.over.store(true, Ordering::Relaxed);
        let asked = self.asking.join();
        asked.map_err(|_| Failure::failed("the thread that lists runs panicked"))?
    }
}

fn ask(client: &Client, jobs: &[String], every: Duration, over: &AtomicBool) -> Result<Value> {
    let mut delays = Delays::new()?;
    let (mut asked, mut most) = (0_u64, 0);
    let mut meant = Instant::now();
    for job in jobs.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let call = Call::get("/api/v1/runs").query("job", job);
        let page = client.value(call.query("limit", LIMIT))?;
        let took = meant.elapsed().as_micros();
        delays.add(0, u64::try_from(took).unwrap_or(u64::MAX));
        most = most.max(page["items"].as_array().map_or(0, Vec::len));
        asked += 1;
        meant += every;
        std::thread::sleep(meant.saturating_duration_since(Instant::now()));
    }
    Ok(json!({ "asked": asked, "longest": most, "delay_ms": delays.value() }))
}
