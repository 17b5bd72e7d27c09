//! Keys that say what becomes of times that passed while nothing could fire them, or while the job was paused.

use drumtower_e2e::eventually;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::schedule::{nominal, runs};
use super::world::{World, world};

/// The job fires so often.
const PERIOD_MS: i64 = 200;
/// So many times pass unseen, at least.
const MISSED: i64 = 8;

fn job(world: &World, keys: Value) -> Value {
    let mut spec = json!({"name": "beats", "schedule": [{"every": "200ms"}], "overlap": "allow"});
    let keys = keys.as_object().expect("keys").clone();
    spec.as_object_mut().expect("a job").extend(keys);
    world.job(spec)
}

fn passed(since: Timestamp) {
    let end = since + SignedDuration::from_millis(MISSED * PERIOD_MS);
    eventually("times have passed", || {
        (Timestamp::now() > end).then_some(())
    });
}

/// What became of the times between two instants: runs oldest first, and unfired ranges as (reason, count).
struct Fates {
    runs: Vec<Value>,
    unfired: Vec<(String, u64)>,
}

fn fates(world: &World, from: Timestamp, to: Timestamp) -> Fates {
    let api = world.server.api();
    let path = format!("/api/v1/namespaces/default/jobs/beats/explain?from={from:.3}&to={to:.3}");
    let rows = eventually("every time is decided", || {
        let answer = api.get(&path);
        let rows = answer["rows"].as_array().expect("rows").clone();
        let open = |row: &Value| row["fate"] == "pending" || row["fate"] == "planned";
        (!rows.iter().any(open)).then_some(rows)
    });
    assert!(rows.iter().all(|row| row["fate"] != "unknown"), "{rows:#?}");
    let ran = rows.iter().filter(|row| row["fate"] == "run");
    let unfired = rows.iter().filter(|row| row["fate"] == "unfired");
    Fates {
        runs: ran
            .map(|row| api.run(row["run"].as_str().expect("an id")))
            .collect(),
        unfired: unfired
            .map(|row| {
                let reason = row["reason"].as_str().expect("a reason").to_owned();
                (reason, row["count"].as_u64().expect("a count"))
            })
            .collect(),
    }
}

/// The times that a server missed which was down for a while.
fn outage(misfire: Value) -> Fates {
    let mut world = world();
    job(&world, json!({ "misfire": misfire }));
    runs(&world, "beats", 2);
    world.server.stop();
    let down = Timestamp::now();
    passed(down);
    let up = Timestamp::now();
    world.server.restart();
    fates(&world, down, up)
}

/// The times of a pause.
fn pause(on_resume: Value) -> Fates {
    let world = world();
    job(&world, json!({ "on_resume": on_resume }));
    runs(&world, "beats", 2);
    let path = "/api/v1/namespaces/default/jobs/beats";
    world.api.post(&format!("{path}/pause"), &Value::Null);
    let begun = Timestamp::now();
    passed(begun);
    let end = Timestamp::now();
    world.api.post(&format!("{path}/resume"), &Value::Null);
    fates(&world, begun, end)
}

fn missed(fates: &Fates, reason: &str) -> u64 {
    assert!(
        fates.unfired.iter().all(|(why, _)| why == reason),
        "{:?}",
        fates.unfired
    );
    fates.unfired.iter().map(|(_, count)| count).sum()
}

/// The shortest distance at which two of the runs were made.
fn shortest_gap_ms(fates: &Fates) -> i64 {
    let made = |run: &Value| -> Timestamp {
        run["created"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("a time")
    };
    let gaps = fates.runs.windows(2).map(|pair| {
        assert!(nominal(&pair[0]) < nominal(&pair[1]));
        made(&pair[1]).as_millisecond() - made(&pair[0]).as_millisecond()
    });
    gaps.min().expect("two runs")
}

pub fn policy() {
    let all = outage(json!({"policy": "all"}));
    assert_eq!(all.unfired, []);
    assert!(all.runs.len() as i64 >= MISSED - 1, "{}", all.runs.len());
    let skip = outage(json!({"policy": "skip"}));
    assert!(missed(&skip, "misfire") as i64 >= MISSED - 2);
}

/// What is older than the window makes no run, even under `all`.
pub fn window() {
    let fates = outage(json!({"policy": "all", "window": "1ms"}));
    assert!(missed(&fates, "misfire") as i64 >= MISSED - 2);
}

pub fn max() {
    let fates = outage(json!({"policy": "all", "max": 2}));
    assert!(fates.runs.len() <= 2, "{}", fates.runs.len());
    assert!(missed(&fates, "misfire") as i64 >= MISSED - 3);
}

pub fn gap() {
    let fates = outage(json!({"policy": "all", "gap": "150ms"}));
    assert!(shortest_gap_ms(&fates) >= 150);
}

pub fn on_resume() {
    let none = pause(json!({}));
    assert_eq!(none.runs.len(), 0);
    assert!(missed(&none, "paused") as i64 >= MISSED - 1);
    let all = pause(json!({"policy": "all"}));
    assert_eq!(all.unfired, []);
    assert!(all.runs.len() as i64 >= MISSED - 1);
}

pub fn on_resume_window() {
    let fates = pause(json!({"policy": "all", "window": "1ms"}));
    assert!(missed(&fates, "paused") as i64 >= MISSED - 2);
}

pub fn on_resume_max() {
    let fates = pause(json!({"policy": "all", "max": 2}));
    assert_eq!(fates.runs.len(), 2);
}

pub fn on_resume_gap() {
    let fates = pause(json!({"policy": "all", "gap": "150ms"}));
    assert!(shortest_gap_ms(&fates) >= 150);
}
