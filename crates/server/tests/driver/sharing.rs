//! Servers on one store: each has a share, gives up what belongs to one that comes, and takes what one leaves behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Command, Condition, Refusal};
use drumtower_core::model::{
    Actor, Member, NamespaceName, SegmentId, SegmentSet, SessionId, SessionRow, WallMs,
};
use drumtower_server::driver::shares::LOOK_EVERY;
use drumtower_server::driver::{self, Handle, SystemClock, Unavailable};
use drumtower_store::memory::Memory;
use drumtower_store::{Commit, Error, Read, Store};

use crate::faulty::spec;

/// A store that others have open too, and whose way to the database can be cut.
struct Common {
    memory: Memory,
    way: Arc<Way>,
}

#[derive(Default)]
struct Way {
    cut: Mutex<bool>,
    mended: Condvar,
}

impl Way {
    fn set(&self, cut: bool) {
        *self.cut.lock().expect("unpoisoned") = cut;
        self.mended.notify_all();
    }

    fn pass(&self) {
        let mut cut = self.cut.lock().expect("unpoisoned");
        while *cut {
            cut = self.mended.wait(cut).expect("unpoisoned");
        }
    }
}

impl Store for Common {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.way.pass();
        self.memory.clock()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.way.pass();
        self.memory.begin_session(member, extend_ms)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        self.way.pass();
        self.memory.commit(changes)
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.way.pass();
        self.memory.session(id)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        self.way.pass();
        self.memory.live_sessions()
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

struct Server {
    handle: Handle,
    way: Arc<Way>,
}

impl Server {
    fn start(memory: &Memory, name: &str) -> Self {
        let way = Arc::new(Way::default());
        let store = Common {
            memory: memory.share(),
            way: Arc::clone(&way),
        };
        let mut options = driver::Options::default();
        options.engine.server = Actor::new(name);
        options.address = Some(format!("http://{name}:7070"));
        let reader = Arc::new(memory.share().reader());
        let handle = driver::start(options, Box::new(store), reader, Arc::new(SystemClock));
        Self {
            handle: handle.expect("it starts"),
            way,
        }
    }

