//! What the store holds of a job's past, read for whoever accounts for its times: `explain`, backfills and their previews.

mod eras;
mod fates;

use drumtower_core::model::{JobRecord, JobVersion, WallMs};
use drumtower_store::{Error, Read};

pub use eras::Known;
pub use fates::{Preview, page, preview, schedule_of};

/// The versions in force from `from` on, oldest first.
pub fn versions(
    store: &dyn Read,
    record: &JobRecord,
    from: WallMs,
) -> Result<Vec<JobVersion>, Error> {
    let mut versions = vec![record.version.clone()];
    while let Some(oldest) = versions.last()
        && oldest.created >= from
        && oldest.version > 1
        && let Some(before) = store.job_version(record.row.id, oldest.version - 1)?
    {
        versions.push(before);
    }
    versions.reverse();
    Ok(versions)
}

/// Runs created before this may be gone.
pub fn kept_since(versions: &[JobVersion], now: WallMs) -> WallMs {
    let ages = versions
        .iter()
        .map(|version| version.spec.retention().age_ms());
    let since = ages.map(|age| age.map_or(WallMs(i64::MIN), |age| now.plus(-age)));
    since.min().unwrap_or(now)
}
