//! How many runs of a job may be under way at once, and what becomes of one that would be too many.
//!
//! A run that counts does so from when it is made until it has ended, through all its attempts; one that waits in the queue
//! counts from its turn on. It keeps the key that it was made with, whatever is edited meanwhile.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{IdempotencyHash, JsonText, Limits, Origin, SpecError};

/// How a job's runs may overlap: a word such as `skip`, or a map that says more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    pub on_full: OnFull,
    pub limit: Option<u32>,
    pub key: Option<String>,
    pub depth: Option<u32>,
    pub keep: Option<Keep>,
}

/// What becomes of a due time when as many runs are under way as may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// The due time makes no run and is recorded with this reason.
    #[default]
    Skip,
    /// Every due time makes a run, however many there are.
    Allow,
    /// The run waits until another has ended.
    Queue,
    /// The oldest run is cancelled, and the new one starts when that one has ended.
    CancelOld,
    /// The due time makes a run that has failed.
    Fail,
}

impl OnFull {
    const WORDS: &[&str] = &["skip", "allow", "queue", "cancel_old", "fail"];

    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "skip" => Self::Skip,
            "allow" => Self::Allow,
            "queue" => Self::Queue,
            "cancel_old" => Self::CancelOld,
            "fail" => Self::Fail,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Allow => "allow",
            Self::Queue => "queue",
            Self::CancelOld => "cancel_old",
            Self::Fail => "fail",
        }
    }
}

/// Which runs stay when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Those that wait; the due time makes no run.
    #[default]
    Oldest,
    /// The new one; the one that has waited longest is cancelled.
    Newest,
}

/// The long form. An `Overlap` itself is written short where a word says it all.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Long {
    /// How many runs of the job, or of one key, may be under way; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
    /// A JSON pointer into the parameters, such as `/customer`: runs are counted apart for each value there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    key: Option<String>,
    /// What becomes of a run that would be too many: `skip`, `allow`, `queue`, `cancel_old` or `fail`; skip unless given.
    #[serde(default)]
    on_full: OnFull,
    /// How many runs may wait under `queue`; 100 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    depth: Option<u32>,
    /// Which runs stay when the queue is full: `oldest` or `newest`; oldest unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<Keep>,
}

impl From<OnFull> for Overlap {
    fn from(on_full: OnFull) -> Self {
        Self {
            on_full,
            ..Self::default()
        }
    }
}

impl Serialize for Overlap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Self::from(self.on_full) {
            return self.on_full.serialize(serializer);
        }
        let long = Long {
            limit: self.limit,
            key: self.key.clone(),
            on_full: self.on_full,
            depth: self.depth,
            keep: self.keep,
        };
        long.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Overlap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Overlap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`skip`, `allow`, `queue`, `cancel_old`, `fail`, or a map with `on_full`",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Overlap, E> {
                let on_full = OnFull::from_word(word);
                on_full
                    .map(Overlap::from)
                    .ok_or_else(|| E::unknown_variant(word, OnFull::WORDS))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Overlap, A::Error> {
                let long = Long::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Overlap {
                    on_full: long.on_full,
                    limit: long.limit,
                    key: long.key,
                    depth: long.depth,
                    keep: long.keep,
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Overlap {
    fn schema_name() -> Cow<'static, str> {
        "Overlap".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, long) = (
            generator.subschema_for::<OnFull>(),
            generator.subschema_for::<Long>(),
        );
        json_schema!({"oneOf": [word, long]})
    }
}

/// The same, read and with defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapPolicy {
    pub on_full: OnFull,
    pub limit: u32,
    pub depth: u32,
    pub keep: Keep,
    pointer: Option<String>,
}

impl Default for OverlapPolicy {
    fn default() -> Self {
        Self {
            on_full: OnFull::Skip,
            limit: 1,
            depth: Self::DEPTH,
            keep: Keep::Oldest,
            pointer: None,
        }
    }
}

