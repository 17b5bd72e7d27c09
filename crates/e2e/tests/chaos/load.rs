//! The load: jobs that fire often, and callers that ask until they are answered.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use drumtower_audit::Journal;
use drumtower_e2e::{Api, Caller, Server};
use serde_json::{Value, json};
use ureq::http::Method;

/// Callers who ask for one run at a time, and callers who ask for many.
const CALLERS: usize = 2;
const BULK_CALLERS: usize = 2;

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
            // A client of its own: the local token changes with every start, this one does not.
            let api = Api::new(server.url(), Some(token.clone()));
            let journal = Journal::create(journals, "caller").expect("a journal");
            let caller = Caller::new(vec![api], journal, ["order", "command"][number % 2]);
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || caller.ask(number, &stop))
        });
        let bulk = (0..BULK_CALLERS).map(|number| {
            let api = Api::new(server.url(), Some(token.clone()));
            let journal = Journal::create(journals, "bulk").expect("a journal");
            let caller = Caller::new(vec![api], journal, "bulk");
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
