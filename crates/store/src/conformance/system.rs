//! Rows of the system itself.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{
    Actor, Counters, Role, SegmentId, SegmentSet, SettingKey, SettingName, SettingRow, TokenId,
    TokenRow,
};

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

fn token(id: u64, revoked: bool) -> TokenRow {
    TokenRow {
        id: TokenId(id),
        name: format!("token-{id}"),
        role: Role::Operator,
        namespace: Some(namespace("team-a")),
        hash: [id as u8; 32],
        created: T0,
        actor: Actor::new("admin"),
        revoked,
    }
}

pub fn tokens(world: &mut World) {
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

/// Where several servers have the store open, each sees that another has changed what it keeps in memory.
pub fn definitions(world: &mut World) {
    let is_shared = u64::from(world.store().is_shared());
    let count = |world: &mut World| world.read().definitions().expect("it is read");
    let before = count(world);
    world.commit(ChangeSet::default());
    assert_eq!(count(world), before);
    let token = token(3, false);
    world.commit(ChangeSet {
        tokens: [(token.id, token)].into(),
        ..ChangeSet::default()
    });
    assert_eq!(count(world), before + is_shared);
    let setting = SettingRow {
        key: SettingKey {
            namespace: None,
            name: SettingName::Notify,
        },
        revision: 1,
        value: None,
        updated: T0,
        actor: Actor::new("admin"),
    };
    world.commit(ChangeSet {
        settings: [(setting.key.clone(), setting)].into(),
        ..ChangeSet::default()
    });
    world.reopen();
    assert_eq!(count(world), before + 2 * is_shared);
}

/// Where several servers have the store open, what belongs together stays together.
pub fn ties(world: &mut World) {
    let tied = |world: &mut World| world.read().ties().expect("they are read");
    if !world.store().is_shared() {
        assert_eq!(tied(world), SegmentSet::ALL);
        return;
    }
    assert_eq!(tied(world), SegmentSet::NONE);
    let set = |ids: &[u16]| ids.iter().map(|id| SegmentId(*id)).collect::<SegmentSet>();
    for ties in [set(&[0, 7]), set(&[7, 1023])] {
        world.commit(ChangeSet {
            ties,
            ..ChangeSet::default()
        });
    }
    world.reopen();
    assert_eq!(tied(world), set(&[0, 7, 1023]));
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
