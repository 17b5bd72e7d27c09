//! One keep-alive connection that triggers runs, with its journal: what is about to be sent is written down first, and what
//! was answered as soon as it is known.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumtower_audit::{Journal, Record};
use drumtower_core::model::{NamespaceName, RunId, WallMs};
use serde::Deserialize;
use ureq::Agent;

use super::super::worker::wall_us;
use super::{Batch, Pack, Triggered};
use crate::connect::Target;
use crate::failure::{Failure, Result};

const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct Answers {
    runs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<RunId>,
}

pub struct Connection {
    agent: Agent,
    pack: Pack,
    authorization: String,
    /// Where batches go.
    url: String,
    /// How each job is named in a body, where it is triggered alone, and what the journal calls it.
    items: Vec<String>,
    urls: Vec<String>,
    names: Vec<String>,
    journal: Journal,
    answered: Arc<AtomicU64>,
    body: Vec<u8>,
    done: Triggered,
}

impl Connection {
    pub fn new(target: &Target, pack: Pack, jobs: &[String], journals: &Path) -> Result<Self> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build();
        let api = format!("{}/api/v1", target.url);
        let namespace = NamespaceName::default();
        let all = |text: &dyn Fn(&String) -> String| jobs.iter().map(text).collect();
        Ok(Self {
            agent: config.into(),
            pack,
            authorization: format!("Bearer {}", target.token.as_deref().unwrap_or_default()),
            url: format!("{api}/runs:batch"),
            items: all(&|name| format!(r#"{{"job":"{name}"}}"#)),
            urls: all(&|name| format!("{api}/namespaces/{namespace}/jobs/{name}/runs")),
            names: all(&|name| format!("{namespace}/{name}")),
            journal: Journal::create(journals, "load")?,
            answered: Arc::default(),
            body: Vec::new(),
            done: Triggered::default(),
        })
    }

    /// Counts what is answered where others look on.
    pub fn count_into(&mut self, answered: Arc<AtomicU64>) {
        self.answered = answered;
    }

    /// What has become of everything that was sent. The window is known to whoever kept the time.
    pub fn done(self) -> Triggered {
        self.done
    }

    /// Triggers, and waits for the answer.
    pub fn send(&mut self, batch: &Batch) -> Result<()> {
        self.describe(batch)?;
        self.done.sent += batch.count;
        match self.post(batch) {
            Ok((200 | 201, answer)) => self.take_answer(batch, &answer)?,
            // What the server refuses as a whole it has not done.
            Ok((status @ 400..500, _)) => self.take_refusal(batch, status),
            Ok(_) | Err(_) => self.take_silence(batch),
        }
        Ok(self.journal.flush()?)
    }

    /// The runs that were answered so far, in the order of the answers.
    pub fn runs(&self) -> &[(RunId, u64)] {
        &self.done.runs
    }

    fn job(&self, number: u64) -> usize {
        (number % self.names.len() as u64) as usize
    }

    /// Writes the body, and into the journal what is about to be sent.
    fn describe(&mut self, batch: &Batch) -> Result<()> {
        let wall_ms = WallMs(i64::try_from(wall_us() / 1000).unwrap_or(i64::MAX));
        self.body.clear();
        self.body.extend_from_slice(b"{\"runs\":[");
        for number in batch.numbers() {
            let job = self.job(number);
            if number > batch.first {
                self.body.push(b',');
            }
            self.body.extend_from_slice(self.items[job].as_bytes());
            self.journal.push(&Record::Sent {
                key: number.to_string(),
                job: self.names[job].clone(),
                wall_ms,
            });
        }
        self.body.extend_from_slice(b"]}");
        Ok(self.journal.flush()?)
    }

    fn post(&self, batch: &Batch) -> std::result::Result<(u16, Vec<u8>), ureq::Error> {
        let url = match self.pack {
            Pack::Batch => &self.url,
            Pack::Single => &self.urls[self.job(batch.first)],
        };
        let request = self
            .agent
            .post(url)
            .header("authorization", &self.authorization);
        let mut response = match self.pack {
            Pack::Batch => request.content_type("application/json").send(&self.body)?,
            Pack::Single => request.send_empty()?,
        };
        let status = response.status().as_u16();
        let answer = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_to_vec()?;
        Ok((status, answer))
    }

    fn understand(&self, answer: &[u8]) -> Result<Vec<Entry>> {
        let entries = match self.pack {
            Pack::Batch => serde_json::from_slice(answer).map(|Answers { runs }| runs),
            Pack::Single => serde_json::from_slice(answer).map(|entry| vec![entry]),
        };
        entries.map_err(|error| {
            Failure::failed(format!(
                "the answer to a trigger is not understood: {error}"
            ))
        })
    }

    fn take_answer(&mut self, batch: &Batch, answer: &[u8]) -> Result<()> {
        let runs = self.understand(answer)?;
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
