//! Jobs as people write them: heartbeats of a second, reports at night, imports that follow each other, things that only
//! ever run when someone asks.

use drumtower_core::model::{CalendarSpec, JobSpec, QueueSpec, WallMs};
use serde_json::{Value, json};

use super::Shape;
use crate::random::Random;

pub const HANDLERS: &[&str] = &["charge", "import", "mail"];
/// One that no worker has.
const UNSERVED: &str = "nobody";
pub const NAMESPACES: &[&str] = &["default", "billing"];
pub const QUEUES: &[&str] = &["mail", "slow"];
const CALENDARS: &[&str] = &["holidays", "trading"];
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Shanghai",
];

/// A job that nobody has written yet. `number` is part of its name.
pub fn fresh(
    number: u64,
    now: WallMs,
    calendars: bool,
    shape: Shape,
    random: &mut Random,
) -> JobSpec {
    let namespace = if random.chance(750) {
        "default"
    } else {
        "billing"
    };
    let mut spec = json!({
        "kind": "Job",
        "name": format!("job-{number}"),
        "namespace": namespace,
        "task": task(random),
        "retention": "keep",
    });
    if !shape.is_quiet() {
        schedule(&mut spec, now, random);
    }
    policies(&mut spec, random);
    shaped(&mut spec, shape, random);
    follows(&mut spec, number, random);
    if calendars && spec["schedule"][0]["cron"].is_string() && random.chance(500) {
        let side = if random.chance(700) { "minus" } else { "only" };
        let roll = *random.pick(&["none", "next", "previous", "nearest"]);
        let fixed = spec["schedule"][0]["cron"]
            .as_str()
            .is_some_and(|line| !line.contains("* * *") || line.starts_with("0 "));
        spec["calendar"] = json!({ side: [*random.pick(CALENDARS)] });
        if fixed && random.chance(400) {
            spec["calendar"]["roll"] = roll.into();
        }
    }
    checked(spec)
}

/// Some run after others, which were made before them or of which there never was any.
fn follows(spec: &mut Value, number: u64, random: &mut Random) {
    if number == 0 || !random.chance(200) {
        return;
    }
    let mut jobs: Vec<String> = (0..random.between(1, 3))
        .map(|_| format!("job-{}", number - random.between(1, number.min(6))))
        .collect();
    jobs.sort();
    jobs.dedup();
    spec["after"] = json!({
        "jobs": jobs,
        "need": *random.pick(&["all", "any", "any"]),
        "on": *random.pick(&["success", "failure", "either"]),
    });
}

/// What most jobs of such a world have in common.
fn shaped(spec: &mut Value, shape: Shape, random: &mut Random) {
    if random.chance(150) {
        return;
    }
    match shape {
        Shape::Midnight => {
            spec["schedule"] = json!([{"cron": "0 0 * * *", "timezone": "UTC"}]);
            spec.as_object_mut().map(|spec| spec.remove("bounds"));
        }
        Shape::EverySecond => {
            spec["schedule"] = json!([{"every": "1s"}]);
            spec["retry"] = json!({"max_attempts": 3, "initial": "1s"});
            for key in ["jitter", "bounds"] {
                spec.as_object_mut().map(|spec| spec.remove(key));
            }
        }
        Shape::HotJob | Shape::Bursts => {
            spec["schedule"] = json!([]);
            for key in ["jitter", "bounds"] {
                spec.as_object_mut().map(|spec| spec.remove(key));
            }
        }
        Shape::LongTasks => {
            spec["timeout"] = "1h".into();
            spec["retry"] = json!({"max_lost": 20, "max_attempts": 10});
        }
        Shape::ManyKeys => keyed(spec, random),
        Shape::Mixed | Shape::Quiet | Shape::Failing => {}
    }
}

/// A job whose backlog has many keys, mostly in a queue with others, whether that has limits or not.
fn keyed(spec: &mut Value, random: &mut Random) {
    spec["schedule"] = json!([]);
    for key in ["jitter", "bounds", "start_timeout"] {
        spec.as_object_mut().map(|spec| spec.remove(key));
    }
    spec["overlap"] = "allow".into();
    spec["weight"] = 1.into();
    if random.chance(800) {
        spec["queue"] = QUEUES[0].into();
    }
    let mut limits = json!({"key": "/customer", "per_key": random.skewed(1, 2)});
    if random.chance(600) {
        limits["concurrency"] = random.skewed(1, 4).into();
    }
    spec["limits"] = limits;
    if random.chance(250) {
        spec["task"] = json!({"handler": {"name": UNSERVED}});
    }
}

/// The same job after someone has edited it.
pub fn edited(spec: &JobSpec, now: WallMs, random: &mut Random) -> JobSpec {
    let Ok(mut value) = serde_json::to_value(spec) else {
        return spec.clone();
    };
    match random.below(5) {
        0 | 1 => {
            value["calendar"] = Value::Null;
            schedule(&mut value, now, random);
        }
        2 | 3 => policies(&mut value, random),
        _ => value["task"] = task(random),
    }
    checked(value)
}

