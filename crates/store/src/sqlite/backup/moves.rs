//! The last part of a restore: what was there goes aside, what is ready goes in.
//!
//! The moves are written down, synced, before the first is made, so whoever repeats a restore that was interrupted makes
//! the rest of the same ones: what was there ends up in one directory, and nothing that is already in place is moved away.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::make::LOGS;
use super::manifest::Manifest;
use super::{Error, files};
use crate::failpoint;
use crate::sqlite::FILE;

/// How the names of directories begin into which what was there is moved.
pub(super) const ASIDE: &str = "replaced-";
/// What the stage is called while it is being removed: from then on the restore has ended.
pub(super) const DONE: &str = ".restored";
/// In the stage: it is whole, and these moves remain.
const READY: &str = "ready";
/// It names each file of a backup; more than this was not written by us.
const LARGEST: u64 = 32 << 20;

#[derive(Serialize, Deserialize)]
pub(super) struct Moves {
    backup: String,
    pub manifest: Manifest,
    /// The directory, within the data directory, for what was there.
    aside: String,
    /// What was there.
    occupants: Vec<String>,
}

impl Moves {
    pub fn new(backup: &Path, manifest: Manifest, data: &Path, occupants: Vec<String>) -> Self {
        let at = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let aside = (1..)
            .map(|number| format!("{ASIDE}{at}-{number}"))
            .find(|name| !exists(&data.join(name)))
            .unwrap_or_default();
        Self {
            backup: named(backup),
            manifest,
            aside,
            occupants,
        }
    }

    /// Those of an interrupted restore that had come so far.
    pub fn read(stage: &Path) -> Result<Option<Self>, Error> {
        let path = stage.join(READY);
        let wrong = |error| Error::file(&path, error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error)),
        };
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text).map_err(wrong)?;
        let moves: Self = serde_json::from_slice(&text).map_err(|error| wrong(error.into()))?;
        let foreign = |name: &&String| !is_plain(name);
        let named = moves.occupants.iter().chain([&moves.aside]).find(foreign);
        if let Some(name) = named {
            let why = format!("`{name}` is not the name of a file");
            return Err(wrong(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        Ok(Some(moves))
    }

    /// Says that the stage is whole.
    pub fn write(&self, stage: &Path) -> Result<(), Error> {
        let (path, part) = (stage.join(READY), stage.join("ready.part"));
        let text = serde_json::to_vec(self).map_err(|error| Error::file(&path, error.into()))?;
        let mut file = files::new_file(&part)?;
        file.write_all(&text)
            .and_then(|()| file.sync_all())
            .map_err(|error| Error::file(&part, error))?;
        files::rename(&part, &path)
    }

    pub fn is_from(&self, backup: &Path) -> bool {
        self.backup == named(backup)
    }

    /// Makes those that have not been made, and ends the restore. Says where what was there has gone.
    pub fn finish(&self, data: &Path, stage: &Path) -> Result<Option<PathBuf>, Error> {
        let aside = data.join(&self.aside);
        if !self.occupants.is_empty() {
            files::directory(&aside)?;
        }
        for name in &self.occupants {
            // What has gone aside may have a successor in its place.
            if !exists(&aside.join(name)) {
                make(&data.join(name), &aside.join(name))?;
            }
        }
        files::sync_directory(data)?;
        for name in [LOGS, FILE] {
            make(&stage.join(name), &data.join(name))?;
        }
        let done = data.join(DONE);
        if exists(&done) {
            fs::remove_dir_all(&done).map_err(|error| Error::file(&done, error))?;
        }
        files::rename(stage, &done)?;
        failpoint::hit("in_restore");
        fs::remove_dir_all(&done).map_err(|error| Error::file(&done, error))?;
        Ok((!self.occupants.is_empty()).then_some(aside))
    }
}

/// Whether some may have been made.
pub(super) fn are_under_way(stage: &Path) -> bool {
    exists(&stage.join(READY))
}

/// Moves what is there to be moved.
fn make(from: &Path, to: &Path) -> Result<(), Error> {
    if exists(from) {
        files::rename(from, to)?;
        failpoint::hit("in_restore");
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn named(backup: &Path) -> String {
    let path = std::path::absolute(backup);
    path.unwrap_or_else(|_| backup.to_owned())
        .to_string_lossy()
        .into_owned()
}

fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none()
}
