//! The files by which a command tells how far it is, and what a later attempt can go on from.
//!
//! ```text
//! run_…-2/.drumtower-progress      written by the command, read by the agent
//! run_…-2/.drumtower-checkpoint    the same; moved out before the directory goes:
//! run_…-2.checkpoint               read and removed by the agent
//! run_…-2.resume                   written by the agent, moved in before the command starts:
//! run_…-2/.drumtower-resume        read by the command
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use drumtower_core::model::Limits;

use super::plain_file;

/// How much of the end of a progress file is looked at: more than a line of it may have.
const TAIL_BYTES: u64 = 4 * Limits::PROGRESS_CHARS as u64 + 64;

pub fn progress(scratch: &Path) -> PathBuf {
    scratch.join(".drumtower-progress")
}

pub fn checkpoint(scratch: &Path) -> PathBuf {
    scratch.join(".drumtower-checkpoint")
}

pub fn resume(scratch: &Path) -> PathBuf {
    scratch.join(".drumtower-resume")
}

/// Where a checkpoint lies once the scratch directory is gone.
pub fn left(scratch: &Path) -> PathBuf {
    beside(scratch, "checkpoint")
}

/// Where the former checkpoint lies until the scratch directory is there.
pub fn given(scratch: &Path) -> PathBuf {
    beside(scratch, "resume")
}

fn beside(scratch: &Path, end: &str) -> PathBuf {
    let mut name = scratch.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    PathBuf::from(name)
}

/// Moves the checkpoint out of a scratch directory that is about to go. False when there is none.
pub fn keep(scratch: &Path) -> bool {
    let path = checkpoint(scratch);
    let plain = fs::symlink_metadata(&path).is_ok_and(|about| about.is_file());
    plain && fs::rename(path, left(scratch)).is_ok()
}

/// The last line of the progress file, as far as one can be read.
pub fn last_line(scratch: &Path) -> Option<String> {
    let (mut file, about) = plain_file::open(&progress(scratch)).ok()?;
    let tail = tail(&mut file, about.len()).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}

fn tail(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_file_counts() {
        let scratch = tempfile::tempdir().unwrap();
        let line = |text: &str| {
            fs::write(progress(scratch.path()), text).unwrap();
            last_line(scratch.path())
        };
        assert_eq!(last_line(scratch.path()), None);
        assert_eq!(line("\n \n"), None);
        assert_eq!(line("1 a\n42 b\n\n").as_deref(), Some("42 b"));
        let long = "7 x\n".repeat(100_000);
        assert_eq!(line(&long).as_deref(), Some("7 x"));
        fs::remove_file(progress(scratch.path())).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", progress(scratch.path())).unwrap();
        assert_eq!(last_line(scratch.path()), None);
    }

    #[test]
    fn only_a_plain_checkpoint_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let scratch = root.path().join("run_1-2");
        fs::create_dir(&scratch).unwrap();
        assert!(!keep(&scratch));
        std::os::unix::fs::symlink("/etc/passwd", checkpoint(&scratch)).unwrap();
        assert!(!keep(&scratch));
        fs::remove_file(checkpoint(&scratch)).unwrap();
        fs::write(checkpoint(&scratch), "5").unwrap();
        assert!(keep(&scratch));
        assert_eq!(
            fs::read_to_string(root.path().join("run_1-2.checkpoint")).unwrap(),
            "5"
        );
    }
}
