//! Rows as the model has them.

use drumtower_core::model::{JobId, NamespaceName, Run, RunId, SegmentSet};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use crate::packed::{self, Aside};
use crate::{Error, codec, columns};

/// A blob in a column, unpacked.
pub fn body<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Error> {
    codec::open(row.try_get(column)?)
}

pub fn namespace(row: &Row, column: usize) -> Result<NamespaceName, Error> {
    NamespaceName::new(row.try_get::<_, &str>(column)?)
        .map_err(|error| Error::Corrupt(error.to_string()))
}

/// Long payloads lie in columns of the row.
struct Beside<'a> {
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
}

impl Aside for Beside<'_> {
    fn params(&self, run: RunId) -> Result<String, Error> {
        columns::open_raw(self.params, run)
    }

    fn result(&self, run: RunId) -> Result<String, Error> {
        columns::open_raw(self.result, run)
    }
}

/// A run of the columns id, job, body, params, result.
pub fn run(row: &Row) -> Result<Run, Error> {
    let id = RunId(row.try_get::<_, i64>(0)? as u64);
    let job = JobId(row.try_get::<_, i64>(1)? as u64);
    let beside = Beside {
        params: row.try_get(3)?,
        result: row.try_get(4)?,
    };
    packed::open(id, job, row.try_get(2)?, &beside)
}

/// The segments that a statement is confined to; nothing stands for all.
pub fn within(segments: &SegmentSet) -> Option<Vec<i16>> {
    let list = || segments.iter().map(|it| it.0 as i16).collect();
    (!segments.is_all()).then(list)
}

/// The smallest key above `after`; every id is at least zero.
pub fn above(after: Option<u64>) -> i64 {
    after.map_or(-1, key)
}

/// A bound that no id of ours is above.
pub fn below(before: Option<u64>) -> i64 {
    before.map_or(i64::MAX, key)
}

/// An id as the database has it; one beyond is like the greatest, which nobody has.
pub fn key(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

pub fn rows_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