pub fn calendar(namespace: &str, now: WallMs, random: &mut Random) -> Option<CalendarSpec> {
    let day = |ahead: i64| {
        let at = jiff::Timestamp::from_millisecond(now.0 + ahead * 86_400_000).unwrap_or_default();
        at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
    };
    let include: Vec<String> = (-1..3).filter(|_| random.chance(500)).map(day).collect();
    let spec = json!({
        "kind": "Calendar",
        "name": *random.pick(CALENDARS),
        "namespace": namespace,
        "include": include,
    });
    serde_json::from_value(spec).ok()
}

fn checked(spec: Value) -> JobSpec {
    let named = spec["name"].clone();
    let namespace = spec["namespace"].clone();
    let read = |value: Value| {
        let spec: JobSpec = serde_json::from_value(value).ok()?;
        spec.check().ok()?;
        Some(spec)
    };
    if let Some(spec) = read(spec) {
        return spec;
    }
    // What was drawn does not go together: a plain job stands in for it.
    let plain = json!({"kind": "Job", "name": named, "namespace": namespace, "task": {"handler": {"name": "charge"}}, "retention": "keep"});
    match read(plain) {
        Some(spec) => spec,
        None => panic!("a plain job is always valid"),
    }
}

fn task(random: &mut Random) -> Value {
    if random.chance(300) {
        json!({"exec": {"argv": ["true"]}})
    } else {
        json!({"handler": {"name": *random.pick(HANDLERS)}})
    }
}

fn schedule(spec: &mut Value, now: WallMs, random: &mut Random) {
    let entries = match random.below(10) {
        // Only when asked.
        0 | 1 => json!([]),
        2 => json!([{"every": format!("{}ms", random.between(600, 3_000))}]),
        3 | 4 => json!([{"every": format!("{}s", random.pick(&[1, 2, 5, 10, 30]))}]),
        5 => json!([{"after_end": format!("{}ms", random.skewed(100, 20_000))}]),
        6 => json!([{"cron": "*/5 * * * * *", "timezone": *random.pick(ZONES)}]),
        7 => json!([{"cron": "* * * * *", "timezone": *random.pick(ZONES)}, {"every": "45s"}]),
        8 => json!([soon(now, random)]),
        _ => {
            let at = jiff::Timestamp::from_millisecond(now.0 + random.skewed(1, 300_000) as i64);
            json!([{"at": at.unwrap_or_default().to_string()}, soon(now, random)])
        }
    };
    let empty = entries.as_array().is_none_or(Vec::is_empty);
    let follows = entries[0]["after_end"].is_string();
    spec["schedule"] = entries;
    spec["jitter"] = match (empty, random.chance(250)) {
        (false, true) => format!("{}ms", random.skewed(1, 8_000)).into(),
        _ => Value::Null,
    };
    spec["bounds"] = if !empty && random.chance(120) {
        let end = jiff::Timestamp::from_millisecond(now.0 + random.skewed(1_000, 400_000) as i64);
        match random.below(2) {
            0 => json!({"max_fires": random.between(1, 20)}),
            _ if follows => Value::Null,
            _ => json!({"end": end.unwrap_or_default().to_string()}),
        }
    } else {
        Value::Null
    };
    for key in ["jitter", "bounds"] {
        if spec[key].is_null() {
            spec.as_object_mut().map(|spec| spec.remove(key));
        }
    }
    if spec["calendar"].is_null() {
        spec.as_object_mut().map(|spec| spec.remove("calendar"));
    }
}

/// A time of day that comes within the next minutes, somewhere.
fn soon(now: WallMs, random: &mut Random) -> Value {
    let zone = *random.pick(ZONES);
    let ahead = random.between(0, 8) as i64 * 60_000;
    let at = jiff::Timestamp::from_millisecond(now.0 + ahead).unwrap_or_default();
    let local = jiff::tz::TimeZone::get(zone).map(|zone| at.to_zoned(zone).datetime());
    let local = local.unwrap_or_default();
    let line = format!("{} {} * * *", local.minute(), local.hour());
    let gap = *random.pick(&["shift", "skip", "at_transition"]);
    let fold = *random.pick(&["first", "last", "both"]);
    json!({"cron": line, "timezone": zone, "dst_gap": gap, "dst_fold": fold})
}

