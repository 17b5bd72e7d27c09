//! Both stores pass the same suite; SQLite passes it again opened anew after every commit.

use std::sync::{Arc, Mutex};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, SessionId, SessionRow, WallMs};
use drumtower_store::conformance::{Open, run_all};
use drumtower_store::memory::Memory;
use drumtower_store::sqlite::{self, Options};
use drumtower_store::{Commit, Error, Store};
use tempfile::TempDir;

/// Memory behind a lock, so that it can be let go of and taken up again.
struct Shared(Arc<Mutex<Memory>>);

impl Store for Shared {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.0.lock().expect("no test panicked").clock()
    }

    fn is_shared(&self) -> bool {
        self.0.lock().expect("no test panicked").is_shared()
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.0
            .lock()
            .expect("no test panicked")
            .begin_session(member, extend_ms)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        self.0.lock().expect("no test panicked").commit(changes)
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.0.lock().expect("no test panicked").session(id)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        self.0.lock().expect("no test panicked").live_sessions()
    }

    fn close(&mut self) -> Result<(), Error> {
        self.0.lock().expect("no test panicked").close()
    }
}

fn memory() -> Open {
    kept(Memory::new())
}

fn kept(memory: Memory) -> Open {
    let memory = Arc::new(Mutex::new(memory));
    Box::new(move || {
        let reader = memory.lock().expect("no test panicked").reader();
        (Box::new(Shared(Arc::clone(&memory))), Box::new(reader))
    })
}

fn on_disk(options: Options) -> impl FnMut() -> Open {
    move || {
        let (directory, options) = (
            TempDir::new().expect("a directory is made"),
            options.clone(),
        );
        Box::new(move || {
            let (writer, reader) =
                sqlite::open(directory.path(), options.clone()).expect("the store opens");
            (Box::new(writer), Box::new(reader))
        })
    }
}

/// Buckets and ranges so small that every exercise goes across many of them, and a log that is always long.
fn small() -> Options {
    Options {
        bucket_rows: 5,
        rollup_rows: 3,
        blobs_a_commit: 2,
        checkpoint_pages: 8,
        ..Options::default()
    }
}

#[test]
fn memory_conforms() {
    run_all(memory, false);
}

#[test]
fn memory_that_several_servers_share_conforms() {
    run_all(|| kept(Memory::new().share()), false);
}

#[test]
fn sqlite_conforms() {
    run_all(on_disk(Options::default()), false);
}

#[test]
fn sqlite_with_small_buckets_conforms() {
    run_all(on_disk(small()), false);
}

#[test]
fn sqlite_opened_after_each_commit_conforms() {
    run_all(on_disk(small()), true);
}
