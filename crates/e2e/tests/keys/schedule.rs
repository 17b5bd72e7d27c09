//! Keys that say when a job fires.

use drumtower_e2e::eventually;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::world::{World, world};

fn next(job: &Value) -> &str {
    job["next_nominal"].as_str().unwrap_or("never")
}

/// Waits for so many runs of a job, oldest first.
pub fn runs(world: &World, job: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{job} has {count} runs"), || {
        let mut runs = world.api.runs(&format!("job={job}"));
        runs.reverse();
        (runs.len() >= count).then_some(runs)
    })
}

pub fn nominal(run: &Value) -> Timestamp {
    run["nominal"]
        .as_str()
        .expect("a scheduled run")
        .parse()
        .expect("a time")
}

pub fn schedule() {
    let world = world();
    assert_eq!(next(&world.job(json!({"name": "without"}))), "never");
    let both = json!([{"cron": "0 3 1 1 *"}, {"every": "100ms"}]);
    world.job(json!({"name": "with", "schedule": both, "overlap": "allow"}));
    assert_eq!(
        runs(&world, "with", 2)[0]["origin"],
        "schedule",
        "it fires by any of its entries"
    );
}

pub fn cron() {
    let job = world().job(json!({"schedule": [{"cron": "7 3 * * *"}]}));
    assert!(next(&job).ends_with("T03:07:00.000Z"), "{job}");
}

/// Tokyo is nine hours ahead all year.
pub fn timezone() {
    let job = world().job(json!({"schedule": [{"cron": "7 3 * * *", "timezone": "Asia/Tokyo"}]}));
    assert!(next(&job).ends_with("T18:07:00.000Z"), "{job}");
}

pub fn every() {
    let world = world();
    world.job(json!({"name": "often", "schedule": [{"every": "150ms"}], "overlap": "allow"}));
    let runs = runs(&world, "often", 3);
    for run in &runs {
        assert_eq!(nominal(run).as_millisecond() % 150, 0, "{run}");
    }
    assert!(
        nominal(&runs[0]) < nominal(&runs[1]),
        "one run for each time"
    );
}

pub fn anchor() {
    let world = world();
    let job =
        world.job(json!({"schedule": [{"every": "1h", "anchor": "2026-01-01T00:12:34.567Z"}]}));
    assert!(next(&job).ends_with(":12:34.567Z"), "{job}");
}

pub fn at() {
    let world = world();
    // So late that it is still to come when the job is made, on a busy machine too.
    let soon = Timestamp::now() + SignedDuration::from_secs(5);
    let text = format!("{soon:.3}");
    world.job(json!({"name": "once", "schedule": [{"at": text}]}));
    let runs = runs(&world, "once", 1);
    assert_eq!(runs[0]["nominal"], json!(text));
    assert_eq!(next(&world.api.job("once")), "never", "it is over");
}

/// Each run is due a delay after the end of the one before.
pub fn after_end() {
    let world = world().agent(4);
    world.job(json!({"name": "rests", "schedule": [{"after_end": "300ms"}]}));
    let ended = |run: &Value| -> Option<Timestamp> { run["finished"].as_str()?.parse().ok() };
    let runs = eventually("two runs have ended", || {
        let runs = runs(&world, "rests", 2);
        runs.iter()
            .take(2)
            .all(|run| ended(run).is_some())
            .then_some(runs)
    });
    let rested = nominal(&runs[1]).duration_since(ended(&runs[0]).expect("an end"));
    assert_eq!(rested, SignedDuration::from_millis(300), "{runs:#?}");
}

/// Of many jobs with one time, most are put off, none past the jitter.
pub fn jitter() {
    let world = world();
    let mut put_off = 0;
    for index in 0..10 {
        let job = world.job(json!({
            "name": format!("spread-{index}"), "schedule": [{"cron": "0 3 * * *"}], "jitter": "30m",
        }));
        let time = |key: &str| -> Timestamp {
            job[key].as_str().expect("a time").parse().expect("a time")
        };
        let late = time("next_due").duration_since(time("next_nominal"));
        assert!((0..1800).contains(&late.as_secs()), "{job:#}");
        put_off += usize::from(late > SignedDuration::ZERO);
    }
    assert!(put_off >= 8, "{put_off} of 10");
}

pub fn max_fires() {
    let world = world();
    let bounds = json!({"max_fires": 3});
    world.job(json!({"name": "thrice", "schedule": [{"every": "50ms"}], "overlap": "allow", "bounds": bounds}));
    let over = eventually("it is over", || {
        let job = world.api.job("thrice");
        (next(&job) == "never").then_some(job)
    });
    assert_eq!(over["fires"], 3);
    assert_eq!(runs(&world, "thrice", 3).len(), 3);
}

/// Nobody runs these jobs, so their first run never ends.
pub fn overlap() {
    let world = world();
    world.job(json!({"name": "skips", "schedule": [{"every": "50ms"}], "overlap": "skip"}));
    world.job(json!({"name": "allows", "schedule": [{"every": "50ms"}], "overlap": "allow"}));
    runs(&world, "allows", 3);
    let skipped = eventually("times are skipped", || {
        let job = world.api.job("skips");
        (job["last_unfired"]["count"].as_u64() > Some(2)).then_some(job)
    });
    assert_eq!(skipped["last_unfired"]["reason"], "overlap");
    assert_eq!(runs(&world, "skips", 1).len(), 1);
}
