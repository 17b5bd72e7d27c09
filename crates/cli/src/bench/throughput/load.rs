//! The open loop: batches at the offered rate, whatever the server answers.
//!
//! One thread keeps the time and hands out batches, each stamped with the moment it is meant for; connections, a thread
//! each, send them. When all connections wait for answers, batches queue up and their stamps grow old: a slow server
//! cannot slow its own load down, and the delays show it. A batch that is refused for overload is not repeated; it counts
//! as refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use drumtower_audit::{Journal, Record};
use drumtower_core::model::{Limits, NamespaceName, RunId, WallMs};
use serde::Deserialize;
use ureq::Agent;

use super::super::interrupt;
use super::super::worker::wall_us;
use super::{Window, jobs};
use crate::connect::Target;
use crate::failure::{Failure, Result};

const TICK: Duration = Duration::from_millis(4);
const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;

pub struct Load {
    pub target: Target,
    pub rate: u32,
    pub duration: Duration,
    pub connections: u32,
    pub jobs: u32,
    pub journals: PathBuf,
}

/// What became of the offer.
pub struct Triggered {
    pub window: Window,
    pub sent: u64,
    /// Runs that the server said yes to, and the moment each was meant for, in order of run.
    pub runs: Vec<(RunId, u64)>,
    pub refused: u64,
    pub unknown: u64,
}

/// Triggers that belong together, with numbers from `first` on.
struct Batch {
    meant_us: u64,
    first: u64,
    count: u64,
}

/// The load while it lasts.
pub struct Offering {
    answered: Arc<AtomicU64>,
    pacing: JoinHandle<Window>,
    sending: Vec<JoinHandle<Result<Triggered>>>,
}

impl Load {
    pub fn start(self) -> Result<Offering> {
        let (batches, waiting) = unbounded();
        let answered = Arc::new(AtomicU64::new(0));
        let mut sending = Vec::new();
        for _ in 0..self.connections {
            let connection = Connection::new(&self, Arc::clone(&answered))?;
            let waiting = waiting.clone();
            sending.push(std::thread::spawn(move || connection.send_all(&waiting)));
        }
        let pacing = std::thread::spawn(move || pace(self.rate, self.duration, &batches));
        Ok(Offering {
            answered,
            pacing,
            sending,
        })
    }
}

impl Offering {
    pub fn is_finished(&self) -> bool {
        self.pacing.is_finished() && self.sending.iter().all(JoinHandle::is_finished)
    }

    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub fn finish(self) -> Result<Triggered> {
        let panicked = |_| Failure::failed("a thread of the load panicked");
        let window = self.pacing.join().map_err(panicked)?;
        let mut all = Triggered {
            window,
            sent: 0,
            runs: Vec::new(),
            refused: 0,
            unknown: 0,
        };
        for sending in self.sending {
            let part = sending.join().map_err(panicked)??;
            all.sent += part.sent;
            all.refused += part.refused;
            all.unknown += part.unknown;
            all.runs.extend(part.runs);
        }
        all.runs.sort_unstable();
        Ok(all)
    }
}

/// Hands out batches until the time is over; closing the channel ends the connections.
fn pace(rate: u32, duration: Duration, batches: &Sender<Batch>) -> Window {
    let (begun, from_us) = (Instant::now(), wall_us());
    let mut offered = 0;
    let mut tick = Duration::ZERO;
    while tick < duration && interrupt::check().is_ok() {
        tick = (tick + TICK).min(duration);
        std::thread::sleep((begun + tick).saturating_duration_since(Instant::now()));
        let meant_us = from_us + tick.as_micros() as u64;
        let due = (tick.as_secs_f64() * f64::from(rate)) as u64;
        while offered < due {
            let count = (due - offered).min(Limits::BATCH_RUNS as u64);
            // The receivers outlive this thread unless all of them failed, which they report themselves.
            let _ = batches.send(Batch {
                meant_us,
                first: offered,
                count,
            });
            offered += count;
        }
    }
    Window {
        from_us,
        to_us: from_us + tick.as_micros() as u64,
    }
}

#[derive(Deserialize)]
struct Answers {
    runs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<RunId>,
}

/// One keep-alive connection with its journal.
struct Connection {
    agent: Agent,
    url: String,
    authorization: String,
    /// How each job is named in a body, and in the journal.
    items: Vec<String>,
    names: Vec<String>,
    journal: Journal,
    answered: Arc<AtomicU64>,
    done: Triggered,
}

