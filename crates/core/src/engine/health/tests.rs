//! The standing of a name by itself.

use proptest::prelude::*;

use super::super::fleet_view::a_view;
use super::*;

fn kin(name: &str) -> Kin {
    Kin {
        name: WorkerName::new(name).expect("a name"),
        namespace: None,
    }
}

fn lose(health: &mut Health, at: u64) -> Option<u64> {
    health.lost(MonoMs(at), kin("w"), 1, a_view("w"))
}

fn trust(health: &mut Health, at: u64, beats: u32) -> Trust {
    health.trust(MonoMs(at), &kin("w"), beats, || false)
}

#[test]
fn the_third_loss_within_the_window_isolates() {
    let mut health = Health::default();
    assert_eq!(lose(&mut health, 0), None);
    assert_eq!(lose(&mut health, 1_000), None);
    assert_eq!(lose(&mut health, WINDOW_MS + 500), None, "the first is old");
    assert_eq!(lose(&mut health, WINDOW_MS + 900), Some(60_000));
    assert_eq!(trust(&mut health, WINDOW_MS + 1_000, 9), Trust::Nothing);
    assert_eq!(trust(&mut health, WINDOW_MS + 60_899, 9), Trust::Nothing);
    assert_eq!(trust(&mut health, WINDOW_MS + 60_900, 1), Trust::OneRun);
}

#[test]
fn one_that_was_lost_proves_itself_by_heartbeats() {
    let mut health = Health::default();
    assert_eq!(trust(&mut health, 0, 0), Trust::Nothing, "not heard of yet");
    assert_eq!(trust(&mut health, 0, 1), Trust::Full);
    lose(&mut health, 0);
    assert_eq!(trust(&mut health, 1, 1), Trust::Full);
    lose(&mut health, 2);
    assert_eq!(trust(&mut health, 3, 1), Trust::Nothing);
    assert_eq!(trust(&mut health, 3, 2), Trust::Full);
    assert_eq!(trust(&mut health, WINDOW_MS + 2, 1), Trust::Full);
}

#[test]
fn a_loss_on_probation_doubles_the_period_up_to_a_cap() {
    let mut health = Health::default();
    let mut at = 0;
    lose(&mut health, at);
    lose(&mut health, at);
    for period in [1, 2, 4, 8, 16, 30, 30].map(|minutes| minutes * 60_000) {
        assert_eq!(lose(&mut health, at), Some(period));
        at += period;
        assert_eq!(trust(&mut health, at - 1, 5), Trust::Nothing);
        assert_eq!(trust(&mut health, at, 5), Trust::OneRun);
    }
}

#[test]
fn an_attempt_that_ends_restores_trust_and_an_hour_forgets() {
    let mut health = Health::default();
    for _ in 0..3 {
        lose(&mut health, 0);
    }
    trust(&mut health, 60_000, 1);
    health.survived(&kin("w"));
    assert_eq!(trust(&mut health, 60_000, 1), Trust::Full);
    for (at, period) in [(70_000, 120_000), (70_000 + 2 * FORGET_MS, 60_000)] {
        assert_eq!(lose(&mut health, at), None);
        assert_eq!(lose(&mut health, at), None);
        assert_eq!(lose(&mut health, at), Some(period));
        trust(&mut health, at + period, 1);
        health.survived(&kin("w"));
    }
}

#[test]
fn a_name_that_many_share_is_good_for_three_losses_each() {
    let mut health = Health::default();
    let mut lose = |at| health.lost(MonoMs(at), kin("w"), 2, a_view("w"));
    assert!((0..5).all(|at| lose(at).is_none()));
    assert_eq!(lose(5), Some(60_000));
}

/// A machine with five workers of one name loses power, twice: that is two losses each.
#[test]
fn those_that_are_lost_together_are_counted_together() {
    let mut health = Health::default();
    let mut outage = |at| {
        let left = (1..=5).rev();
        let isolated =
            left.map(|processes| health.lost(MonoMs(at), kin("w"), processes, a_view("w")));
        isolated.flatten().last()
    };
    assert_eq!(outage(0), None);
    assert_eq!(outage(1_000), None);
    assert_eq!(outage(2_000), Some(60_000), "the third");
    let mut alone = |at| health.lost(MonoMs(at), kin("x"), 1, a_view("x"));
    assert_eq!((alone(0), alone(1), alone(2)), (None, None, Some(60_000)));
}

#[test]
fn how_many_there_were_is_forgotten_with_their_losses() {
    let mut health = Health::default();
    for processes in (1..=5).rev() {
        health.lost(MonoMs(0), kin("w"), processes, a_view("w"));
    }
    assert_eq!(lose(&mut health, WINDOW_MS), None);
    assert_eq!(lose(&mut health, WINDOW_MS + 1), None);
    assert_eq!(lose(&mut health, WINDOW_MS + 2), Some(60_000));
}

#[test]
fn whoever_is_alone_is_tried_at_once() {
    let mut health = Health::default();
    for _ in 0..3 {
        lose(&mut health, 0);
    }
    let alone = health.trust(MonoMs(1), &kin("w"), 1, || true);
    assert_eq!(alone, Trust::OneRun);
}

#[test]
fn a_reset_forgets_everything() {
    let mut health = Health::default();
    for _ in 0..3 {
        lose(&mut health, 0);
    }
    let workers = WorkerRef {
        name: kin("w").name,
        namespace: None,
    };
    assert_eq!(health.reset(&workers), vec![kin("w")]);
    assert_eq!(trust(&mut health, 1, 1), Trust::Full);
    assert_eq!(health.reset(&workers), vec![]);
}

proptest! {
    /// Whatever happened, isolation ends by itself within half an hour, and one attempt is enough to be trusted again.
    #[test]
    fn isolation_always_ends(gaps in proptest::collection::vec((0_u64..700_000, 0_u32..4), 1..60)) {
        let mut health = Health::default();
        let mut now = 0;
        for (gap, what) in gaps {
            now += gap;
            match what {
                0 | 1 => { lose(&mut health, now); }
                2 => { trust(&mut health, now, 3); }
                _ => health.survived(&kin("w")),
            }
        }
        now += LONGEST_MS;
        prop_assert_ne!(trust(&mut health, now, 3), Trust::Nothing);
        health.survived(&kin("w"));
        prop_assert_eq!(trust(&mut health, now, 3), Trust::Full);
    }
}
