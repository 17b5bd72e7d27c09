//! Backups that the server makes of itself: when asked, and by its own timetable.
//!
//! One is made at a time; the lock of the directory of backups sees to it, also against a command line beside the server.
//! By timetable: the first at once, then whenever a time of the timetable lies between the newest scheduled backup of this
//! store and now, so that a time that passed while the server was away is made up for. Other servers may use the same
//! directory. However the clock is set, one is never followed by the next before the time between them has really passed.
//! A failure is logged, counted and tried again after [`AGAIN`]; only after a success are old ones removed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use drumtower_core::schedule::{AnyDay, Schedule, ScheduleEntry, ScheduleSpec, parse_duration};
use drumtower_store::Address;
use drumtower_store::sqlite::backup::{self, Error, Found, Reason, Request};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// How often the timetable is looked at: a wall clock that is set is noticed within this time.
const LOOK: Duration = Duration::from_secs(15);
/// How long after a failure it is tried again.
const AGAIN: Duration = Duration::from_secs(300);
/// The shortest interval of a timetable.
const SHORTEST_MS: u64 = 60_000;

/// What the server does about backups.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where they lie; `backups` in the data directory unless given.
    pub directory: Option<PathBuf>,
    /// When they are made by themselves; never unless given.
    pub every: Option<Timetable>,
    /// How many scheduled ones are kept.
    pub keep: usize,
    /// Whether scheduled ones hold the output of runs.
    pub logs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directory: None,
            every: None,
            keep: 7,
            logs: false,
        }
    }
}

/// When backups are due: an interval such as `6h`, or a cron line in UTC.
#[derive(Clone, Debug)]
pub struct Timetable(Arc<Schedule>);

impl FromStr for Timetable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let interval = parse_duration(text);
        if matches!(interval, Ok(ms) if ms < SHORTEST_MS) {
            return Err(format!("`{text}` is too short: at least 1m"));
        }
        let mut entry = ScheduleEntry::default();
        match interval {
            Ok(_) => entry.every = Some(text.to_owned()),
            Err(_) => entry.cron = Some(text.to_owned()),
        }
        let spec = ScheduleSpec {
            entries: &[entry],
            calendar: None,
            jitter: None,
            bounds: None,
        };
        match Schedule::compile(&spec, &AnyDay) {
            Ok(Some(compiled)) => Ok(Self(Arc::new(compiled))),
            Ok(None) => Err(format!("`{text}` names no time")),
            Err(error) => Err(format!(
                "`{text}` is neither an interval such as `6h` nor a cron line: {error}"
            )),
        }
    }
}

impl Timetable {
    /// Whether a time has passed since the newest scheduled backup of this cluster.
    fn is_due(&self, found: &[Found], cluster: &str, now: Timestamp) -> bool {
        let newest = found
            .iter()
            .filter(|found| found.manifest.reason == Reason::Scheduled)
            .filter(|found| found.manifest.cluster == cluster)
            // A time in the future is the word of a clock that was set back since.
            .filter(|found| found.is_by(now))
            .filter_map(Found::created)
            .max();
        newest.is_none_or(|at| {
            let next = self.0.next_after(at.as_millisecond());
            next.is_some_and(|next| next <= now.as_millisecond())
        })
    }

    /// How long after one that was made at `now` the next may be made.
    fn rest(&self, now: Timestamp) -> Duration {
        let now = now.as_millisecond();
        let next = self.0.next_after(now).unwrap_or(now);
        Duration::from_millis(next.saturating_sub(now).unsigned_abs())
    }
}

/// What became of the backups of this process.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub made: u64,
    pub failed: u64,
    /// When the last one that succeeded was begun; with a timetable, also one of an earlier process.
    pub last_success: Option<Timestamp>,
    /// Why the last one failed, if it did.
    pub last_failure: Option<String>,
}

#[derive(Clone)]
pub struct Backups(Arc<Inner>);

struct Inner {
    data: PathBuf,
    /// Where the state is, if not in the data directory.
    elsewhere: Option<String>,
    cluster: String,
    directory: PathBuf,
    options: Options,
    status: Mutex<Status>,
    stopping: AtomicBool,
}

impl Backups {
    pub fn new(data: PathBuf, database: &Address, cluster: String, options: Options) -> Self {
        let directory = options.directory.clone();
        let directory = directory.unwrap_or_else(|| data.join(backup::DIRECTORY));
        Self(Arc::new(Inner {
            data,
            elsewhere: (!database.is_embedded()).then(|| database.to_string()),
            cluster,
            directory,
            options,
            status: Mutex::default(),
            stopping: AtomicBool::new(false),
        }))
    }

