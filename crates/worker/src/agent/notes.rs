//! Brings what a command writes about itself to the server: its progress, looked at once a second, and its checkpoint, at
//! most every five seconds and once more when the attempt has ended without success.
//!
//! A checkpoint that was put in place by a rename is whole and taken at once. One that is written in place is taken when it
//! has not changed from one look to the next; that a command died while it wrote cannot be seen.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use drumtower_core::model::Limits;
use drumtower_sdk::executor::{Notes, Output, OutputStream};
use tokio::time::{Instant, sleep};

use crate::supervisor::{plain_file, resume_files};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const SHIP_EVERY: Duration = Duration::from_secs(5);

/// Looks at the files of one command.
pub(super) struct Watch {
    scratch: PathBuf,
    notes: Notes,
    output: Output,
    line: Option<String>,
    /// As it was at the last look.
    seen: Option<Stamp>,
    /// As it was when it was last saved, or found to be of no use.
    settled: Option<Stamp>,
    shipped: Option<Instant>,
}

/// Tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(about: &fs::Metadata) -> Self {
        Self {
            inode: about.ino(),
            length: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
        }
    }
}

/// Leaves the former checkpoint where the supervisor finds it.
pub(super) fn give(scratch: &Path, checkpoint: &[u8]) -> io::Result<()> {
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_NOFOLLOW)
        .mode(0o600)
        .open(resume_files::given(scratch))?;
    file.write_all(checkpoint)
}

/// Removes what the supervisor did not move, when the attempt is over.
pub(super) struct Given(pub(super) PathBuf);

impl Drop for Given {
    fn drop(&mut self) {
        let _ = fs::remove_file(resume_files::given(&self.0));
    }
}

impl Watch {
    pub(super) fn new(scratch: PathBuf, notes: Notes, output: Output) -> Self {
        Self {
            scratch,
            notes,
            output,
            line: None,
            seen: None,
            settled: None,
            shipped: None,
        }
    }

    /// Never ends: whoever waits for the command drops it. Reads are short and of local files, so they are made in place.
    pub(super) async fn run(&mut self) -> std::convert::Infallible {
        loop {
            sleep(LOOK_EVERY).await;
            let line = resume_files::last_line(&self.scratch);
            self.progress(line);
            self.look();
        }
    }

    /// The tree is gone and has left a checkpoint: it is saved if it is wanted.
    pub(super) fn take_last(mut self, wanted: bool) {
        let path = resume_files::left(&self.scratch);
        if wanted && let Ok(about) = fs::symlink_metadata(&path) {
            let stamp = Stamp::of(&about);
            if self.settled != Some(stamp) {
                self.ship(&path, stamp);
            }
        }
        // It is removed with the directory of this process at the latest.
        let _ = fs::remove_file(path);
    }

    /// The last line of the progress file.
    pub(super) fn progress(&mut self, line: Option<String>) {
        if line.is_none() || line == self.line {
            return;
        }
        if let Some((percent, message)) = line.as_deref().and_then(parse) {
            self.notes.progress(percent, message);
        }
        self.line = line;
    }

    fn look(&mut self) {
        let path = resume_files::checkpoint(&self.scratch);
        let Ok(about) = fs::symlink_metadata(&path) else {
            return;
        };
        let stamp = Stamp::of(&about);
        let before = self.seen.replace(stamp);
        let renamed = before.is_some_and(|before| before.inode != stamp.inode);
        let steady = before == Some(stamp);
        let waits = self.shipped.is_some_and(|at| at.elapsed() < SHIP_EVERY);
        if self.settled != Some(stamp) && (renamed || steady) && !waits {
            self.ship(&path, stamp);
        }
    }

    fn ship(&mut self, path: &Path, stamp: Stamp) {
        let bytes = match plain_file::read(path, Limits::CHECKPOINT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.settled = Some(stamp);
                return self.complain(&error);
            }
        };
        let unchanged = fs::symlink_metadata(path).is_ok_and(|about| Stamp::of(&about) == stamp);
        if !unchanged || bytes.is_empty() {
            return;
        }
        self.settled = Some(stamp);
        self.shipped = Some(Instant::now());
        // It is within the bound.
        let _ = self.notes.save(bytes);
    }

    /// In the run's own log, where whoever wrote the command looks.
    fn complain(&self, error: &io::Error) {
        let line = format!("[drumtower: the checkpoint is not saved: {error}]\n");
        self.output
            .write_past_window(OutputStream::Stderr, line.as_bytes());
    }
}

/// `42 copying files`, `42%` or `42`.
fn parse(line: &str) -> Option<(u8, &str)> {
    let digits = line.find(|it: char| !it.is_ascii_digit());
    let (number, rest) = line.split_at(digits.unwrap_or(line.len()));
    let percent = number.parse::<u64>().ok()?.min(100) as u8;
    let rest = rest.strip_prefix('%').unwrap_or(rest);
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (percent, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_of_progress_begins_with_a_number() {
        assert_eq!(parse("42 copying files"), Some((42, "copying files")));
        assert_eq!(parse("7%"), Some((7, "")));
        assert_eq!(parse("7% of it"), Some((7, "of it")));
        assert_eq!(parse("100"), Some((100, "")));
        assert_eq!(parse("4000 files"), Some((100, "files")));
        for odd in ["", "copying", "4x", "-3", "99999999999999999999999"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
