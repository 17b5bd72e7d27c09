//! The load: jobs that fire often, and callers that ask until they are answered.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Record};
use drumtower_e2e::{Api, Server};
use serde_json::{Value, json};
use ureq::http::Method;

/// Callers who ask for one run at a time, and callers who ask for many.
const CALLERS: usize = 2;
const BULK_CALLERS: usize = 2;
/// Between two requests of a caller.
const PAUSE: Duration = Duration::from_millis(20);
/// How many runs one request of the others makes, and how long they wait before the next.
const BATCH: u64 = 50;
const BULK_PAUSE: Duration = Duration::from_millis(50);

pub struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
    scheduled: Vec<String>,
}

impl Load {
    pub fn start(server: &Server, journals: &Path) -> Self {
        let jobs = jobs(journals);
        let api = server.api();
        for calendar in calendars() {
            let path = format!("/api/v1/namespaces/default/calendars/{}", name(&calendar));
            api.send(Method::PUT, &path, Some(&calendar));
        }
        let scheduled = jobs
            .iter()
            .filter(|job| !job["schedule"].is_null())
            .map(|job| name(job).to_owned());
        let scheduled = scheduled.collect();
        let queue = json!({"kind": "Queue", "name": "narrow", "concurrency": 3});
        api.send(
            Method::PUT,
            "/api/v1/namespaces/default/queues/narrow",
            Some(&queue),
        );
        for job in &jobs {
            api.put_job(job);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let token = server.token("callers", "operator");
        let callers = (0..CALLERS).map(|number| {
            let caller = Caller {
                // A client of its own: the local token changes with every start, this one does not.
                api: Api::new(server.url(), Some(token.clone())),
                journal: Journal::create(journals, "caller").expect("a journal"),
                job: ["order", "command"][number % 2],
            };
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || caller.ask(number, &stop))
        });
        let bulk = (0..BULK_CALLERS).map(|number| {
            let caller = Caller {
                api: Api::new(server.url(), Some(token.clone())),
                journal: Journal::create(journals, "bulk").expect("a journal"),
                job: "bulk",
            };
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || caller.ask_for_many(number, &stop))
        });
        Self {
            callers: callers.chain(bulk).collect(),
            stop,
            scheduled,
        }
    }

    /// Whether runs of this job fail by themselves.
    pub fn fails(job: &str) -> bool {
        ["flaky", "doomed", "fragile"].contains(&job)
    }

    /// No more triggers; whoever waits for an answer gets it. No more firing.
    pub fn end(self: &mut Load, api: &Api) {
        self.stop.store(true, Ordering::Relaxed);
        for caller in self.callers.drain(..) {
            caller.join().expect("a caller that was answered");
        }
        for job in &self.scheduled {
            api.send(
                Method::POST,
                &format!("/api/v1/namespaces/default/jobs/{job}/pause"),
                None,
            );
        }
    }
}

fn name(job: &Value) -> &str {
    job["name"].as_str().expect("a name")
}

/// One holds every day and one none that this test will see, so that days are looked up and jobs go on firing.
fn calendars() -> [Value; 2] {
    let every_day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    [
        json!({"kind": "Calendar", "name": "open", "weekly": every_day}),
        json!({"kind": "Calendar", "name": "closed", "include": ["1999-12-31", "2199-01-01"]}),
    ]
}

fn jobs(journals: &Path) -> Vec<Value> {
    let task = env!("CARGO_BIN_EXE_journal-task");
    let exec = json!({"exec": {"argv": [task, journals.display().to_string()]}});
    let handler = json!({"handler": {"name": "journal"}});
    let job = |name: &str, task: &Value, schedule: Value, ms: u64| {
        let mut job = json!({"kind": "Job", "name": name, "task": task, "params": {"ms": ms}, "overlap": "allow"});
        if !schedule.is_null() {
            job["schedule"] = schedule;
        }
        job
    };
    let mut skips = job("skips", &handler, json!([{"every": "100ms"}]), 250);
    skips["overlap"] = json!("skip");
    let with = |mut job: Value, keys: Value| {
        let keys = keys.as_object().expect("keys").clone();
        job.as_object_mut().expect("a job").extend(keys);
        job
    };
    let every = |interval: &str| json!([{"every": interval}]);
    let worldly = json!({"calendar": {"only": ["open"], "minus": ["closed"]}});
    let thorough = json!({"misfire": {"policy": "all", "max": 1000}, "priority": 9});
    let patient = json!({"misfire": {"policy": "all", "window": "10s", "max": 5}, "priority": 0});
    let retry = |most: u32| json!({"max_attempts": most, "backoff": "fixed", "initial": "200ms"});
    let failing = |name: &str, of_hundred: u64, keys: Value| {
        let failing = job(name, &handler, every("400ms"), 5);
        let failing = with(failing, json!({"params": {"ms": 5, "fail": of_hundred}}));
        with(failing, keys)
    };
    vec![
        job("fast", &handler, json!([{"every": "50ms"}]), 5),
        job(
            "steady",
            &handler,
            json!([{"every": "200ms", "anchor": "2026-01-01T00:00:00.050Z"}]),
            150,
        ),
        job("process", &exec, json!([{"every": "200ms"}]), 30),
        job("cron", &handler, json!([{"cron": "* * * * * *"}]), 700),
        skips,
        with(
            job("spread", &handler, every("500ms"), 5),
            json!({"jitter": "400ms"}),
        ),
        with(
            job(
                "worldly",
                &handler,
                json!([{"cron": "* * * * * *", "timezone": "Asia/Tokyo"}]),
                5,
            ),
            worldly,
        ),
        with(job("thorough", &handler, every("300ms"), 5), thorough),
        with(job("patient", &handler, every("400ms"), 5), patient),
        job("follows", &handler, json!([{"after_end": "150ms"}]), 20),
        failing("flaky", 40, json!({"retry": retry(6)})),
        failing("doomed", 100, json!({"retry": retry(2)})),
        failing(
            "fragile",
            90,
            json!({"retry": retry(2), "breaker": {"failures": 4, "cooldown": "3s"}}),
        ),
        with(
            job("narrow", &handler, every("150ms"), 100),
            json!({"queue": "narrow"}),
        ),
        job("order", &handler, Value::Null, 10),
        job("bulk", &handler, Value::Null, 2),
        job("command", &exec, Value::Null, 10),
    ]
}

struct Caller {
    api: Api,
    journal: Journal,
    job: &'static str,
}

impl Caller {
    fn ask(mut self, number: usize, stop: &AtomicBool) {
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
    fn ask_for_many(mut self, number: usize, stop: &AtomicBool) {
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
            .api
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
        let answer = self.api.call_with(
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

    fn write(&mut self, record: &Record) {
        self.journal.write(record).expect("a line in the journal");
    }
}
