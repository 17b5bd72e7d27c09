//! Times that pass while nothing can fire them: a server that is down, a job that is paused, a calendar that is edited.
//!
//! Servers go by a clock that is set while they are down, so that a week or a year takes no time.

mod away;

use drumtower_core::model::SweepCause;
use drumtower_e2e::eventually;
use serde_json::{Value, json};

use away::world;

fn daily(misfire: Value) -> Value {
    json!({"schedule": [{"cron": "0 6 * * *"}], "misfire": misfire})
}

/// Six in the morning of these days of February 2027.
fn mornings(days: &[u32]) -> Vec<String> {
    days.iter()
        .map(|day| format!("2027-02-{day:02}T06:00:00Z"))
        .collect()
}

fn missed(first: &str, last: &str, count: u64) -> (String, String, String, u64) {
    (
        "misfire".to_owned(),
        first.to_owned(),
        last.to_owned(),
        count,
    )
}

/// Monday noon to Monday noon: seven mornings.
#[test]
fn a_week_without_a_server() {
    let Some(mut world) = world("2027-02-01T12:00:00Z") else {
        return;
    };
    world.calendar(
        "workdays",
        json!({"weekly": ["mon", "tue", "wed", "thu", "fri"]}),
    );
    world.calendar("holidays", json!({"include": ["2027-02-03", "2027-02-06"]}));
    world.job("usual", daily(json!({})));
    world.job("late", daily(json!({"window": "24h"})));
    world.job(
        "every-one",
        daily(json!({"policy": "all", "window": "30d"})),
    );
    world.job(
        "newest",
        daily(json!({"policy": "all", "window": "30d", "max": 3})),
    );
    world.job("young", daily(json!({"policy": "all", "window": "50h"})));
    world.job("never", daily(json!({"policy": "skip", "window": "30d"})));
    world.job(
        "spaced",
        daily(json!({"policy": "all", "window": "30d", "gap": "1s"})),
    );
    let all = json!({"policy": "all", "window": "30d", "max": 1000});
    let with = |keys: Value| {
        let mut job = daily(all.clone());
        job.as_object_mut()
            .expect("a job")
            .extend(keys.as_object().expect("keys").clone());
        job
    };
    world.job("spread", with(json!({"jitter": "10m"})));
    world.job(
        "bounded",
        with(json!({"bounds": {"end": "2027-02-04T06:00:00Z"}})),
    );
    world.job(
        "thrice",
        with(json!({"schedule": [{"every": "1h"}], "bounds": {"max_fires": 3}})),
    );
    world.job("worked", with(json!({"calendar": {"only": ["workdays"]}})));
    let rolled = json!({"only": ["workdays"], "minus": ["holidays"], "roll": "next"});
    world.job("rolled", with(json!({"calendar": rolled})));
    world.job(
        "minutely",
        json!({"schedule": [{"cron": "* * * * *"}], "misfire": {"policy": "skip"}}),
    );
    world.job("follows", json!({"schedule": [{"after_end": "1h"}]}));
    world.job(
        "follows-late",
        json!({"schedule": [{"after_end": "1h"}], "misfire": {"window": "30d"}}),
    );

    world.away_until("2027-02-08T12:00:05Z");
    for (job, fires) in [
        ("late", 1),
        ("every-one", 7),
        ("newest", 3),
        ("young", 2),
        ("spaced", 7),
    ] {
        world.await_fires(job, fires);
    }
    for job in ["usual", "never", "spread", "worked"] {
        world.await_through(job, "2027-02-08T06:00:00");
    }
    world.await_fires("thrice", 3);
    world.await_fires("bounded", 2);
    world.await_fires("rolled", 3);
    world.await_fires("minutely", 1);
    world.await_fires("follows-late", 1);
    eventually("the delay is counted anew", || {
        world
            .next("follows")
            .as_str()?
            .starts_with("2027-02-08T13:")
            .then_some(())
    });
    for job in ["thrice", "bounded"] {
        assert_eq!(world.next(job), Value::Null, "{job} is over");
    }
    assert_eq!(world.next("usual"), "2027-02-09T06:00:00.000Z");
    let unfired = &world.api().job("newest")["last_unfired"];
    assert_eq!(
        (&unfired["reason"], &unfired["count"]),
        (&json!("misfire"), &json!(4))
    );
    let (from, to) = ("2027-02-01T12:00:00Z", "2027-02-08T12:00:00Z");
    let run = || ("run".to_owned(), String::new(), 1);
    let out = |count| ("unfired".to_owned(), "misfire".to_owned(), count);
    assert_eq!(world.explained("usual", from, to), [out(7)]);
    assert_eq!(world.explained("late", from, to), [out(6), run()]);
    assert_eq!(
        world.explained("newest", from, to),
        [out(4), run(), run(), run()]
    );
    let worked = world.explained("worked", from, to);
    let excluded: u64 = worked
        .iter()
        .filter(|row| row.0 == "excluded")
        .map(|row| row.2)
        .sum();
    let runs = worked.iter().filter(|row| row.0 == "run").count();
    assert_eq!((runs, excluded), (5, 2), "{worked:?}");

    let (books, _site) = world.end();
    let range = |first: u32, last: u32| {
        let ends = mornings(&[first, last]);
        vec![missed(&ends[0], &ends[1], u64::from(last - first + 1))]
    };
    let expected: [(&str, &[u32], _); 9] = [
        ("usual", &[], range(2, 8)),
        ("late", &[8], range(2, 7)),
        ("every-one", &[2, 3, 4, 5, 6, 7, 8], vec![]),
        ("newest", &[6, 7, 8], range(2, 5)),
        ("young", &[7, 8], range(2, 6)),
        ("never", &[], range(2, 8)),
        ("spaced", &[2, 3, 4, 5, 6, 7, 8], vec![]),
        ("spread", &[2, 3, 4, 5, 6, 7, 8], vec![]),
        ("bounded", &[2, 3], vec![]),
    ];
    for (job, fired, ranges) in expected {
        assert_eq!(books.fired(job), mornings(fired), "{job}");
        assert_eq!(books.ranges(job), ranges, "{job}");
    }
    assert_eq!(books.fired("worked"), mornings(&[2, 3, 4, 5, 8]));
    // Wednesday goes to Thursday, which fires anyway, and the weekend to Monday.
    assert_eq!(books.fired("rolled"), mornings(&[2, 4, 5, 8]));
    let hours = [13, 14, 15].map(|hour| format!("2027-02-01T{hour}:00:00Z"));
    assert_eq!(books.fired("thrice"), hours);
    let made: Vec<i64> = books
        .fires("spaced")
        .iter()
        .map(|run| run.created.0)
        .collect();
    assert!(
        made.windows(2).all(|pair| pair[1] - pair[0] >= 1000),
        "{made:?}"
    );
    let minutely = (books.fired("minutely"), books.ranges("minutely"));
    assert_eq!(
        minutely.0.last().map(String::as_str),
        Some("2027-02-08T12:00:00Z"),
        "{minutely:?}"
    );
    assert_eq!(minutely.1.len(), 1, "{minutely:?}");
    assert_eq!(minutely.1[0].2, "2027-02-08T11:59:00Z", "{minutely:?}");
    let follows = books.ranges("follows");
    assert_eq!((follows.len(), follows[0].3), (1, 1), "{follows:?}");
    assert_eq!(books.fires("follows-late").len(), 1);
}

