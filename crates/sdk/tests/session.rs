//! The worker's session against a small server: whatever is lost, repeated or late, its promises hold.

mod session_world;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Action;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::server_message::Body;

use session_world::World;
use session_world::server::LEASE_MS;

#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Open,
    Break,
    ToServer(usize),
    ToWorker(usize),
    Assign(u32),
    AssignNext(usize),
    AssignAgain(usize),
    AssignStale(usize),
    Renew,
    Cancel(usize),
    Finish(usize),
    Write(usize),
    Save(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..LEASE_MS / 2).prop_map(Step::Advance),
        2 => Just(Step::Open),
        1 => Just(Step::Break),
        6 => (1..6usize).prop_map(Step::ToServer),
        6 => (1..6usize).prop_map(Step::ToWorker),
        4 => (1..4u32).prop_map(Step::Assign),
        2 => (0..9usize).prop_map(Step::AssignNext),
        2 => (0..9usize).prop_map(Step::AssignAgain),
        1 => (0..9usize).prop_map(Step::AssignStale),
        2 => Just(Step::Renew),
        1 => (0..9usize).prop_map(Step::Cancel),
        2 => (0..9usize).prop_map(Step::Finish),
        2 => (0..9usize).prop_map(Step::Write),
        2 => (0..9usize).prop_map(Step::Save),
    ]
}

fn take(world: &mut World, step: Step) {
    let said = match step {
        Step::Advance(ms) => return world.advance(ms),
        Step::Open => return world.open(),
        Step::Break => return world.break_stream(),
        Step::ToServer(count) => return world.deliver_to_server(count),
        Step::ToWorker(count) => return world.deliver_to_worker(count),
        Step::Finish(pick) => return world.finish(pick),
        Step::Write(pick) => return world.write(pick),
        Step::Save(pick) => return world.save(pick),
        Step::Assign(weight) => world.server.assign_fresh(weight),
        Step::AssignNext(pick) => world.server.assign_next(pick),
        Step::AssignAgain(pick) => world.server.assign_again(pick),
        Step::AssignStale(pick) => world.server.assign_stale(pick),
        Step::Renew => world.server.renew(),
        Step::Cancel(pick) => world.server.cancel(pick),
    };
    world.server_says(said);
}

proptest! {
    #[test]
    fn promises_hold_whatever_is_lost_repeated_or_late(steps in vec(step(), 1..150)) {
        let mut world = World::new();
        world.open();
        for step in steps {
            take(&mut world, step);
        }
        world.calm();
    }
}

/// A world with one attempt that runs.
fn one_running() -> World {
    let mut world = World::new();
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let assign = world.server.assign_fresh(2);
    world.server_says(assign);
    exchange(&mut world);
    assert_eq!(world.running.len(), 1);
    world
}

fn exchange(world: &mut World) {
    world.deliver_to_server(usize::MAX);
    world.deliver_to_worker(usize::MAX);
}

#[test]
fn a_server_that_is_silent_loses_the_attempt_and_is_told_when_it_is_back() {
    let mut world = one_running();
    world.break_stream();
    world.advance(LEASE_MS);
    assert!(world.running.is_empty());
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    assert_eq!(world.outcomes, [wire::Outcome::LeaseLost]);
}

#[test]
fn an_attempt_survives_a_broken_stream_within_its_lease() {
    let mut world = one_running();
    world.advance(LEASE_MS / 2);
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let renewal = world.server.renew();
    world.server_says(renewal);
    exchange(&mut world);
    world.advance(LEASE_MS / 2);
    assert_eq!(world.running.len(), 1, "the new stream renewed it");
}

#[test]
fn a_run_that_takes_too_long_is_stopped() {
    let mut world = one_running();
    for _ in 0..40 {
        world.advance(100);
        let renewal = world.server.renew();
        world.server_says(renewal);
        exchange(&mut world);
    }
    assert_eq!(world.outcomes, [wire::Outcome::TimedOut]);
}

