//! The worker's session against small servers: whatever is lost, repeated or late, and whoever owns the runs, its promises
//! hold.

mod session_world;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, LinkId};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::server_message::Body;

use session_world::server::LEASE_MS;
use session_world::store::CLASSES;
use session_world::{CAPACITY, World};

/// The link to the first server.
const LINK: LinkId = LinkId(0);

/// What happens on the link to one server, or to all.
#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Open(usize),
    Break(usize),
    Freeze(usize, bool),
    HandOver(u64, usize),
    ToServer(usize, usize),
    ToWorker(usize, usize),
    Assign(usize, u32),
    AssignNext(usize, usize),
    AssignAgain(usize, usize),
    AssignStale(usize, usize),
    Renew(usize),
    Want(usize, u32),
    Cancel(usize, usize),
    Finish(usize),
    Write(usize),
    Save(usize),
}

fn step(servers: usize) -> impl Strategy<Value = Step> {
    let server = move || 0..servers;
    let picked = move || (0..servers, 0..9usize);
    let several = move || (0..servers, 1..6usize);
    prop_oneof![
        3 => (1..LEASE_MS / 2).prop_map(Step::Advance),
        2 => server().prop_map(Step::Open),
        1 => server().prop_map(Step::Break),
        1 => (server(), any::<bool>()).prop_map(|(server, it)| Step::Freeze(server, it)),
        1 => (0..CLASSES, server()).prop_map(|(class, server)| Step::HandOver(class, server)),
        8 => several().prop_map(|(server, count)| Step::ToServer(server, count)),
        8 => several().prop_map(|(server, count)| Step::ToWorker(server, count)),
        4 => (server(), 1..4u32).prop_map(|(server, weight)| Step::Assign(server, weight)),
        2 => picked().prop_map(|(server, pick)| Step::AssignNext(server, pick)),
        2 => picked().prop_map(|(server, pick)| Step::AssignAgain(server, pick)),
        1 => picked().prop_map(|(server, pick)| Step::AssignStale(server, pick)),
        3 => server().prop_map(Step::Renew),
        1 => (server(), 1..=CAPACITY).prop_map(|(server, weight)| Step::Want(server, weight)),
        1 => picked().prop_map(|(server, pick)| Step::Cancel(server, pick)),
        2 => (0..9usize).prop_map(Step::Finish),
        2 => (0..9usize).prop_map(Step::Write),
        2 => (0..9usize).prop_map(Step::Save),
    ]
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Advance(ms) => world.advance(ms),
        Step::Open(server) => world.open(server),
        Step::Break(server) => world.break_stream(server),
        Step::Freeze(server, frozen) => world.freeze(server, frozen),
        Step::HandOver(class, server) => world.hand_over(class, server),
        Step::ToServer(server, count) => world.deliver_to_server(server, count),
        Step::ToWorker(server, count) => world.deliver_to_worker(server, count),
        Step::Assign(server, weight) => {
            world.say(server, |it, store| it.assign_fresh(store, weight))
        }
        Step::AssignNext(server, pick) => {
            world.say(server, |it, store| it.assign_next(store, pick))
        }
        Step::AssignAgain(server, pick) => {
            world.say(server, |it, store| it.assign_again(store, pick));
        }
        Step::AssignStale(server, pick) => {
            world.say(server, |it, store| it.assign_stale(store, pick));
        }
        Step::Renew(server) => world.say(server, |it, store| it.renew(store)),
        Step::Want(server, weight) => world.say(server, |it, _| it.want(weight)),
        Step::Cancel(server, pick) => world.say(server, |it, store| it.cancel(store, pick)),
        Step::Finish(pick) => world.finish(pick),
        Step::Write(pick) => world.write(pick),
        Step::Save(pick) => world.save(pick),
    }
}

fn keeps_its_promises(servers: usize, steps: Vec<Step>) {
    let mut world = World::new(servers);
    for server in 0..servers {
        world.hand_over(server as u64, server);
        world.open(server);
    }
    for step in steps {
        take(&mut world, step);
    }
    world.calm();
}

proptest! {
    #[test]
    fn promises_hold_whatever_is_lost_repeated_or_late(steps in vec(step(1), 1..150)) {
        keeps_its_promises(1, steps);
    }

    #[test]
    fn promises_hold_whichever_of_two_servers_owns_what(steps in vec(step(2), 1..250)) {
        keeps_its_promises(2, steps);
    }
}