/// A job of every second over a death and five seconds: each second has one fate.
#[test]
fn five_seconds_without_a_server() {
    let Some(mut world) = world("2027-02-01T12:00:00Z") else {
        return;
    };
    for policy in ["skip", "latest", "all"] {
        let misfire = json!({"policy": policy});
        world.job(
            policy,
            json!({"schedule": [{"every": "1s"}], "misfire": misfire}),
        );
    }
    world.await_fires("all", 3);
    world.server.kill();
    world.clock.step(5_000);
    world.server.restart();
    let again = world.api().job("all")["fires"].as_u64().expect("a number");
    for policy in ["skip", "latest", "all"] {
        world.await_fires(policy, if policy == "all" { again + 8 } else { 6 });
    }
    let (from, to) = ("2027-02-01T12:00:00Z", "2027-02-01T12:10:00Z");
    let explained = world.explained("latest", from, to);
    let missed: u64 = explained
        .iter()
        .filter(|row| row.1 == "misfire")
        .map(|row| row.2)
        .sum();
    assert!(missed >= 4, "{explained:?}");
    let (books, _site) = world.end();
    for policy in ["skip", "latest", "all"] {
        let times: Vec<i64> = books
            .fires(policy)
            .iter()
            .filter_map(|run| Some(run.nominal?.0))
            .collect();
        let ranges = books.ranges(policy);
        let span = times[times.len() - 1] - times[0];
        let unfired: u64 = ranges.iter().map(|range| range.3).sum();
        assert_eq!(
            times.len() as u64 + unfired,
            span.unsigned_abs() / 1000 + 1,
            "{policy}"
        );
        assert!(
            ranges.iter().all(|range| range.0 == "misfire"),
            "{ranges:?}"
        );
        match policy {
            "all" => assert_eq!(unfired, 0),
            _ => assert!(unfired >= 4, "{policy}: {ranges:?}"),
        }
    }
}

