//! Settings, and the audit log of what people changed.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{AuditEntry, AuditId, SettingRow};
use rusqlite::{Connection, Statement, params};

use super::apply::exactly_one;
use crate::read::AUDIT_SCAN;
use crate::{AuditFilter, AuditPage, Error, codec};

pub fn settings(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO setting VALUES(?1, ?2, ?3)")?;
    for (key, row) in &changes.settings {
        let namespace = key.namespace.as_ref().map_or("", |it| it.as_str());
        replace.execute(params![namespace, key.name.as_str(), codec::seal(row)?])?;
    }
    Ok(())
}

pub fn audit(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut insert = conn.prepare_cached("INSERT INTO audit_log VALUES(?1, ?2, ?3)")?;
    for (id, entry) in &changes.audit {
        let values = params![id.0 as i64, entry.object.name, codec::seal(entry)?];
        exactly_one(&mut insert, values, || format!("audit entry {id}"))?;
    }
    Ok(())
}

pub fn all_settings(conn: &Connection) -> Result<Vec<SettingRow>, Error> {
    let mut select = conn.prepare_cached("SELECT body FROM setting")?;
    let mut rows = select.query([])?;
    let mut settings: Vec<SettingRow> = Vec::new();
    while let Some(row) = rows.next()? {
        settings.push(codec::open(
            row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
        )?);
    }
    settings.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(settings)
}

/// Entries below an id, the newest first; a name is found by its index.
pub fn audit_page(
    conn: &Connection,
    filter: &AuditFilter,
    before: Option<AuditId>,
    limit: usize,
) -> Result<AuditPage, Error> {
    let below = before.map_or(i64::MAX, |id| i64::try_from(id.0).unwrap_or(i64::MAX));
    match &filter.name {
        Some(name) => {
            let sql = "SELECT id, body FROM audit_log WHERE name = ?2 AND id < ?1 ORDER BY id DESC";
            let mut select = conn.prepare_cached(sql)?;
            page(&mut select, params![below, name], filter, limit)
        }
        None => {
            let sql = "SELECT id, body FROM audit_log WHERE id < ?1 ORDER BY id DESC";
            let mut select = conn.prepare_cached(sql)?;
            page(&mut select, params![below], filter, limit)
        }
    }
}

fn page(
    select: &mut Statement<'_>,
    values: impl rusqlite::Params,
    filter: &AuditFilter,
    limit: usize,
) -> Result<AuditPage, Error> {
    let mut rows = select.query(values)?;
    let mut page = AuditPage::default();
    let (mut seen, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        if page.entries.len() >= limit || seen >= AUDIT_SCAN {
            page.next = last;
            break;
        }
        seen += 1;
        last = Some(AuditId(row.get::<_, i64>(0)? as u64));
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let entry: AuditEntry = codec::open(body)?;
        // Ids grow with time, but for what a step of the clock may do.
        if filter
            .since
            .is_some_and(|since| entry.at.since(since) < -DAY_MS)
        {
            break;
        }
        if filter.takes(&entry) {
            page.entries.push(entry);
        }
    }
    Ok(page)
}

const DAY_MS: i64 = 86_400_000;

/// Removes the oldest entries, as many as one step may.
pub fn prune_audit(conn: &Connection, first_kept: AuditId, limit: i64) -> Result<(), Error> {
    let sql = "DELETE FROM audit_log WHERE id IN
                 (SELECT id FROM audit_log WHERE id < ?1 ORDER BY id LIMIT ?2)";
    conn.prepare_cached(sql)?
        .execute([first_kept.0 as i64, limit])?;
    Ok(())
}
