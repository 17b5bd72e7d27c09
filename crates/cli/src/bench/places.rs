//! The directories of a bench whose store is made for the occasion: where the state lies, and where the journals do.

use std::path::{Path, PathBuf};

use drumtower_core::model::SegmentSet;
use drumtower_store::{Address, sqlite};

use super::room;
use crate::failure::{Failure, Result};
use crate::output::say;

/// Where the state is to be kept.
#[derive(Clone, Debug)]
enum Place {
    Directory(Option<PathBuf>),
    Database(Address),
}

fn parse_store(text: &str) -> Result<Place> {
    if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        return Ok(Place::Directory(Some(PathBuf::from(path))));
    }
    match text.parse::<Address>() {
        Ok(address) if !address.is_embedded() => Ok(Place::Database(address)),
        Ok(_) => Err(Failure::usage("--store: a store is written as sqlite:PATH")),
        Err(why) => Err(Failure::usage(format!("--store: {why}"))),
    }
}

pub struct Places {
    pub data: PathBuf,
    pub address: Address,
    /// The URL of the database, if the state is not in `data`.
    pub store: Option<String>,
    pub journals: PathBuf,
    /// Removed when dropped.
    _temporary: Vec<tempfile::TempDir>,
    /// Made by this bench in a place that the caller chose.
    made: Option<PathBuf>,
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            let _ = std::fs::remove_dir_all(made);
        }
    }
}

impl Places {
    /// As `--store`, `--journals` and `--keep` say. A store that holds anything is refused.
    pub fn new(store: Option<&str>, journals: Option<&Path>, keep: bool) -> Result<Self> {
        let mut temporary = Vec::new();
        let mut make = |inside: &Path| {
            let dir = room::temporary(inside, keep)?;
            let path = dir.path().to_owned();
            temporary.push(dir);
            Ok::<_, Failure>(path)
        };
        let journals = match journals {
            Some(journals) => make(journals)?,
            None => make(&room::in_memory())?,
        };
        let place = match store {
            Some(store) => parse_store(store)?,
            None => Place::Directory(None),
        };
        let (given, address) = match place {
            Place::Directory(given) => (given, Address::default()),
            Place::Database(address) => (None, address),
        };
        let data = match &given {
            Some(data) => data.clone(),
            None => make(&std::env::temp_dir())?.join("data"),
        };
        if std::fs::read_dir(&data).is_ok_and(|mut files| files.next().is_some()) {
            return Err(Failure::usage(format!("{} is not empty", data.display()))
                .remedy("name a directory that is not there yet"));
        }
        std::fs::create_dir_all(&data).map_err(|error| Failure::file(&data, &error))?;
        if !address.is_embedded() {
            refuse_full(&address, &data)?;
        }
        if keep {
            let (data, journals) = (data.display(), journals.display());
            say(&format!("store: {data}\njournals: {journals}"));
        }
        Ok(Self {
            store: store.filter(|_| !address.is_embedded()).map(str::to_owned),
            data,
            address,
            journals,
            _temporary: temporary,
            made: given.filter(|_| !keep),
        })
    }

    /// Refuses several servers where they have nothing to share.
    pub fn shared_by(&self, servers: u32) -> Result<()> {
        match &self.store {
            None if servers > 1 => Err(Failure::usage(
                "--servers: several need a database that they share",
            )
            .remedy("name an empty one with --store postgres://…")),
            _ => Ok(()),
        }
    }
}

fn refuse_full(address: &Address, data: &Path) -> Result<()> {
    let (_, reader) = address.open(data, sqlite::Options::default())?;
    match reader.jobs_by_id(&SegmentSet::ALL, None, 1)?.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(format!("{address} holds jobs already"))
            .remedy("name an empty database")),
    }
}
