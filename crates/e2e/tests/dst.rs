//! The two weekends on which clocks change, lived through by a server: Europe/Berlin in 2027.
//!
//! Jobs are made well before. Then the server is started shortly before each instant that matters and stays up over it.

use drumtower_audit::{Journaled, Options};
use drumtower_core::model::WallMs;
use drumtower_e2e::{Books, Clock, Server, Site, eventually, shell};
use serde_json::{Value, json};

const BERLIN: &str = "Europe/Berlin";

struct Weekend {
    server: Server,
    clock: Clock,
    _site: Site,
}

impl Weekend {
    /// A server that has these jobs, by the time of `instant`, and stands still.
    fn prepare(instant: &str, jobs: &[(&str, Value)]) -> Option<Self> {
        let site = Site::new();
        let clock = Clock::at(&site, instant)?;
        let mut server = Server::start_by(&site, &clock);
        let every_second = json!({"every": "1s"});
        for (name, entry) in jobs.iter().chain([&("second", every_second)]) {
            let mut job = shell(name, "true");
            job["schedule"] = json!([entry]);
            job["overlap"] = json!("allow");
            // Whatever a slow start misses is made up for.
            job["misfire"] = json!({"policy": "all", "window": "2m"});
            server.api().put_job(&job);
        }
        server.stop();
        Some(Self {
            server,
            clock,
            _site: site,
        })
    }

    /// Has the server up from `from` to `to`.
    fn live(&mut self, from: &str, to: &str) {
        self.clock.set(from);
        self.server.restart();
        let api = self.server.api();
        eventually(&format!("it is {to}"), || {
            let through = api.job("second")["fired_through"].as_str()?.to_owned();
            (through.as_str() >= to).then_some(())
        });
        self.server.stop();
    }

    /// The audit agrees, and each job fired at these times.
    fn fired(self, expected: &[(&str, &[&str])]) {
        let books = Books::open(self.server.data());
        for (job, times) in expected {
            assert_eq!(books.fired(job), *times, "{job}");
            assert!(
                books.ranges(job).is_empty(),
                "{job}: {:?}",
                books.ranges(job)
            );
        }
        let options = Options {
            now: Some(WallMs(self.clock.now_ms())),
            grace_ms: 10_000,
            journaled: Journaled::None,
            ..Options::default()
        };
        let report = books.audit(None, &options);
        assert!(report.is_clean(), "{:#?}", report.violations);
    }
}

/// From 01:59:59 the clocks of Berlin go to 03:00:00.
#[test]
fn the_night_that_lacks_an_hour() {
    let line = |keys: Value| entry(json!({"cron": "2,5 0 2 * * *"}), keys);
    let local = |keys: Value| entry(json!({"at": "2027-03-28T02:00:03"}), keys);
    let jobs = [
        ("usual", line(json!({}))),
        ("shifted", line(json!({"dst_gap": "shift"}))),
        ("at-change", line(json!({"dst_gap": "at_transition"}))),
        ("left-out", line(json!({"dst_gap": "skip"}))),
        ("once", local(json!({}))),
        ("once-at-change", local(json!({"dst_gap": "at_transition"}))),
        ("once-left-out", local(json!({"dst_gap": "skip"}))),
        (
            "by-the-wall",
            entry(json!({"cron": "3 0,59 * * * *"}), json!({})),
        ),
    ];
    let Some(mut weekend) = Weekend::prepare("2027-03-28T00:50:00Z", &jobs) else {
        return;
    };
    weekend.live("2027-03-28T00:58:59Z", "2027-03-28T00:59:06Z");
    weekend.live("2027-03-28T00:59:56Z", "2027-03-28T01:00:07Z");
    let shifted: &[&str] = &["2027-03-28T01:00:02Z", "2027-03-28T01:00:05Z"];
    weekend.fired(&[
        ("usual", shifted),
        ("shifted", shifted),
        ("at-change", &["2027-03-28T01:00:00Z"]),
        ("left-out", &[]),
        ("once", &["2027-03-28T01:00:03Z"]),
        ("once-at-change", &["2027-03-28T01:00:00Z"]),
        ("once-left-out", &[]),
        // 01:59:03 and 03:00:03 in Berlin, one minute apart.
        (
            "by-the-wall",
            &["2027-03-28T00:59:03Z", "2027-03-28T01:00:03Z"],
        ),
    ]);
}

/// At 03:00:00 the clocks of Berlin go back to 02:00:00.
#[test]
fn the_night_that_has_an_hour_twice() {
    let early = |keys: Value| entry(json!({"cron": "3 0 2 * * *"}), keys);
    let late = |keys: Value| entry(json!({"cron": "58 59 2 * * *"}), keys);
    let local = |keys: Value| entry(json!({"at": "2027-10-31T02:00:04"}), keys);
    let jobs = [
        ("early", early(json!({}))),
        ("early-first", early(json!({"dst_fold": "first"}))),
        ("early-last", early(json!({"dst_fold": "last"}))),
        ("early-both", early(json!({"dst_fold": "both"}))),
        ("late-first", late(json!({"dst_fold": "first"}))),
        ("late-last", late(json!({"dst_fold": "last"}))),
        ("late-both", late(json!({"dst_fold": "both"}))),
        ("once", local(json!({}))),
        ("once-last", local(json!({"dst_fold": "last"}))),
        ("once-both", local(json!({"dst_fold": "both"}))),
        (
            "by-the-wall",
            entry(json!({"cron": "0 0 * * * *"}), json!({})),
        ),
    ];
    let Some(mut weekend) = Weekend::prepare("2027-10-30T23:50:00Z", &jobs) else {
        return;
    };
    weekend.live("2027-10-30T23:59:57Z", "2027-10-31T00:00:05Z");
    weekend.live("2027-10-31T00:59:55Z", "2027-10-31T01:00:05Z");
    weekend.live("2027-10-31T01:59:55Z", "2027-10-31T02:00:01Z");
    let (first, last) = ("2027-10-31T00:00:03Z", "2027-10-31T01:00:03Z");
    weekend.fired(&[
        ("early", &[first]),
        ("early-first", &[first]),
        ("early-last", &[last]),
        ("early-both", &[first, last]),
        ("late-first", &["2027-10-31T00:59:58Z"]),
        ("late-last", &["2027-10-31T01:59:58Z"]),
        (
            "late-both",
            &["2027-10-31T00:59:58Z", "2027-10-31T01:59:58Z"],
        ),
        ("once", &["2027-10-31T00:00:04Z"]),
        ("once-last", &["2027-10-31T01:00:04Z"]),
        (
            "once-both",
            &["2027-10-31T00:00:04Z", "2027-10-31T01:00:04Z"],
        ),
        (
            "by-the-wall",
            &[
                "2027-10-31T00:00:00Z",
                "2027-10-31T01:00:00Z",
                "2027-10-31T02:00:00Z",
            ],
        ),
    ]);
}

fn entry(mut when: Value, keys: Value) -> Value {
    let entry = when.as_object_mut().expect("an entry");
    entry.insert("timezone".into(), json!(BERLIN));
    entry.extend(keys.as_object().expect("keys").clone());
    when
}
