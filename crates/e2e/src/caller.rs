//! Callers who trigger runs under idempotency keys, ask again until they are answered, and write down what they were told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Record};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::Api;

/// Between two requests of a caller.
const PAUSE: Duration = Duration::from_millis(20);
/// How many runs one request of those who ask for many makes, and how long they wait before the next.
const BATCH: u64 = 50;
const BULK_PAUSE: Duration = Duration::from_millis(50);

pub struct Caller {
    /// One for each server, asked in turn; whoever does not answer is followed by the next.
    servers: Vec<Api>,
    journal: Journal,
    job: &'static str,
    turn: usize,
}

impl Caller {
    pub fn new(servers: Vec<Api>, journal: Journal, job: &'static str) -> Self {
        Self {
            servers,
            journal,
            job,
            turn: 0,
        }
    }

    /// Asks for one run at a time.
    pub fn ask(mut self, number: usize, stop: &AtomicBool) {
        for request in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let key = format!("caller-{number}-request-{request}");
            while !self.answered(&key) {
                std::thread::sleep(PAUSE);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Batches, each repeated with the same keys until all of it is answered.
    pub fn ask_for_many(mut self, number: usize, stop: &AtomicBool) {
        for request in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let key = |place| format!("bulk-{number}-request-{request}-{place}");
            let mut open: Vec<String> = (0..BATCH).map(key).collect();
            while !open.is_empty() {
                open = self.still_open(open);
                std::thread::sleep(BULK_PAUSE);
            }
        }
    }

    /// One request for a run under each key; the keys that were not answered for good.
    fn still_open(&mut self, keys: Vec<String>) -> Vec<String> {
        for key in &keys {
            self.write(&Record::Sent {
                key: key.clone(),
                job: format!("default/{}", self.job),
                wall_ms: wall_now(),
            });
        }
        let item = |key: &String| json!({"job": self.job, "idempotency_key": key});
        let runs: Vec<Value> = keys.iter().map(item).collect();
        let body = json!({"runs": runs});
        let answer = self
            .next_server()
            .call(Method::POST, "/api/v1/runs:batch", Some(&body));
        let answer = match answer {
            Ok(answer) if answer.status < 500 && !answer.is_success() && answer.status != 429 => {
                panic!("{answer:?}")
            }
            Ok(answer) if answer.is_success() => answer.body,
            _ => Value::Null,
        };
        let mut open = Vec::new();
        for (place, key) in keys.into_iter().enumerate() {
            let id = answer["runs"][place]["id"].as_str();
            match id.and_then(|id| id.parse().ok()) {
                Some(run) => self.write(&Record::Answered { key, run }),
                None => {
                    self.write(&Record::Unknown { key: key.clone() });
                    open.push(key);
                }
            }
        }
        open
    }

    /// One request under a key; whether it was answered for good.
    fn answered(&mut self, key: &str) -> bool {
        self.write(&Record::Sent {
            key: key.into(),
            job: format!("default/{}", self.job),
            wall_ms: wall_now(),
        });
        let path = format!("/api/v1/namespaces/default/jobs/{}/runs", self.job);
        let answer = self.next_server().call_with(
            Method::POST,
            &path,
            Some(&json!({})),
            &[("idempotency-key", key)],
        );
        let run = answer
            .as_ref()
            .ok()
            .and_then(|answer| answer.body["id"].as_str())
            .and_then(|id| id.parse().ok());
        match (answer, run) {
            (Ok(answer), Some(run)) if answer.is_success() => {
                self.write(&Record::Answered {
                    key: key.into(),
                    run,
                });
                true
            }
            (Ok(answer), _) if answer.status == 429 => {
                self.write(&Record::Refused {
                    key: key.into(),
                    code: answer.code().into(),
                });
                false
            }
            (Ok(answer), _) if answer.status < 500 => panic!("{key}: {answer:?}"),
            _ => {
                self.write(&Record::Unknown { key: key.into() });
                false
            }
        }
    }

    fn next_server(&mut self) -> &Api {
        self.turn += 1;
        &self.servers[self.turn % self.servers.len()]
    }

    fn write(&mut self, record: &Record) {
        self.journal.write(record).expect("a line in the journal");
    }
}
