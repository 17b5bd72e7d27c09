//! Partitions of the history: made before the first run needs them, dropped whole when their last run is too old.
//!
//! They follow the database's clock. Each is made and dropped in a transaction of its own, which waits only briefly for
//! readers: what could not be done is tried again later, and meanwhile nothing is lost, because runs without a partition
//! lie in the rest.

use std::time::{Duration, Instant};

use drumtower_core::model::{Retention, SegmentId, SessionId, WallMs, id_floor};

use super::connect::Link;
use super::history;
use crate::Error;
use crate::columns::{CLASSES, class_of};

/// Between two looks at what there is.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// For how long a look waits behind readers, and others behind it.
const LOCK_MS: u32 = 100;

#[derive(Default)]
pub struct Partitions {
    /// Class, first id and the first id beyond.
    known: Vec<(usize, i64, i64)>,
    looked: Option<Instant>,
}

impl Partitions {
    pub fn look_again(&mut self) {
        self.looked = None;
    }

    fn is_fresh(&self) -> bool {
        self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY)
    }

    /// Sees that runs made now and in the next partition's time have a place.
    pub async fn make_ahead(&mut self, link: &Link, clock: WallMs) -> Result<(), Error> {
        if self.is_fresh() {
            return Ok(());
        }
        self.read(link).await?;
        let now = id_floor(clock, SegmentId(0));
        let mut made = false;
        for class in 0..CLASSES {
            let lower = history::lower(class, now);
            for lower in [lower, lower + history::length(class)] {
                let known = self.known.iter();
                if known
                    .clone()
                    .any(|it| it.0 == class && it.1 <= lower && lower < it.2)
                {
                    continue;
                }
                let upper = lower + history::length(class);
                let sql = format!("SELECT partition_make({class}::smallint, {lower}, {upper})");
                made |= alone(link, &sql).await?;
            }
        }
        if made {
            self.read(link).await?;
        }
        self.looked = Some(Instant::now());
        Ok(())
    }

    async fn read(&mut self, link: &Link) -> Result<(), Error> {
        let sql = "SELECT class, lower, upper FROM history_partition ORDER BY class, lower";
        self.known.clear();
        for row in link.rows(sql, &[]).await? {
            let class: i16 = row.try_get(0)?;
            let class = usize::try_from(class).unwrap_or(CLASSES);
            self.known.push((class, row.try_get(1)?, row.try_get(2)?));
        }
        Ok(())
    }

    /// Drops the oldest partition of which every run is older than its class is kept, if there is one.
    pub async fn drop_oldest(
        &mut self,
        link: &Link,
        session: SessionId,
        now: WallMs,
    ) -> Result<(), Error> {
        let old = |(class, _, upper): &&(usize, i64, i64)| {
            cut(*class, now).is_some_and(|cut| *upper <= cut)
        };
        let Some((class, lower, _)) = self.known.iter().find(old).copied() else {
            return Ok(());
        };
        let fence = format!(
            "SELECT 1 / count(*) FROM session WHERE id = {} AND NOT revoked",
            session.0
        );
        let sql = format!("{fence}; SELECT partition_drop({class}::smallint, {lower})");
        if alone(link, &sql).await? {
            self.known.retain(|it| (it.0, it.1) != (class, lower));
        }
        Ok(())
    }
}

/// Runs of a class below this id are older than they are kept.
pub fn cut(class: usize, now: WallMs) -> Option<i64> {
    let kept = Retention::ALL
        .into_iter()
        .find(|it| class_of(*it) == class)?;
    let oldest = now.plus(1 - kept.age_ms()?);
    Some(id_floor(oldest, SegmentId(0)) as i64)
}

/// Runs statements in a transaction of their own that waits briefly for locks. False when it had to wait too long, or when
/// another server was at the same.
async fn alone(link: &Link, sql: &str) -> Result<bool, Error> {
    let sql = format!("BEGIN; SET LOCAL lock_timeout = {LOCK_MS}; {sql}; COMMIT");
    let Err(error) = link.client().batch_execute(&sql).await else {
        return Ok(true);
    };
    let passing = [
        "55P03", "42P07", "42710", "23505", "40P01", "40001", "57014", "42P01", "22012",
    ];
    let code = error.code().map(|code| code.code().to_owned());
    if !link.is_closed() {
        link.client().batch_execute("ROLLBACK").await?;
    }
    match code {
        Some(code) if passing.contains(&code.as_str()) => Ok(false),
        _ => Err(error.into()),
    }
}
