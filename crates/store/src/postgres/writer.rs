//! The one writer of a server: sessions and commits.
//!
//! What it keeps in memory beside the rows (roll-ups that are gathered, the greatest ids it has seen) holds only while every
//! commit is answered with "done". After any other answer it is read anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drumtower_core::change::{ChangeSet, Prune, RunChange};
use drumtower_core::model::{Actor, Home, Member, SegmentId, SessionId, SessionRow, WallMs};
use tokio_postgres::Row;

use super::apply::{self, FENCE};
use super::batch::{Batch, values};
use super::connect::{Link, Runtime};
use super::partitions::Partitions;
use super::rollups::{self, Left, Rollups};
use super::target::Target;
use super::{Options, failure, prune};
use crate::{Commit, Error, Store, check, failpoint, retention};

/// Statements and open transactions end by then, however short a session is.
const SHORTEST_LIMIT_MS: i64 = 250;
/// Beyond what was asked for, one step of retention grows no further, so that the commit it is part of is not held up for long.
const PRUNE_MOST: usize = 20_000;

pub struct Writer {
    runtime: Arc<Runtime>,
    target: Target,
    options: Options,
    link: Option<Link>,
    /// The time limit that was set on the connection.
    limit_ms: i64,
    rollups: Option<Rollups>,
    ids: Option<SeenIds>,
    /// Sessions that are over may have left roll-ups.
    adopt: bool,
    partitions: Partitions,
    /// Rows that steps of retention may remove, put off since the last one.
    prune_rows: usize,
    /// How many times as many they may be. What is old was made by every server, and only one removes it: it takes twice as
    /// much each time that there was more.
    prune_times: usize,
    /// The last commit failed: the next one goes without.
    prune_rests: bool,
    pruned: Option<Instant>,
}

/// Ids above these were never stored, as far as this server has seen.
struct SeenIds {
    all: u64,
    by_segment: Vec<u64>,
}

impl SeenIds {
    fn is_new(&self, id: u64) -> bool {
        let segment = usize::from(drumtower_core::model::RunId(id).segment().0);
        id > self.all && id > self.by_segment[segment]
    }

    fn see(&mut self, changes: &ChangeSet) {
        for (id, change) in &changes.runs {
            if matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_)) {
                let seen = &mut self.by_segment[usize::from(id.segment().0)];
                *seen = id.0.max(*seen);
            }
        }
    }
}

impl Writer {
    pub(super) fn new(runtime: Arc<Runtime>, target: Target, options: Options) -> Self {
        Self {
            runtime,
            target,
            options,
            link: None,
            limit_ms: 0,
            rollups: None,
            ids: None,
            adopt: true,
            partitions: Partitions::default(),
            prune_rows: 0,
            prune_times: 1,
            prune_rests: false,
            pruned: None,
        }
    }

    /// Asks something on the writer's connection.
    fn ask<T>(
        &mut self,
        ask: impl AsyncFnOnce(&mut Self, &Link) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(async {
            let link = self.take_link().await?;
            let answer = ask(self, &link).await;
            if !link.is_closed() {
                self.link = Some(link);
            }
            answer
        })
    }

    /// The connection, which whoever is content puts back.
    async fn take_link(&mut self) -> Result<Link, Error> {
        if let Some(link) = self.link.take().filter(|link| !link.is_closed()) {
            return Ok(link);
        }
        self.limit_ms = 0;
        Link::open(&self.target, self.options.patience).await
    }

    /// Open transactions are over before half the session's time, so that one who is frozen holds nothing for long.
    async fn set_limits(&mut self, link: &Link, extend_ms: i64) -> Result<Duration, Error> {
        let limit_ms = (extend_ms / 4).max(SHORTEST_LIMIT_MS);
        if self.limit_ms != limit_ms {
            let sql = format!(
                "SET statement_timeout = {limit_ms}; SET lock_timeout = {limit_ms}; SET idle_in_transaction_session_timeout = {limit_ms}"
            );
            link.client().batch_execute(&sql).await?;
            self.limit_ms = limit_ms;
        }
        Ok(Duration::from_millis(limit_ms.unsigned_abs() * 2))
    }

