//! Both readings of many schedules, drawn at random: the scheduler's own and the plain one name the same times.

use std::sync::Arc;

use drumtower_core::model::{CalendarName, JobVersion, WallMs};
use drumtower_core::schedule::{self, CalendarEra, DateSet, Schedule};
use fastrand::Rng;
use serde_json::{Value, json};

use super::super::{Calendars, Plan};
use super::{at, calendar, version};

/// Zones, and stretches in which their clocks do something.
const ZONES: [(&str, &[&str]); 8] = [
    ("UTC", &["2024-02-25", "2026-12-28"]),
    ("Europe/Berlin", &["2026-03-27", "2026-10-23"]),
    ("America/New_York", &["2026-03-06", "2026-10-30"]),
    ("America/St_Johns", &["2011-11-04", "2026-03-06"]),
    ("Australia/Lord_Howe", &["2026-04-03", "2026-10-02"]),
    ("Pacific/Apia", &["2011-12-28", "2010-09-24"]),
    ("Asia/Shanghai", &["1986-05-02", "2028-02-26"]),
    ("Africa/Casablanca", &["2026-02-13", "2026-03-20"]),
];
const CASES: usize = 12;

#[test]
fn both_readings_agree_in_every_zone() {
    let mut random = Rng::with_seed(20_261_025);
    for (zone, stretches) in ZONES {
        let mut compared = 0;
        for _ in 0..CASES {
            let stretch = stretches[random.usize(..stretches.len())];
            compared += u32::from(Draw::new(&mut random, zone, stretch).compare());
        }
        assert!(compared * 2 > CASES as u32, "{zone}: only {compared}");
    }
}

#[test]
fn both_readings_agree_over_a_year() {
    let lines = [
        "*/7 3-5 * * *",
        "0 2 * * *",
        "15,45 1-3 1-7 * mon",
        "0 0 29 2 *",
        "30 2 * mar-oct fri-sun",
        "0 12 */10 * *",
        "@weekly",
        "0 30 2 ? * 0",
        "5 4 1 * ?",
        "0 0 3 * * 1/3 2026",
        "30 1 L-1,15W * fri#3,sunL",
    ];
    for (zone, _) in ZONES {
        for line in lines {
            let version = version(json!({"schedule": [{"cron": line, "timezone": zone}]}));
            let span = (at("2026-01-01T00:00:00Z"), at("2026-12-31T23:59:59Z"));
            assert!(compare(&version, &Calendars::new(), span));
        }
    }
}

/// One schedule with its calendars, and the days in which it is compared.
struct Draw<'a> {
    random: &'a mut Rng,
    zone: &'a str,
    /// The day it all is about, and the one after next.
    day: &'a str,
}

impl<'a> Draw<'a> {
    fn new(random: &'a mut Rng, zone: &'a str, day: &'a str) -> Self {
        Self { random, zone, day }
    }

    /// False when the scheduler refuses the schedule.
    fn compare(mut self) -> bool {
        let calendars = match self.random.bool() {
            true => self.calendar(),
            false => Calendars::new(),
        };
        let fixed = self.random.bool();
        let entries: Vec<Value> = (0..self.random.usize(1..3))
            .map(|_| self.entry(fixed, !calendars.is_empty()))
            .collect();
        let mut keys = json!({"schedule": entries});
        if !calendars.is_empty() {
            let which = self.pick(&["only", "minus"]);
            let rolls: &[&str] = match fixed {
                true => &["none", "next", "previous", "nearest"],
                false => &["none"],
            };
            keys["calendar"] = json!({which: ["c"], "roll": self.pick(rolls)});
        }
        if self.random.u8(..4) == 0 {
            keys["bounds"] = json!({"start": self.instant(), "end": self.instant_after()});
        }
        if self.random.bool() {
            keys["jitter"] = json!(self.pick(&["250ms", "30s", "2h"]));
        }
        // Rare times are looked for in a longer stretch.
        let days = if fixed { 30 } else { 4 };
        let first = at(&format!("{}T00:00:00Z", self.day));
        let span = (
            first.plus(-i64::from(fixed) * 20 * DAY_MS),
            first.plus(days * DAY_MS),
        );
        compare(&version(keys), &calendars, span)
    }

