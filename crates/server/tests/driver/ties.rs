//! What is tied while another server plans its share: nobody works on half of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::take_over;
use drumtower_core::model::{Actor, Member, SegmentId, SegmentSet, SessionId, SessionRow, WallMs};
use drumtower_core::shares::Sight;
use drumtower_server::driver::boot::{Taken, read};
use drumtower_server::driver::{self, Handle, SystemClock};
use drumtower_store::memory::Memory;
use drumtower_store::{Commit, Error, Read, Store};

/// Is told what is about to be taken.
type Meanwhile = Box<dyn FnOnce(&SegmentSet) + Send>;

/// A store on which something happens between the plan of a share and the commit that takes it.
struct Late {
    memory: Memory,
    meanwhile: Option<Meanwhile>,
    /// What was committed after that.
    after: Arc<Mutex<Vec<ChangeSet>>>,
}

impl Store for Late {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.memory.clock()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.memory.begin_session(member, extend_ms)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        match self.meanwhile.take() {
            Some(meanwhile) => meanwhile(&changes.segments.keys().copied().collect()),
            None => self.after.lock().expect("unpoisoned").push(changes.clone()),
        }
        self.memory.commit(changes)
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.memory.session(id)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        self.memory.live_sessions()
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn member(name: &str) -> Member {
    Member {
        address: Some(format!("http://{name}:7070")),
        ..Member::alone(name)
    }
}

fn start(store: Late, memory: &Memory, name: &str) -> Handle {
    let mut options = driver::Options::default();
    options.engine.server = Actor::new(name);
    options.address = member(name).address;
    let reader = Arc::new(memory.share().reader());
    let handle = driver::start(options, Box::new(store), reader, Arc::new(SystemClock));
    handle.expect("it starts")
}

/// Longer than any session here: nobody is taken for dead.
const LONG_MS: i64 = 1_000_000;

/// Whether `me` ranks higher than `other` for the first segment.
fn leads(me: &str, other: &str, memory: &Memory) -> bool {
    let session = |id, name| SessionRow {
        id: SessionId(id),
        member: member(name),
        seq: 1,
        expires: WallMs(1),
        revoked: false,
        took: None,
    };
    let sight = Sight {
        sessions: vec![session(1, me), session(2, other)],
        segments: memory.reader().segments().expect("they are read"),
        ..Sight::default()
    };
    let plan = sight.plan(SessionId(1));
    plan.take.iter().any(|row| row.id == SegmentId::HOME)
}

fn done(store: &mut Memory, changes: &ChangeSet) {
    let said = store.commit(changes).expect("it is answered");
    assert_eq!(said, Commit::Done);
}

/// The owner of the first segment ties another one to it, which was free when somebody planned to take that. That owner is
/// slow to give the first one up, so no look would bring both together soon.
#[tokio::test]
async fn who_took_half_of_what_was_tied_meanwhile_gives_it_up_before_it_works() {
    let memory = Memory::new();
    assert!(leads("taker", "slow", &memory), "choose other names");
    let mut store = memory.share();
    let slow = store.begin_session(&member("slow"), LONG_MS);
    let slow = slow.expect("it begins");
    let rows = memory.reader().segments().expect("they are read");
    let home: Vec<_> = rows
        .into_iter()
        .filter(|row| row.id == SegmentId::HOME)
        .collect();
    done(&mut store, &take_over(slow, 1, LONG_MS, Vec::new(), home));
    let meanwhile = move |taken: &SegmentSet| {
        assert!(!taken.contains(SegmentId::HOME), "it has an owner");
        let tied = taken.iter().next().expect("it has a share");
        let wish = ChangeSet {
            ties: [SegmentId::HOME, tied].into_iter().collect(),
            ..take_over(slow, 2, LONG_MS, Vec::new(), Vec::new())
        };
        done(&mut store, &wish);
    };
    let after = Arc::default();
    let late = Late {
        memory: memory.share(),
        meanwhile: Some(Box::new(meanwhile)),
        after: Arc::clone(&after),
    };
    let taker = start(late, &memory, "taker");
    let first = async {
        loop {
            if let Some(first) = after.lock().expect("unpoisoned").first() {
                break ChangeSet::clone(first);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let first = tokio::time::timeout(Duration::from_secs(30), first).await;
    let first = first.expect("it commits");
    let ties = memory.share().reader().ties().expect("they are read");
    let tied = ties.iter().find(|id| *id != SegmentId::HOME);
    let tied = tied.expect("the wish was committed");
    let given: Vec<_> = first
        .segments
        .values()
        .map(|row| (row.id, row.owner))
        .collect();
    assert_eq!(given, [(tied, SessionId(0))], "{first:?}");
    taker.stop().await;
}

/// An owner of everything ties a segment to the first one while its session ends. Whoever revokes it had seen no tie.
#[test]
fn nobody_begins_with_the_first_segment_while_what_is_tied_to_it_lies_with_one_who_was_revoked() {
    let tied = SegmentId(7);
    let mut memory = Memory::new();
    let begin = |memory: &mut Memory, name| {
        let session = memory.begin_session(&member(name), LONG_MS);
        session.expect("it begins")
    };
    let rows = |memory: &Memory, ids: &[SegmentId]| -> Vec<_> {
        let rows = memory.reader().segments().expect("they are read");
        rows.into_iter()
            .filter(|row| ids.contains(&row.id))
            .collect()
    };
    let (gone, taker) = (begin(&mut memory, "gone"), begin(&mut memory, "taker"));
    let all = rows(&memory, &[SegmentId::HOME, tied]);
    let wish = ChangeSet {
        ties: [SegmentId::HOME, tied].into_iter().collect(),
        ..take_over(gone, 1, LONG_MS, Vec::new(), all)
    };
    done(&mut memory, &wish);
    let home = rows(&memory, &[SegmentId::HOME]);
    done(&mut memory, &take_over(taker, 1, LONG_MS, vec![gone], home));
    let begun = |memory: &Memory, segments: &[SegmentId]| {
        let taken = Taken {
            session: taker,
            seq: 1,
            segments: segments.iter().copied().collect(),
        };
        read(&memory.reader(), taken).map(drop)
    };
    let refused = begun(&memory, &[SegmentId::HOME]);
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
    let left = rows(&memory, &[tied]);
    done(&mut memory, &take_over(taker, 2, LONG_MS, Vec::new(), left));
    begun(&memory, &[SegmentId::HOME, tied]).expect("it has all of it");
}