    async fn try_commit(&mut self, link: &Link, changes: &ChangeSet) -> Result<Commit, Error> {
        let limit = self.set_limits(link, changes.extend_ms).await?;
        self.remember(link, changes.session).await?;
        let left = match self.adopt {
            true => rollups::left(link, changes.session).await?,
            false => Left::default(),
        };
        let prune = self.due_prune(changes.prune);
        if let Some(prune) = &prune {
            // What cannot be dropped now is tried again, and holds up nobody.
            let partitions = &mut self.partitions;
            let _ = partitions
                .drop_oldest(link, changes.session, prune.now)
                .await;
        }
        let (Some(kept), Some(ids)) = (&self.rollups, &self.ids) else {
            return Err(Error::Io("what the writer keeps was not read".to_owned()));
        };
        let mut batch = Batch::default();
        let finished = apply::everything(changes, |id| ids.is_new(id), &mut batch)?;
        finished.tallies.add_to(changes.session.0, &mut batch);
        let oldest = prune.map(|prune| retention::oldest_minute(prune.now));
        let step = kept.write(&mut batch, changes.seq, finished.samples, left, oldest)?;
        if let Some(prune) = &prune {
            prune::small_steps(prune, changes.seq, &mut batch);
            prune::rollups(prune, &mut batch);
        }
        let fence = values![
            changes.session.0 as i64,
            changes.seq as i64,
            changes.extend_ms,
            !changes.segments.is_empty()
        ];
        let transacting = async {
            let Some(through) = batch.send(link, (FENCE, fence)).await? else {
                return Ok(None);
            };
            if let Some(prune) = &prune {
                prune::rest(link, prune, changes.seq).await?;
            }
            Ok::<_, Error>(Some(through))
        };
        let transacted = tokio::time::timeout(limit, transacting).await;
        let transacted = transacted.unwrap_or_else(|_| {
            let ms = limit.as_millis();
            Err(Error::Busy(format!(
                "a commit took more than {ms} ms and was given up"
            )))
        });
        let Some(through) = transacted? else {
            link.client().batch_execute("ROLLBACK").await?;
            return Ok(Commit::Fenced);
        };
        failpoint::hit("before_commit");
        let committing = link.client().batch_execute("COMMIT");
        match tokio::time::timeout(self.options.patience, committing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failure::at_commit(&error)),
            Err(_) => return Err(Error::Unknown("COMMIT was not answered in time".to_owned())),
        }
        failpoint::hit("after_commit");
        self.settle(changes, step, prune.map(|_| through.more_is_old));
        let expires: i64 = through.fence.try_get(0)?;
        let clock = WallMs(expires).plus(-changes.extend_ms);
        // It is tried again with a later commit; runs have a place without it.
        let _ = self.partitions.make_ahead(link, clock).await;
        Ok(Commit::Done)
    }

    /// Whether the connection can be used again; what is not known to be over ends with it.
    async fn is_well(&self, link: &Link, outcome: &Result<Commit, Error>) -> bool {
        match outcome {
            Ok(_) => !link.is_closed(),
            Err(Error::Invariant(_) | Error::Busy(_)) if !link.is_closed() => {
                let rolling_back = link.client().batch_execute("ROLLBACK");
                let rolled_back = tokio::time::timeout(self.options.patience, rolling_back).await;
                matches!(rolled_back, Ok(Ok(())))
            }
            Err(_) => false,
        }
    }

    /// Reads anew what is kept in memory, if it is not known to hold.
    async fn remember(&mut self, link: &Link, session: SessionId) -> Result<(), Error> {
        if !self.rollups.as_ref().is_some_and(|it| it.is_of(session)) {
            self.rollups = Some(Rollups::load(link, session, &self.options).await?);
        }
        if self.ids.is_none() {
            let sql = "SELECT greatest((SELECT max(id) FROM run), (SELECT max(id) FROM history_1d), (SELECT max(id) FROM history_7d),
                         (SELECT max(id) FROM history_30d), (SELECT max(id) FROM history_keep))";
            let rows = link.rows(sql, &[]).await?;
            let greatest = rows.first().map(|row| row.try_get::<_, Option<i64>>(0));
            let greatest = greatest.transpose()?.flatten().unwrap_or(0);
            self.ids = Some(SeenIds {
                all: greatest as u64,
                by_segment: vec![0; usize::from(SegmentId::COUNT)],
            });
        }
        Ok(())
    }

    /// Nothing that is kept in memory is known to hold.
    fn forget(&mut self) {
        (self.rollups, self.ids, self.adopt) = (None, None, true);
    }

    /// The step of retention that this commit does: those that were put off, in one.
    fn due_prune(&mut self, prune: Option<Prune>) -> Option<Prune> {
        let prune = prune?;
        if std::mem::take(&mut self.prune_rests) {
            return None;
        }
        self.prune_rows = self.prune_rows.saturating_add(prune.limit);
        let due = self
            .pruned
            .is_none_or(|at| at.elapsed() >= self.options.prune_every);
        due.then_some(Prune {
            limit: step_of_retention(self.prune_rows, self.prune_times),
            ..prune
        })
    }

    /// `pruned` says of a step of retention whether there is more to remove.
    fn settle(&mut self, changes: &ChangeSet, step: rollups::Step, pruned: Option<bool>) {
        if let Some(more) = pruned {
            (self.prune_rows, self.pruned) = (0, Some(Instant::now()));
            self.prune_times = match more {
                true => (self.prune_times * 2).min(PRUNE_MOST),
                false => 1,
            };
        }
        if let Some(rollups) = &mut self.rollups {
            rollups.settle(step);
        }
        if let Some(ids) = &mut self.ids {
            ids.see(changes);
        }
        self.adopt = false;
        // Whoever was deposed may have stored until now.
        if !changes.revoke.is_empty() {
            (self.adopt, self.ids) = (true, None);
        }
    }
}

