//! Two servers on one store: one owns, the other stands by and takes over when the owner leaves or its session ends.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Command, Condition};
use drumtower_core::model::{Actor, Member, NamespaceName, SessionId, SessionRow, WallMs};
use drumtower_server::driver::{self, Handle, Health, SystemClock, Unavailable};
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
        let reader = Arc::new(memory.reader());
        let handle = driver::start(options, Box::new(store), reader, Arc::new(SystemClock));
        Self {
            handle: handle.expect("it starts"),
            way,
        }
    }

    async fn becomes(&self, wanted: Health) {
        let mut health = self.handle.health();
        let became = health.wait_for(|health| *health == wanted);
        became.await.expect("it lives");
    }

    async fn put(&self, name: &str) -> Result<(), Unavailable> {
        let command = Command::PutJob {
            spec: Box::new(spec(name)),
            condition: Condition::Any,
        };
        let answer = self.handle.command(Actor::new("tester"), command).await?;
        answer.expect("it is accepted");
        Ok(())
    }
}

fn clocked() -> (Memory, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(1_800_000_000_000));
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
async fn who_leaves_is_followed_at_once() {
    let (memory, _clock) = clocked();
    let one = Server::start(&memory, "one");
    one.becomes(Health::Ready).await;
    let two = Server::start(&memory, "two");
    two.becomes(Health::Standby).await;
    one.put("a").await.expect("the owner takes it");
    let refused = two.put("b").await.expect_err("it only stands by");
    assert!(refused.to_string().contains("stands by"), "{refused}");
    // The clock of the store stands still, so no session ends by itself.
    one.handle.stop().await;
    two.becomes(Health::Ready).await;
    two.put("b").await.expect("it is the owner");
    assert!(is_stored(&memory, "a") && is_stored(&memory, "b"));
    two.handle.stop().await;
}

#[tokio::test]
async fn who_is_cut_off_is_followed_when_its_session_ends_and_can_do_nothing_after() {
    let (memory, clock) = clocked();
    let one = Server::start(&memory, "one");
    one.becomes(Health::Ready).await;
    let two = Server::start(&memory, "two");
    two.becomes(Health::Standby).await;
    one.way.set(true);
    let late = tokio::spawn({
        let handle = one.handle.clone();
        async move {
            let command = Command::PutJob {
                spec: Box::new(spec("late")),
                condition: Condition::Any,
            };
            handle.command(Actor::new("tester"), command).await
        }
    });
    // Neither a look nor a renewal of the one that stands by takes what has an owner.
    for _ in 0..2 {
        let (_, before) = memory.reader().sessions().expect("they are read");
        let renewed = || memory.reader().sessions().expect("they are read").1 != before;
        while !renewed() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    assert_eq!(*two.handle.health().borrow(), Health::Standby);
    clock.fetch_add(3_001, Ordering::SeqCst);
    two.becomes(Health::Ready).await;
    two.put("a").await.expect("it is the owner");
    one.way.set(false);
    one.becomes(Health::Standby).await;
    let answer = late.await.expect("it is answered");
    assert!(answer.is_err(), "nothing of it was done: {answer:?}");
    assert!(!is_stored(&memory, "late"), "its commit was fenced");
    two.put("b").await.expect("it still is the owner");
    one.handle.stop().await;
    two.handle.stop().await;
}

#[tokio::test]
async fn of_several_that_stand_by_one_takes_over() {
    let (memory, clock) = clocked();
    let servers = ["one", "two", "three", "four"].map(|name| Server::start(&memory, name));
    let ready = |servers: &[Server; 4]| {
        let ready = |server: &&Server| *server.handle.health().borrow() == Health::Ready;
        servers.iter().filter(ready).count()
    };
    for _ in 0..3 {
        while ready(&servers) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(ready(&servers), 1);
        let is_ready = |server: &&Server| *server.handle.health().borrow() == Health::Ready;
        let owner = servers.iter().find(is_ready).expect("there is one");
        owner.way.set(true);
        clock.fetch_add(3_001, Ordering::SeqCst);
        let others = servers
            .iter()
            .filter(|it| !Arc::ptr_eq(&it.way, &owner.way));
        let others: Vec<&Server> = others.collect();
        while !others.iter().any(is_ready) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        owner.way.set(false);
        owner.becomes(Health::Standby).await;
        assert_eq!(ready(&servers), 1);
    }
    for server in &servers {
        server.handle.stop().await;
    }
}