    pub fn status(&self) -> Status {
        let status = self.0.status.lock();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes one, also when whoever asked goes away meanwhile.
    pub async fn make(&self, reason: Reason, logs: bool) -> Result<Found, Error> {
        let this = self.clone();
        let made = tokio::task::spawn_blocking(move || this.make_now(reason, logs)).await;
        made.unwrap_or_else(|error| Err(drumtower_store::Error::Io(error.to_string()).into()))
    }

    fn make_now(&self, reason: Reason, logs: bool) -> Result<Found, Error> {
        let inner = &self.0;
        if let Some(database) = &inner.elsewhere {
            return Err(Error::Elsewhere(database.clone()));
        }
        let request = Request {
            data: inner.data.clone(),
            directory: inner.directory.clone(),
            reason,
            logs,
        };
        let made = backup::make(
            &request,
            &mut |_| match inner.stopping.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            },
        );
        self.note(&made);
        made
    }

    fn note(&self, made: &Result<Found, Error>) {
        let status = self.0.status.lock();
        let mut status = status.unwrap_or_else(PoisonError::into_inner);
        match made {
            Ok(found) => {
                status.made += 1;
                status.last_success = found.created();
                status.last_failure = None;
                let (name, bytes) = (&found.name, found.manifest.bytes());
                tracing::info!(%name, bytes, "a backup was made");
            }
            Err(Error::Busy(_) | Error::Stopped | Error::Elsewhere(_)) => {}
            Err(error) => {
                status.failed += 1;
                status.last_failure = Some(error.to_string());
                tracing::error!(%error, "a backup could not be made");
            }
        }
    }

    /// Every backup in the directory, oldest first.
    pub async fn list(&self) -> Result<Vec<Found>, Error> {
        let directory = self.0.directory.clone();
        let listed = tokio::task::spawn_blocking(move || backup::list(&directory)).await;
        listed.unwrap_or_else(|error| Err(drumtower_store::Error::Io(error.to_string()).into()))
    }