/// Values of a key that are longer are told apart by a hash.
const KEY_BYTES: usize = 128;

impl OverlapPolicy {
    pub const DEPTH: u32 = 100;

    /// What a run with these parameters counts under; `None` is the job as a whole. Runs that lack the parameter share a
    /// key of their own.
    pub fn key_in(&self, params: Option<&JsonText>) -> Option<String> {
        let pointer = self.pointer.as_ref()?;
        let params = params.map(JsonText::to_value).unwrap_or_default();
        let text = match params.pointer(pointer) {
            Some(value) => value.to_string(),
            None => "null".to_owned(),
        };
        if text.len() <= KEY_BYTES {
            return Some(text);
        }
        let hash = IdempotencyHash::fingerprint(&[&text]);
        Some(format!("#{:032x}", u128::from_be_bytes(hash.0)))
    }

    /// The most that may be under way; `None` is any number.
    pub fn most(&self) -> Option<u32> {
        (self.on_full != OnFull::Allow).then_some(self.limit)
    }
}

impl Overlap {
    /// Reads it under the manifest's key `field`.
    pub fn parsed(&self, field: &str) -> Result<OverlapPolicy, SpecError> {
        let fault =
            |key: &str, message: String| Err(SpecError::new(format!("{field}.{key}"), message));
        if let Some(limit) = self.limit
            && (limit == 0 || limit > Limits::OVERLAP_RUNS)
        {
            let most = Limits::OVERLAP_RUNS;
            let message =
                format!("`{limit}` is not between 1 and {most}: to let nothing run, pause the job");
            return fault("limit", message);
        }
        let queues = self.on_full == OnFull::Queue;
        match self.depth {
            Some(0) => {
                let message =
                    "a queue of 0 holds nothing: write `on_full: skip`, or a depth from 1";
                return fault("depth", message.to_owned());
            }
            Some(depth) if depth > Limits::OVERLAP_QUEUE => {
                let most = Limits::OVERLAP_QUEUE;
                return fault("depth", format!("`{depth}` is not between 1 and {most}"));
            }
            _ => {}
        }
        for (key, given) in [
            ("depth", self.depth.is_some()),
            ("keep", self.keep.is_some()),
        ] {
            if given && !queues {
                let word = self.on_full.as_str();
                let message = format!("belongs to `on_full: queue`, not to `{word}`: leave it out");
                return fault(key, message);
            }
        }
        for (key, given) in [("limit", self.limit.is_some()), ("key", self.key.is_some())] {
            if given && self.on_full == OnFull::Allow {
                let message = "`on_full: allow` has no limit: leave it out, or choose another";
                return fault(key, message.to_owned());
            }
        }
        if let Some(pointer) = &self.key {
            check_pointer(pointer)
                .map_err(|message| SpecError::new(format!("{field}.key"), message))?;
        }
        Ok(OverlapPolicy {
            on_full: self.on_full,
            limit: self.limit.unwrap_or(1),
            depth: self.depth.unwrap_or(OverlapPolicy::DEPTH),
            keep: self.keep.unwrap_or_default(),
            pointer: self.key.clone(),
        })
    }
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    if pointer.len() > Limits::POINTER_BYTES {
        return Err(format!("may have {} bytes", Limits::POINTER_BYTES));
    }
    if !pointer.starts_with('/') {
        return Err(format!(
            "`{pointer}` is not a JSON pointer: begin it with `/`, as in `/customer`"
        ));
    }
    let mut after = pointer.split('~').skip(1);
    if after.any(|rest| !rest.starts_with(['0', '1'])) {
        return Err(format!(
            "`{pointer}` is not a JSON pointer: write `~` as `~0` and `/` in a name as `~1`"
        ));
    }
    Ok(())
}