/// How many rows of a table one step may remove: what was asked for, and more while more is old.
fn step_of_retention(asked: usize, times: usize) -> usize {
    asked.saturating_mul(times).min(PRUNE_MOST.max(asked))
}

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl Store for Writer {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.ask(async |_, link| first(link.rows(CLOCK, &[]).await?, clock))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.forget();
        self.partitions.look_again();
        self.ask(async |writer, link| {
            writer.set_limits(link, extend_ms).await?;
            let now = first(link.rows(CLOCK, &[]).await?, clock)?;
            writer.partitions.make_ahead(link, now).await?;
            let sql = "INSERT INTO session(server, address, version, home, lease, seq, expires, revoked)
                       VALUES($1, $2, $3, $4, $6, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $5::bigint, false) RETURNING id";
            let server: &str = &member.server.0;
            let home = member.home.map(|home| home.0 as i64);
            let lease = i64::try_from(member.lease_ms).unwrap_or(i64::MAX);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&server, &member.address, &member.version, &home, &extend_ms, &lease];
            let made = |row: &Row| Ok(SessionId(row.try_get::<_, i64>(0)? as u64));
            first(link.rows(sql, &values).await?, made)
        })
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        check::shape(changes)?;
        let outcome = self.runtime.clone().block_on(async {
            let link = self.take_link().await?;
            let outcome = self.try_commit(&link, changes).await;
            if self.is_well(&link, &outcome).await {
                self.link = Some(link);
            }
            outcome
        });
        if !matches!(outcome, Ok(Commit::Done)) {
            self.forget();
            // The same set comes again, and must not fail once more for what retention adds to it.
            (self.prune_times, self.prune_rests) = (1, true);
        }
        outcome
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        let Ok(id) = i64::try_from(id.0) else {
            return Ok(None);
        };
        let sql = "SELECT id, server, address, version, seq, expires, revoked, home, took, lease FROM session WHERE id = $1";
        self.ask(async |_, link| {
            let rows = link.rows(sql, &[&id]).await?;
            rows.first().map(session_row).transpose()
        })
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        let sql = "SELECT id, server, address, version, seq, expires, revoked, home, took, lease FROM session WHERE NOT revoked ORDER BY id";
        self.ask(async |_, link| link.rows(sql, &[]).await?.iter().map(session_row).collect())
    }

    fn close(&mut self) -> Result<(), Error> {
        self.link = None;
        Ok(())
    }
}

fn first<T>(rows: Vec<Row>, read: impl FnOnce(&Row) -> Result<T, Error>) -> Result<T, Error> {
    match rows.first() {
        Some(row) => read(row),
        None => Err(Error::Io("the server answered with no row".to_owned())),
    }
}

fn clock(row: &Row) -> Result<WallMs, Error> {
    Ok(WallMs(row.try_get(0)?))
}

pub(super) fn session_row(row: &Row) -> Result<SessionRow, Error> {
    Ok(SessionRow {
        id: SessionId(row.try_get::<_, i64>(0)? as u64),
        member: Member {
            server: Actor::new(row.try_get::<_, &str>(1)?),
            address: row.try_get(2)?,
            version: row.try_get(3)?,
            home: row.try_get::<_, Option<i64>>(7)?.map(|it| Home(it as u64)),
            lease_ms: row.try_get::<_, i64>(9)? as u64,
        },
        seq: row.try_get::<_, i64>(4)? as u64,
        expires: WallMs(row.try_get(5)?),
        revoked: row.try_get(6)?,
        took: row.try_get::<_, Option<i64>>(8)?.map(WallMs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_retention_grows_to_a_bound_and_never_falls_below_what_was_asked_for() {
        assert_eq!(step_of_retention(64, 1), 64);
        assert_eq!(step_of_retention(64, 8), 512);
        assert_eq!(step_of_retention(64, PRUNE_MOST), PRUNE_MOST);
        assert_eq!(step_of_retention(80_000, 1), 80_000);
        assert_eq!(step_of_retention(80_000, 4), 80_000);
    }
}
