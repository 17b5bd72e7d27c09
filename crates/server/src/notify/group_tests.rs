//! How many messages come of how many events.

use proptest::prelude::*;

use super::*;
use crate::notify::tests_support::{event, place};

const PACE: Pace = Pace { per_hour: 60 };
const MINUTE: i64 = 60_000;

fn add(groups: &mut Groups, now: i64, event: Event) -> Option<Message> {
    let place = place("a");
    match groups.add(PACE, WallMs(now), &place, 300_000, event) {
        Grouped::Send(message) => Some(message),
        Grouped::Kept => None,
        Grouped::Dropped => panic!("dropped"),
    }
}

fn total(message: &Message) -> u64 {
    message.digest.as_ref().unwrap().total()
}

#[test]
fn the_first_is_told_at_once_and_the_rest_of_the_window_in_one() {
    let mut groups = Groups::default();
    let first = add(&mut groups, 0, event(NotifyOn::Failure, 1, 1, 0)).unwrap();
    assert_eq!((total(&first), first.kind()), (1, "failure"));
    for run in 2..500 {
        assert!(add(&mut groups, 1000, event(NotifyOn::Failure, 1, run, 1000)).is_none());
    }
    let recovered = add(&mut groups, 2000, event(NotifyOn::Recovery, 1, 500, 2000)).unwrap();
    assert_eq!(recovered.kind(), "recovery", "of another kind, so at once");
    assert!(groups.tick(PACE, WallMs(5 * MINUTE - 1)).is_empty());
    let rest = groups.tick(PACE, WallMs(5 * MINUTE));
    assert_eq!(rest.iter().map(total).collect::<Vec<_>>(), [498]);
    assert_eq!(rest[0].digest.as_ref().unwrap().examples.len(), 3);
    let idle = groups.tick(PACE, WallMs(20 * MINUTE));
    assert!(idle.is_empty());
    assert_eq!(
        groups,
        Groups::default(),
        "nothing is held of a quiet place"
    );
}

#[test]
fn ten_thousand_failing_jobs_make_a_handful_of_messages() {
    let mut groups = Groups::default();
    let mut sent = Vec::new();
    for job in 0..10_000 {
        sent.extend(add(&mut groups, 0, event(NotifyOn::Failure, job, job, 0)));
    }
    assert_eq!(sent.len(), BURST as usize);
    assert!(groups.tick(PACE, WallMs(MINUTE - 1)).is_empty());
    sent.extend(groups.tick(PACE, WallMs(MINUTE)));
    assert_eq!(sent.len(), BURST as usize + 1);
    assert_eq!(total(sent.last().unwrap()), 10_000 - BURST as u64);
    assert!(
        sent.last()
            .unwrap()
            .summary()
            .contains("at least 1000 jobs")
    );
    assert_eq!(sent.iter().map(total).sum::<u64>(), 10_000);
}

#[test]
fn places_do_not_share_their_pace() {
    let mut groups = Groups::default();
    for job in 0..100 {
        add(&mut groups, 0, event(NotifyOn::Failure, job, job, 0));
    }
    let other = place("b");
    let event = event(NotifyOn::Failure, 1, 1, 0);
    assert!(matches!(
        groups.add(PACE, WallMs(0), &other, 1000, event),
        Grouped::Send(_)
    ));
}

#[test]
fn the_same_event_makes_the_same_message() {
    let one = add(&mut Groups::default(), 5, event(NotifyOn::Failure, 1, 1, 0)).unwrap();
    let again = add(&mut Groups::default(), 9, event(NotifyOn::Failure, 1, 1, 0)).unwrap();
    let other = add(&mut Groups::default(), 5, event(NotifyOn::Failure, 1, 2, 0)).unwrap();
    assert_eq!(one.id, again.id);
    assert_ne!(one.id, other.id);
}

proptest! {
    /// Whatever happens when: every event is counted in one message, no hour has more than its share of messages, and time
    /// that goes back silences nobody for ever.
    #[test]
    fn every_event_is_told_and_no_hour_has_too_many(
        events in prop::collection::vec((0..30i64, 0..8u64, 0..3usize, 0..400i64), 1..400),
        back in 0..100_000i64,
    ) {
        let kinds = [NotifyOn::Failure, NotifyOn::Recovery, NotifyOn::Late];
        let (mut groups, mut now, mut sent) = (Groups::default(), 1_000_000, Vec::new());
        let count = events.len() as u64;
        for (run, (step, job, kind, group_s)) in events.into_iter().enumerate() {
            now += step * 1000;
            let event = event(kinds[kind], job, run as u64, now);
            let for_ms = group_s as u64 * 1000;
            if let Grouped::Send(message) = groups.add(PACE, WallMs(now), &place("a"), for_ms, event) {
                sent.push((now, total(&message)));
            }
            sent.extend(groups.tick(PACE, WallMs(now)).iter().map(|it| (now, total(it))));
        }
        for (at, _) in &sent {
            let hour = sent.iter().filter(|(other, _)| other >= at && *other < at + HOUR_MS).count();
            prop_assert!(hour <= 60 + BURST as usize, "{hour}");
        }
        now -= back;
        for _ in 0..2000 {
            now += 10_000;
            sent.extend(groups.tick(PACE, WallMs(now)).iter().map(|it| (now, total(it))));
        }
        prop_assert_eq!(sent.iter().map(|(_, total)| total).sum::<u64>(), count);
        prop_assert_eq!(groups, Groups::default());
    }
}