/// Whether runs that somebody asked for have a part in the job's overlap: those of triggers, reruns, requeued dead letters
/// and backfills.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TriggerOverlap")]
pub enum Obedience {
    /// They neither hold back nor are held back.
    #[default]
    Ignore,
    /// They count, and are refused or wait when the job is full.
    Obey,
}

/// What a run is to the overlap of its job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Whether it is one of those that the limit counts.
    pub counts: bool,
    /// What it counts under; `None` is the job as a whole.
    pub key: Option<String>,
    /// It waits for its turn, and takes no place yet.
    pub queued: bool,
    /// A newer run is to take its place.
    pub superseded: bool,
}

impl Standing {
    /// That of a run of which nothing else is said: those of the schedule count, others do not.
    pub fn of(origin: Origin) -> Self {
        Self {
            counts: origin == Origin::Schedule,
            ..Self::default()
        }
    }
}

/// Runs of one key that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Those that the limit counts.
    pub live: u32,
    /// Those that wait for their turn.
    pub queued: u32,
}

/// Runs of a job that have not ended and have a standing in its overlap, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Those of the job as a whole.
    pub own: Places,
    pub keyed: BTreeMap<String, Places>,
}

impl Tallies {
    pub fn of(&self, key: Option<&str>) -> Places {
        match key {
            None => self.own,
            Some(key) => self.keyed.get(key).copied().unwrap_or_default(),
        }
    }

    /// Counts `runs` more of this standing.
    pub fn add(&mut self, standing: &Standing, runs: u32) {
        if standing.counts && runs > 0 {
            let places = match &standing.key {
                None => &mut self.own,
                Some(key) => self.keyed.entry(key.clone()).or_default(),
            };
            let count = match standing.queued {
                true => &mut places.queued,
                false => &mut places.live,
            };
            *count = count.saturating_add(runs);
        }
    }

    /// Counts one less of this standing; false when there was none.
    pub fn take(&mut self, standing: &Standing) -> bool {
        if !standing.counts {
            return true;
        }
        let places = match &standing.key {
            None => Some(&mut self.own),
            Some(key) => self.keyed.get_mut(key),
        };
        let Some(places) = places else {
            return false;
        };
        let count = match standing.queued {
            true => &mut places.queued,
            false => &mut places.live,
        };
        let there = *count > 0;
        *count = count.saturating_sub(1);
        if *places == Places::default()
            && let Some(key) = &standing.key
        {
            self.keyed.remove(key);
        }
        there
    }

    /// The keys under which runs wait.
    pub fn queues(&self) -> Vec<Option<String>> {
        let own = (self.own.queued > 0).then_some(None);
        let keyed = self.keyed.iter().filter(|(_, places)| places.queued > 0);
        own.into_iter()
            .chain(keyed.map(|(key, _)| Some(key.clone())))
            .collect()
    }

