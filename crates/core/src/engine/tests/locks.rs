//! Locks: one holder at a time, fences that grow, terms, and who waits.

use std::collections::BTreeMap;

use super::super::*;
use super::world::*;
use crate::model::*;

fn lock(name: &str) -> LockRef {
    LockRef {
        namespace: NamespaceName::default(),
        name: LockName::new(name).expect("a name"),
    }
}

fn ask(name: &str, owner: &str, ttl_ms: u64, wait_ms: u64) -> Command {
    Command::AcquireLock {
        request: LockRequest {
            lock: lock(name),
            owner: owner.to_owned(),
            ttl_ms,
            wait_ms,
        },
    }
}

fn acquire(world: &mut World, name: &str, owner: &str) -> Result<Fence, Refusal> {
    held(world.command(ask(name, owner, 10_000, 0)))
}

fn held(reply: Result<Reply, Refusal>) -> Result<Fence, Refusal> {
    match reply? {
        Reply::Lock(row) => Ok(row.fence),
        other => panic!("{other:?}"),
    }
}

fn renew(world: &mut World, name: &str, fence: Fence) -> Result<Fence, Refusal> {
    held(world.command(Command::RenewLock {
        lock: lock(name),
        fence,
        ttl_ms: None,
    }))
}

fn release(world: &mut World, name: &str, fence: Option<Fence>) -> Result<(), Refusal> {
    let lock = lock(name);
    match world.command(Command::ReleaseLock { lock, fence })? {
        Reply::Deleted => Ok(()),
        other => panic!("{other:?}"),
    }
}

/// Asks without an answer yet.
fn wait(world: &mut World, ticket: u64, command: Command) {
    world.step(Input::Command {
        ticket: Ticket(ticket),
        actor: Actor::new("test"),
        command,
    });
}

fn replies(effects: Vec<Effect>) -> BTreeMap<u64, Result<Fence, Refusal>> {
    let reply = |effect| match effect {
        Effect::Reply { ticket, reply } => Some((ticket.0, held(reply))),
        _ => None,
    };
    effects.into_iter().filter_map(reply).collect()
}

fn is_held(answer: &Result<Fence, Refusal>, by: &str) -> bool {
    matches!(answer, Err(Refusal::LockHeld(row)) if row.owner == by)
}

#[test]
fn one_holds_it_at_a_time_and_fences_grow() {
    let mut world = World::new();
    let first = acquire(&mut world, "a", "one").expect("it is free");
    assert!(is_held(&acquire(&mut world, "a", "two"), "one"));
    assert_eq!(
        acquire(&mut world, "a", "one"),
        Ok(first),
        "asked again, the same hold"
    );
    assert_eq!(
        release(&mut world, "a", Some(Fence(1))),
        Err(Refusal::LockLost(lock("a")))
    );
    release(&mut world, "a", Some(first)).expect("it is the holder");
    assert!(world.tables.locks.is_empty());
    let second = acquire(&mut world, "a", "two").expect("it is free");
    assert!(second > first);
    assert_eq!(
        renew(&mut world, "a", first),
        Err(Refusal::LockLost(lock("a")))
    );
    world.restart();
    assert!(is_held(&acquire(&mut world, "a", "one"), "two"));
    release(&mut world, "a", None).expect("by force");
    let third = acquire(&mut world, "a", "one").expect("it is free");
    assert!(third > second, "also over a restart");
}

#[test]
fn a_late_renewal_for_a_shorter_term_shortens_nothing() {
    let mut world = World::new();
    let lock = lock("a");
    let fence = acquire(&mut world, "a", "one").expect("it is free");
    for (ttl_ms, stands) in [(20_000, 20_000), (1_000, 20_000), (30_000, 30_000)] {
        let (lock, ttl_ms) = (lock.clone(), Some(ttl_ms));
        let answer = world.command(Command::RenewLock {
            lock,
            fence,
            ttl_ms,
        });
        assert!(
            matches!(answer, Ok(Reply::Lock(row)) if row.ttl_ms == stands),
            "{ttl_ms:?}"
        );
    }
    // Also for a server that starts anew.
    world.restart();
    world.tick_through(29_000, 500);
    assert!(is_held(&acquire(&mut world, "a", "two"), "one"));
}

#[test]
fn a_hold_ends_with_its_term_and_not_before() {
    let mut world = World::new();
    let first = acquire(&mut world, "a", "one").expect("it is free");
    world.tick_through(6_000, 500);
    assert_eq!(renew(&mut world, "a", first), Ok(first));
    world.tick_through(10_000, 500);
    assert!(
        is_held(&acquire(&mut world, "a", "two"), "one"),
        "its term is a hundredth longer than its holder counts"
    );
    world.tick_through(500, 100);
    assert_eq!(
        renew(&mut world, "a", first),
        Err(Refusal::LockLost(lock("a")))
    );
    acquire(&mut world, "a", "two").expect("it is free");
}

