//! The kinds of rows beside jobs and runs: each a few columns and a packed body.

use std::collections::BTreeMap;

use drumtower_core::change::{ChangeSet, LetterChange};
use drumtower_core::model::{CalendarRef, IdempotencyEntry};

use super::apply::outlived;
use super::batch::{Batch, values};
use crate::read::death;
use crate::{Error, backfill_body, codec, columns, packed};

/// Hours of idempotency keys that share a part of their index.
pub const PART_MS: i64 = 6 * 3_600_000;

/// Adds versions, each one above the newest, and lets go of those that are no longer kept.
pub fn calendars(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if changes.calendars.is_empty() {
        return Ok(());
    }
    let mut spans = BTreeMap::<&CalendarRef, (u32, u32)>::new();
    let (mut namespaces, mut names, mut numbers, mut bodies) = (vec![], vec![], vec![], vec![]);
    for ((calendar, version), row) in &changes.calendars {
        let span = spans
            .entry(calendar)
            .or_insert((*version, version.wrapping_sub(1)));
        if span.1.wrapping_add(1) != *version {
            return Err(Error::Invariant(format!(
                "version {version} of the calendar {}/{} does not follow version {}",
                calendar.namespace, calendar.name, span.1
            )));
        }
        span.1 = *version;
        namespaces.push(calendar.namespace.as_str().to_owned());
        names.push(calendar.name.as_str().to_owned());
        numbers.push(i64::from(*version));
        bodies.push(codec::seal_calendar(row)?);
    }
    let (mut of, mut called, mut firsts, mut gone) = (vec![], vec![], vec![], vec![]);
    for (calendar, (first, last)) in spans {
        of.push(calendar.namespace.as_str().to_owned());
        called.push(calendar.name.as_str().to_owned());
        firsts.push(i64::from(first));
        gone.push(outlived(last));
    }
    let newest = "SELECT 1 FROM unnest($1::text[], $2::text[], $3::bigint[]) AS new(namespace, name, version)
                  WHERE new.version <> 1 + coalesce((SELECT max(version) FROM calendar
                    WHERE calendar.namespace = new.namespace AND calendar.name = new.name), 0)";
    let what = "versions of calendars that do not follow the newest";
    batch.expect(0, what, newest, values![of.clone(), called.clone(), firsts]);
    let insert = "INSERT INTO calendar SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])";
    let rows = names.len();
    batch.expect(
        rows,
        "versions of calendars",
        insert,
        values![namespaces, names, numbers, bodies],
    );
    let forget = "DELETE FROM calendar USING unnest($1::text[], $2::text[], $3::bigint[]) AS old(namespace, name, version)
                  WHERE calendar.namespace = old.namespace AND calendar.name = old.name AND calendar.version <= old.version";
    batch.add(forget, values![of, called, gone]);
    Ok(())
}

/// Segments that belong together: whoever says so first is right, and nobody takes it back.
pub fn ties(changes: &ChangeSet, batch: &mut Batch) {
    if !changes.ties.is_empty() {
        let segments: Vec<i16> = changes.ties.iter().map(|it| it.0 as i16).collect();
        let sql = "INSERT INTO tie SELECT unnest($1::smallint[]) ON CONFLICT DO NOTHING";
        batch.add(sql, values![segments]);
    }
}

pub fn checkpoints(changes: &ChangeSet, batch: &mut Batch) {
    let (mut runs, mut numbers, mut bodies, mut gone) = (vec![], vec![], vec![], vec![]);
    for (run, checkpoint) in &changes.checkpoints {
        match checkpoint {
            Some(checkpoint) => {
                runs.push(run.0 as i64);
                numbers.push(checkpoint.number as i64);
                bodies.push(checkpoint.body.to_vec());
            }
            None => gone.push(run.0 as i64),
        }
    }
    if !runs.is_empty() {
        let sql =
            "INSERT INTO checkpoint SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
                   ON CONFLICT (run) DO UPDATE SET number = excluded.number, body = excluded.body
                     WHERE checkpoint.number < excluded.number";
        let what = "checkpoints, which may not go back";
        batch.expect(runs.len(), what, sql, values![runs, numbers, bodies]);
    }
    if !gone.is_empty() {
        batch.add("DELETE FROM checkpoint WHERE run = ANY($1)", values![gone]);
    }
}