impl Connection {
    fn new(load: &Load, answered: Arc<AtomicU64>) -> Result<Self> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build();
        let names = (0..load.jobs).map(jobs::name);
        Ok(Self {
            agent: config.into(),
            url: format!("{}/api/v1/runs:batch", load.target.url),
            authorization: format!(
                "Bearer {}",
                load.target.token.as_deref().unwrap_or_default()
            ),
            items: names
                .clone()
                .map(|name| format!(r#"{{"job":"{name}"}}"#))
                .collect(),
            names: names
                .map(|name| format!("{}/{name}", NamespaceName::default()))
                .collect(),
            journal: Journal::create(&load.journals, "load")?,
            answered,
            done: Triggered {
                window: Window {
                    from_us: 0,
                    to_us: 0,
                },
                sent: 0,
                runs: Vec::new(),
                refused: 0,
                unknown: 0,
            },
        })
    }

    fn send_all(mut self, waiting: &Receiver<Batch>) -> Result<Triggered> {
        let mut body = Vec::new();
        for batch in waiting {
            self.describe(&batch, &mut body)?;
            self.done.sent += batch.count;
            match self.post(&body) {
                Ok((200, answer)) => self.take_answer(&batch, &answer)?,
                // What the server refuses as a whole it has not done.
                Ok((status @ 400..500, _)) => self.take_refusal(&batch, status),
                Ok(_) | Err(_) => self.take_silence(&batch),
            }
            self.journal.flush()?;
        }
        Ok(self.done)
    }

    /// Writes the body, and into the journal what is about to be sent.
    fn describe(&mut self, batch: &Batch, body: &mut Vec<u8>) -> Result<()> {
        let wall_ms = WallMs(i64::try_from(wall_us() / 1000).unwrap_or(i64::MAX));
        body.clear();
        body.extend_from_slice(b"{\"runs\":[");
        for number in batch.numbers() {
            let job = (number % self.items.len() as u64) as usize;
            if number > batch.first {
                body.push(b',');
            }
            body.extend_from_slice(self.items[job].as_bytes());
            self.journal.push(&Record::Sent {
                key: number.to_string(),
                job: self.names[job].clone(),
                wall_ms,
            });
        }
        body.extend_from_slice(b"]}");
        Ok(self.journal.flush()?)
    }

    fn post(&self, body: &[u8]) -> std::result::Result<(u16, Vec<u8>), ureq::Error> {
        let request = self
            .agent
            .post(&self.url)
            .header("authorization", &self.authorization);
        let mut response = request.content_type("application/json").send(body)?;
        let status = response.status().as_u16();
        let answer = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_to_vec()?;
        Ok((status, answer))
    }

    fn take_answer(&mut self, batch: &Batch, answer: &[u8]) -> Result<()> {
        let Answers { runs } = serde_json::from_slice(answer).map_err(|error| {
            Failure::failed(format!("the answer to a batch is not understood: {error}"))
        })?;
        if runs.len() as u64 != batch.count {
            return Err(Failure::failed(format!(
                "{} triggers were answered with {} runs",
                batch.count,
                runs.len()
            )));
        }
        for (number, entry) in batch.numbers().zip(runs) {
            let key = number.to_string();
            match entry.id {
                Some(run) => {
                    self.journal.push(&Record::Answered { key, run });
                    self.done.runs.push((run, batch.meant_us));
                }
                None => {
                    self.done.refused += 1;
                    self.journal.push(&Record::Refused {
                        key,
                        code: "problem".to_owned(),
                    });
                }
            }
        }
        self.answered.fetch_add(batch.count, Ordering::Relaxed);
        Ok(())
    }

    fn take_refusal(&mut self, batch: &Batch, status: u16) {
        self.done.refused += batch.count;
        for number in batch.numbers() {
            self.journal.push(&Record::Refused {
                key: number.to_string(),
                code: status.to_string(),
            });
        }
    }

    fn take_silence(&mut self, batch: &Batch) {
        self.done.unknown += batch.count;
        for number in batch.numbers() {
            self.journal.push(&Record::Unknown {
                key: number.to_string(),
            });
        }
    }
}

impl Batch {
    fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_offers_exactly_the_rate_and_stamps_each_tick() {
        let (batches, waiting) = unbounded();
        let window = pace(100_000, Duration::from_millis(50), &batches);
        drop(batches);
        let all: Vec<Batch> = waiting.iter().collect();
        assert_eq!(all.iter().map(|batch| batch.count).sum::<u64>(), 5000);
        assert_eq!(all[0].meant_us, window.from_us + 4000);
        assert_eq!(all.last().map(|batch| batch.meant_us), Some(window.to_us));
        for pair in all.windows(2) {
            assert_eq!(pair[1].first, pair[0].first + pair[0].count);
        }
    }
}
