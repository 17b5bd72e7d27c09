//! The audit of a store whose servers have stopped, and its verdict.

use std::path::Path;

use drumtower_audit::check::{Journaled, Options};
use drumtower_core::model::{SessionId, WallMs};
use drumtower_store::{Address, Read, Store, sqlite};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};

/// What the audit has to know of a bench.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope {
    /// Until when schedules had to fire, in microseconds of the wall clock; `None` where there are none.
    pub until_us: Option<u64>,
    /// Whether everything has had the time to end.
    pub settled: bool,
    /// Whether the store holds runs that no worker of the bench carried out; those are of jobs of their own.
    pub has_a_past: bool,
}

pub struct Audited {
    pub report: drumtower_audit::Report,
    /// Commits of the servers' sessions; each is one number, and one fdatasync.
    pub commits: u64,
}

/// Compares the journals below `notes` with the store, and lets `read` look at the store too.
pub fn check<T>(
    data: &Path,
    address: &Address,
    notes: &Path,
    scope: Scope,
    read: impl FnOnce(&dyn Read) -> Result<T>,
) -> Result<(Audited, T)> {
    super::progress(|| "auditing".to_owned());
    let (mut writer, reader) = address.open(data, sqlite::Options::default())?;
    let commits = commits(writer.as_mut())?;
    let wall = |us: u64| WallMs(i64::try_from(us / 1000).unwrap_or(i64::MAX));
    let options = Options {
        now: scope.until_us.map(wall),
        grace_ms: 2_000,
        journaled: match scope.has_a_past {
            true => Journaled::Seen,
            false => Journaled::All,
        },
        settled: scope.settled,
        ..Options::default()
    };
    let journals = drumtower_audit::journal::files(notes)?;
    let report = drumtower_audit::check(&journals, reader.as_ref(), &options)?;
    let read = read(reader.as_ref())?;
    Ok((Audited { report, commits }, read))
}

/// The commits of all sessions that there were; those of servers that left are revoked and still there.
fn commits(store: &mut dyn Store) -> Result<u64> {
    let mut commits = 0;
    for id in 1.. {
        let Some(session) = store.session(SessionId(id))? else {
            break;
        };
        commits += session.seq;
    }
    Ok(commits)
}

/// What it looked at and what it found, with some examples.
pub fn value(report: &drumtower_audit::Report) -> Value {
    json!({
        "checked": report.checked,
        "early": report.early,
        "violations": report.counts.violations,
        "examples": report.violations.iter().take(10).collect::<Vec<_>>(),
    })
}

/// A bench whose audit found anything has failed, whatever its figures are. `report` has `lost`, `duplicated` and `audit`.
pub fn verdict(report: &Value) -> Result<()> {
    let broken = report["audit"]["violations"]
        .as_object()
        .is_some_and(|violations| !violations.is_empty());
    let count = |field: &str| report[field].as_u64().unwrap_or(0);
    if broken || count("lost") + count("duplicated") > 0 {
        let message = format!(
            "the audit found {} lost, {} doubled",
            count("lost"),
            count("duplicated")
        );
        return Err(Failure::failed(format!("{message}: {}", report["audit"])));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_audit_found_fails_the_bench() {
        let report = |lost: u32, violations: Value| json!({ "lost": lost, "duplicated": 0, "audit": { "violations": violations } });
        assert!(verdict(&report(0, json!({}))).is_ok());
        assert!(verdict(&report(1, json!({}))).is_err());
        assert!(verdict(&report(0, json!({ "V8": 1 }))).is_err());
    }
}