pub fn unfired(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if changes.unfired.is_empty() {
        return Ok(());
    }
    let (mut jobs, mut firsts, mut lasts, mut bodies) = (vec![], vec![], vec![], vec![]);
    for range in changes.unfired.values() {
        jobs.push(range.job.0 as i64);
        firsts.push(range.first.0);
        lasts.push(range.last.0);
        bodies.push(codec::seal(range)?);
    }
    let sql = "INSERT INTO unfired SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])
               ON CONFLICT (job, first) DO UPDATE SET last = excluded.last, body = excluded.body";
    batch.add(sql, values![jobs, firsts, lasts, bodies]);
    Ok(())
}

pub fn counters(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if changes.counters.is_empty() {
        return Ok(());
    }
    let (mut segments, mut namespaces, mut bodies) = (vec![], vec![], vec![]);
    for ((segment, namespace), counters) in &changes.counters {
        segments.push(segment.0 as i16);
        namespaces.push(namespace.as_str().to_owned());
        bodies.push(codec::seal(counters)?);
    }
    let sql = "INSERT INTO counter SELECT * FROM unnest($1::smallint[], $2::text[], $3::bytea[])
               ON CONFLICT (segment, namespace) DO UPDATE SET body = excluded.body";
    batch.add(sql, values![segments, namespaces, bodies]);
    Ok(())
}

/// The parts that keys of 24 hours before `created` lie in.
pub fn parts(created: i64) -> [i64; 5] {
    let newest = created.div_euclid(PART_MS);
    std::array::from_fn(|back| newest - back as i64)
}

pub fn keys(changes: &ChangeSet, batch: &mut Batch) {
    if changes.keys.is_empty() {
        return;
    }
    let (mut parts_, mut hashes, mut prints, mut runs, mut created) =
        (vec![], vec![], vec![], vec![], vec![]);
    for entry in changes.keys.values() {
        parts_.push(entry.created.0.div_euclid(PART_MS));
        hashes.push(entry.hash.0.to_vec());
        prints.push(entry.fingerprint.0.to_vec());
        runs.push(entry.run.0 as i64);
        created.push(entry.created.0);
    }
    // One made later by a clock that was set back takes the key too.
    let taken =
        "SELECT 1 FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS new(part, hash, created)
                 CROSS JOIN generate_series(-1, 4) AS back
                 JOIN idempotency AS old ON old.part = new.part - back AND old.hash = new.hash
                 WHERE new.created - old.created < $4";
    let kept = IdempotencyEntry::KEPT_MS;
    let what = "idempotency keys that are taken";
    batch.expect(
        0,
        what,
        taken,
        values![parts_.clone(), hashes.clone(), created.clone(), kept],
    );
    let insert = "INSERT INTO idempotency(part, hash, fingerprint, run, created)
                  SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])";
    let rows = runs.len();
    batch.expect(
        rows,
        "idempotency keys",
        insert,
        values![parts_, hashes, prints, runs, created],
    );
}

/// Rows under a name within a namespace.
#[derive(Default)]
struct Named {
    namespaces: Vec<String>,
    names: Vec<String>,
    bodies: Vec<Vec<u8>>,
    gone: (Vec<String>, Vec<String>),
}

impl Named {
    fn put(&mut self, namespace: &str, name: &str, body: Vec<u8>) {
        self.namespaces.push(namespace.to_owned());
        self.names.push(name.to_owned());
        self.bodies.push(body);
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        self.gone.0.push(namespace.to_owned());
        self.gone.1.push(name.to_owned());
    }

    fn add_to(self, batch: &mut Batch, put: &'static str, remove: &'static str) {
        if !self.names.is_empty() {
            batch.add(put, values![self.namespaces, self.names, self.bodies]);
        }
        if !self.gone.0.is_empty() {
            batch.add(remove, values![self.gone.0, self.gone.1]);
        }
    }
}

