//! A job's past, made up time by time.

use std::sync::Arc;

use super::super::*;
use crate::model::*;
use crate::schedule::{CalendarEra, Calendars, DateSet};

pub struct Past {
    pub record: JobRecord,
    pub versions: Vec<JobVersion>,
    pub unfired: Vec<Unfired>,
    pub runs: Runs,
    pub kept_since: WallMs,
    pub now: WallMs,
    calendars: Days,
}

fn spec(keys: &str) -> JobSpec {
    let mut spec: serde_json::Value = serde_json::from_str(keys).unwrap();
    spec["kind"] = "Job".into();
    spec["name"] = "told".into();
    spec["task"] = serde_json::json!({"exec": {"argv": ["true"]}});
    serde_json::from_value(spec).unwrap()
}

/// Every calendar there is holds these days.
#[derive(Clone)]
pub struct Days(Vec<String>);

impl Days {
    pub fn new(days: &[&str]) -> Self {
        Self(days.iter().map(|day| (*day).to_owned()).collect())
    }
}

impl Calendars for Days {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let days = DateSet::compile(&CalendarSpec {
            kind: CalendarKind::Calendar,
            name: name.clone(),
            namespace: NamespaceName::default(),
            description: String::new(),
            weekly: Vec::new(),
            include: self.0.clone(),
            exclude: Vec::new(),
        });
        Some(vec![CalendarEra {
            from: 0,
            days: Arc::new(days.unwrap()),
        }])
    }
}

impl Past {
    pub fn new(keys: &str, created: WallMs) -> Self {
        Self::with(keys, created, Days::new(&[]))
    }

    pub fn with(keys: &str, created: WallMs, calendars: Days) -> Self {
        let (job, actor) = (JobId(1), Actor::new("ana"));
        let version = JobVersion {
            job,
            version: 1,
            spec: spec(keys),
            created,
            actor: actor.clone(),
        };
        let row = JobRow {
            id: job,
            namespace: NamespaceName::default(),
            name: "told".parse().unwrap(),
            segment: SegmentId(0),
            version: 1,
            revision: 1,
            paused: None,
            deleted: false,
            created,
            updated: created,
            actor,
        };
        let schedule = ScheduleRow {
            job,
            fired_through: created,
            next_nominal: None,
            next_due: None,
            fires: 0,
            paused_through: None,
        };
        Self {
            record: JobRecord {
                row,
                version: version.clone(),
                schedule,
                live_scheduled: 0,
                tallies: Default::default(),
                breaker: None,
                waits: None,
                followed: false,
                last_unfired: None,
            },
            versions: vec![version],
            unfired: Vec::new(),
            runs: Runs::new(),
            kept_since: WallMs(i64::MIN),
            now: created,
            calendars,
        }
    }

    fn next(&self) -> Option<WallMs> {
        self.timeline(&self.calendars)
            .next_after(self.record.schedule.fired_through)
    }

    fn decided(&mut self, through: WallMs) {
        self.record.schedule.fired_through = through;
        self.now = self.now.max(through);
    }

    pub fn run_at(&mut self, nominal: WallMs) {
        self.made(nominal, nominal);
    }

    fn made(&mut self, nominal: WallMs, created: WallMs) {
        let id = RunId(self.runs.len() as u64 + 1);
        let fact = RunFact {
            id,
            state: RunState::Completed,
            version: self.record.row.version,
            due: nominal,
            created,
            queued: false,
            started: Some(created.plus(if created == nominal { 7 } else { 0 })),
        };
        self.runs.insert(nominal, fact);
        self.record.schedule.fires += 1;
        self.decided(nominal);
        self.now = self.now.max(created);
    }

    /// The next time makes a run in time.
    pub fn run_next(&mut self) {
        if let Some(next) = self.next() {
            self.run_at(next);
        }
    }

    /// Every time until then makes a run in time.
    pub fn runs_until(&mut self, until: WallMs) {
        while self.next().is_some_and(|next| next <= until) {
            self.run_next();
        }
        self.now = self.now.max(until);
    }

    pub fn run_late(&mut self, created: WallMs) {
        let next = self.next().unwrap();
        self.made(next, created);
    }

    /// The next times make no run.
    pub fn unfired(&mut self, count: u64, reason: UnfiredReason) {
        let Some(first) = self.next() else {
            return;
        };
        let mut last = first;
        for _ in 1..count {
            last = self
                .timeline(&self.calendars)
                .next_after(last)
                .unwrap_or(last);
        }
        let count = self
            .timeline(&self.calendars)
            .count(first.plus(-1), last, 100_000);
        self.unfired.push(Unfired {
            job: JobId(1),
            first,
            last,
            version: self.record.row.version,
            count,
            reason,
            server: Actor::new("one"),
        });
        self.decided(last);
    }

    pub fn pause(&mut self, at: WallMs) {
        self.record.row.paused = Some(Pause {
            at,
            actor: Actor::new("ana"),
        });
    }

    /// Everything up to the edit is decided.
    pub fn edit(&mut self, keys: &str, created: WallMs) {
        let version = JobVersion {
            version: self.record.row.version + 1,
            spec: spec(keys),
            created,
            ..self.record.version.clone()
        };
        self.record.row.version = version.version;
        self.record.version = version.clone();
        self.versions.push(version);
        let decided = self.record.schedule.fired_through.max(created);
        self.decided(decided);
    }

    pub fn forget_before(&mut self, at: WallMs) {
        self.runs.retain(|nominal, _| *nominal >= at);
        self.kept_since = at;
    }

    pub fn timeline<'a>(&'a self, calendars: &'a dyn Calendars) -> Timeline<'a> {
        Timeline::new(History {
            record: &self.record,
            versions: &self.versions,
            calendars,
            unfired: &self.unfired,
            kept_since: self.kept_since,
            now: self.now,
        })
    }

    pub fn explain(&self, from: WallMs, to: WallMs) -> Answer {
        self.timeline(&self.calendars)
            .explain(from, to, &self.runs, ROWS)
    }
}