/// A year of seconds is one row, and stays to be told.
#[test]
fn a_year_of_pause() {
    let Some(mut world) = world("2027-06-01T12:00:00Z") else {
        return;
    };
    let jobs = [
        ("forgets", json!({})),
        ("newest", json!({"policy": "latest"})),
        ("five", json!({"policy": "all", "max": 5})),
        ("edited", json!({})),
    ];
    for (name, on_resume) in &jobs {
        let retention = if *name == "forgets" { "7d" } else { "keep" };
        let keys =
            json!({"schedule": [{"every": "1s"}], "on_resume": on_resume, "retention": retention});
        world.job(name, keys);
    }
    let all = json!({"policy": "all", "window": "400d", "max": 1000});
    world.job(
        "mornings",
        json!({"schedule": [{"cron": "0 6 * * *"}], "on_resume": all, "retention": "keep"}),
    );
    for (name, _) in &jobs {
        world.await_fires(name, 2);
        world.ask(name, "pause");
    }
    world.ask("mornings", "pause");
    let before: Vec<u64> = jobs
        .iter()
        .map(|(name, _)| world.api().job(name)["fires"].as_u64().unwrap_or(0))
        .collect();

    world.away_until("2028-06-01T12:00:00Z");
    for (name, _) in &jobs {
        assert_eq!(world.next(name), Value::Null, "{name} is paused");
    }
    world.job(
        "edited",
        json!({"schedule": [{"every": "2s"}], "retention": "keep"}),
    );
    for (name, _) in &jobs {
        world.ask(name, "resume");
    }
    world.ask("mornings", "resume");
    for (name, _) in &jobs {
        world.await_through(name, "2028-06-01T12:00:04");
    }
    world.await_fires("mornings", 366);
    let day = ("2027-12-24T00:00:00Z", "2027-12-25T00:00:00Z");
    for job in ["forgets", "edited"] {
        let explained = world.explained(job, day.0, day.1);
        let paused = explained
            .iter()
            .all(|row| (row.0.as_str(), row.1.as_str()) == ("unfired", "paused"));
        assert!(paused && explained.len() == 1, "{job}: {explained:?}");
    }
    let (books, _site) = world.end();
    for ((name, _), before) in jobs.iter().zip(before) {
        let paused: Vec<_> = books
            .ranges(name)
            .into_iter()
            .filter(|range| range.0 == "paused")
            .collect();
        assert_eq!(paused.len(), 1, "{name}: {paused:?}");
        let (_, first, last, count) = &paused[0];
        assert!(
            first.as_str() < "2027-06-01T12:10" && last.as_str() > "2028-06-01T11:59",
            "{paused:?}"
        );
        assert_eq!(*count, 10_000, "a lower bound");
        let resumed = books.fires(name);
        let made_up = resumed.iter().skip(before as usize).filter(|run| {
            run.nominal
                .is_some_and(|nominal| run.created.since(nominal) > 1000)
        });
        let made_up = made_up.count();
        match *name {
            "five" => assert!((4..=5).contains(&made_up), "{made_up}"),
            _ => assert!(made_up <= 1, "{name}: {made_up}"),
        }
    }
    assert_eq!(books.fires("mornings").len(), 366, "2028 is a leap year");
}