/// Rows that are put whole, in place of one under the same key, or taken away. One that came and went within the set never
/// had a row.
pub fn bodies(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    let (mut settings, mut queues, mut locks, mut drains) =
        <(Named, Named, Named, Named)>::default();
    for (key, row) in &changes.settings {
        let namespace = key.namespace.as_ref().map_or("", |it| it.as_str());
        settings.put(namespace, key.name.as_str(), codec::seal(row)?);
    }
    settings.add_to(
        batch,
        "INSERT INTO setting SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) ON CONFLICT (namespace, name) DO UPDATE SET body = excluded.body",
        "",
    );
    for (queue, row) in &changes.queues {
        queues.put(
            queue.namespace.as_str(),
            queue.name.as_str(),
            codec::seal_queue(row)?,
        );
    }
    queues.add_to(
        batch,
        "INSERT INTO queue SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) ON CONFLICT (namespace, name) DO UPDATE SET body = excluded.body",
        "",
    );
    for (lock, row) in &changes.locks {
        let (namespace, name) = (lock.namespace.as_str(), lock.name.as_str());
        match row {
            Some(row) => locks.put(namespace, name, codec::seal(row)?),
            None => locks.remove(namespace, name),
        }
    }
    locks.add_to(
        batch,
        "INSERT INTO lock SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) ON CONFLICT (namespace, name) DO UPDATE SET body = excluded.body",
        "DELETE FROM lock USING unnest($1::text[], $2::text[]) AS old(namespace, name) WHERE lock.namespace = old.namespace AND lock.name = old.name",
    );
    for (workers, row) in &changes.drains {
        let (name, namespace) = columns::drain_key(workers);
        match row {
            Some(row) => drains.put(namespace, name, codec::seal(row)?),
            None => drains.remove(namespace, name),
        }
    }
    drains.add_to(
        batch,
        "INSERT INTO drain(namespace, name, body) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) ON CONFLICT (name, namespace) DO UPDATE SET body = excluded.body",
        "DELETE FROM drain USING unnest($1::text[], $2::text[]) AS old(namespace, name) WHERE drain.namespace = old.namespace AND drain.name = old.name",
    );
    keyed(changes, batch)
}

/// Likewise, of those under a key of one column.
fn keyed(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if !changes.tokens.is_empty() {
        let ids: Vec<i64> = changes.tokens.keys().map(|id| id.0 as i64).collect();
        let bodies: Vec<Vec<u8>> = changes
            .tokens
            .values()
            .map(codec::seal)
            .collect::<Result<_, _>>()?;
        let sql = "INSERT INTO token SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT (id) DO UPDATE SET body = excluded.body";
        batch.add(sql, values![ids, bodies]);
    }
    if !changes.sweeps.is_empty() {
        let causes: Vec<String> = changes.sweeps.keys().map(columns::cause_key).collect();
        let bodies: Vec<Vec<u8>> = changes
            .sweeps
            .values()
            .map(codec::seal)
            .collect::<Result<_, _>>()?;
        let sql = "INSERT INTO sweep SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT (cause) DO UPDATE SET body = excluded.body";
        batch.add(sql, values![causes, bodies]);
    }
    let (mut gates, mut bodies, mut gone) = (vec![], vec![], vec![]);
    for (gate, row) in &changes.rates {
        match row {
            Some(row) => {
                gates.push(gate.to_string().into_bytes());
                bodies.push(codec::seal(row)?);
            }
            None => gone.push(gate.to_string().into_bytes()),
        }
    }
    if !gates.is_empty() {
        let sql = "INSERT INTO rate SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (gate) DO UPDATE SET body = excluded.body";
        batch.add(sql, values![gates, bodies]);
    }
    if !gone.is_empty() {
        batch.add("DELETE FROM rate WHERE gate = ANY($1)", values![gone]);
    }
    let (mut jobs, mut bodies, mut gone) = (vec![], vec![], vec![]);
    for (job, row) in &changes.breakers {
        match row {
            Some(row) => {
                jobs.push(job.0 as i64);
                bodies.push(codec::seal(row)?);
            }
            None => gone.push(job.0 as i64),
        }
    }
    if !jobs.is_empty() {
        let sql = "INSERT INTO breaker SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT (job) DO UPDATE SET body = excluded.body";
        batch.add(sql, values![jobs, bodies]);
    }
    if !gone.is_empty() {
        batch.add("DELETE FROM breaker WHERE job = ANY($1)", values![gone]);
    }
    if let Some(version) = &changes.tz_version {
        let sql = "UPDATE meta SET tz_version = $1";
        batch.expect(1, "the meta row", sql, values![version.clone()]);
    }
    Ok(())
}