    async fn put(&self, name: &str) -> Result<Result<(), Refusal>, Unavailable> {
        let command = Command::PutJob {
            spec: Box::new(spec(name)),
            condition: Condition::Any,
        };
        let answer = self.handle.command(Actor::new("tester"), command).await?;
        Ok(answer.map(|_| ()))
    }
}

/// What each server owns, by name.
fn owned(memory: &Memory) -> BTreeMap<String, SegmentSet> {
    let reader = memory.reader();
    let (_, sessions) = reader.sessions().expect("they are read");
    let name = |session| {
        let row = sessions.iter().find(|row| row.id == session);
        row.map_or("nobody".to_owned(), |row| row.member.server.0.to_string())
    };
    let owners = reader.owners().expect("they are read").into_iter();
    owners.map(|it| (name(it.session), it.segments)).collect()
}

/// Waits until exactly these servers own everything, each a fair part.
async fn shared_by(memory: &Memory, names: &[&str]) -> BTreeMap<String, SegmentSet> {
    loop {
        let owned = owned(memory);
        let fair = 1024 / names.len() / 2;
        if owned.len() == names.len()
            && names
                .iter()
                .all(|name| owned.get(*name).is_some_and(|it| it.len() >= fair))
        {
            return owned;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same, and nothing is left to move: one that came back is given its part by each of the others in turn, at a look each.
async fn settled_among(memory: &Memory, names: &[&str]) -> BTreeMap<String, SegmentSet> {
    loop {
        let shares = shared_by(memory, names).await;
        tokio::time::sleep(LOOK_EVERY * 3).await;
        if owned(memory) == shares {
            return shares;
        }
    }
}

/// Lets the store's clock go on until the session of `silent` has ended, while all others renew theirs.
async fn outlast(memory: &Memory, clock: &AtomicI64, silent: &str) {
    let of_others = || {
        let (_, sessions) = memory.reader().sessions().expect("they are read");
        let others = sessions.into_iter();
        let others = others.filter(|row| *row.member.server.0 != *silent);
        others.map(|row| (row.id, row.seq)).collect::<Vec<_>>()
    };
    for _ in 0..4 {
        let before = of_others();
        clock.fetch_add(1_000, Ordering::SeqCst);
        let renewed = |(id, seq): &(SessionId, u64)| {
            let now = of_others();
            now.iter().all(|it| it.0 != *id || it.1 > *seq)
        };
        while !before.iter().all(renewed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The name of a job in one of these segments.
fn job_in(segments: &SegmentSet) -> String {
    let names = (0..).map(|n| format!("job-{n}"));
    let mut names = names.filter(|it| segments.contains(SegmentId::of("default", it)));
    names.next().expect("there is one")
}

fn clocked() -> (Memory, Arc<AtomicI64>) {
    // A server whose clock is far from the store's takes no share.
    let clock = Arc::new(AtomicI64::new(driver::wall_now().0));
    let read = Arc::clone(&clock);
    let memory = Memory::with_clock(Arc::new(move || WallMs(read.load(Ordering::SeqCst))));
    (memory, clock)
}

fn is_stored(memory: &Memory, name: &str) -> bool {
    let name = spec(name).name;
    let found = memory.reader().job_named(&NamespaceName::default(), &name);
    found.expect("it is read").is_some()
}

#[tokio::test]
async fn who_comes_gets_a_share_and_who_leaves_gives_it_back() {
    let (memory, _clock) = clocked();
    let one = Server::start(&memory, "one");
    shared_by(&memory, &["one"]).await;
    let two = Server::start(&memory, "two");
    let shares = shared_by(&memory, &["one", "two"]).await;
    let (mine, other) = (job_in(&shares["one"]), job_in(&shares["two"]));
    one.put(&mine).await.expect("ready").expect("it is its own");
    let refused = one.put(&other).await.expect("ready");
    let segment = SegmentId::of("default", &other);
    let elsewhere: SegmentSet = [segment].into_iter().collect();
    assert_eq!(refused, Err(Refusal::Elsewhere(Box::new(elsewhere))));
    assert!(!is_stored(&memory, &other), "nothing was done");
    two.put(&other)
        .await
        .expect("ready")
        .expect("it is its own");
    // The clock of the store stands still, so no session ends by itself.
    one.handle.stop().await;
    shared_by(&memory, &["two"]).await;
    while two.put(&mine).await.expect("ready").is_err() {}
    two.handle.stop().await;
}

#[tokio::test]
async fn who_is_cut_off_is_followed_when_its_session_ends_and_can_do_nothing_after() {
    let (memory, clock) = clocked();
    let one = Server::start(&memory, "one");
    let two = Server::start(&memory, "two");
    let shares = shared_by(&memory, &["one", "two"]).await;
    let name = job_in(&shares["one"]);
    one.way.set(true);
    let late = tokio::spawn({
        let (handle, name) = (one.handle.clone(), name.clone());
        async move {
            let command = Command::PutJob {
                spec: Box::new(spec(&name)),
                condition: Condition::Any,
            };
            handle.command(Actor::new("tester"), command).await
        }
    });
    // Neither a look nor a renewal of the other takes what has an owner.
    for _ in 0..2 {
        let (_, before) = memory.reader().sessions().expect("they are read");
        let renewed = || memory.reader().sessions().expect("they are read").1 != before;
        while !renewed() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!(owned(&memory), shares);
    outlast(&memory, &clock, "one").await;
    shared_by(&memory, &["two"]).await;
    one.way.set(false);
    let answer = late.await.expect("it is answered");
    assert!(answer.is_err(), "nothing of it was done: {answer:?}");
    assert!(!is_stored(&memory, &name), "its commit was fenced");
    shared_by(&memory, &["one", "two"]).await;
    one.handle.stop().await;
    two.handle.stop().await;
}

#[tokio::test]
async fn of_several_each_takes_its_part_of_what_one_leaves_behind() {
    let (memory, clock) = clocked();
    let names = ["one", "two", "three", "four"];
    let servers = names.map(|name| Server::start(&memory, name));
    for gone in 0..names.len() {
        let before = settled_among(&memory, &names).await;
        servers[gone].way.set(true);
        outlast(&memory, &clock, names[gone]).await;
        let mut rest = names.to_vec();
        rest.remove(gone);
        let after = shared_by(&memory, &rest).await;
        let orphans = before[names[gone]];
        for name in rest {
            let moved = after[name].without(&before[name]);
            assert!(
                moved.without(&orphans).is_empty(),
                "only what was left behind"
            );
            assert!(
                before[name].without(&after[name]).is_empty(),
                "nothing else"
            );
        }
        servers[gone].way.set(false);
    }
    for server in &servers {
        server.handle.stop().await;
    }
}

#[tokio::test]
async fn jobs_that_share_something_come_together() {
    let (memory, _clock) = clocked();
    let servers = ["one", "two"].map(|name| Server::start(&memory, name));
    let shares = shared_by(&memory, &["one", "two"]).await;
    let home = if shares["one"].contains(SegmentId::HOME) {
        0
    } else {
        1
    };
    let (keeper, other) = (&servers[home], &servers[1 - home]);
    let far = job_in(&shares[["one", "two"][1 - home]]);
    let mut follower = spec(&job_in(&shares[["one", "two"][home]]));
    follower.after = serde_json::from_value(serde_json::json!({"jobs": [far.clone()]})).ok();
    let put = |server: &Server| {
        let command = Command::PutJob {
            spec: Box::new(follower.clone()),
            condition: Condition::Any,
        };
        let handle = server.handle.clone();
        async move { handle.command(Actor::new("tester"), command).await }
    };
    other
        .put(&far)
        .await
        .expect("ready")
        .expect("it is its own");
    let refused = put(keeper).await.expect("ready");
    assert!(matches!(refused, Err(Refusal::Elsewhere(_))), "{refused:?}");
    // The wish alone brings them together, with the server that has the first segment.
    while put(keeper).await.expect("ready").is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let after = owned(&memory);
    let segment = SegmentId::of("default", &far);
    assert!(after[["one", "two"][home]].contains(segment));
    let refused = other.put(&far).await.expect("ready");
    assert!(matches!(refused, Err(Refusal::Elsewhere(_))), "{refused:?}");
    for server in &servers {
        server.handle.stop().await;
    }
}
