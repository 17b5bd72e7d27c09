//! Idempotency keys.

use drumtower_core::change::ChangeSet;
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
    world.commit(set(&[entry("a", T0, 1)]));
    world.refuse(set(&[entry("a", T0.plus(9), 2)]));
    world.commit(set(&[entry("b", T0.plus(9), 2)]));
}
