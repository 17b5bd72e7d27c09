//! Idempotency keys.

use drumtower_core::change::{ChangeSet, Prune};
use drumtower_core::model::{IdempotencyEntry, IdempotencyHash, WallMs};

use super::World;
use super::sample::{T0, run_id};

const HOUR_MS: i64 = 3_600_000;

fn entry(key: &str, at: WallMs, counter: u64) -> IdempotencyEntry {
    let hash = IdempotencyHash::of("default", "one", key);
    IdempotencyEntry {
        hash,
        fingerprint: IdempotencyHash::fingerprint(&[key]),
        run: run_id(0, counter),
        created: at,
    }
}

fn set(entries: &[IdempotencyEntry]) -> ChangeSet {
    ChangeSet {
        keys: entries
            .iter()
            .map(|entry| (entry.hash, entry.clone()))
            .collect(),
        ..ChangeSet::default()
    }
}

pub fn expiry(world: &mut World) {
    let (early, late) = (
        entry("a", T0.plus(5), 1),
        entry("b", T0.plus(3 * HOUR_MS), 2),
    );
    world.commit(set(&[early.clone(), late.clone()]));
    let find = |world: &World, entry: &IdempotencyEntry, now| {
        world
            .read()
            .idempotency(&entry.hash, now)
            .expect("it is read")
    };
    let day = IdempotencyEntry::KEPT_MS;
    assert_eq!(find(world, &early, T0.plus(6)), Some(early.clone()));
    assert_eq!(find(world, &early, T0.plus(day + 4)), Some(early.clone()));
    assert_eq!(find(world, &early, T0.plus(day + 5)), None);
    assert_eq!(find(world, &late, T0.plus(day + 5)), Some(late));
    assert_eq!(find(world, &entry("c", T0, 3), T0), None);
    let again = entry("a", T0.plus(day + 7), 4);
    world.commit(set(std::slice::from_ref(&again)));
    assert_eq!(find(world, &early, T0.plus(day + 8)), Some(again));
}

pub fn taken(world: &mut World) {
    let day = IdempotencyEntry::KEPT_MS;
    world.commit(set(&[entry("a", T0, 1)]));
    world.refuse(set(&[entry("a", T0.plus(9), 2)]));
    world.refuse(set(&[entry("b", T0, 2), entry("a", T0.plus(day - 1), 2)]));
    world.commit(set(&[entry("b", T0.plus(9), 2)]));
    world.commit(set(&[entry("a", T0.plus(day), 3)]));
}

/// More keys than a small bucket holds, the first of them removed again.
pub fn many(world: &mut World) {
    let all: Vec<_> = (0..60)
        .map(|n| entry(&format!("key-{n}"), T0.plus(n * HOUR_MS / 4), n as u64))
        .collect();
    for some in all.chunks(4) {
        world.commit(set(some));
    }
    let find = |world: &World, entry: &IdempotencyEntry| {
        world
            .read()
            .idempotency(&entry.hash, entry.created)
            .expect("it is read")
    };
    for entry in &all {
        assert_eq!(find(world, entry).as_ref(), Some(entry));
    }
    let now = T0.plus(IdempotencyEntry::KEPT_MS + 6 * HOUR_MS);
    for _ in 0..6 {
        world.commit(ChangeSet {
            prune: Some(Prune { now, limit: 5 }),
            ..ChangeSet::default()
        });
    }
    for (entry, n) in all.iter().zip(0..) {
        assert_eq!(
            find(world, entry).is_some(),
            n >= 20,
            "of key {n}: five hours are gone"
        );
    }
}