/// A world with one attempt that runs.
fn one_running() -> World {
    let mut world = World::new(1);
    world.open(0);
    world.exchange();
    world.exchange();
    world.say(0, |server, store| server.assign_fresh(store, 2));
    world.exchange();
    assert_eq!(world.running.len(), 1);
    world
}

#[test]
fn a_server_that_is_silent_loses_the_attempt_and_is_told_when_it_is_back() {
    let mut world = one_running();
    world.break_stream(0);
    world.advance(LEASE_MS);
    assert!(world.running.is_empty());
    world.open(0);
    world.exchange();
    world.exchange();
    assert!(
        world.outcomes.is_empty(),
        "the server has not said that it answers for it"
    );
    world.renew();
    world.exchange();
    assert_eq!(world.outcomes, [wire::Outcome::LeaseLost]);
}

#[test]
fn an_attempt_survives_a_broken_stream_within_its_lease() {
    let mut world = one_running();
    world.advance(LEASE_MS / 2);
    world.open(0);
    world.exchange();
    world.exchange();
    world.renew();
    world.exchange();
    world.advance(LEASE_MS / 2);
    assert_eq!(world.running.len(), 1, "the new stream renewed it");
}

#[test]
fn a_run_that_takes_too_long_is_stopped() {
    let mut world = one_running();
    for _ in 0..40 {
        world.advance(100);
        world.renew();
        world.exchange();
    }
    assert_eq!(world.outcomes, [wire::Outcome::TimedOut]);
}

#[test]
fn an_assignment_that_travelled_longer_than_its_lease_is_refused() {
    let mut world = World::new(1);
    world.open(0);
    world.exchange();
    world.exchange();
    world.say(0, |server, store| server.assign_fresh(store, 1));
    world.advance(LEASE_MS);
    world.exchange();
    assert!(world.starts.is_empty());
    world.calm();
}

#[test]
fn messages_of_an_older_stream_are_dropped() {
    let mut world = World::new(1);
    world.open(0);
    world.exchange();
    world.exchange();
    let assign = world.ask(0, |server, store| server.assign_fresh(store, 1));
    world.open(0);
    world.exchange();
    let message = wire::ServerMessage { body: assign };
    world.session.handle(world.clock(), LINK, 1, message);
    world.settle();
    assert!(world.starts.is_empty());
}

#[test]
fn draining_takes_credit_back_lets_runs_end_and_says_goodbye() {
    let mut world = one_running();
    let now = world.now;
    world.session.drain(MonoMs(now), MonoMs(now + 500));
    world.settle();
    world.say(0, |server, store| server.assign_fresh(store, 1));
    world.exchange();
    world.exchange();
    assert_eq!(
        world.starts.len(),
        1,
        "an assignment that crossed the recall is refused"
    );
    assert!(!world.session.is_done());
    world.finish(0);
    world.exchange();
    world.exchange();
    assert!(world.servers[0].goodbye);
    assert!(world.session.is_done());
    assert_eq!(world.outcomes, [wire::Outcome::Succeeded]);
}

#[test]
fn draining_stops_what_does_not_end_in_time() {
    let mut world = one_running();
    let now = world.now;
    world.session.drain(MonoMs(now), MonoMs(now + 300));
    for _ in 0..10 {
        world.advance(50);
        world.exchange();
    }
    assert_eq!(world.outcomes, [wire::Outcome::Cancelled]);
    assert!(world.servers[0].goodbye);
}

#[test]
fn draining_without_a_server_ends_all_the_same() {
    let mut world = one_running();
    world.break_stream(0);
    let now = world.now;
    world.session.drain(MonoMs(now), MonoMs(now));
    world.settle();
    world.advance(10_000);
    assert!(world.session.is_done());
}

#[test]
fn a_worker_that_is_not_wanted_stops_everything_and_says_why() {
    let mut world = one_running();
    let close = Body::Close(wire::Close {
        reason: "token revoked".to_owned(),
        again: false,
    });
    let message = wire::ServerMessage { body: Some(close) };
    world.session.handle(world.clock(), LINK, 1, message);
    assert_eq!(world.session.rejection(), Some("token revoked"));
    let actions: Vec<_> = std::iter::from_fn(|| world.session.poll_action()).collect();
    assert_eq!(actions.len(), 2, "{actions:?}");
}

