//! What is tried when, for how long, and what is given up.

use super::*;
use crate::notify::digest::Digest;
use crate::notify::tests_support::{event, place};
use drumtower_core::model::NotifyOn;

fn message(to: &str, run: u64) -> Message {
    let event = event(NotifyOn::Failure, 1, run, 0);
    Message::new(&place(to), Digest::of(event), WallMs(0))
}

fn again() -> Outcome {
    Outcome::Again("answered 500".to_owned())
}

#[test]
fn a_message_is_tried_until_it_is_delivered() {
    let mut outbox = Outbox::default();
    let message = message("a", 1);
    outbox.push(message.clone(), WallMs(0));
    outbox.push(message.clone(), WallMs(0));
    assert_eq!(
        outbox.start(WallMs(0), 9).len(),
        1,
        "a known one is not taken again"
    );
    assert!(outbox.start(WallMs(0), 9).is_empty(), "it is on its way");
    outbox.finished(&message.id, again(), WallMs(100));
    assert!(outbox.start(WallMs(5099), 9).is_empty());
    assert_eq!(outbox.start(WallMs(5100), 9).len(), 1);
    outbox.finished(&message.id, Outcome::Delivered, WallMs(5200));
    let all: Vec<_> = outbox.deliveries().collect();
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].state, all[0].attempts, &all[0].error),
        (State::Delivered, 2, &None)
    );
    outbox.push(message, WallMs(6000));
    assert_eq!(outbox.pending(), 0, "it was delivered");
}

#[test]
fn waits_grow_to_an_hour_and_end_after_a_day() {
    let mut outbox = Outbox::default();
    let message = message("a", 1);
    outbox.push(message.clone(), WallMs(0));
    let (mut now, mut waits) = (WallMs(0), Vec::new());
    loop {
        assert_eq!(outbox.start(now, 9).len(), 1);
        outbox.finished(&message.id, again(), now);
        let Some(next) = outbox.deliveries().next().and_then(|it| it.next) else {
            break;
        };
        waits.push(next.since(now) / 1000);
        now = next;
    }
    assert_eq!(
        waits[..11],
        [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    );
    assert!(waits[11..].iter().all(|wait| *wait == 3600));
    assert!((24 * 3_600_000..26 * 3_600_000).contains(&now.0), "{now:?}");
    let last = outbox.deliveries().next().unwrap();
    assert_eq!(last.state, State::Failed);
    assert_eq!(last.error.as_deref(), Some("tried for a day: answered 500"));
}

#[test]
fn one_at_a_time_goes_to_a_place_in_order() {
    let mut outbox = Outbox::default();
    let (first, second, other) = (message("a", 1), message("a", 2), message("b", 3));
    for message in [&first, &second, &other] {
        outbox.push(message.clone(), WallMs(0));
    }
    let started: Vec<_> = outbox
        .start(WallMs(0), 9)
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(started, [first.id.clone(), other.id]);
    outbox.finished(&first.id, again(), WallMs(0));
    assert!(
        outbox.start(WallMs(1), 9).is_empty(),
        "the first one waits before the second"
    );
    outbox.start(WallMs(5000), 9);
    outbox.finished(
        &first.id,
        Outcome::Never("answered 404".to_owned()),
        WallMs(5000),
    );
    assert_eq!(outbox.start(WallMs(5000), 9)[0].id, second.id);
}

#[test]
fn what_is_too_much_is_given_up_and_shown() {
    let mut outbox = Outbox::default();
    for run in 0..=PLACE as u64 {
        outbox.push(message("a", run), WallMs(0));
    }
    assert_eq!(outbox.pending(), PLACE);
    let dropped: Vec<_> = outbox
        .deliveries()
        .filter(|it| it.state == State::Dropped)
        .collect();
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0].message.id, message("a", 0).id, "the oldest one");
    for to in 0..ALL {
        outbox.push(message(&format!("t{to}"), 1), WallMs(0));
    }
    assert_eq!(outbox.pending(), ALL);
    assert_eq!(outbox.deliveries().count(), ALL + PLACE + 1);
}
