//! The tap by itself: what is heard, by whom, in which order, and what is missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::engine::{Load, WorkerState, WorkerView};
use drumtower_core::model::{
    Actor, CalendarName, JobId, JobName, JobRow, NamespaceName, SegmentId, Unfired, UnfiredReason,
    WallMs, WorkerName,
};

use super::digest::{Digest, Named};
use super::fact::{CalendarFact, Fact, JobDeed, WorkerDeed};
use super::ring::Ring;
use super::{Heard, Interest, Listeners, Tap};
use tokio::sync::watch;

fn fact(number: u32) -> Fact {
    Fact::Calendar(CalendarFact {
        namespace: NamespaceName::default(),
        name: CalendarName::new("days").unwrap(),
        version: number,
        deleted: false,
        at: WallMs(0),
    })
}

fn facts(numbers: std::ops::Range<u32>) -> Vec<Fact> {
    numbers.map(fact).collect()
}

fn tap(capacity: usize) -> (Tap, Arc<Ring>) {
    let ring = Arc::new(Ring::new(capacity));
    let tap = Tap {
        ring: Arc::clone(&ring),
        listeners: Arc::new(Listeners::default()),
        wanting: watch::channel(0).0,
    };
    (tap, ring)
}

/// Everything that is there, as versions; `-n` for n missed.
fn heard(subscription: &mut super::Subscription) -> Vec<i64> {
    let mut all = Vec::new();
    while let Some(heard) = subscription.ready() {
        match heard {
            Heard::Missed(count) => all.push(-(count as i64)),
            Heard::Facts(chunk) => all.extend(chunk.facts.iter().map(|fact| match fact {
                Fact::Calendar(calendar) => i64::from(calendar.version),
                _ => unreachable!("only calendars are told here"),
            })),
        }
    }
    all
}

#[test]
fn a_listener_hears_what_comes_after_it_and_nothing_before() {
    let (tap, ring) = tap(1000);
    ring.publish(facts(0..3));
    let mut late = tap.subscribe(Interest::Committed);
    ring.publish(facts(3..600));
    assert_eq!(heard(&mut late), (3..600).collect::<Vec<i64>>());
    assert_eq!(heard(&mut late), [] as [i64; 0]);
}

#[test]
fn a_slow_listener_learns_how_much_it_missed_and_memory_stays_bounded() {
    let (tap, ring) = tap(600);
    let mut slow = tap.subscribe(Interest::Committed);
    for round in 0..100 {
        ring.publish(facts(round * 100..round * 100 + 100));
    }
    let all = heard(&mut slow);
    let missed = -all[0];
    assert!(missed >= 9_400, "{missed}");
    assert_eq!(all[1..], (missed..10_000).collect::<Vec<i64>>()[..]);
}

#[test]
fn what_others_tell_is_for_those_who_follow_everything() {
    let (tap, ring) = tap(1000);
    let mut own = tap.subscribe(Interest::Committed);
    let mut all = tap.subscribe_to_all(Interest::Committed);
    ring.publish(facts(0..2));
    tap.hear(facts(10..12));
    tap.lose(5);
    ring.publish(facts(2..3));
    tap.lose(0);
    assert_eq!(heard(&mut own), [0, 1, 2]);
    assert_eq!(heard(&mut all), [0, 1, 10, 11, -5, 2, -1]);
    // Who comes back into the middle of a hole has missed the rest of it.
    let mut back = tap.subscribe_after(6, Interest::Committed);
    assert_eq!(heard(&mut back), [-3, 2, -1]);
}

#[test]
fn holes_of_others_do_not_pile_up() {
    let (tap, ring) = tap(100);
    let mut own = tap.subscribe(Interest::Committed);
    for _ in 0..1000 {
        tap.lose(1);
    }
    ring.publish(facts(0..1));
    assert!(heard(&mut own).ends_with(&[0]));
    let mut late = tap.subscribe_after(0, Interest::Committed);
    let all = heard(&mut late);
    assert!(all.len() <= 102 && all[0] < -800, "{all:?}");
}

#[test]
fn who_comes_back_goes_on_where_it_stopped() {
    let (tap, ring) = tap(1000);
    let first = tap.next();
    ring.publish(facts(0..10));
    let mut back = tap.subscribe_after(first + 3, Interest::Committed);
    assert_eq!(heard(&mut back), [4, 5, 6, 7, 8, 9]);
    let mut ahead = tap.subscribe_after(u64::MAX, Interest::Committed);
    ring.publish(facts(10..11));
    assert_eq!(
        heard(&mut ahead),
        [10],
        "a number that never was is no place to wait at"
    );
}

