//! The wheel against a model of ordered maps.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Key, Wheel};

const TURN: u64 = 1 << 36;

fn fired(wheel: &mut Wheel<u32>, now: u64) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    wheel.advance(now, &mut out);
    out
}

#[test]
fn fires_by_deadline_then_by_insertion() {
    let mut wheel = Wheel::new(0);
    wheel.insert(5000, 1);
    wheel.insert(70, 2);
    fired(&mut wheel, 69);
    // Inserted on a finer level than its elder sibling came from.
    wheel.insert(5000, 3);
    fired(&mut wheel, 4999);
    wheel.insert(5000, 4);
    assert_eq!(fired(&mut wheel, 5000), [(5000, 1), (5000, 3), (5000, 4)]);
    assert!(wheel.is_empty());
}

#[test]
fn past_deadlines_come_first_and_in_order() {
    let mut wheel = Wheel::new(100);
    wheel.insert(101, 1);
    wheel.insert(90, 2);
    wheel.insert(100, 3);
    wheel.insert(40, 4);
    wheel.insert(90, 5);
    assert_eq!(wheel.next_at(), Some(40));
    assert_eq!(
        fired(&mut wheel, 101),
        [(40, 4), (90, 2), (90, 5), (100, 3), (101, 1)]
    );
}

#[test]
fn a_stale_key_finds_nothing() {
    let mut wheel = Wheel::new(0);
    let first = wheel.insert(10, 1);
    assert_eq!(wheel.cancel(first), Some(1));
    assert_eq!(wheel.cancel(first), None);
    let second = wheel.insert(10, 2);
    assert_eq!(wheel.cancel(first), None);
    assert_eq!(fired(&mut wheel, 10), [(10, 2)]);
    assert_eq!(wheel.cancel(second), None);
    assert_eq!(wheel.next_at(), None);
}

#[test]
fn time_never_goes_back() {
    let mut wheel = Wheel::new(1000);
    wheel.insert(1500, 1);
    assert_eq!(fired(&mut wheel, 10), []);
    assert_eq!(wheel.now(), 1000);
    assert_eq!(fired(&mut wheel, u64::MAX), [(1500, 1)]);
    wheel.insert(u64::MAX, 2);
    assert_eq!(fired(&mut wheel, 0), [(u64::MAX, 2)]);
}

#[test]
fn next_at_is_exact_nearby_and_a_lower_bound_far_away() {
    let mut wheel = Wheel::new(0);
    wheel.insert(u64::MAX, 1);
    assert_eq!(wheel.next_at(), Some(u64::MAX >> 36 << 36));
    wheel.insert(TURN + 77, 2);
    assert_eq!(wheel.next_at(), Some(TURN));
    wheel.insert(4096 + 5, 3);
    assert_eq!(wheel.next_at(), Some(4096));
    wheel.insert(63, 4);
    assert_eq!(wheel.next_at(), Some(63));
}

#[test]
fn following_next_at_fires_each_timer_on_its_millisecond() {
    let mut wheel = Wheel::new(3);
    for at in [64, 4095, 4096, 262_144 + 4097, TURN - 1, TURN, 9 * TURN + 1] {
        wheel.insert(at, 0);
    }
    let mut calls = 0;
    while let Some(at) = wheel.next_at() {
        for (deadline, _) in fired(&mut wheel, at) {
            assert_eq!(deadline, at);
        }
        calls += 1;
    }
    // At most one call for each level that a timer passes.
    assert!(calls <= 7 * 7, "{calls} calls");
}

#[test]
fn an_entry_costs_at_most_forty_bytes_beside_its_value() {
    let entry = std::mem::size_of::<super::slab::Entry<u64>>();
    assert!(entry - std::mem::size_of::<u64>() <= 40, "{entry}");
}

/// The same timers, ordered by (deadline, insertion).
#[derive(Default)]
struct Model {
    now: u64,
    timers: BTreeMap<(u64, u32), Key>,
}

impl Model {
    fn advance(&mut self, now: u64) -> Vec<(u64, u32)> {
        self.now = self.now.max(now);
        let later = self.timers.split_off(&(self.now, u32::MAX));
        let due = std::mem::replace(&mut self.timers, later);
        due.into_keys().collect()
    }
}

#[derive(Debug, Clone)]
enum Op {
    /// A deadline at this distance from the current time.
    Ahead(u64),
    /// The same deadline as a timer that is pending already.
    Again(prop::sample::Index),
    /// A deadline anywhere.
    At(u64),
    Cancel(prop::sample::Index),
    /// A key that has been handed out at some time, live or not.
    CancelStale(prop::sample::Index),
    Advance(u64),
    /// To just before, at, or just after the time that `next_at` names.
    AdvanceToNext(i8),
    Rewind(u64),
}

