//! Blobs: a codec byte (0 is raw), a format byte, then postcard.
//!
//! Definitions are JSON inside: a manifest leaves out what is not given, which only a self-describing form can read back.

use std::collections::BTreeMap;

use drumtower_core::model::{
    Actor, CalendarRef, CalendarSpec, CalendarVersion, JobId, JobSpec, JobVersion, JsonText,
    QueueRow, WallMs,
};
use serde::{Deserialize, Serialize};

use crate::Error;

const RAW: u8 = 0;
/// The format that each kind of blob is written in so far.
const FORMAT: u8 = 1;
/// Room for a run as most are, so that packing one allocates once.
const USUAL_BYTES: usize = 192;

pub fn seal<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut blob = Vec::with_capacity(USUAL_BYTES);
    blob.extend([RAW, FORMAT]);
    postcard::to_extend(value, blob)
        .map_err(|error| Error::Invariant(format!("a row cannot be packed: {error}")))
}

pub fn open<'a, T: Deserialize<'a>>(blob: &'a [u8]) -> Result<T, Error> {
    match blob {
        [RAW, FORMAT, packed @ ..] => postcard::from_bytes(packed)
            .map_err(|error| Error::Corrupt(format!("a packed row cannot be read: {error}"))),
        [RAW, format, ..] => Err(Error::Corrupt(format!(
            "a packed row has the unknown format {format}"
        ))),
        [codec, ..] => Err(Error::Corrupt(format!(
            "a packed row has the unknown codec {codec}"
        ))),
        [] => Err(Error::Corrupt("a packed row is empty".to_owned())),
    }
}

/// A value of a type that grew since the format was fixed: what came later follows the first part, and is missing where
/// there is none of it.
pub fn seal_growing<T: Serialize, L: Serialize>(value: &T, later: &[L]) -> Result<Vec<u8>, Error> {
    let blob = seal(value)?;
    if later.is_empty() {
        return Ok(blob);
    }
    postcard::to_extend(later, blob)
        .map_err(|error| Error::Invariant(format!("a row cannot be packed: {error}")))
}

/// Reads back what [`seal_growing`] wrote, or [`seal`].
pub fn open_growing<'a, T: Deserialize<'a>, L: Deserialize<'a>>(
    blob: &'a [u8],
) -> Result<(T, Vec<L>), Error> {
    let broken =
        |error: postcard::Error| Error::Corrupt(format!("a packed row cannot be read: {error}"));
    let [RAW, FORMAT, packed @ ..] = blob else {
        return open(blob).map(|value| (value, Vec::new()));
    };
    let (value, rest) = postcard::take_from_bytes(packed).map_err(broken)?;
    let later = match rest {
        [] => Vec::new(),
        rest => postcard::from_bytes(rest).map_err(broken)?,
    };
    Ok((value, later))
}

/// Parameters stay beside the JSON, because they are kept as the text they came in.
#[derive(Serialize, Deserialize)]
struct Definition<'a> {
    spec: &'a str,
    params: Option<&'a str>,
    created: WallMs,
    actor: Actor,
}

pub fn seal_version(version: &JobVersion) -> Result<Vec<u8>, Error> {
    let mut spec = version.spec.clone();
    let params = spec.params.take();
    let spec = serde_json::to_string(&spec)
        .map_err(|error| Error::Invariant(format!("a definition is no JSON: {error}")))?;
    let params = params.as_ref().map(JsonText::as_str);
    seal(&Definition {
        spec: &spec,
        params,
        created: version.created,
        actor: version.actor.clone(),
    })
}

pub fn open_version(job: JobId, version: u32, blob: &[u8]) -> Result<JobVersion, Error> {
    let packed: Definition<'_> = open(blob)?;
    let broken = |error: String| {
        Error::Corrupt(format!(
            "version {version} of {job} cannot be read: {error}"
        ))
    };
    let mut spec: JobSpec =
        serde_json::from_str(packed.spec).map_err(|error| broken(error.to_string()))?;
    spec.params = packed.params.map(json).transpose()?;
    Ok(JobVersion {
        job,
        version,
        spec,
        created: packed.created,
        actor: packed.actor,
    })
}

/// The labels alone, at a fraction of the cost: a listing by label looks at many definitions that it does not take.
pub fn open_labels(blob: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    #[derive(Deserialize)]
    struct Labelled {
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }
    let packed: Definition<'_> = open(blob)?;
    let spec: Labelled = serde_json::from_str(packed.spec)
        .map_err(|error| Error::Corrupt(format!("a definition cannot be read: {error}")))?;
    Ok(spec.labels)
}

#[derive(Serialize, Deserialize)]
struct Calendar<'a> {
    spec: &'a str,
    created: WallMs,
    actor: Actor,
    deleted: bool,
}

pub fn seal_calendar(version: &CalendarVersion) -> Result<Vec<u8>, Error> {
    let spec = serde_json::to_string(&version.spec)
        .map_err(|error| Error::Invariant(format!("a calendar is no JSON: {error}")))?;
    seal(&Calendar {
        spec: &spec,
        created: version.created,
        actor: version.actor.clone(),
        deleted: version.deleted,
    })
}

pub fn open_calendar(
    calendar: &CalendarRef,
    version: u32,
    blob: &[u8],
) -> Result<CalendarVersion, Error> {
    let packed: Calendar<'_> = open(blob)?;
    let spec: CalendarSpec = serde_json::from_str(packed.spec).map_err(|error| {
        let (namespace, name) = (&calendar.namespace, &calendar.name);
        Error::Corrupt(format!(
            "version {version} of the calendar {namespace}/{name} cannot be read: {error}"
        ))
    })?;
    Ok(CalendarVersion {
        version,
        spec,
        created: packed.created,
        actor: packed.actor,
        deleted: packed.deleted,
    })
}

pub fn seal_queue(row: &QueueRow) -> Result<Vec<u8>, Error> {
    let text = serde_json::to_string(row)
        .map_err(|error| Error::Invariant(format!("a queue is no JSON: {error}")))?;
    seal(&text)
}

pub fn open_queue(blob: &[u8]) -> Result<QueueRow, Error> {
    serde_json::from_str(open(blob)?).map_err(|error| Error::Corrupt(format!("a queue: {error}")))
}

/// Text that was checked before it was stored.
pub fn json(text: &str) -> Result<JsonText, Error> {
    JsonText::parse("a stored value", text).map_err(|error| Error::Corrupt(error.to_string()))
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one number off the front; `None` when the bytes end within it or it is too long.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for place in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(7 * place)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 300, 1 << 40, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut rest = bytes.as_slice();
            assert_eq!(take_varint(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
        assert_eq!(take_varint(&mut [0x80u8].as_slice()), None);
        assert_eq!(take_varint(&mut [0xffu8; 12].as_slice()), None);
    }

    #[test]
    fn foreign_blobs_are_refused() {
        for blob in [&[][..], &[1, 1, 0], &[0, 9, 0], &[0, 1]] {
            assert!(matches!(open::<u32>(blob), Err(Error::Corrupt(_))));
        }
    }
}