#[test]
fn what_nobody_heard_is_a_hole_for_who_comes_back_and_none_for_who_comes_new() {
    let (tap, ring) = tap(1000);
    let first = tap.next();
    ring.publish(facts(0..2));
    ring.unheard(5);
    let mut new = tap.subscribe(Interest::Committed);
    let mut back = tap.subscribe_after(first, Interest::Committed);
    ring.publish(facts(2..3));
    assert_eq!(heard(&mut new), [2]);
    assert_eq!(heard(&mut back), [1, -5, 2]);
    ring.skip(7);
    assert_eq!(
        heard(&mut new),
        [-7],
        "told without waiting for the next fact"
    );
}

#[test]
fn listeners_are_counted_while_they_live() {
    let (tap, _) = tap(10);
    assert!(!tap.listeners.any());
    let one = tap.subscribe(Interest::Committed);
    assert!(tap.listeners.any() && !tap.listeners.any_of_workers());
    let two = tap.subscribe(Interest::CommittedAndWorkers);
    assert!(tap.listeners.any_of_workers());
    drop(two);
    assert!(tap.listeners.any() && !tap.listeners.any_of_workers());
    drop(one);
    assert!(!tap.listeners.any());
}

fn worker(name: &str, state: WorkerState) -> WorkerView {
    WorkerView {
        name: WorkerName::new(name).unwrap(),
        state,
        why: None,
        linked: true,
        drain: None,
        losses: 0,
        faulty_until: None,
        probation: false,
        alive: true,
        host: String::new(),
        version: String::new(),
        labels: BTreeMap::new(),
        namespace: None,
        exec: true,
        http: false,
        enforcement: Default::default(),
        running: Vec::new(),
        handlers: Vec::new(),
        capacity: 1,
        credit: 1,
        attempts: 0,
        load: Load::default(),
        skew_ms: 0,
        connected: WallMs(0),
        last_heartbeat: None,
    }
}

#[test]
fn two_looks_at_the_fleet_tell_what_changed_between_them() {
    let mut digest = Digest::default();
    let look = |digest: &mut Digest, workers: &[(&str, WorkerState)]| {
        let workers = workers.iter().map(|(name, state)| worker(name, *state));
        let facts = digest.fleet(workers.collect());
        let told = facts.into_iter().map(|fact| match fact {
            Fact::Worker(worker) => (worker.name.to_string(), worker.deed, worker.state),
            _ => unreachable!("only workers are told here"),
        });
        told.collect::<Vec<_>>()
    };
    use WorkerState::{Busy, Online};
    assert_eq!(look(&mut digest, &[("a", Online), ("b", Online)]), []);
    let told = look(&mut digest, &[("b", Busy), ("c", Online)]);
    let expected = [
        ("b", WorkerDeed::Changed, Busy),
        ("c", WorkerDeed::Joined, Online),
        ("a", WorkerDeed::Left, Online),
    ];
    assert_eq!(
        told,
        expected.map(|(name, deed, state)| (name.to_owned(), deed, state))
    );
    digest.forget_fleet();
    assert_eq!(look(&mut digest, &[("z", Online)]), []);
}

#[test]
fn that_a_job_is_gone_comes_last() {
    let (id, namespace, name) = (
        JobId(1),
        NamespaceName::default(),
        JobName::new("x").unwrap(),
    );
    let row = JobRow {
        id,
        namespace: namespace.clone(),
        name: name.clone(),
        segment: SegmentId(0),
        version: 1,
        revision: 2,
        paused: None,
        deleted: true,
        created: WallMs(0),
        updated: WallMs(0),
        actor: Actor::new("t"),
    };
    let unfired = Unfired {
        job: id,
        first: WallMs(0),
        last: WallMs(0),
        count: 1,
        reason: UnfiredReason::Paused,
        version: 1,
        server: Actor::new("t"),
    };
    let changes = ChangeSet {
        jobs: [(id, JobChange::Update(row))].into(),
        unfired: [((id, WallMs(0)), unfired)].into(),
        ..ChangeSet::default()
    };
    let named = Named {
        id,
        namespace,
        name,
        deleted: true,
    };
    let facts = Digest::default().commit(&changes, vec![named]);
    assert!(
        matches!(&facts[..], [Fact::Unfired(_), Fact::Job(job)] if job.deed == JobDeed::Deleted),
        "{facts:?}"
    );
}

#[test]
fn others_are_wanted_while_somebody_wants_them() {
    let (tap, _) = tap(8);
    let own = tap.subscribe(Interest::Committed);
    let mut wanting = tap.wanting();
    assert_eq!(*wanting.borrow_and_update(), 0);
    let one = tap.subscribe_to_all(Interest::Committed);
    assert!(wanting.has_changed().expect("the tap is there"));
    assert_eq!(*wanting.borrow_and_update(), 1);
    let two = tap.want_others();
    drop(one);
    assert!(!wanting.has_changed().expect("the tap is there"));
    drop((two, own));
    assert_eq!(*wanting.borrow_and_update(), 0);
}
