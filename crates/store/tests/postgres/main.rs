//! The store on a real PostgreSQL server, which these tests start.

mod conformance;
mod faults;
mod partitions;
mod proxy;
mod roles;
mod sessions;
mod tls;
mod upgrading;

use std::time::Duration;

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{Member, Run, SessionId};
use drumtower_store::conformance::sample;
use drumtower_store::postgres::{self, Options, Reader, Target, Writer};
use drumtower_store::{Commit, Error, Store};
use drumtower_testpg::Cluster;

/// Ranges so small that every exercise goes across many of them, and retention with every commit that asks for it.
fn small() -> Options {
    Options {
        rollup_rows: 3,
        rollups_a_commit: 2,
        prune_every: Duration::ZERO,
        ..Options::default()
    }
}

fn target(url: &str) -> Target {
    url.parse().expect("an address")
}

/// A database of the server that these tests share.
fn fresh() -> Target {
    target(&Cluster::shared().database().expect("a database"))
}

fn open(target: &Target, options: Options) -> (Writer, Reader) {
    postgres::open(target, options).expect("the store opens")
}

/// How far the end of a session moves with each commit.
const SESSION_MS: i64 = 3_000;

fn begin(writer: &mut Writer) -> SessionId {
    let member = Member::alone("server-1");
    writer
        .begin_session(&member, SESSION_MS)
        .expect("a session begins")
}

/// The set as a commit of a session.
fn numbered(changes: ChangeSet, session: SessionId, seq: u64) -> ChangeSet {
    ChangeSet {
        session,
        seq,
        extend_ms: SESSION_MS,
        ..changes
    }
}

fn inserted(runs: &[Run]) -> ChangeSet {
    sample::runs(
        runs.iter()
            .cloned()
            .map(|run| RunChange::Insert(Box::new(run))),
    )
}

fn done(outcome: Result<Commit, Error>) {
    assert_eq!(outcome.expect("it is answered"), Commit::Done);
}