#[test]
fn a_refusal_leaves_before_the_heartbeat_that_does_not_name_the_attempt() {
    use wire::worker_message::Body as Said;
    let mut world = World::new(1);
    world.open(0);
    world.exchange();
    world.exchange();
    let assign = world.ask(0, |server, store| server.assign_fresh(store, 1));
    world.now += LEASE_MS;
    let late = wire::ServerMessage { body: assign };
    world.session.handle(world.clock(), LINK, 1, late);
    let said = std::iter::from_fn(|| world.session.poll_transmit(world.clock(), LINK));
    let said: Vec<Said> = said.filter_map(|message| message.body).collect();
    let place = |wanted: fn(&Said) -> bool| said.iter().position(wanted);
    let refusal = place(|body| matches!(body, Said::Refused(_))).expect("it was refused");
    let heartbeat = place(|body| matches!(body, Said::Heartbeat(_))).expect("a beat was due");
    assert!(
        refusal < heartbeat,
        "the server would take it for forgotten"
    );
}

#[test]
fn what_could_not_be_started_is_handed_back_and_its_place_is_free_again() {
    use wire::worker_message::Body as Said;
    let mut world = World::new(1);
    world.open(0);
    world.exchange();
    world.exchange();
    let assign = wire::ServerMessage {
        body: world.ask(0, |server, store| server.assign_fresh(store, 1)),
    };
    world.session.handle(world.clock(), LINK, 1, assign);
    let Some(Action::Start { assign, .. }) = world.session.poll_action() else {
        panic!("it starts")
    };
    let attempt = assign.attempt.expect("it names one");
    world
        .session
        .attempt_refused(attempt.into(), "no descriptors");
    assert_eq!(world.session.running(), 0);
    let said = std::iter::from_fn(|| world.session.poll_transmit(world.clock(), LINK));
    let said: Vec<Said> = said.filter_map(|message| message.body).collect();
    let Some(Said::Refused(refused)) = said.first() else {
        panic!("{said:?}")
    };
    assert_eq!(
        (refused.attempt, refused.reason.as_str()),
        (Some(attempt), "no descriptors")
    );
    assert!(
        said.iter().any(|body| matches!(body, Said::Grant(_))),
        "{said:?}"
    );
    // The end of what was handed back is nobody's.
    world
        .session
        .attempt_finished(attempt.into(), wire::Finished::default());
    assert!(world.session.poll_transmit(world.clock(), LINK).is_none());
}

#[test]
fn the_newest_checkpoint_goes_out_again_until_it_is_settled() {
    let mut world = one_running();
    for _ in 0..3 {
        world.save(0);
    }
    world.open(0);
    world.exchange();
    world.exchange();
    world.renew();
    world.exchange();
    world.exchange();
    assert_eq!(world.store.checkpoints.values().collect::<Vec<_>>(), [&3]);
    assert_eq!(world.settled, 1, "those before it were never sent");
}

#[test]
fn the_next_attempt_counts_on() {
    let mut world = one_running();
    world.save(0);
    world.save(0);
    world.exchange();
    world.exchange();
    world.say(0, |server, store| server.cancel(store, 0));
    world.exchange();
    world.exchange();
    world.say(0, |server, store| server.assign_next(store, 0));
    world.exchange();
    world.save(0);
    world.exchange();
    assert_eq!(world.store.checkpoints.values().collect::<Vec<_>>(), [&3]);
}

#[test]
fn words_of_progress_leave_once_a_second() {
    let mut world = one_running();
    let attempt = *world.running.keys().next().expect("it runs");
    let mut told = Vec::new();
    for percent in 0..30 {
        let now = MonoMs(world.now);
        let message = "copying".to_owned();
        world
            .session
            .report_progress(now, attempt, percent, message);
        world.session.handle_timeout(now);
        while let Some(message) = world.session.poll_transmit(world.clock(), LINK) {
            if let Some(wire::worker_message::Body::Progress(report)) = message.body {
                told.push((world.now, report.percent));
            }
        }
        world.now += 50;
    }
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1].0 - told[0].0, 1_000);
    assert_eq!((told[0].1, told[1].1), (0, 20));
}