fn policies(spec: &mut Value, random: &mut Random) {
    spec["overlap"] = overlap(random);
    spec["params"] = json!({"customer": random.below(3)});
    match random.chance(300) {
        true => spec["breaker"] = breaker(random),
        false => drop(spec.as_object_mut().map(|spec| spec.remove("breaker"))),
    }
    spec["misfire"] = catch_up(random);
    spec["on_resume"] = catch_up(random);
    spec["weight"] = random.skewed(1, 4).into();
    spec["priority"] = (*random.pick(&[5, 5, 5, 9, 0])).into();
    spec["placement"] = (*random.pick(&["round_robin", "least_loaded"])).into();
    spec["retry"] = retry(random);
    limits(spec, random);
    spec["timeout"] = (*random.pick(&["1h", "30s", "3s", "500ms"])).into();
    match random.chance(250) {
        true => spec["start_timeout"] = format!("{}ms", random.skewed(50, 60_000)).into(),
        false => spec["start_timeout"] = Value::Null,
    }
    match random.below(4) {
        0 => spec["progress_timeout"] = (*random.pick(&["2s", "5s", "20s"])).into(),
        _ => drop(
            spec.as_object_mut()
                .map(|spec| spec.remove("progress_timeout")),
        ),
    }
}

/// Most jobs have none; some share a queue, whether it is defined or not.
fn limits(spec: &mut Value, random: &mut Random) {
    for key in ["limits", "queue"] {
        spec.as_object_mut().map(|spec| spec.remove(key));
    }
    if random.chance(300) {
        spec["queue"] = (*random.pick(QUEUES)).into();
    }
    if random.chance(300) {
        spec["limits"] = some_limits(random);
    }
}

fn some_limits(random: &mut Random) -> Value {
    let mut limits = json!({});
    let kinds = random.between(1, 7);
    if kinds & 1 != 0 {
        limits["concurrency"] = random.skewed(1, 6).into();
    }
    if kinds & 2 != 0 {
        limits["key"] = (*random.pick(&["/customer", "/customer", ""])).into();
        limits["per_key"] = random.skewed(1, 3).into();
    }
    if kinds & 4 != 0 {
        let count = random.between(1, 6);
        limits["rate"] = format!("{count}/{}s", random.between(1, 2)).into();
        if random.chance(500) {
            limits["burst"] = random.between(1, count).into();
        }
    }
    limits
}

pub fn queue(namespace: &str, random: &mut Random) -> Option<QueueSpec> {
    let mut spec = match random.chance(850) {
        true => some_limits(random),
        false => json!({}),
    };
    spec["kind"] = "Queue".into();
    spec["name"] = (*random.pick(QUEUES)).into();
    spec["namespace"] = namespace.into();
    serde_json::from_value(spec).ok()
}

fn overlap(random: &mut Random) -> Value {
    let limit = random.skewed(1, 4);
    let on_full = *random.pick(&["skip", "queue", "queue", "cancel_old", "fail"]);
    if random.chance(450) {
        return (*random.pick(&["skip", "skip", "allow", "queue", "cancel_old", "fail"])).into();
    }
    let mut overlap = json!({"limit": limit, "on_full": on_full});
    if on_full == "queue" {
        overlap["depth"] = random.skewed(1, 12).into();
        overlap["keep"] = (*random.pick(&["oldest", "newest"])).into();
    }
    if random.chance(400) {
        overlap["key"] = (*random.pick(&["/customer", "/customer", "/nothing"])).into();
    }
    overlap
}

fn breaker(random: &mut Random) -> Value {
    let cooldown = random.skewed(200, 20_000);
    json!({
        "failures": random.skewed(1, 4),
        "cooldown": format!("{cooldown}ms"),
        "max_cooldown": format!("{}ms", cooldown * random.between(1, 3)),
        "probes": random.skewed(1, 3),
    })
}

fn catch_up(random: &mut Random) -> Value {
    match random.below(5) {
        0 => json!({"policy": "skip"}),
        1 => json!({"policy": "latest", "window": format!("{}s", random.skewed(1, 600))}),
        2 => json!({"policy": "all", "max": random.between(1, 12)}),
        3 => {
            json!({"policy": "all", "window": "30s", "gap": format!("{}ms", random.skewed(1, 4_000))})
        }
        _ => json!({}),
    }
}

fn retry(random: &mut Random) -> Value {
    let mut retry = waits(random);
    if random.chance(150) {
        retry["dead_letter"] = "drop".into();
    }
    if random.chance(300) {
        let action = match random.below(3) {
            0 => json!({"exit_codes": [3, 4], "action": "give_up"}),
            1 => json!({"exit_codes": [2, 3], "action": "retry", "after": "2s"}),
            _ => json!({"timeout": true, "action": "give_up"}),
        };
        retry["on"] = json!([action]);
    }
    retry
}

fn waits(random: &mut Random) -> Value {
    let wait = |random: &mut Random| format!("{}ms", random.skewed(1, 20_000));
    let max_lost = random.between(1, 4);
    match random.below(4) {
        0 => json!({"max_attempts": 1, "max_lost": max_lost}),
        1 => {
            json!({"max_attempts": random.between(2, 5), "backoff": "fixed", "initial": wait(random), "max_lost": max_lost})
        }
        2 => {
            json!({"initial": wait(random), "max": "30s", "jitter": false, "priority": 9, "max_lost": max_lost})
        }
        _ => json!({}),
    }
}