/// New rules for a zone change when stored times are due: every job is looked at once, and only what is wrong is changed.
#[test]
fn new_time_zone_data() {
    let Some(mut world) = world("2027-02-01T12:00:00Z") else {
        return;
    };
    let berlin = json!([{"cron": "0 6 * * *", "timezone": "Europe/Berlin"}]);
    world.job("moved", json!({"schedule": berlin}));
    world.job("right", json!({"schedule": berlin}));
    world.job("elsewhere", json!({"schedule": [{"every": "1h"}]}));
    world.job("idle", json!({}));
    let expected = ["moved", "right", "elsewhere", "idle"].map(|job| world.next(job));
    world.server.stop();
    let store =
        rusqlite::Connection::open(world.server.data().join("drumtower.db")).expect("a store");
    let id = {
        let id = "SELECT id FROM job WHERE name = 'moved'";
        store
            .query_row(id, [], |row| row.get::<_, i64>(0))
            .expect("a job")
    };
    // As data in which Berlin was an hour further east would have had it.
    let told = store
        .execute("UPDATE meta SET tz_version = '1999z'", [])
        .expect("a change");
    let moved = "UPDATE schedule SET next_nominal = next_nominal - 3600000, next_due = next_due - 3600000 WHERE job = ?1";
    assert_eq!(
        (told, store.execute(moved, [id]).expect("a change")),
        (1, 1)
    );
    drop(store);
    world.server.restart();
    eventually("the job is planned anew", || {
        (world.next("moved") == expected[0]).then_some(())
    });
    let (books, _site) = world.end();
    let books_next =
        ["moved", "right", "elsewhere", "idle"].map(|job| books.job(job).schedule.next_nominal);
    assert_eq!(books_next[0], books_next[1]);
    let sweeps = books.store().sweeps().expect("sweeps");
    let sweep = sweeps
        .iter()
        .find(|sweep| sweep.cause == SweepCause::TimeZones)
        .expect("a sweep");
    assert_eq!((sweep.looked, sweep.changed), (4, 1), "{sweep:?}");
    assert!(sweep.finished.is_some(), "{sweep:?}");
    let meta = books.store().meta().expect("the store's own row");
    assert_eq!(
        (&sweep.version, meta.tz_version.as_str()),
        (&meta.tz_version, drumtower_store::tz_version())
    );
    assert!(books.fires("moved").is_empty());
}

/// A calendar is edited while no job that uses it is in memory, far from when they are due.
#[test]
fn a_calendar_edited_behind_its_jobs() {
    let Some(mut world) = world("2027-02-01T12:00:00Z") else {
        return;
    };
    world.calendar("free", json!({"include": ["2027-02-20"]}));
    let minus = json!({"schedule": [{"cron": "0 6 * * *"}], "calendar": {"minus": ["free"]}, "misfire": {"policy": "all", "window": "30d"}});
    for number in 0..20 {
        world.job(&format!("user-{number}"), minus.clone());
    }
    world.job("other", daily(json!({"policy": "all", "window": "30d"})));
    world.away_until("2027-02-01T13:00:00Z");
    world.calendar("free", json!({"include": ["2027-02-02", "2027-02-20"]}));
    for number in 0..20 {
        let job = format!("user-{number}");
        eventually("it is planned anew", || {
            (world.next(&job) == "2027-02-03T06:00:00.000Z").then_some(())
        });
    }
    assert_eq!(world.next("other"), "2027-02-02T06:00:00.000Z");
    let calendar = world.api().get("/api/v1/namespaces/default/calendars/free");
    let replan = eventually("the sweep has ended", || {
        let calendar = world.api().get("/api/v1/namespaces/default/calendars/free");
        let replan = calendar["replan"].clone();
        (!replan["finished"].is_null()).then_some(replan)
    });
    assert_eq!(
        (&replan["looked"], &replan["changed"]),
        (&json!(20), &json!(20)),
        "{calendar}"
    );
    // A day that has passed is not taken back by an edit after it, though nothing had fired it when the edit came.
    world.away_until("2027-02-04T12:00:00Z");
    world.calendar(
        "free",
        json!({"include": ["2027-02-02", "2027-02-03", "2027-02-05"]}),
    );
    world.away_until("2027-02-06T12:00:00Z");
    world.await_fires("user-19", 3);
    world.await_fires("other", 5);
    let (books, _site) = world.end();
    for number in 0..20 {
        assert_eq!(books.fired(&format!("user-{number}")), mornings(&[3, 4, 6]));
    }
    assert_eq!(books.fired("other"), mornings(&[2, 3, 4, 5, 6]));
}
