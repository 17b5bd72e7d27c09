//! Ids: 64 bits that grow with time, so that rows are appended where the last one was.
//!
//! A run or job id is `creation ms since 2025 (42 bits) | segment (10) | counter (12)`: unique without a lookup, strictly
//! growing within its segment, an integer key in every database. As text it is a prefix and thirteen characters of
//! base 32 in an alphabet that sorts like the number. JSON always carries the text: the number outgrows JavaScript's.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::WallMs;

/// 2025-01-01T00:00:00Z in Unix milliseconds.
const EPOCH_MS: i64 = 1_735_689_600_000;
const SEGMENT_BITS: u32 = 10;
const COUNTER_BITS: u32 = 12;
const TEXT_LEN: usize = 13;
/// Crockford's alphabet in lower case: no i, l, o, u; sorts as the values do.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not a {kind} id: expected `{prefix}` and 13 characters of 0-9 a-z without i, l, o, u"
)]
pub struct IdError {
    given: String,
    kind: &'static str,
    prefix: &'static str,
}

/// The smallest raw id of `segment` at `at`.
pub(crate) fn raw_floor(at: WallMs, segment: SegmentId) -> u64 {
    let ms = u64::try_from(at.0.saturating_sub(EPOCH_MS)).unwrap_or(0) & ((1 << 42) - 1);
    (ms << (SEGMENT_BITS + COUNTER_BITS)) | (u64::from(segment.0) << COUNTER_BITS)
}

/// The raw id that follows `raw` within its segment: the next counter, or the next millisecond when it is used up.
pub(crate) fn raw_next(raw: u64) -> u64 {
    let counter_mask = (1 << COUNTER_BITS) - 1;
    if raw & counter_mask < counter_mask {
        raw + 1
    } else {
        let segment_and_counter = (1 << (SEGMENT_BITS + COUNTER_BITS)) - 1;
        let segment = raw & segment_and_counter & !counter_mask;
        (raw & !segment_and_counter) + (1 << (SEGMENT_BITS + COUNTER_BITS)) + segment
    }
}

/// The smallest id that `segment` draws at `at`, whatever it is an id of.
pub fn id_floor(at: WallMs, segment: SegmentId) -> u64 {
    raw_floor(at, segment)
}

/// When an id was made, as its maker's clock had it.
pub fn id_created_ms(raw: u64) -> WallMs {
    WallMs((raw >> (SEGMENT_BITS + COUNTER_BITS)) as i64 + EPOCH_MS)
}

/// The segment that an id belongs to.
pub fn id_segment(raw: u64) -> SegmentId {
    SegmentId(((raw >> COUNTER_BITS) & ((1 << SEGMENT_BITS) - 1)) as u16)
}

fn encode(raw: u64) -> [u8; TEXT_LEN] {
    let mut text = [b'0'; TEXT_LEN];
    for (place, slot) in text.iter_mut().rev().enumerate() {
        *slot = ALPHABET[((raw >> (5 * place)) & 31) as usize];
    }
    text
}

fn decode(text: &[u8]) -> Option<u64> {
    if text.len() != TEXT_LEN {
        return None;
    }
    let mut raw: u64 = 0;
    for byte in text {
        let digit = ALPHABET.iter().position(|letter| letter == byte)? as u64;
        raw = raw.checked_mul(32)?.checked_add(digit)?;
    }
    Some(raw)
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = encode(self.0);
                f.write_str($prefix)?;
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(|digits| decode(digits.as_bytes()))
                    .map(Self)
                    .ok_or_else(|| IdError { given: text.chars().take(64).collect(), kind: $kind, prefix: $prefix })
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            /// Thirteen characters hold one bit more than an id has, so the first of them ends at `f`.
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let pattern = concat!("^", $prefix, "[0-9a-f][0-9a-hjkmnp-tv-z]{12}$");
                json_schema!({"type": "string", "pattern": pattern})
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_u64(self.0) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    text.parse().map_err(serde::de::Error::custom)
                } else {
                    u64::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

text_id!(
    /// One execution of a job.
    RunId, "run_", "run"
);
text_id!(
    /// A job, for ever: names are reused, ids are not.
    JobId, "job_", "job"
);
text_id!(
    /// An API token. It names the token in listings; it is not the secret.
    TokenId, "tok_", "token"
);
text_id!(
    /// An entry of the audit log.
    AuditId, "aud_", "audit entry"
);
text_id!(
    /// A backfill.
    BackfillId, "bf_", "backfill"
);

impl BackfillId {
    pub fn segment(self) -> SegmentId {
        id_segment(self.0)
    }
}

impl RunId {
    pub fn segment(self) -> SegmentId {
        id_segment(self.0)
    }

    pub fn created(self) -> WallMs {
        id_created_ms(self.0)
    }
}

impl AuditId {
    /// The smallest id that an entry made at `at` can have.
    pub fn first_at(at: WallMs) -> Self {
        Self(raw_floor(at, SegmentId(0)))
    }
}

impl JobId {
    pub fn segment(self) -> SegmentId {
        id_segment(self.0)
    }
}

/// A slice of the job space, owned by one engine loop at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SegmentId(pub u16);

impl SegmentId {
    /// How many segments there are. The store's meta row repeats it and a server that disagrees refuses to start.
    pub const COUNT: u16 = 1024;
    /// The one whose owner keeps what all of them share.
    pub const HOME: Self = Self(0);

    /// The segment of a job, by its namespace and name.
    pub fn of(namespace: &str, job: &str) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(namespace.as_bytes());
        hasher.update(&[0]);
        hasher.update(job.as_bytes());
        Self((hasher.digest() % u64::from(Self::COUNT)) as u16)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);
    };
}

number!(
    /// The fence of a segment's owner: raised by every take-over.
    Epoch
);
number!(
    /// The fence of an attempt: grows strictly per run, per key and per segment. Handed to user code.
    Fence
);
number!(
    /// One life of one engine loop; never reused.
    SessionId
);
number!(
    /// A directory of output, drawn at random when it is made: where the output of an attempt lies. It stays the same when
    /// its server gets another name or address.
    Home
);
number!(
    /// One life of one worker process, drawn at random when it starts.
    ProcessId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_sorts_like_the_number_and_comes_back() {
        let raws = [0, 1, 31, 32, 1 << 40, u64::MAX >> 1, u64::MAX];
        let texts: Vec<String> = raws.iter().map(|raw| RunId(*raw).to_string()).collect();
        assert!(texts.is_sorted());
        for (raw, text) in raws.iter().zip(&texts) {
            assert_eq!(text.parse(), Ok(RunId(*raw)));
            assert_eq!(text.len(), 17);
        }
    }

    #[test]
    fn foreign_text_is_refused_with_a_remedy() {
        for text in [
            "",
            "run_",
            "run_zzzzzzzzzzzzz",
            "job_0000000000000",
            "run_000000000000i",
            "run_00000000000000",
        ] {
            let error = text.parse::<RunId>().expect_err(text);
            assert!(error.to_string().contains("run_"), "{error}");
        }
    }

    #[test]
    fn next_id_keeps_its_segment_and_carries_into_the_millisecond() {
        let segment = SegmentId(513);
        let mut raw = raw_floor(WallMs(EPOCH_MS + 7), segment);
        for _ in 0..5000 {
            let next = raw_next(raw);
            assert!(next > raw);
            assert_eq!(id_segment(next), segment);
            raw = next;
        }
        assert_eq!(id_created_ms(raw), WallMs(EPOCH_MS + 8));
    }
}
