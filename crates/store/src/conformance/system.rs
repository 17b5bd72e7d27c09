//! Rows of the system itself.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Actor, Counters, Role, SegmentId, TokenId, TokenRow};

use super::World;
use super::sample::{T0, namespace};

pub fn begins(world: &mut World) {
    let meta = world.read().meta().expect("it is read");
    assert_eq!(meta.segment_count, SegmentId::COUNT);
    assert!(!meta.cluster.is_empty() && !meta.tz_version.is_empty());
    assert!(meta.schema_version >= meta.oldest_server && meta.oldest_server >= 1);
    let segments = world.read().segments().expect("they are read");
    assert_eq!(segments.len(), usize::from(SegmentId::COUNT));
    assert!(
        segments
            .iter()
            .zip(0..)
            .all(|(row, number)| row.id == SegmentId(number) && row.epoch.0 == 0)
    );
    assert!(world.read().pruned().expect("it is read").is_empty());
}

pub fn tokens(world: &mut World) {
    let token = |id: u64, revoked| TokenRow {
        id: TokenId(id),
        name: format!("token-{id}"),
        role: Role::Operator,
        namespace: Some(namespace("team-a")),
        hash: [id as u8; 32],
        created: T0,
        actor: Actor::new("admin"),
        revoked,
    };
    let set = |rows: Vec<TokenRow>| ChangeSet {
        tokens: rows.into_iter().map(|row| (row.id, row)).collect(),
        ..ChangeSet::default()
    };
    // Token ids are random, so they may use all 64 bits.
    world.commit(set(vec![token(u64::MAX - 5, false), token(3, false)]));
    world.commit(set(vec![token(3, true)]));
    assert_eq!(
        world.read().tokens().expect("they are read"),
        [token(3, true), token(u64::MAX - 5, false)]
    );
}

pub fn counters(world: &mut World) {
    let counters = |created| Counters {
        created,
        completed: 2,
        failed: 1,
        cancelled: 0,
    };
    let set = |rows: &[(u16, &str, u64)]| ChangeSet {
        counters: rows
            .iter()
            .map(|(s, n, created)| ((SegmentId(*s), namespace(n)), counters(*created)))
            .collect(),
        ..ChangeSet::default()
    };
    world.commit(set(&[(1, "b", 4), (1, "a", 5), (0, "b", 6)]));
    world.commit(set(&[(1, "b", 9)]));
    let expected = [(0, "b", 6), (1, "a", 5), (1, "b", 9)];
    let expected: Vec<_> = expected
        .iter()
        .map(|(s, n, created)| ((SegmentId(*s), namespace(n)), counters(*created)))
        .collect();
    assert_eq!(world.read().counters().expect("they are read"), expected);
}
