//! Sessions that were signed out before their time.
//!
//! A session is a sealed cookie of which nothing is stored, so one that is to end alone must be remembered: by the digest of
//! its cookie, until it would have ended by itself. They lie in a file of the data directory, a line each, so that a
//! session that was signed out stays so over a restart. Servers that share a store have a file each, and whoever is asked to sign a
//! session out asks the others too. One that is not there does not learn of it: with that server the session ends with its
//! time or with its token.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drumtower_core::model::WallMs;
use ring::digest;

const NAME: &str = "ended-sessions";
/// Those that end first leave when there are more; nobody signs out so often in seven days.
const MOST: usize = 100_000;

/// When a session would have ended by itself, and the digest of its cookie.
type Line = (i64, String);

#[derive(Clone)]
pub struct Ended {
    place: Arc<PathBuf>,
    lines: Arc<Mutex<BTreeSet<Line>>>,
}

impl Ended {
    /// Reads what is kept in the data directory, and forgets what has ended meanwhile.
    pub fn open(data: &Path, now: WallMs) -> io::Result<Self> {
        let place = data.join(NAME);
        let text = match fs::read_to_string(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let kept = |line: &Line| line.0 > now.0;
        // A line that was cut short by a crash was never acknowledged.
        let lines: BTreeSet<Line> = text.lines().filter_map(read).filter(kept).collect();
        if text.lines().count() > lines.len() {
            rewrite(&place, &lines)?;
        }
        Ok(Self {
            place: Arc::new(place),
            lines: Arc::new(Mutex::new(lines)),
        })
    }

    /// Ends a session; when this returns it stays ended, whatever happens to the server.
    pub fn end(&self, cookie: &str, until: WallMs) -> io::Result<()> {
        let line = (until.0, digest_of(cookie));
        let mut lines = self.lock();
        if !lines.contains(&line) {
            let mut file = private(OpenOptions::new().append(true).create(true), &self.place)?;
            file.write_all(written(&line).as_bytes())?;
            file.sync_data()?;
            lines.insert(line);
        }
        while lines.len() > MOST {
            lines.pop_first();
        }
        Ok(())
    }

    pub fn has(&self, cookie: &str, until: WallMs) -> bool {
        let lines = self.lock();
        !lines.is_empty() && lines.contains(&(until.0, digest_of(cookie)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest_of(cookie: &str) -> String {
    let digest = digest::digest(&digest::SHA256, cookie.as_bytes());
    let bytes = digest.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn read(line: &str) -> Option<Line> {
    let (until, digest) = line.split_once(' ')?;
    let is_whole = digest.len() == 64;
    is_whole.then_some((until.parse().ok()?, digest.to_owned()))
}

fn written((until, digest): &Line) -> String {
    format!("{until} {digest}\n")
}

fn rewrite(place: &Path, lines: &BTreeSet<Line>) -> io::Result<()> {
    let aside = place.with_extension("new");
    let mut file = private(
        OpenOptions::new().write(true).create(true).truncate(true),
        &aside,
    )?;
    file.write_all(lines.iter().map(written).collect::<String>().as_bytes())?;
    file.sync_data()?;
    fs::rename(aside, place)
}

fn private(options: &mut OpenOptions, place: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_stays_ended_until_it_would_have_ended_by_itself() {
        let data = tempfile::tempdir().unwrap();
        let ended = Ended::open(data.path(), WallMs(0)).unwrap();
        ended.end("one", WallMs(100)).unwrap();
        ended.end("one", WallMs(100)).unwrap();
        ended.end("two", WallMs(200)).unwrap();
        assert!(ended.has("one", WallMs(100)) && !ended.has("three", WallMs(100)));
        let file = data.path().join(NAME);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
        // A crash in the middle of a line.
        let mut torn = OpenOptions::new().append(true).open(&file).unwrap();
        torn.write_all(b"300 abc").unwrap();
        let ended = Ended::open(data.path(), WallMs(150)).unwrap();
        assert!(!ended.has("one", WallMs(100)) && ended.has("two", WallMs(200)));
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
        ended.end("three", WallMs(300)).unwrap();
        let ended = Ended::open(data.path(), WallMs(150)).unwrap();
        assert!(ended.has("two", WallMs(200)) && ended.has("three", WallMs(300)));
    }
}