    fn pick<'b>(&mut self, of: &[&'b str]) -> &'b str {
        of[self.random.usize(..of.len())]
    }

    fn entry(&mut self, fixed: bool, dated: bool) -> Value {
        let mut entry = match (fixed, self.random.u8(..5)) {
            (true, 0) => json!({"at": self.local()}),
            (true, _) => {
                let second = self.pick(&["0 ", "", "15,45 "]);
                let minute = self.pick(&["0", "30", "15,45", "10-50/20"]);
                let hour = self.pick(&["0", "1,2", "2", "3", "21-23", "23", "2-3"]);
                json!({"cron": format!("{second}{minute} {hour} {}", self.days())})
            }
            (false, 0) if dated => json!({"every": self.pick(&["7m", "90s", "11h"])}),
            (false, 0) => return json!({"every": self.pick(&["7m", "90s", "11h"])}),
            (false, _) => {
                let minute = self.pick(&["*", "*/15", "0", "10-50/20", "59"]);
                let hour = self.pick(&["*", "*/3", "*/2"]);
                json!({"cron": format!("{minute} {hour} {}", self.days())})
            }
        };
        entry["timezone"] = json!(self.zone);
        if entry.get("cron").is_some() && self.random.bool() {
            entry["day_rule"] = json!(self.pick(&["or", "and"]));
        }
        if fixed {
            entry["dst_gap"] = json!(self.pick(&["skip", "at_transition", "shift"]));
            entry["dst_fold"] = json!(self.pick(&["first", "last", "both"]));
        }
        entry
    }

    /// The last three fields of a line.
    fn days(&mut self) -> String {
        let day = self.pick(&[
            "*", "?", "*", "L", "L-2", "LW", "L-3W", "1W", "15W", "31W", "29-31", "1,28", "*/3",
            "30", "L,1W", "24-31",
        ]);
        let month = self.pick(&["*", "*", "*/2", "1-11", "feb,mar,oct,dec"]);
        let weekday = self.pick(&[
            "*",
            "?",
            "*",
            "mon-fri",
            "sun",
            "7",
            "friL",
            "5L",
            "sun#1",
            "0#5",
            "sat#4",
            "sat-sun",
            "mon#1,friL",
            "*/2",
        ]);
        format!("{day} {month} {weekday}")
    }

    /// A date near the day.
    fn date(&mut self) -> String {
        let day = at(&format!("{}T00:00:00Z", self.day)).plus(self.random.i64(-3..9) * DAY_MS);
        let text = super::written(vec![day]).remove(0);
        text[..10].to_owned()
    }

    fn local(&mut self) -> String {
        let (hour, minute) = (self.random.u8(..5), self.random.u8(..60));
        format!("{}T{hour:02}:{minute:02}:00", self.date())
    }

    fn instant(&mut self) -> String {
        format!("{}Z", self.local())
    }

    fn instant_after(&mut self) -> String {
        let day = at(&format!("{}T00:00:00Z", self.day)).plus(self.random.i64(9..25) * DAY_MS);
        super::written(vec![day]).remove(0)
    }

    /// A calendar of up to three versions, each made near the day.
    fn calendar(&mut self) -> Calendars {
        let mut created: Vec<String> = (0..self.random.usize(1..4))
            .map(|_| self.instant())
            .collect();
        created.sort();
        created.dedup();
        let mut versions = Vec::new();
        for (index, created) in created.iter().enumerate() {
            let weekly: &[&str] = match self.random.u8(..3) {
                0 => &[],
                1 => &["mon", "tue", "wed", "thu", "fri"],
                _ => &["sat", "sun", "wed"],
            };
            let range = format!("{}..{}", self.date(), &self.instant_after()[..10]);
            let yearly = self.date()[5..].to_owned();
            let keys = match self.random.bool() {
                true => {
                    json!({"weekly": weekly, "include": [self.date(), yearly], "exclude": [range]})
                }
                false => {
                    json!({"weekly": weekly, "include": [range], "exclude": [self.date(), yearly]})
                }
            };
            versions.push(calendar(index as u32 + 1, created, keys));
        }
        super::calendars(versions)
    }
}

const DAY_MS: i64 = 86_400_000;

/// The calendars as the scheduler is given them.
struct Given<'a>(&'a Calendars);

impl schedule::Calendars for Given<'_> {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let eras = self.0.get(name)?.iter().map(|version| CalendarEra {
            from: version.created.0,
            days: Arc::new(DateSet::compile(&version.spec).expect("a calendar")),
        });
        Some(eras.collect())
    }
}

fn compare(version: &JobVersion, calendars: &Calendars, span: (WallMs, WallMs)) -> bool {
    let spec = &version.spec;
    let given = Given(calendars);
    let theirs = match Schedule::compile(&spec.schedule_spec(), &given) {
        Ok(theirs) => theirs.expect("a schedule"),
        Err(_) => return false,
    };
    let about = || {
        let calendars: Vec<_> = calendars
            .values()
            .flatten()
            .map(|c| (c.created, &c.spec))
            .collect();
        let keys = (&spec.schedule, &spec.calendar, &spec.bounds, &spec.jitter);
        format!(
            "{} with {}",
            serde_json::to_string(&keys).unwrap(),
            serde_json::to_string(&calendars).unwrap()
        )
    };
    let plan = Plan::new(version, calendars).unwrap_or_else(|error| panic!("{error}: {}", about()));
    let ours: Vec<i64> = plan.times(span.0, span.1).iter().map(|at| at.0).collect();
    let forwards = |at: &i64| theirs.next_after(*at);
    let found: Vec<i64> = std::iter::successors(theirs.next_after(span.0.0 - 1), forwards)
        .take_while(|at| *at <= span.1.0)
        .collect();
    let text = |times: &[i64]| super::written(times.iter().map(|at| WallMs(*at)).collect());
    assert_eq!(text(&ours), text(&found), "forwards, {}", about());
    let backwards = |at: &i64| theirs.prev_at_or_before(*at - 1);
    let mut back: Vec<i64> = std::iter::successors(theirs.prev_at_or_before(span.1.0), backwards)
        .take_while(|at| *at >= span.0.0)
        .collect();
    back.reverse();
    assert_eq!(text(&ours), text(&back), "backwards, {}", about());
    let count = theirs.count_between(span.0.0 - 1, span.1.0, u64::MAX);
    assert_eq!(count, ours.len() as u64, "counted, {}", about());
    for pair in ours.windows(2).take(50) {
        let due = theirs.due_of(version.job.0, pair[0]);
        let last = pair[1].min(pair[0] + plan.jitter_ms().max(1));
        assert!(
            (pair[0]..last).contains(&due),
            "{due} after {}, {}",
            pair[0],
            about()
        );
    }
    true
}
