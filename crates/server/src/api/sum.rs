//! One answer made of what each server knows a part of: workers, with what they hold of each, and figures.
//!
//! Every other server is asked for its own part in the caller's name, and shows what that caller may see. Parts are JSON as
//! callers get it. Whoever does not answer in time is left out and named where sums would be wrong without saying so.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::problem::Problem;
use super::{Edge, internal};
use crate::cluster::{Errand, Held};

/// Parts of others, and the addresses of those who did not tell theirs.
pub struct Parts {
    pub told: Vec<Value>,
    pub silent: Vec<String>,
}

/// The same request asked of every other server; nothing without an errand.
pub async fn same(edge: &Edge, errand: Option<&Errand>) -> Parts {
    match errand {
        Some(errand) => of(edge, errand, &errand.0.own_part()).await,
        None => Parts {
            told: Vec::new(),
            silent: Vec::new(),
        },
    }
}

pub async fn of(edge: &Edge, errand: &Errand, held: &Held) -> Parts {
    let mut parts = Parts {
        told: Vec::new(),
        silent: Vec::new(),
    };
    for (address, answer) in errand.ask_others(&edge.cluster, held).await {
        match answer {
            Some(bytes) => parts.told.extend(serde_json::from_slice(&bytes).ok()),
            None => parts.silent.push(address),
        }
    }
    parts
}

pub fn value(part: &impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(part).map_err(|error| internal(&error))
}

/// Adds what another server counted under these keys. `null` is what is not told.
pub fn add(sum: &mut Value, other: &Value, keys: &[&str]) {
    for key in keys {
        if let (Some(one), Some(more)) = (sum[*key].as_u64(), other[*key].as_u64()) {
            sum[*key] = Value::from(one + more);
        }
    }
}

fn keep(sum: &mut Value, other: &Value, key: &str, better: impl Fn(&Value, &Value) -> bool) {
    if !other[key].is_null() && (sum[key].is_null() || better(&other[key], &sum[key])) {
        sum[key] = other[key].clone();
    }
}

/// Instants are text that sorts by time, numbers are numbers.
fn is_more(one: &Value, other: &Value) -> bool {
    match (one.as_u64(), other.as_u64()) {
        (Some(one), Some(other)) => one > other,
        _ => one.as_str() > other.as_str(),
    }
}

/// Items of several servers as one list: those with the same key are one, in the order of their first ones.
pub fn merged<K: Ord>(
    lists: impl IntoIterator<Item = Vec<Value>>,
    key: impl Fn(&Value) -> K,
    merge: impl Fn(&mut Value, &Value),
) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut places: BTreeMap<(K, usize), usize> = BTreeMap::new();
    for list in lists {
        // Several with one key on one server are several: the first is the first of the others.
        let mut seen: BTreeMap<K, usize> = BTreeMap::new();
        for item in list {
            let count = seen.entry(key(&item)).or_default();
            let number = *count;
            *count += 1;
            match places.get(&(key(&item), number)) {
                Some(place) => merge(&mut items[*place], &item),
                None => {
                    places.insert((key(&item), number), items.len());
                    items.push(item);
                }
            }
        }
    }
    items
}