pub fn audit(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if changes.audit.is_empty() {
        return Ok(());
    }
    let (mut ids, mut names, mut bodies) = (vec![], vec![], vec![]);
    for (id, entry) in &changes.audit {
        ids.push(id.0 as i64);
        names.push(entry.object.name.clone().into_bytes());
        bodies.push(codec::seal(entry)?);
    }
    let sql = "INSERT INTO audit_log SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])";
    batch.expect(
        ids.len(),
        "entries of the audit log",
        sql,
        values![ids, names, bodies],
    );
    Ok(())
}

pub fn letters(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    let (mut ids, mut jobs, mut namespaces, mut died) = (vec![], vec![], vec![], vec![]);
    let (mut reasons, mut bodies, mut params, mut results) = (vec![], vec![], vec![], vec![]);
    let mut gone = Vec::new();
    for (id, change) in &changes.letters {
        let LetterChange::Insert(run) = change else {
            gone.push(id.0 as i64);
            continue;
        };
        ids.push(id.0 as i64);
        jobs.push(run.job.0 as i64);
        namespaces.push(run.namespace.as_str().to_owned());
        died.push(death(run).0.0);
        reasons.push(columns::letter_reason(run).to_owned());
        bodies.push(packed::seal(run)?);
        params.push(packed::aside(run.params.as_ref()).map(columns::raw));
        results.push(packed::aside(run.result.as_ref()).map(columns::raw));
    }
    if !ids.is_empty() {
        let sql = "INSERT INTO dead_letter SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[])";
        let values = values![
            ids.clone(),
            jobs,
            namespaces,
            died,
            reasons,
            bodies,
            params,
            results
        ];
        batch.expect(ids.len(), "new dead letters", sql, values);
    }
    if !gone.is_empty() {
        let sql = "DELETE FROM dead_letter WHERE run = ANY($1)";
        batch.expect(gone.len(), "dead letters to remove", sql, values![gone]);
    }
    Ok(())
}

pub fn backfills(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    for new in [true, false] {
        let rows = changes.backfills.values();
        let rows: Vec<_> = rows
            .filter(|change| change.expected.is_none() == new)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let ids: Vec<i64> = rows.iter().map(|it| it.row.id.0 as i64).collect();
        let segments: Vec<i16> = rows
            .iter()
            .map(|it| it.row.job.segment().0 as i16)
            .collect();
        let namespaces: Vec<String> = rows
            .iter()
            .map(|it| it.row.namespace.as_str().to_owned())
            .collect();
        let jobs: Vec<i64> = rows.iter().map(|it| it.row.job.0 as i64).collect();
        let states: Vec<i16> = rows
            .iter()
            .map(|it| columns::backfill_state(it.row.state) as i16)
            .collect();
        let open: Vec<bool> = rows.iter().map(|it| it.row.is_open()).collect();
        let ended: Vec<Option<i64>> = rows.iter().map(|it| it.row.ended.map(|at| at.0)).collect();
        let steps: Vec<i64> = rows.iter().map(|it| it.row.step as i64).collect();
        let bodies: Vec<Vec<u8>> = rows
            .iter()
            .map(|it| backfill_body::seal(&it.row))
            .collect::<Result<_, _>>()?;
        if new {
            let sql = "INSERT INTO backfill SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bigint[], $5::smallint[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bytea[])";
            let values = values![
                ids, segments, namespaces, jobs, states, open, ended, steps, bodies
            ];
            batch.expect(rows.len(), "new backfills", sql, values);
        } else {
            let expected: Vec<Option<i64>> = rows
                .iter()
                .map(|it| it.expected.map(|step| step as i64))
                .collect();
            let sql = "UPDATE backfill SET namespace = new.namespace, job = new.job, state = new.state, open = new.open,
                         ended = new.ended, step = new.step, body = new.body
                       FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::smallint[], $5::boolean[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bigint[])
                         AS new(id, namespace, job, state, open, ended, step, body, expected)
                       WHERE backfill.id = new.id AND backfill.step = new.expected";
            let what = "backfills that stand where they should";
            let values = values![
                ids, namespaces, jobs, states, open, ended, steps, bodies, expected
            ];
            batch.expect(rows.len(), what, sql, values);
        }
    }
    Ok(())
}
