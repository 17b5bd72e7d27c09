//! The worker's session with links to two servers: hand-over, a server that freezes, and one that sends the worker away.

mod session_world;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, LinkId};
use wire::server_message::Body;

use session_world::server::{HEARTBEAT_MS, LEASE_MS};
use session_world::store::CLASSES;
use session_world::{CAPACITY, World};

/// Two servers, the first of which owns all runs and has one that runs.
fn one_running() -> World {
    let mut world = World::new(2);
    world.open(0);
    world.open(1);
    for _ in 0..3 {
        world.exchange();
    }
    world.say(0, |server, store| server.assign_fresh(store, 2));
    world.exchange();
    assert_eq!(world.running.len(), 1);
    world
}

fn hand_all_to_the_second(world: &mut World) {
    for class in 0..CLASSES {
        world.hand_over(class, 1);
    }
}

fn deadline(world: &World) -> u64 {
    world.running.values().next().expect("it runs").deadline
}

#[test]
fn two_servers_share_the_credit() {
    let mut world = World::new(2);
    world.open(0);
    world.exchange();
    world.exchange();
    assert_eq!(world.servers[0].credit(), u64::from(CAPACITY));
    world.open(1);
    for _ in 0..4 {
        world.exchange();
    }
    let credit = world.servers.iter().map(|server| server.credit());
    assert_eq!(credit.collect::<Vec<_>>(), [4, 4]);
    world.say(1, |server, _| server.want(CAPACITY));
    for _ in 0..4 {
        world.exchange();
    }
    assert_eq!(world.servers[1].credit(), u64::from(CAPACITY));
}

#[test]
fn what_is_given_up_is_named_to_the_next_owner_at_once_and_reported_there() {
    let mut world = one_running();
    world.write(0);
    world.save(0);
    world.advance(HEARTBEAT_MS + 1);
    world.exchange();
    let before = deadline(&world);
    hand_all_to_the_second(&mut world);
    world.advance(HEARTBEAT_MS / 2);
    assert!(world.servers[1].last_held.is_empty());
    world.renew();
    world.exchange();
    assert_eq!(deadline(&world), before, "nobody prolonged it");
    assert_eq!(world.servers[1].last_held.len(), 1, "half a beat early");
    world.renew();
    world.exchange();
    assert_eq!(deadline(&world), world.now + LEASE_MS);
    world.finish(0);
    world.exchange();
    world.exchange();
    assert!(world.store.attempts.values().all(|it| it.ended));
    assert_eq!(world.outcomes, [wire::Outcome::Succeeded]);
    world.calm();
}

#[test]
fn a_server_that_freezes_loses_its_attempts_to_the_next_owner_in_time() {
    let mut world = one_running();
    world.freeze(0, true);
    hand_all_to_the_second(&mut world);
    for _ in 0..20 {
        world.advance(HEARTBEAT_MS / 2);
        world.exchange();
        world.renew();
    }
    assert_eq!(world.running.len(), 1, "the second server prolonged it");
    world.calm();
}

/// The second server hears of the attempt, whose owner it is, and of nothing else that was said.
fn stays_named_to_the_second(world: &mut World) {
    for _ in 0..3 {
        world.advance(HEARTBEAT_MS);
        world.deliver_to_server(1, usize::MAX);
        assert_eq!(world.servers[1].last_held.len(), 1, "it would be lost");
    }
}

#[test]
fn a_late_word_of_the_former_owner_does_not_hide_an_attempt_from_the_next() {
    let mut world = one_running();
    world.advance(HEARTBEAT_MS);
    world.deliver_to_server(0, usize::MAX);
    // It was committed, and travels for long.
    world.say(0, |server, store| server.renew(store));
    hand_all_to_the_second(&mut world);
    world.advance(2 * HEARTBEAT_MS + HEARTBEAT_MS / 2);
    world.deliver_to_server(1, usize::MAX);
    assert_eq!(world.servers[1].last_held.len(), 1, "it was claimed");
    world.deliver_to_worker(0, usize::MAX);
    let before = deadline(&world);
    world.say(1, |server, store| server.renew(store));
    world.deliver_to_worker(1, usize::MAX);
    assert!(before < deadline(&world), "the second prolongs it");
    stays_named_to_the_second(&mut world);
}

#[test]
fn a_server_that_was_told_of_an_attempt_hears_of_it_though_another_prolongs_it() {
    let mut world = one_running();
    world.advance(3 * HEARTBEAT_MS + 1);
    world.deliver_to_server(0, usize::MAX);
    // It renews after all, in its last commit as the owner.
    world.say(0, |server, store| server.renew(store));
    hand_all_to_the_second(&mut world);
    world.deliver_to_server(1, usize::MAX);
    assert_eq!(world.servers[1].last_held.len(), 1, "it was claimed");
    world.deliver_to_worker(0, usize::MAX);
    stays_named_to_the_second(&mut world);
}

#[test]
fn a_heartbeat_can_be_echoed_on_its_own_link_alone() {
    let mut world = one_running();
    let echo = world.ask(0, |server, store| server.renew(store));
    let message = wire::ServerMessage { body: echo };
    world.session.handle(world.clock(), LinkId(1), 2, message);
    assert!(matches!(
        world.session.poll_action(),
        Some(Action::Disconnect {
            link: LinkId(1),
            again: true,
            ..
        })
    ));
    assert!(world.session.is_connected_on(LinkId(0)));
}

#[test]
fn a_worker_that_one_server_sends_away_goes_on_with_the_other() {
    let mut world = one_running();
    for (link, last) in [(0, false), (1, true)] {
        let close = Body::Close(wire::Close {
            reason: "token revoked".to_owned(),
            again: false,
        });
        let message = wire::ServerMessage { body: Some(close) };
        let now = world.clock();
        world
            .session
            .handle(now, LinkId(link), u64::from(link) + 1, message);
        assert_eq!(world.session.rejection().is_some(), last);
    }
    let actions: Vec<_> = std::iter::from_fn(|| world.session.poll_action()).collect();
    assert_eq!(actions.len(), 3, "two streams and one attempt: {actions:?}");
}

#[test]
fn draining_says_goodbye_to_every_server() {
    let mut world = one_running();
    let now = world.now;
    world.session.drain(MonoMs(now), MonoMs(now + 500));
    world.settle();
    world.exchange();
    world.exchange();
    assert_eq!(world.credit(), 0);
    assert!(!world.servers[0].goodbye && !world.servers[1].goodbye);
    world.finish(0);
    world.exchange();
    world.exchange();
    assert!(world.servers[0].goodbye && world.servers[1].goodbye);
    assert!(world.session.is_done());
}

#[test]
fn an_attempt_outlives_a_link_that_is_forgotten() {
    let mut world = one_running();
    hand_all_to_the_second(&mut world);
    world.break_stream(0);
    world.session.link_gone(LinkId(0));
    for _ in 0..10 {
        world.advance(HEARTBEAT_MS);
        world.deliver_to_server(1, usize::MAX);
        world.say(1, |server, store| server.renew(store));
        world.deliver_to_worker(1, usize::MAX);
    }
    assert_eq!(world.running.len(), 1);
    assert_eq!(world.servers[1].credit(), u64::from(CAPACITY) - 2);
}