#[test]
fn an_assignment_that_travelled_longer_than_its_lease_is_refused() {
    let mut world = World::new();
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let assign = world.server.assign_fresh(1);
    world.server_says(assign);
    world.advance(LEASE_MS);
    exchange(&mut world);
    assert!(world.starts.is_empty());
    world.calm();
}

#[test]
fn messages_of_an_older_stream_are_dropped() {
    let mut world = World::new();
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let assign = world.server.assign_fresh(1);
    world.open();
    exchange(&mut world);
    let message = wire::ServerMessage { body: assign };
    world.session.handle(world.clock(), 1, message);
    world.settle();
    assert!(world.starts.is_empty());
}

#[test]
fn draining_takes_credit_back_lets_runs_end_and_says_goodbye() {
    let mut world = one_running();
    let now = world.now;
    world.session.drain(MonoMs(now), MonoMs(now + 500));
    world.settle();
    let late = world.server.assign_fresh(1);
    world.server_says(late);
    exchange(&mut world);
    exchange(&mut world);
    assert_eq!(
        world.starts.len(),
        1,
        "an assignment that crossed the recall is refused"
    );
    assert!(!world.session.is_done());
    world.finish(0);
    exchange(&mut world);
    exchange(&mut world);
    assert!(world.server.goodbye);
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
        exchange(&mut world);
    }
    assert_eq!(world.outcomes, [wire::Outcome::Cancelled]);
    assert!(world.server.goodbye);
}

#[test]
fn draining_without_a_server_ends_all_the_same() {
    let mut world = one_running();
    world.break_stream();
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
    world.session.handle(world.clock(), 1, message);
    assert_eq!(world.session.rejection(), Some("token revoked"));
    let actions: Vec<_> = std::iter::from_fn(|| world.session.poll_action()).collect();
    assert_eq!(actions.len(), 2, "{actions:?}");
}

#[test]
fn a_refusal_leaves_before_the_heartbeat_that_does_not_name_the_attempt() {
    use wire::worker_message::Body as Said;
    let mut world = World::new();
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let assign = world.server.assign_fresh(1);
    world.now += LEASE_MS;
    let late = wire::ServerMessage { body: assign };
    world.session.handle(world.clock(), 1, late);
    let said = std::iter::from_fn(|| world.session.poll_transmit(world.clock()));
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
    let mut world = World::new();
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    let assign = wire::ServerMessage {
        body: world.server.assign_fresh(1),
    };
    world.session.handle(world.clock(), 1, assign);
    let Some(Action::Start { assign, .. }) = world.session.poll_action() else {
        panic!("it starts")
    };
    let attempt = assign.attempt.expect("it names one");
    world
        .session
        .attempt_refused(attempt.into(), "no descriptors");
    assert_eq!(world.session.running(), 0);
    let said = std::iter::from_fn(|| world.session.poll_transmit(world.clock()));
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
    assert!(world.session.poll_transmit(world.clock()).is_none());
}

#[test]
fn the_newest_checkpoint_goes_out_again_until_it_is_settled() {
    let mut world = one_running();
    for _ in 0..3 {
        world.save(0);
    }
    world.open();
    exchange(&mut world);
    exchange(&mut world);
    assert_eq!(world.server.checkpoints.values().collect::<Vec<_>>(), [&3]);
    assert_eq!(world.settled, 1, "those before it were never sent");
}

#[test]
fn the_next_attempt_counts_on() {
    let mut world = one_running();
    world.save(0);
    world.save(0);
    exchange(&mut world);
    exchange(&mut world);
    let cancel = world.server.cancel(0);
    world.server_says(cancel);
    exchange(&mut world);
    exchange(&mut world);
    let next = world.server.assign_next(0);
    world.server_says(next);
    exchange(&mut world);
    world.save(0);
    exchange(&mut world);
    assert_eq!(world.server.checkpoints.values().collect::<Vec<_>>(), [&3]);
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
        while let Some(message) = world.session.poll_transmit(world.clock()) {
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
