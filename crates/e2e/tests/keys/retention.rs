//! How long finished runs stay.
//!
//! No test waits for a day: the server is stopped, and the store is told that the day has passed.

use std::path::Path;

use drumtower_core::change::{ChangeSet, Prune};
use drumtower_core::model::{Member, WallMs};
use drumtower_store::{Commit, Store, sqlite};
use serde_json::json;
use ureq::http::Method;

use super::world::{id, world};

const DAY_MS: i64 = 86_400_000;

pub fn retention() {
    let mut world = world().agent(4);
    let kept = ["1d", "7d", "30d", "keep"].map(|class| {
        let name = format!("kept-{class}");
        let run = world.ended(json!({"name": name, "retention": class}));
        id(&run).to_owned()
    });
    for (days, left) in [(2, 3), (8, 2), (31, 1), (4000, 1)] {
        world.server.stop();
        pass(world.server.data(), days);
        world.server.restart();
        let there = |run: &&String| {
            let answer = world
                .server
                .api()
                .call(Method::GET, &format!("/api/v1/runs/{run}"), None);
            answer.expect("an answer").status == 200
        };
        let found: Vec<&String> = kept.iter().filter(there).collect();
        assert_eq!(
            found,
            kept.iter().skip(4 - left).collect::<Vec<_>>(),
            "after {days} days"
        );
    }
}

/// Lets retention work as it will in so many days.
fn pass(data: &Path, days: i64) {
    let (mut store, _reader) = sqlite::open(data, sqlite::Options::default()).expect("a store");
    let member = Member::alone("test");
    let session = store.begin_session(&member, 60_000).expect("a session");
    let now = WallMs(store.clock().expect("a clock").0 + days * DAY_MS);
    // Each commit takes a small step, the classes in turn.
    for seq in 1..=12 {
        let prune = Some(Prune { now, limit: 100 });
        let changes = ChangeSet {
            session,
            seq,
            extend_ms: 60_000,
            prune,
            ..ChangeSet::default()
        };
        assert_eq!(store.commit(&changes).expect("a commit"), Commit::Done);
    }
    store.close().expect("a clean end");
}