    /// Runs that wait, under whatever key.
    pub fn queued(&self) -> u32 {
        let keyed: u32 = self.keyed.values().map(|places| places.queued).sum();
        self.own.queued + keyed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<OverlapPolicy, String> {
        let overlap: Overlap = serde_json::from_value(value).map_err(|error| error.to_string())?;
        overlap.parsed("overlap").map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_says_it_all_and_is_written_back_as_a_word() {
        for word in OnFull::WORDS {
            let overlap: Overlap = serde_json::from_value(json!(word)).expect(word);
            assert_eq!(overlap.on_full.as_str(), *word);
            assert_eq!(json!(overlap), json!(word));
            assert_eq!(json!(overlap.on_full), json!(word));
        }
        let long = json!({"limit": 2, "key": "/customer", "on_full": "queue", "depth": 10, "keep": "newest"});
        let overlap: Overlap = serde_json::from_value(long.clone()).expect("a map");
        assert_eq!(json!(overlap), long);
        let short: Overlap = serde_json::from_value(json!({"on_full": "queue"})).expect("a map");
        assert_eq!(json!(short), json!("queue"));
    }

    #[test]
    fn defaults_are_those_of_the_words() {
        let queue = read(json!("queue")).expect("valid");
        assert_eq!(
            (queue.limit, queue.depth, queue.keep),
            (1, 100, Keep::Oldest)
        );
        assert_eq!(read(json!({})), read(json!("skip")));
        assert_eq!(read(json!("allow")).expect("valid").most(), None);
    }

    #[test]
    fn wrong_values_are_refused_with_the_remedy() {
        for (value, words) in [
            (json!("skpi"), "unknown variant `skpi`"),
            (json!(3), "expected `skip`"),
            (json!({"limits": 1}), "unknown field `limits`"),
            (
                json!({"limit": 0}),
                "overlap.limit: `0` is not between 1 and 10000",
            ),
            (json!({"limit": 10_001}), "overlap.limit: `10001`"),
            (
                json!({"on_full": "queue", "depth": 0}),
                "overlap.depth: a queue of 0 holds nothing: write `on_full: skip`",
            ),
            (
                json!({"on_full": "queue", "depth": 10_001}),
                "overlap.depth: `10001` is not between",
            ),
            (
                json!({"depth": 5}),
                "overlap.depth: belongs to `on_full: queue`, not to `skip`",
            ),
            (
                json!({"on_full": "fail", "keep": "newest"}),
                "overlap.keep: belongs to `on_full: queue`",
            ),
            (
                json!({"on_full": "allow", "limit": 2}),
                "overlap.limit: `on_full: allow` has no limit",
            ),
            (
                json!({"on_full": "allow", "key": "/a"}),
                "overlap.key: `on_full: allow` has no limit",
            ),
            (
                json!({"key": "customer"}),
                "overlap.key: `customer` is not a JSON pointer: begin it",
            ),
            (json!({"key": ""}), "overlap.key: `` is not a JSON pointer"),
            (
                json!({"key": "/a~2"}),
                "overlap.key: `/a~2` is not a JSON pointer: write `~` as `~0`",
            ),
            (
                json!({"key": format!("/{}", "x".repeat(256))}),
                "overlap.key: may have 256 bytes",
            ),
        ] {
            let said = read(value.clone()).expect_err(&value.to_string());
            assert!(said.contains(words), "{value}: {said}");
        }
    }

    #[test]
    fn keys_come_from_the_parameters() {
        let policy = read(json!({"key": "/a/b~1c"})).expect("valid");
        let key = |text: &str| {
            let params = JsonText::parse("params", text).expect("JSON");
            policy.key_in(Some(&params)).expect("a key")
        };
        assert_eq!(key(r#"{"a": {"b/c": "x y"}}"#), r#""x y""#);
        assert_eq!(key(r#"{"a": {"b/c": 7}}"#), "7");
        assert_eq!(key(r#"{"a": 7}"#), "null");
        assert_eq!(policy.key_in(None).as_deref(), Some("null"));
        let long = format!(r#"{{"a": {{"b/c": "{}"}}}}"#, "x".repeat(2000));
        assert!(key(&long).starts_with('#') && key(&long).len() == 33);
        assert_eq!(read(json!("skip")).expect("valid").key_in(None), None);
    }

    #[test]
    fn tallies_forget_keys_that_nobody_has() {
        let mut tallies = Tallies::default();
        let run = Standing {
            counts: true,
            key: Some("7".into()),
            ..Standing::default()
        };
        let waits = Standing {
            queued: true,
            ..run.clone()
        };
        tallies.add(&run, 1);
        tallies.add(&waits, 1);
        let both = Places { live: 1, queued: 1 };
        assert_eq!(
            (tallies.of(Some("7")), tallies.of(None)),
            (both, Places::default())
        );
        assert_eq!(tallies.queues(), [Some("7".to_owned())]);
        assert!(tallies.take(&waits) && !tallies.take(&waits) && tallies.take(&run));
        assert!(tallies.keyed.is_empty() && !tallies.take(&run));
    }
}
