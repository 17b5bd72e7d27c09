//! What a backup says of itself: `manifest.json`, written last and synced before the backup gets its name.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::inspect::Contents;
use super::{Error, MANIFEST, files};

/// The form of backups that this program writes and reads.
const FORMAT: u32 = 1;
/// A manifest has a line for each file; more than this was not written by us.
const LARGEST: u64 = 16 << 20;

/// Why a backup was made. Only scheduled ones are ever removed by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Asked,
    Scheduled,
    Upgrade,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub jobs: u64,
    pub live_runs: u64,
    pub finished_runs: u64,
    pub tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the backup, with `/`.
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The version of the program that made it.
    pub drumtower: String,
    pub schema_version: u32,
    pub cluster: String,
    /// When it was begun: everything acknowledged before is in it. RFC 3339.
    pub created: String,
    pub reason: Reason,
    /// Whether the output of runs is in it.
    pub logs: bool,
    pub counts: Counts,
    /// The newest session and its last commit.
    pub session: u64,
    pub seq: u64,
    /// The number of the newest file of output, in the backup or not: numbers are not used again.
    pub newest_log: u32,
    pub files: Vec<FileEntry>,
}

impl Manifest {
    pub(super) fn new(contents: Contents, created: String, reason: Reason) -> Self {
        Self {
            format: FORMAT,
            drumtower: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: contents.schema_version,
            cluster: contents.cluster,
            created,
            reason,
            logs: false,
            counts: contents.counts,
            session: contents.session,
            seq: contents.seq,
            newest_log: 0,
            files: Vec::new(),
        }
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn agrees_with(&self, backup: &Path, contents: &Contents) -> Result<(), Error> {
        let mine = (&self.cluster, self.schema_version, self.counts);
        let found = (&contents.cluster, contents.schema_version, contents.counts);
        if mine == found {
            return Ok(());
        }
        Err(Error::Damaged {
            backup: backup.to_owned(),
            why: format!("its manifest speaks of {mine:?}, its database holds {found:?}"),
        })
    }
}

pub(super) fn write(backup: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = backup.join(MANIFEST);
    let mut text =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::file(&path, error.into()))?;
    text.push(b'\n');
    let mut file = files::new_file(&path)?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(|error| Error::file(&path, error))
}

pub(super) fn read(backup: &Path) -> Result<Manifest, Error> {
    let refuse = |why: String| Error::NotABackup {
        path: backup.to_owned(),
        why,
    };
    let path = backup.join(MANIFEST);
    let file = File::open(&path)
        .map_err(|error| refuse(format!("its {MANIFEST} cannot be read: {error}")))?;
    let mut text = Vec::new();
    file.take(LARGEST)
        .read_to_end(&mut text)
        .map_err(|error| Error::file(&path, error))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("its {MANIFEST} is not understood: {error}")))?;
    if manifest.format != FORMAT {
        let found = manifest.format;
        return Err(refuse(format!(
            "its format is {found}, this program knows {FORMAT}: use a newer drumtower"
        )));
    }
    if let Some(entry) = manifest.files.iter().find(|entry| !is_below(&entry.path)) {
        return Err(refuse(format!("its file `{}` lies outside", entry.path)));
    }
    if !manifest
        .files
        .iter()
        .any(|entry| entry.path == super::super::FILE)
    {
        return Err(refuse("it lists no database".to_owned()));
    }
    Ok(manifest)
}

/// A manifest may come from anywhere: nothing it names may lead out of the backup.
fn is_below(path: &str) -> bool {
    !path.is_empty()
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}
