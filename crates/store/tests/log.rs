//! The write-ahead log is moved into the main file beside the commits, and does not grow without end.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, RunState};
use drumtower_store::conformance::{all_runs, sample};
use drumtower_store::sqlite::{self, FILE, Options};
use drumtower_store::{Commit, RunFilter, Store};
use tempfile::tempdir;

const COMMITS: u64 = 100;
const RUNS: u64 = 200;
/// A frame of the log: a page and its header.
const FRAME_BYTES: u64 = 4_096 + 24;

#[test]
fn the_log_stays_short_while_commits_go_on() {
    let directory = tempdir().expect("a directory is made");
    let options = Options {
        checkpoint_pages: 50,
        ..Options::default()
    };
    let (mut writer, reader) = sqlite::open(directory.path(), options).expect("it opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let log = directory.path().join(format!("{FILE}-wal"));
    let pages = || std::fs::metadata(&log).map_or(0, |file| file.len()) / FRAME_BYTES;
    for seq in 1..=COMMITS {
        let run = |n| {
            let run = sample::run(seq as i64 * 100, n, sample::job_id(n));
            sample::ended(run, RunState::Completed, 9)
        };
        let changes = ChangeSet {
            session,
            seq,
            ..sample::finished((0..RUNS).map(run))
        };
        assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
        assert!(pages() < 600, "{} pages after {seq} commits", pages());
    }
    let all = all_runs(&reader, &RunFilter::default(), 999);
    assert_eq!(all.len() as u64, COMMITS * RUNS);
    writer.close().expect("it closes");
    assert_eq!(pages(), 0);
}