pub fn items(page: &mut Value, key: &str) -> Vec<Value> {
    match page[key].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

type WorkerKey = (String, Option<String>);

fn worker_key(worker: &Value) -> WorkerKey {
    let text = |key: &str| worker[key].as_str().map(str::to_owned);
    (text("name").unwrap_or_default(), text("namespace"))
}

/// Workers as all servers together see them. Each keeps a stream to each server that has work to give, and holds attempts
/// of each.
pub fn workers(lists: Vec<Vec<Value>>) -> Vec<Value> {
    let sorted = lists.into_iter().map(|mut list| {
        // Processes of one name are told apart by when they came; who only was there comes last.
        list.sort_by_key(|it| (it["state"] == "OFFLINE", it["connected"].to_string()));
        list
    });
    let mut workers = merged(sorted, worker_key, worker);
    workers.sort_by_key(worker_key);
    workers
}

/// The most telling first: who is isolated somewhere is, and who is away from one server may be with another.
const STATES: [&str; 5] = ["FAULTY", "MAINTENANCE", "ONLINE", "BUSY", "OFFLINE"];

/// Adds what another server knows of a worker.
pub fn worker(sum: &mut Value, other: &Value) {
    let rank = |worker: &Value| STATES.iter().position(|state| worker["state"] == *state);
    let here = sum["last_heartbeat"].clone();
    if rank(other) < rank(sum) {
        for key in [
            "state", "why", "host", "version", "labels", "handlers", "capacity",
        ] {
            sum[key] = other[key].clone();
        }
    }
    if is_more(&other["last_heartbeat"], &here) {
        for key in ["load", "skew_ms"] {
            sum[key] = other[key].clone();
        }
    }
    add(sum, other, &["attempts", "credit"]);
    for key in ["losses", "faulty_until", "last_heartbeat"] {
        keep(sum, other, key, is_more);
    }
    keep(sum, other, "connected", |one, other| is_more(other, one));
    keep(sum, other, "maintenance", |_, _| false);
    let either = sum["probation"] == true || other["probation"] == true;
    sum["probation"] = Value::from(either);
    if let (Some(_), Some(more)) = (sum["running"].as_array(), other["running"].as_array()) {
        let mut running = items(sum, "running");
        running.extend(more.iter().cloned());
        running.sort_by_key(|run| run["created"].to_string());
        running.truncate(RUNNING);
        sum["running"] = Value::from(running);
    }
}

/// Runs that one worker is told to hold.
const RUNNING: usize = 100;
/// Bounds of the lists of an overview.
const LINES: usize = 100;
const WORKERS: usize = 500;

/// An overview of all servers; `parts` are those of the others.
pub fn overview(mut sum: Value, mut parts: Parts) -> Value {
    let runs = ["live", "waiting", "held", "parked"];
    let counters = [
        "made",
        "started",
        "completed",
        "failed",
        "cancelled",
        "unfired",
    ];
    for part in &parts.told {
        add(&mut sum["runs"], &part["runs"], &runs);
        add(&mut sum["counters"], &part["counters"], &counters);
        if let (Some(buckets), Some(more)) = (
            sum["start_delay"].as_array_mut(),
            part["start_delay"].as_array(),
        ) {
            buckets
                .iter_mut()
                .zip(more)
                .for_each(|(sum, other)| add(sum, other, &["count"]));
        }
    }
    let mut all = |key: &str| {
        let own = items(&mut sum, key);
        let others = parts.told.iter_mut().map(|part| items(part, key));
        std::iter::once(own).chain(others).collect::<Vec<_>>()
    };
    let (lines, fleets, failing) = (all("lines"), all("workers"), all("failing"));
    let text = |it: &Value, keys: &[&str]| keys.iter().map(|key| it[*key].to_string()).collect();
    let line =
        |it: &Value| -> Vec<String> { text(it, &["namespace", "need", "weight", "priority"]) };
    let mut lines = merged(lines, line, |sum, other| {
        add(sum, other, &["waiting", "held"]);
        keep(sum, other, "oldest", |one, other| is_more(other, one));
        keep(sum, other, "workers", is_more);
        sum["parked"] = Value::from(sum["parked"] == true || other["parked"] == true);
    });
    lines.sort_by_key(|line| std::cmp::Reverse(line["waiting"].as_u64()));
    lines.truncate(LINES);
    let job = |it: &Value| -> Vec<String> { text(it, &["namespace", "job"]) };
    let mut failing = merged(failing, job, |sum, other| {
        add(sum, other, &["failed", "completed"]);
    });
    failing.sort_by_key(|job| std::cmp::Reverse(job["failed"].as_u64()));
    failing.truncate(LINES);
    let mut workers = workers(fleets);
    let told = parts.told.iter().chain([&sum]);
    let most = told.filter_map(|part| part["workers_total"].as_u64()).max();
    let total = most.unwrap_or(0).max(workers.len() as u64);
    workers.truncate(WORKERS);
    let put: Map<String, Value> = [
        ("lines", Value::from(lines)),
        ("workers", Value::from(workers)),
        ("workers_total", Value::from(total)),
        ("failing", Value::from(failing)),
        ("silent", Value::from(parts.silent)),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    if let Value::Object(sum) = &mut sum {
        sum.extend(put);
    }
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn held(name: &str, state: &str, attempts: u64, heard: &str) -> Value {
        json!({
            "name": name, "namespace": null, "state": state, "why": null, "host": "h",
            "version": "1", "labels": {}, "handlers": [], "capacity": 4, "credit": 1,
            "attempts": attempts, "load": {"cpu_permille": attempts}, "skew_ms": 0,
            "connected": "2026-01-01T00:00:00Z", "last_heartbeat": heard, "maintenance": null,
            "losses": attempts, "faulty_until": null, "probation": false,
        })
    }

    #[test]
    fn a_worker_holds_what_it_holds_of_all_servers() {
        let one = vec![held("a", "OFFLINE", 2, "2026-01-01T00:00:01Z")];
        let other = vec![
            held("a", "ONLINE", 3, "2026-01-01T00:00:02Z"),
            held("b", "BUSY", 1, "2026-01-01T00:00:02Z"),
        ];
        let seen = workers(vec![one, other]);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0]["name"], "a");
        assert_eq!(
            (&seen[0]["attempts"], &seen[0]["credit"]),
            (&json!(5), &json!(2))
        );
        assert_eq!(
            (&seen[0]["state"], &seen[0]["losses"]),
            (&json!("ONLINE"), &json!(3))
        );
        assert_eq!(seen[0]["load"]["cpu_permille"], 3);
        assert_eq!(seen[1]["attempts"], 1);
    }

    #[test]
    fn processes_of_one_name_stay_apart() {
        let heard = "2026-01-01T00:00:01Z";
        let both = || vec![held("a", "ONLINE", 1, heard), held("a", "ONLINE", 2, heard)];
        let seen = workers(vec![both(), both()]);
        let attempts: Vec<_> = seen.iter().map(|it| it["attempts"].as_u64()).collect();
        assert_eq!(attempts, [Some(2), Some(4)]);
    }

    #[test]
    fn figures_are_added_and_what_is_not_told_stays_untold() {
        let part = |live: Value, waiting: u64, namespace: &str| {
            json!({
                "runs": {"live": live, "waiting": waiting, "held": 0, "parked": null},
                "counters": {"made": 1, "started": 2, "completed": 1, "failed": 0, "cancelled": 0, "unfired": 0},
                "start_delay": [{"up_to_s": 0.1, "count": 1}, {"up_to_s": null, "count": 2}],
                "lines": [{"namespace": namespace, "need": "exec", "weight": 1, "priority": 4,
                    "waiting": waiting, "held": 0, "parked": waiting > 5, "oldest": null, "workers": 1}],
                "workers": [held("a", "ONLINE", 1, "2026-01-01T00:00:01Z")],
                "workers_total": 1,
                "failing": [{"namespace": namespace, "job": "j", "failed": waiting, "completed": 0}],
            })
        };
        let parts = Parts {
            told: vec![part(json!(4), 9, "x"), part(json!(5), 2, "y")],
            silent: vec!["http://gone".to_owned()],
        };
        let seen = overview(part(json!(3), 1, "x"), parts);
        assert_eq!(
            seen["runs"],
            json!({"live": 12, "waiting": 12, "held": 0, "parked": null})
        );
        assert_eq!(seen["counters"]["started"], 6);
        assert_eq!(seen["start_delay"][1]["count"], 6);
        let lines = seen["lines"].as_array().unwrap();
        assert_eq!((lines.len(), &lines[0]["waiting"]), (2, &json!(10)));
        assert_eq!(lines[0]["parked"], true);
        assert_eq!(
            (&seen["workers"][0]["attempts"], &seen["workers_total"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(seen["failing"][0]["failed"], 10);
        assert_eq!(seen["silent"], json!(["http://gone"]));
    }
}