/// Distances around the borders of every level, and extremes.
fn distance() -> impl Strategy<Value = u64> {
    let border = (0u32..11, 0u64..64, -2i64..=2)
        .prop_map(|(digit, times, off)| (times << (6 * digit.min(9))).saturating_add_signed(off));
    prop_oneof![
        4 => 0u64..200,
        4 => border,
        1 => 0u64..(3 * TURN),
        1 => any::<u64>(),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => distance().prop_map(Op::Ahead),
        2 => index().prop_map(Op::Again),
        1 => prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(u64::MAX - 1)].prop_map(Op::At),
        3 => index().prop_map(Op::Cancel),
        1 => index().prop_map(Op::CancelStale),
        3 => distance().prop_map(Op::Advance),
        4 => (-1i8..=1).prop_map(Op::AdvanceToNext),
        1 => any::<u64>().prop_map(Op::Rewind),
    ]
}

/// Beginnings just before a border, so that short runs cross it too.
fn beginning() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        (0u32..64, 0u64..100).prop_map(|(bit, back)| (1u64 << bit).saturating_sub(back)),
        (0u64..1000).prop_map(|back| u64::MAX - back),
    ]
}

struct Pair {
    wheel: Wheel<u32>,
    model: Model,
    keys: Vec<Key>,
    sequence: u32,
}

impl Pair {
    fn new(now: u64) -> Self {
        Self {
            wheel: Wheel::new(now),
            model: Model {
                now,
                ..Model::default()
            },
            keys: Vec::new(),
            sequence: 0,
        }
    }

    fn insert(&mut self, at: u64) {
        let key = self.wheel.insert(at, self.sequence);
        self.model.timers.insert((at, self.sequence), key);
        self.keys.push(key);
        self.sequence += 1;
    }

    fn pick(&self, index: prop::sample::Index) -> Option<(u64, u32)> {
        let timers = &self.model.timers;
        (!timers.is_empty()).then(|| *timers.keys().nth(index.index(timers.len())).unwrap())
    }

    fn cancel(&mut self, key: Key) {
        let found = self.model.timers.iter().find(|(_, live)| **live == key);
        let expected = found.map(|(timer, _)| *timer);
        if let Some(timer) = expected {
            self.model.timers.remove(&timer);
        }
        assert_eq!(self.wheel.cancel(key), expected.map(|(_, value)| value));
    }

    fn advance(&mut self, now: u64) {
        assert_eq!(fired(&mut self.wheel, now), self.model.advance(now));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Ahead(by) => self.insert(self.model.now.saturating_add(by)),
            Op::Again(index) => {
                if let Some((at, _)) = self.pick(index) {
                    self.insert(at);
                }
            }
            Op::At(at) => self.insert(at),
            Op::Cancel(index) => {
                if let Some(timer) = self.pick(index) {
                    self.cancel(self.model.timers[&timer]);
                }
            }
            Op::CancelStale(index) => {
                if !self.keys.is_empty() {
                    self.cancel(*index.get(&self.keys));
                }
            }
            Op::Advance(by) => self.advance(self.model.now.saturating_add(by)),
            Op::AdvanceToNext(off) => {
                let next = self.wheel.next_at().unwrap_or(0);
                self.advance(next.saturating_add_signed(off.into()));
            }
            Op::Rewind(now) => self.advance(now.min(self.model.now)),
        }
        self.check();
    }

    fn check(&self) {
        let earliest = self.model.timers.keys().next().map(|(at, _)| *at);
        let next = self.wheel.next_at();
        assert_eq!(next.is_some(), earliest.is_some());
        if let (Some(next), Some(earliest)) = (next, earliest) {
            assert!(next <= earliest, "{next} is later than {earliest}");
            let near = earliest > self.model.now && earliest >> 6 == self.model.now >> 6;
            assert!(!near || next == earliest, "{next} is not {earliest}");
            assert!(next > self.model.now || earliest <= self.model.now);
        }
        assert_eq!(self.wheel.len(), self.model.timers.len());
        assert_eq!(self.wheel.now(), self.model.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_an_ordered_map(
        now in beginning(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut pair = Pair::new(now);
        for op in ops {
            pair.apply(op);
        }
        pair.advance(u64::MAX);
        assert!(pair.wheel.is_empty());
    }
}
