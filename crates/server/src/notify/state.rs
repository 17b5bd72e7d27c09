//! What survives a restart: one small file in the data directory, replaced whole.
//!
//! It is written every few seconds while something changes, never on the way of a run. What happened after it was written
//! is read from the store again: so a message may come twice, under the same id, and none is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use drumtower_core::model::{JobId, RunId, WallMs};
use serde::{Deserialize, Serialize};

use super::group::Groups;
use super::outbox::Outbox;
use super::pairs;
use crate::auth::first_start::{self, write_private};

pub const FILE: &str = "notifications.json";
const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub version: u32,
    /// Everything that happened to runs until here was looked at.
    pub cursor: WallMs,
    /// Every instant of lateness until here was told.
    pub late_through: WallMs,
    /// When each failing job failed last.
    #[serde(with = "pairs")]
    pub failing: BTreeMap<JobId, WallMs>,
    /// The last runs that were told of.
    pub told: Vec<RunId>,
    pub groups: Groups,
    pub outbox: Outbox,
}

impl State {
    /// Nothing from before `now` is told.
    pub fn new(now: WallMs) -> Self {
        Self {
            version: VERSION,
            cursor: now,
            late_through: now,
            failing: BTreeMap::new(),
            told: Vec::new(),
            groups: Groups::default(),
            outbox: Outbox::default(),
        }
    }

    /// Reads the file; one that cannot be used is put aside, for what it held is worth less than a server that runs.
    pub fn load(data: &Path, now: WallMs) -> Self {
        let path = data.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::new(now),
            Err(error) => return Self::without(&path, now, &error),
        };
        match serde_json::from_str::<Self>(&text) {
            Ok(state) if state.version == VERSION => state,
            Ok(state) => Self::without(&path, now, &format!("version {}", state.version)),
            Err(error) => Self::without(&path, now, &error),
        }
    }

    fn without(path: &Path, now: WallMs, why: &dyn std::fmt::Display) -> Self {
        let aside = aside(path);
        let _ = fs::rename(path, &aside);
        tracing::error!(
            file = %path.display(), %why,
            "the state of notifications cannot be read: it is put aside and begun anew; messages may be missing"
        );
        Self::new(now)
    }

    pub fn save(&self, data: &Path) -> Result<(), first_start::Error> {
        let text = serde_json::to_string(self).unwrap_or_default();
        write_private(&data.join(FILE), &text)
    }
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("json.unreadable")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::tests_support::failure;

    #[test]
    fn it_comes_back_as_it_was() {
        let data = tempfile::tempdir().unwrap();
        let mut state = State::new(WallMs(5));
        state.failing.insert(JobId(7), WallMs(4));
        state.told.push(RunId(9));
        state.outbox.push(failure("a"), WallMs(5));
        state.save(data.path()).unwrap();
        let loaded = State::load(data.path(), WallMs(100));
        assert_eq!(loaded, state);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_put_aside() {
        let data = tempfile::tempdir().unwrap();
        for text in ["", "{", r#"{"version":9}"#, "\u{0}"] {
            fs::write(data.path().join(FILE), text).unwrap();
            assert_eq!(State::load(data.path(), WallMs(3)), State::new(WallMs(3)));
            assert!(!data.path().join(FILE).exists());
            assert!(data.path().join("notifications.json.unreadable").exists());
        }
    }
}