    /// Gives up the one that is being made.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    /// Makes them by the timetable, for ever.
    pub async fn follow(self) {
        let Some(timetable) = self.0.options.every.clone() else {
            return;
        };
        self.remember().await;
        let mut rests_until = Instant::now();
        loop {
            let pause = match self.is_due(&timetable, rests_until).await {
                Ok(false) => LOOK,
                Ok(true) if self.make_scheduled().await => {
                    rests_until = Instant::now() + timetable.rest(Timestamp::now());
                    LOOK
                }
                Ok(true) => AGAIN,
                Err(error) => {
                    tracing::error!(%error, "the backups cannot be listed");
                    AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn is_due(&self, timetable: &Timetable, rests_until: Instant) -> Result<bool, Error> {
        if Instant::now() < rests_until {
            return Ok(false);
        }
        let found = self.list().await?;
        Ok(timetable.is_due(&found, &self.0.cluster, Timestamp::now()))
    }

    /// What earlier processes made counts for how old the newest is.
    async fn remember(&self) {
        let now = Timestamp::now();
        let found = self.list().await.unwrap_or_default().into_iter();
        let own = found.filter(|found| found.manifest.cluster == self.0.cluster);
        let newest = own.filter(|found| found.is_by(now));
        let newest = newest.filter_map(|found| found.created()).max();
        let status = self.0.status.lock();
        let mut status = status.unwrap_or_else(PoisonError::into_inner);
        status.last_success = status.last_success.or(newest);
    }

    /// Whether it could be made. Old ones go only then.
    async fn make_scheduled(&self) -> bool {
        let made = self.make(Reason::Scheduled, self.0.options.logs).await;
        let Ok(found) = made else { return false };
        let (directory, keep) = (self.0.directory.clone(), self.0.options.keep);
        let kept = tokio::task::spawn_blocking(move || {
            backup::keep(&directory, &found.manifest.cluster, keep)
        });
        match kept.await {
            Ok(Ok(gone)) if gone.is_empty() => {}
            Ok(Ok(gone)) => tracing::info!(?gone, "old backups were removed"),
            Ok(Err(error)) => tracing::error!(%error, "old backups could not be removed"),
            Err(error) => tracing::error!(%error, "old backups could not be removed"),
        }
        true
    }
}

/// A backup as the API and the command line show it.
#[derive(Serialize, JsonSchema)]
pub struct Backup {
    pub name: String,
    /// Where it lies on the server's machine.
    pub path: String,
    /// When it was begun: everything acknowledged before is in it.
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    pub reason: Why,
    /// Whether the output of runs is in it.
    pub logs: bool,
    pub bytes: u64,
    /// The version of the program that made it.
    pub drumtower: String,
    pub schema_version: u32,
    pub cluster: String,
    pub counts: Counts,
}

/// Why it was made.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BackupReason")]
pub enum Why {
    Asked,
    Scheduled,
    Upgrade,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "BackupCounts")]
pub struct Counts {
    pub jobs: u64,
    pub live_runs: u64,
    pub finished_runs: u64,
    pub tokens: u64,
}

impl From<&Found> for Backup {
    fn from(found: &Found) -> Self {
        let manifest = &found.manifest;
        let counts = manifest.counts;
        Self {
            name: found.name.clone(),
            path: found.path.to_string_lossy().into_owned(),
            created: manifest.created.clone(),
            reason: match manifest.reason {
                Reason::Asked => Why::Asked,
                Reason::Scheduled => Why::Scheduled,
                Reason::Upgrade => Why::Upgrade,
            },
            logs: manifest.logs,
            bytes: manifest.bytes(),
            drumtower: manifest.drumtower.clone(),
            schema_version: manifest.schema_version,
            cluster: manifest.cluster.clone(),
            counts: Counts {
                jobs: counts.jobs,
                live_runs: counts.live_runs,
                finished_runs: counts.finished_runs,
                tokens: counts.tokens,
            },
        }
    }
}

/// The same as JSON.
pub fn shown(found: &Found) -> Value {
    json!(Backup::from(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timetable_is_an_interval_or_a_cron_line() {
        let six: Timetable = "6h".parse().unwrap();
        assert_eq!(six.0.next_after(0), Some(6 * 3_600_000));
        let nightly: Timetable = "30 2 * * *".parse().unwrap();
        assert_eq!(nightly.0.next_after(0), Some(2 * 3_600_000 + 1_800_000));
        for wrong in ["5s", "now and then", ""] {
            let refusal = wrong.parse::<Timetable>().unwrap_err();
            assert!(refusal.contains(wrong), "{refusal}");
        }
    }

    fn scheduled(cluster: &str, created: &str) -> Found {
        let manifest = json!({
            "format": 1, "drumtower": "0", "schema_version": 1, "cluster": cluster, "created": created,
            "reason": "scheduled", "logs": false, "session": 1, "seq": 1, "newest_log": 0, "files": [],
            "counts": {"jobs": 0, "live_runs": 0, "finished_runs": 0, "tokens": 0},
        });
        Found {
            name: created.to_owned(),
            path: PathBuf::from(created),
            manifest: serde_json::from_value(manifest).unwrap(),
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_backups_of_another_store_are_not_ours() {
        let six: Timetable = "6h".parse().unwrap();
        let now = at("2026-01-02T11:59:30Z");
        let theirs = scheduled("b", "2026-01-02T11:59:00Z");
        assert!(six.is_due(&[], "a", now));
        assert!(six.is_due(std::slice::from_ref(&theirs), "a", now));
        let ours = scheduled("a", "2026-01-02T10:00:00Z");
        assert!(!six.is_due(&[ours, theirs.clone()], "a", now));
        let ours = scheduled("a", "2026-01-02T05:00:00Z");
        assert!(six.is_due(&[ours, theirs], "a", now));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_one_and_no_more() {
        let six: Timetable = "6h".parse().unwrap();
        let now = at("2026-01-02T12:00:00Z");
        let future = scheduled("a", "2026-01-03T12:00:00Z");
        assert!(six.is_due(std::slice::from_ref(&future), "a", now));
        let made = scheduled("a", "2026-01-02T12:00:00Z");
        assert!(!six.is_due(&[made, future], "a", at("2026-01-02T12:00:15Z")));
    }

    #[tokio::test]
    async fn one_rests_by_a_clock_that_nobody_sets() {
        let six: Timetable = "6h".parse().unwrap();
        let rest = six.rest(at("2026-01-02T12:00:00Z"));
        assert_eq!(rest, Duration::from_secs(6 * 3_600));
        let empty = tempfile::tempdir().unwrap();
        let backups = Backups::new(
            empty.path().to_owned(),
            &Address::default(),
            "a".to_owned(),
            Options::default(),
        );
        assert!(backups.is_due(&six, Instant::now()).await.unwrap());
        assert!(!backups.is_due(&six, Instant::now() + rest).await.unwrap());
    }
}
