//! The sorted blobs of a closed bucket: run ids with their finish numbers, and a job's run ids.
//!
//! A chunk holds up to [`PAIRS`] runs of the bucket in order of id, under its first id. A posting holds all runs of one job
//! in the bucket, in order of id. Both are differences as numbers of varying length, after the codec and format bytes.

use rusqlite::{Connection, OptionalExtension, params};

use crate::Error;
use crate::codec::{put_varint, take_varint};

pub const PAIRS: usize = 256;

const RAW: u8 = 0;
const FORMAT: u8 = 1;

/// Where a finished run lies in its class's history, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub fin: u64,
    pub verdict: u8,
}

/// Packs runs in order of id; `floor` is the bucket's first finish number.
pub fn pack_pairs(pairs: &[(u64, Spot)], floor: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + pairs.len() * 6);
    out.extend([RAW, FORMAT]);
    let mut last = pairs.first().map_or(0, |pair| pair.0);
    for (id, spot) in pairs {
        put_varint(&mut out, id - last);
        put_varint(
            &mut out,
            ((spot.fin - floor) << 2) | u64::from(spot.verdict),
        );
        last = *id;
    }
    out
}

pub fn open_pairs(first: u64, floor: u64, blob: &[u8]) -> Result<Vec<(u64, Spot)>, Error> {
    let mut bytes = body(blob)?;
    let mut pairs = Vec::with_capacity(PAIRS);
    let mut id = first;
    while !bytes.is_empty() {
        let (step, packed) = (number(&mut bytes)?, number(&mut bytes)?);
        id = id.wrapping_add(step);
        pairs.push((
            id,
            Spot {
                fin: floor.wrapping_add(packed >> 2),
                verdict: (packed & 3) as u8,
            },
        ));
    }
    Ok(pairs)
}

/// Packs a job's run ids, which are in order.
pub fn pack_ids(ids: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + ids.len() * 6);
    out.extend([RAW, FORMAT]);
    let mut last = 0;
    for id in ids {
        put_varint(&mut out, id - last);
        last = *id;
    }
    out
}

pub fn open_ids(blob: &[u8]) -> Result<Vec<u64>, Error> {
    let mut bytes = body(blob)?;
    let mut ids = Vec::new();
    let mut id = 0u64;
    while !bytes.is_empty() {
        id = id.wrapping_add(number(&mut bytes)?);
        ids.push(id);
    }
    Ok(ids)
}

fn body(blob: &[u8]) -> Result<&[u8], Error> {
    match blob {
        [RAW, FORMAT, rest @ ..] => Ok(rest),
        _ => Err(Error::Corrupt(
            "a bucket's blob has an unknown codec or format".to_owned(),
        )),
    }
}

fn number(bytes: &mut &[u8]) -> Result<u64, Error> {
    take_varint(bytes).ok_or_else(|| Error::Corrupt("a bucket's blob is cut".to_owned()))
}

/// The written bucket of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub class: usize,
    pub number: u64,
    /// Its first finish number.
    pub floor: u64,
}

/// The chunk that would hold the greatest id below `below`, in order of id.
pub fn chunk_below(
    conn: &Connection,
    bucket: Bucket,
    below: u64,
) -> Result<Vec<(u64, Spot)>, Error> {
    let mut select = conn.prepare_cached(
        "SELECT first, body FROM id_chunk WHERE class = ?1 AND bucket = ?2 AND first < ?3 ORDER BY first DESC LIMIT 1",
    )?;
    let below = i64::try_from(below).unwrap_or(i64::MAX);
    let mut rows = select.query(params![bucket.class as i64, bucket.number as i64, below])?;
    let Some(row) = rows.next()? else {
        return Ok(Vec::new());
    };
    open_pairs(
        row.get::<_, i64>(0)? as u64,
        bucket.floor,
        row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?,
    )
}

pub fn find(conn: &Connection, bucket: Bucket, id: u64) -> Result<Option<Spot>, Error> {
    let pairs = chunk_below(conn, bucket, id.saturating_add(1))?;
    Ok(pairs
        .binary_search_by_key(&id, |pair| pair.0)
        .ok()
        .map(|at| pairs[at].1))
}

/// The run ids of a job in a bucket, in order.
pub fn posting(conn: &Connection, bucket: Bucket, job: u64) -> Result<Vec<u64>, Error> {
    let mut select = conn
        .prepare_cached("SELECT body FROM posting WHERE class = ?1 AND bucket = ?2 AND job = ?3")?;
    let key = params![bucket.class as i64, bucket.number as i64, job as i64];
    let blob: Option<Vec<u8>> = select.query_row(key, |row| row.get(0)).optional()?;
    blob.map_or(Ok(Vec::new()), |blob| open_ids(&blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_ids_come_back() {
        let pairs = [5u64, 6, 1 << 40, (1 << 62) + 3].into_iter().enumerate();
        let pairs: Vec<_> = pairs
            .map(|(n, id)| {
                (
                    id,
                    Spot {
                        fin: 100 + n as u64 * 7,
                        verdict: (n % 3) as u8,
                    },
                )
            })
            .collect();
        assert_eq!(
            open_pairs(5, 100, &pack_pairs(&pairs, 100)).ok(),
            Some(pairs.clone())
        );
        let ids: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
        assert_eq!(open_ids(&pack_ids(&ids)).ok(), Some(ids));
    }
}