#[test]
fn a_restart_gives_the_whole_term_again() {
    let mut world = World::new();
    acquire(&mut world, "a", "one").expect("it is free");
    world.tick_through(9_000, 500);
    world.restart();
    world.tick_through(9_000, 500);
    assert!(is_held(&acquire(&mut world, "a", "two"), "one"));
    world.tick_through(1_500, 500);
    acquire(&mut world, "a", "two").expect("it is free");
}

#[test]
fn who_waits_longest_gets_it_next() {
    let mut world = World::new();
    let first = acquire(&mut world, "a", "one").expect("it is free");
    wait(&mut world, 1001, ask("a", "two", 10_000, 5_000));
    wait(&mut world, 1002, ask("a", "three", 10_000, 60_000));
    // The same owner on another connection keeps its place.
    wait(&mut world, 1003, ask("a", "two", 10_000, 60_000));
    let answers = replies(world.commit());
    assert!(
        is_held(&answers[&1001], "one") && answers.len() == 1,
        "{answers:?}"
    );
    release(&mut world, "a", Some(first)).expect("it is the holder");
    assert!(is_held(&acquire(&mut world, "a", "four"), "two"));
    let answers = replies(world.tick_through(12_000, 500));
    let third = answers[&1002]
        .clone()
        .expect("the term of the second ended");
    assert!(is_held(&acquire(&mut world, "a", "four"), "three"));
    release(&mut world, "a", Some(third)).expect("it is the holder");
    assert!(world.tables.locks.is_empty());
}

#[test]
fn a_wait_ends_when_the_caller_said() {
    let mut world = World::new();
    acquire(&mut world, "a", "one").expect("it is free");
    wait(&mut world, 1001, ask("a", "two", 10_000, 2_000));
    assert!(replies(world.tick_through(1_900, 100)).is_empty());
    let answers = replies(world.tick_through(200, 100));
    assert!(is_held(&answers[&1001], "one"), "{answers:?}");
    assert!(replies(world.tick_through(20_000, 500)).is_empty());
    assert!(world.tables.locks.is_empty());
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let mut world = World::new();
    for (command, field) in [
        (ask("a", "", 10_000, 0), "owner"),
        (ask("a", "one", 999, 0), "ttl"),
        (ask("a", "one", 86_400_001, 0), "ttl"),
        (ask("a", "one", 10_000, 300_001), "wait"),
    ] {
        match world.command(command) {
            Err(Refusal::Invalid(fault)) => assert_eq!(fault.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

fn gone(world: &mut World, ticket: u64) {
    world.step(Input::CallerGone(Ticket(ticket)));
    world.commit();
}

#[test]
fn who_gave_up_leaves_the_line() {
    let mut world = World::new();
    let first = acquire(&mut world, "a", "one").expect("it is free");
    wait(&mut world, 1001, ask("a", "two", 10_000, 60_000));
    wait(&mut world, 1002, ask("a", "three", 10_000, 60_000));
    gone(&mut world, 1001);
    release(&mut world, "a", Some(first)).expect("it is the holder");
    assert!(is_held(&acquire(&mut world, "a", "four"), "three"));
    let answers = replies(world.tick_through(70_000, 500));
    assert!(answers.is_empty(), "{answers:?}");
}

#[test]
fn what_was_given_to_one_who_is_gone_goes_to_the_next() {
    let mut world = World::new();
    wait(&mut world, 1001, ask("a", "one", 86_400_000, 0));
    wait(&mut world, 1002, ask("a", "two", 10_000, 60_000));
    // The answer is under way when its caller is found to be gone.
    assert!(replies(world.commit()).contains_key(&1001));
    world.step(Input::CallerGone(Ticket(1001)));
    assert!(replies(world.commit())[&1002].is_ok());
    assert_eq!(world.tables.locks.len(), 1);
    gone(&mut world, 1002);
    assert!(world.tables.locks.is_empty());
}

#[test]
fn what_its_owner_may_know_of_is_kept() {
    let mut world = World::new();
    // The owner asks again on another connection, and is answered there.
    wait(&mut world, 1001, ask("a", "one", 10_000, 0));
    let again = acquire(&mut world, "a", "one").expect("the same hold");
    gone(&mut world, 1001);
    assert!(is_held(&acquire(&mut world, "a", "two"), "one"));
    assert_eq!(renew(&mut world, "a", again), Ok(again));
    // Nor does one that was replaced in the line take the place from the one that came after it.
    wait(&mut world, 1002, ask("a", "two", 10_000, 60_000));
    wait(&mut world, 1003, ask("a", "two", 10_000, 60_000));
    gone(&mut world, 1002);
    release(&mut world, "a", Some(again)).expect("it is the holder");
    assert!(is_held(&acquire(&mut world, "a", "three"), "two"));
}
