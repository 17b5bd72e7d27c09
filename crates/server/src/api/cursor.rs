//! Page cursors: opaque to callers, bound to the listing they come from, and sealed.
//!
//! A cursor is a place in an order, followed by a seal over the place, the path, the filter and a key that lies in the data
//! directory ([`FILE`]) and is shown to nobody. One that was changed, or that is used with another path or filter, is refused instead of skipping rows. Its
//! place chooses no namespace: the filter does. It outlives a restart, since the key does.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::query::Parameters;
use crate::auth::Secret;
use crate::auth::first_start::{Error, write_private};

/// Where the key lies, within the data directory.
pub const FILE: &str = "cursor.key";

const SEAL_BYTES: usize = 8;
const LONGEST: usize = 1024;

/// What seals the cursors of one store.
#[derive(Clone, Debug)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a data directory, drawn when there is none.
    pub fn kept(data: &Path) -> Result<Self, Error> {
        let path = data.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(Self::of(text.trim())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::File(path, error)),
        }
        let secret = Secret::draw().map_err(Error::Random)?;
        write_private(&path, secret.text())?;
        Ok(Self::of(secret.text()))
    }

    /// The key of servers that share a store: each takes what another has sealed.
    pub fn shared(secret: &[u8; 32]) -> Self {
        Self(digest(secret, std::iter::once("cursors")))
    }

    /// What seals the sessions of the console.
    pub fn of_sessions(&self) -> [u8; 32] {
        digest(&self.0, std::iter::once("sessions"))
    }

    fn of(secret: &str) -> Self {
        Self(digest(&[], ["cursors", secret].into_iter()))
    }
}

/// One listing, by everything that decides which rows it has.
pub struct Listing([u8; 32]);

impl Listing {
    pub fn new<'a>(key: &Key, parts: impl Iterator<Item = &'a str>) -> Self {
        Self(digest(&key.0, parts))
    }

    fn seal(&self, place: &str) -> [u8; SEAL_BYTES] {
        let mut seal = [0; SEAL_BYTES];
        seal.copy_from_slice(&digest(&self.0, std::iter::once(place))[..SEAL_BYTES]);
        seal
    }

    pub fn encode(&self, place: &str) -> String {
        let seal = self.seal(place);
        let bytes = place.bytes().chain(seal);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The place that [`encode`](Self::encode) was given.
    pub fn decode(&self, cursor: &str) -> Result<String, Problem> {
        let mut bytes = from_hex(cursor).ok_or_else(foreign)?;
        let cut = bytes.len().checked_sub(SEAL_BYTES).ok_or_else(foreign)?;
        let seal = bytes.split_off(cut);
        let place = String::from_utf8(bytes).map_err(|_| foreign())?;
        match self.seal(&place) == *seal {
            true => Ok(place),
            false => Err(foreign()),
        }
    }
}

impl Listing {
    /// The version that a cursor of a listing of versions, newest first, stands at; without one, above all.
    pub fn version_before(&self, parameters: &Parameters) -> Result<u32, Problem> {
        match parameters.text("cursor")? {
            Some(cursor) => self.decode(cursor)?.parse().map_err(|_| foreign()),
            None => Ok(u32::MAX),
        }
    }
}

/// Each part with its length, so that no two lists of parts look the same.
fn digest<'a>(key: &[u8], parts: impl Iterator<Item = &'a str>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(key);
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

/// What is said of a cursor that was not given out for this listing.
pub fn foreign() -> Problem {
    Problem::parameter(
        "cursor",
        "cursor: it does not come from this listing: use `next` of the page before, with the same filter",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(key: &str, parts: &[&str]) -> Listing {
        Listing::new(&Key::of(key), parts.iter().copied())
    }

    #[test]
    fn cursors_come_back_and_foreign_text_is_refused() {
        let own = listing("a", &["/jobs"]);
        assert_eq!(
            own.decode(&own.encode("default/a.b-c")).unwrap(),
            "default/a.b-c"
        );
        for text in ["", "0", "zz", "ff", "ä1", "+1", &"00".repeat(600)] {
            assert!(own.decode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_key_is_drawn_once_for_each_data_directory() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = Key::kept(one.path()).unwrap();
        assert_eq!(Key::kept(one.path()).unwrap().0, key.0);
        assert_ne!(Key::kept(other.path()).unwrap().0, key.0);
    }

    #[test]
    fn a_changed_cursor_is_refused_at_every_character() {
        let own = listing("a", &["/jobs"]);
        let cursor = own.encode("x/y");
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(own.decode(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn a_cursor_belongs_to_one_listing_of_one_store() {
        let cursor = listing("a", &["/jobs", "label", "x=y"]).encode("x/y");
        for other in [
            listing("b", &["/jobs", "label", "x=y"]),
            listing("a", &["/jobs", "label", "x=z"]),
            listing("a", &["/runs", "label", "x=y"]),
            listing("a", &["/jobs", "labelx=y"]),
        ] {
            assert!(other.decode(&cursor).is_err());
        }
    }
}
